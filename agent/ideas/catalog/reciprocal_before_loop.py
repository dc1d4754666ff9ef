"""Divide once before a loop where every turn divides by the same value."""

from tree_sitter import Node

from agent.analysis.syntax import bare, text
from agent.ideas.idea import Expectation, Scope
from agent.ideas.precision.divisors import Divisor, divisors
from agent.ideas.precision.forms import ONES
from agent.ideas.reduction.write import styled
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, fresh_local, replace_between, source_text
from agent.ideas.rowpass.writing import insert_before_loop, number
from agent.ideas.view import View
from agent.source.edits import Edit

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 16
//   size     taps = 64
//   buffer   x: f32[n + taps] in normal
//   buffer   y: f32[n] out
//   launch   smooth<<<(n + 255) / 256, 256>>>(x, y, n, taps, 12.5)
__global__ void smooth(const float* x, float* y, int n, int taps, float spread) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < taps; ++k) {
        float distance = x[i + k] - x[i];
        sum += expf(-distance * distance / (2.0f * spread));
    }
    y[i] = sum;
}
"""


@catalogued(
    name="reciprocal-before-loop",
    title="Divide once before a loop, and multiply inside it",
    rationale=(
        "A division of floats is some ten instructions and a test. Where a loop divides by the same value in every "
        "turn, the compiler may not turn that into a product, as the last bit would differ. One division before the "
        "loop gives the reciprocal; each turn takes one multiplication."
    ),
    needs=(
        "a division of floats or doubles in a loop, by an expression that reads no memory and that no turn changes",
        "a dividend that does change: otherwise the compiler divides before the loop by itself",
    ),
    effect="instructions in the loop",
    risk=(
        "a quotient is rounded twice, and may differ in its last bit; other divisors than the workload's are not "
        "tried: below 3e-39 (of floats) the reciprocal is infinite, above 8e37 it has lost digits"
    ),
    example=EXAMPLE,
)
def reciprocal_before_loop(view: View) -> Match | Refusal:
    found = divisors(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: tuple[Divisor, ...]) -> Match:
    first = found[0]
    spelled = ", ".join(f"`{source_text(view.document, one.node)}`" for one in found[:3])
    return Match(
        line=view.document.line(first.quotients[0].start_byte),
        title=f"divide by {spelled} once before the loop",
        why=f"every turn divides by {spelled}, which no turn changes: ten instructions where a product takes one",
        expects=(Expectation("instructions", 0.8, "fewer instructions, as divisions weigh in the loop"),),
        variants=(
            Variant(
                "reciprocal before the loop",
                "one division before the loop, products inside",
                Scope.DROP_IN,
                lambda: _written(view, found),
            ),
        ),
    )


def _written(view: View, found: tuple[Divisor, ...]) -> Rewrite:
    edits: list[Edit] = []
    taken: list[str] = []
    lines: dict[int, list[str]] = {}
    for one in found:
        name = fresh_local(styled(_name(one), view), view.document, view.kernel, *taken)
        taken.append(name)
        divisor = source_text(view.document, one.node)
        whole = divisor if one.node.type in ("identifier", "field_expression", "call_expression") else f"({divisor})"
        lines.setdefault(one.loop.start_byte, []).append(
            f"const {one.type} {name} = {number('1.0', one.type)} / {whole};"
        )
        edits += [_product(view, quotient, name) for quotient in one.quotients]
    for loop in {one.loop for one in found}:
        edits.append(insert_before_loop(view.document, loop, "\n".join(lines[loop.start_byte])))
    return Rewrite(tuple(edits))


def _name(one: Divisor) -> str:
    names = sorted({symbol.name for symbol in one.names})
    return f"inverse_{names[0]}" if len(names) == 1 else "inverse"


def _product(view: View, quotient: Node, name: str) -> Edit:
    """``a / d`` to ``a * inverse``, ``a /= d`` to ``a *= inverse``; nested quotients keep what is inside ``a``."""
    left, right = quotient.child_by_field_name("left"), quotient.child_by_field_name("right")
    operator = quotient.child_by_field_name("operator")
    assert left is not None and right is not None and operator is not None
    if text(bare(left)) in ONES and quotient.type == "binary_expression":
        return replace_between(left, right, name)
    sign = "*=" if quotient.type == "assignment_expression" else "*"
    return replace_between(operator, right, f"{sign} {name}")
