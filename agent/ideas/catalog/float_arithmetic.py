"""Keep float arithmetic in float, and write divisions and powers in their cheaper forms."""

from collections.abc import Sequence

from agent.ideas.idea import Expectation, Scope
from agent.ideas.precision.doubles import Change, accidental
from agent.ideas.precision.forms import cheaper, intrinsics, quick
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, replace, source_text
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 22
//   buffer   x: f32[n] in uniform(0.5, 2)
//   buffer   y: f32[n] out
//   launch   wave<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void wave(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float r = 0.1 + pow(x[i], 2) * 0.3;
    float s = exp(-0.7 * r);
    y[i] = s / sqrtf(r) + r / 3.0f;
}
"""


@catalogued(
    name="float-arithmetic",
    title="Keep float arithmetic in float, in its cheaper forms",
    rationale=(
        "A literal without an f, or `pow` of a float and an integer, makes the arithmetic around it double: conversion "
        "each way, half the rate at best (1/64 on many cards), and functions several times as long. Where all "
        "variables of an expression are floats and its value goes to a float, that precision is rounded away at the "
        "end. A float division is some ten instructions with a branch: a product with the reciprocal, or `rsqrtf` for "
        "a division by a root, is one or two, and stays within two ulp."
    ),
    needs=(
        "all variables of an expression are floats or integers, and its value goes to a float",
        "no cast to double, and no variable that is one: those are meant",
        "a division by a root or by a literal, a power of 2, 3 or 4 as written",
        "in loops, exponentials, and powers of what cannot be negative: their approximations pass where the original's "
        "own rounding is as large",
    ),
    effect="instructions, conversions and double operations",
    risk="results differ in their last bits; where rounding errors cancelled before, they may not now",
    example=EXAMPLE,
)
def float_arithmetic(view: View) -> Match | Refusal:
    doubles, forms = accidental(view), cheaper(view)
    fast = intrinsics(view) if view.request.lossy else quick(view)
    if not (doubles or forms or fast):
        return Refusal("no float is computed in double, and no division or power has a cheaper form")
    return _match(view, doubles, forms, fast)


def _match(view: View, doubles: Sequence[Change], forms: Sequence[Change], fast: Sequence[Change]) -> Match:
    first = min((*doubles, *forms, *fast), key=lambda change: change[0].start_byte)
    variants = []
    if doubles:
        why = "an f behind literals, and the float names of functions"
        variants.append(Variant("floats stay floats", why, Scope.DROP_IN, lambda: _written(doubles)))
    if forms:
        why = "reciprocals and products in place of divisions and powers" + (
            ", and floats stay floats" if doubles else ""
        )
        variants.append(Variant("cheaper forms", why, Scope.DROP_IN, lambda: _written(_joint(doubles, forms))))
    if fast:
        why = (
            "the hardware's approximations: less precise, as was asked for"
            if view.request.lossy
            else "the hardware's approximations, whose errors the loop's own may hide: the verdict weighs them"
        )
        variants.append(Variant("approximations", why, Scope.DROP_IN, lambda: _written(_joint(fast, doubles, forms))))
    return Match(
        line=view.document.line(first[0].start_byte),
        title=_title(doubles, forms),
        why=_why(view, doubles, forms),
        expects=(Expectation("instructions", 0.7, "fewer instructions where these operations weigh"),),
        variants=tuple(variants),
    )


def _title(doubles: Sequence[Change], forms: Sequence[Change]) -> str:
    if doubles:
        return "compute floats in float, and divide less"
    return "write divisions and powers in cheaper forms" if forms else "take the hardware's approximations of functions"


def _why(view: View, doubles: Sequence[Change], forms: Sequence[Change]) -> str:
    said = []
    if doubles:
        spelled = ", ".join(dict.fromkeys(f"`{source_text(view.document, node)}`" for node, _ in doubles[:4]))
        said.append(f"{spelled} make float arithmetic double, and the result is rounded to float at once")
    if forms:
        spelled = ", ".join(dict.fromkeys(f"`{source_text(view.document, node)}`" for node, _ in forms[:3]))
        said.append(f"{spelled} take many instructions where a product takes one")
    return "; ".join(said) or "its functions have faster approximations"


def _joint(*groups: Sequence[Change]) -> tuple[Change, ...]:
    """All changes, the widest first kept where some overlap."""
    kept: list[Change] = []
    for node, new in sorted(
        (one for group in groups for one in group), key=lambda one: one[0].start_byte - one[0].end_byte
    ):
        inside = [(other, text) for other, text in kept if other.start_byte <= node.start_byte < other.end_byte]
        if not inside:
            kept.append((node, new))
    return tuple(kept)


def _written(changes: Sequence[Change]) -> Rewrite:
    return Rewrite(tuple(replace(node, new) for node, new in changes))
