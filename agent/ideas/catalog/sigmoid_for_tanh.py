"""Write (1 + tanh u) / 2 as the logistic function that it is."""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from attrs import frozen
from tree_sitter import Node

from agent.analysis.syntax import arguments, bare, callee, descendants, text
from agent.analysis.types import literal_value, type_of
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, replace, source_text
from agent.ideas.view import View
from agent.source.edits import Edit

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 24
//   buffer   x: f16[n] in normal
//   buffer   y: f16[n] out
//   launch   gelu<<<(n + 255) / 256, 256>>>(x, y, n)
#include <cuda_fp16.h>
__global__ void gelu(const __half* x, __half* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = __half2float(x[i]);
    y[i] = __float2half(0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))));
}
"""


@frozen(eq=False)
class Logistic:
    """A product with the factors one half and ``1 + tanh(argument)``; ``others`` are its further factors. ``single``:
    of floats."""

    product: Node
    others: tuple[Node, ...]
    argument: Node
    single: bool


@catalogued(
    name="sigmoid-for-tanh",
    title="Write (1 + tanh u) / 2 as the logistic function that it is",
    rationale=(
        "GELU and other gates are written with a hyperbolic tangent, which is a polynomial for small arguments, an "
        "exponential and a division for large ones, and in a warp with both it is both. (1 + tanh u) / 2 is 1 / (1 + "
        "exp(-2u)): one exponential and one division, without a branch. The compiler does not know that. Where tanh is "
        "near -1, the sum loses all digits, the logistic function none."
    ),
    needs=(
        "a product of floats or doubles that holds the factors 0.5 and 1 + tanh(u), in any order",
        "a kernel that the arithmetic holds up, as GELU over 16-bit elements does",
    ),
    effect="instructions: those of a tanh become those of an exp and a division",
    risk="other last bits; where 1 + tanh(u) was rounded to zero, a tiny number takes its place",
    example=EXAMPLE,
)
def sigmoid_for_tanh(view: View) -> Match | Refusal:
    found = tuple(_logistics(view))
    if not found:
        return Refusal("no product holds the factors 0.5 and 1 + tanh(u)")
    spelled = source_text(view.document, found[0].product)
    return Match(
        line=view.document.line(found[0].product.start_byte),
        title="write (1 + tanh u) / 2 as the logistic function",
        why=f"`{spelled}` holds (1 + tanh u) / 2, which is 1 / (1 + exp(-2u)): fewer instructions, no branch",
        expects=(Expectation("instructions", 0.7, "fewer instructions, and no branch within the function"),),
        variants=_variants(view, found),
    )


def _variants(view: View, found: tuple[Logistic, ...]) -> tuple[Variant, ...]:
    def variant(name: str, why: str, divide: str) -> Variant:
        return Variant(name, why, Scope.DROP_IN, lambda: Rewrite(tuple(_written(view, one, divide) for one in found)))

    exact = variant("one exponential", "an exponential and a division in place of each tanh", "")
    if not all(one.single for one in found):
        return (exact,)
    why = "the division by a reciprocal of the hardware, which is within two units of the last place"
    return variant("fast division", why, "__fdividef"), exact


def _logistics(view: View) -> Iterator[Logistic]:
    for node in descendants(view.facts.body, "binary_expression"):
        above = node.parent
        while above is not None and above.type == "parenthesized_expression":
            above = above.parent
        if _operator(node) == "*" and not (above is not None and _operator(above) == "*"):
            found = _logistic(node, view)
            if found is not None:
                yield found


def _logistic(product: Node, view: View) -> Logistic | None:
    factors = list(_factors(product))
    for gate in factors:
        call = _one_and_tanh(gate)
        half = next((one for one in factors if literal_value(one) == 0.5), None)
        if call is None or half is None:
            continue
        argument = arguments(call)[0]
        kind = "f32" if callee(call) == "tanhf" else type_of(argument, view.facts.symbols)
        others = tuple(one for one in factors if one not in (gate, half))
        nested = any(_tanh(one) is not None for factor in factors for one in descendants(factor, "call_expression")
                     if one != call)  # fmt: skip
        # a literal of doubles lifts a product of floats: it stays what it is
        plain = all(type_of(one, view.facts.symbols) in (kind, None) for one in (*others, half))
        if kind in ("f32", "f64") and plain and not nested:
            return Logistic(product, others, argument, kind == "f32")
    return None


def _factors(node: Node) -> Iterator[Node]:
    inner = bare(node)
    left = None if inner is None else inner.child_by_field_name("left")
    right = None if inner is None else inner.child_by_field_name("right")
    if inner is not None and _operator(inner) == "*" and left is not None and right is not None:
        yield from _factors(left)
        yield from _factors(right)
    else:
        yield node


def _operator(node: Node) -> str:
    return text(node.child_by_field_name("operator")) if node.type == "binary_expression" else ""


def _one_and_tanh(node: Node) -> Node | None:
    total = bare(node)
    if total is None or _operator(total) != "+":
        return None
    sides = bare(total.child_by_field_name("left")), bare(total.child_by_field_name("right"))
    for one, other in (sides, sides[::-1]):
        if literal_value(one) == 1.0:
            return _tanh(other)
    return None


def _tanh(node: Node | None) -> Node | None:
    return node if callee(node) in ("tanhf", "tanh") and node is not None and len(arguments(node)) == 1 else None


def _written(view: View, one: Logistic, divide: str) -> Edit:
    suffix, function = ("f", "expf") if one.single else ("", "exp")
    others = " * ".join(source_text(view.document, factor) for factor in one.others) or f"1.0{suffix}"
    divisor = f"1.0{suffix} + {function}({_twice(view, one, suffix)})"
    if divide:
        return replace(one.product, f"{divide}({others}, {divisor})")
    quotient = f"({others}) / ({divisor})" if len(one.others) > 1 else f"{others} / ({divisor})"
    alone = one.product.parent is not None and one.product.parent.type != "binary_expression"
    return replace(one.product, quotient if alone else f"({quotient})")


def _twice(view: View, one: Logistic, suffix: str) -> str:
    """The argument times -2: into its leading literal, if it begins with one, as doubling that is exact."""
    argument = bare(one.argument)
    assert argument is not None
    first = argument
    while _operator(first) == "*" and (left := first.child_by_field_name("left")) is not None:
        first = left
    spelled = source_text(view.document, argument)
    written = text(first).lower()
    if first != argument and first.type == "number_literal" and written.endswith("f") == one.single:
        try:
            doubled = -2 * Decimal(written.removesuffix("f"))
        except InvalidOperation:
            return f"-2.0{suffix} * ({spelled})"
        rest = view.document.text[first.end_byte : argument.end_byte].decode("utf-8", "surrogateescape")
        return f"{doubled}{suffix}{rest}".replace("\r\n", "\n")
    return f"-2.0{suffix} * {spelled}" if argument.type in _SIMPLE else f"-2.0{suffix} * ({spelled})"


_SIMPLE = ("identifier", "field_expression", "subscript_expression", "call_expression")
