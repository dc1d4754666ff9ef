"""Take f(-d) from f(d) where the two add up to a constant."""

from collections.abc import Iterator, Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.patterns.complement import complements
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, callee, statement_of, text
from agent.analysis.types import type_of
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, fresh_local, insert_before, replace, source_text
from agent.ideas.view import View

EXAMPLE = """\
__device__ float normal_cdf(float d) { return 0.5f * erfcf(-0.70710678f * d); }

// cuda-lsp: workload
//   size     n = 1 << 22
//   buffer   x: f32[n] in normal
//   buffer   below: f32[n] out
//   buffer   above: f32[n] out
//   launch   tails<<<(n + 255) / 256, 256>>>(x, below, above, n)
__global__ void tails(const float* x, float* below, float* above, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float d = x[i];
    below[i] = normal_cdf(d);
    above[i] = normal_cdf(-d);
}
"""


@frozen(eq=False)
class Pair:
    """Calls of one function with ``symbol`` and with its negative, all in statements of one block."""

    name: str
    total: float
    type: str
    symbol: Symbol
    same: tuple[Node, ...]
    negative: tuple[Node, ...]


@catalogued(
    name="complement-reuse",
    title="Take f(-d) from f(d) where they add up to a constant",
    rationale=(
        "A distribution function of d and of -d add up to one, an error function's two values to two or nothing: put-"
        "call parity in a pricing kernel is of this kind. The function costs some thirty instructions, the difference "
        "one; the compiler does not know the identity, and must not use it by itself, as the last bits differ."
    ),
    needs=(
        "a function of the mathematical library, or one of the file whose single expression shows that f(d) + f(-d) is "
        "one constant",
        "called with a variable that is set once and with its negative, in the same block of statements",
    ),
    effect="instructions: one call of the function less for each pair",
    risk="where f(-d) is tiny beside the constant it keeps the constant's absolute precision, not its own relative one",
    example=EXAMPLE,
)
def complement_reuse(view: View) -> Match | Refusal:
    pairs = tuple(_pairs(view))
    if not pairs:
        return Refusal("no function is called with a value and its negative whose two results add up to a constant")
    first = pairs[0]
    spelled = ", ".join(
        dict.fromkeys(f"`{source_text(view.document, one)}`" for pair in pairs for one in pair.negative)
    )
    calls = sum(len(pair.same) + len(pair.negative) for pair in pairs)
    factor = round(1 - sum(len(pair.negative) for pair in pairs) / calls / 2, 2)
    return Match(
        line=view.document.line(first.negative[0].start_byte),
        title=f"take {spelled} from the value that is there already",
        why=f"{first.name}(d) + {first.name}(-d) is {first.total:g}, and both are computed",
        expects=(Expectation("instructions", factor, f"calls {calls} -> {len(pairs)}"),),
        variants=(
            Variant(
                "difference",
                "one call for each pair, kept in a local variable",
                Scope.DROP_IN,
                lambda: _written(view, pairs),
            ),
        ),
    )


def _pairs(view: View) -> Iterator[Pair]:
    totals = complements(view.document.tree.root_node)
    found: dict[tuple[str, Symbol, int], tuple[list[Node], list[Node]]] = {}
    for call in view.facts.calls:
        given = arguments(call)
        if callee(call) not in totals or len(given) != 1:
            continue
        argument = bare(given[0])
        minus = argument is not None and argument.type == "unary_expression"
        if minus and argument is not None and text(argument.child_by_field_name("operator")) == "-":
            argument = bare(argument.child_by_field_name("argument"))
        symbol = (
            view.facts.symbols.resolve(argument) if argument is not None and argument.type == "identifier" else None
        )
        statement = statement_of(call)
        block = statement.parent
        if (
            symbol is None
            or not symbol.fixed
            or symbol.is_memory
            or block is None
            or block.type != "compound_statement"
        ):
            continue
        if symbol.declarator.start_byte >= statement.start_byte or _type(view, argument) is None:
            continue
        found.setdefault((callee(call), symbol, block.start_byte), ([], []))[1 if minus else 0].append(call)
    for (name, symbol, _), (same, negative) in found.items():
        if same and negative:
            kind = totals[name].type or _type(view, arguments(same[0])[0]) or "float"
            yield Pair(name, totals[name].total, kind, symbol, tuple(same), tuple(negative))


def _type(view: View, node: Node | None) -> str | None:
    found = type_of(node, view.facts.symbols)
    return {"f32": "float", "f64": "double"}.get(found or "")


def _written(view: View, pairs: Sequence[Pair]) -> Rewrite:
    edits = []
    taken: list[str] = []
    declared: dict[int, list[tuple[Node, str]]] = {}
    for pair in pairs:
        name = fresh_local(f"{pair.name}_{pair.symbol.name}", view.document, view.kernel, *taken)
        taken.append(name)
        first = min((statement_of(one) for one in (*pair.same, *pair.negative)), key=lambda one: one.start_byte)
        declared.setdefault(first.start_byte, []).append(
            (first, f"const {pair.type} {name} = {pair.name}({pair.symbol.name});")
        )
        constant = f"{pair.total:.1f}" + ("f" if pair.type == "float" else "")
        difference = f"({constant} - {name})" if pair.total else f"-{name}"
        edits += [replace(one, name) for one in pair.same]
        edits += [replace(one, difference) for one in pair.negative]
    edits += [
        insert_before(view.document, lines[0][0], "\n".join(line for _, line in lines)) for lines in declared.values()
    ]
    return Rewrite(tuple(edits))
