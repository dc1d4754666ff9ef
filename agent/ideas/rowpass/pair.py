"""Two passes over the same row, the second using a value that the first led to, and what lies between them."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.facts import Facts
from agent.analysis.patterns.row_pass import RowPass, canonical, global_reads, is_invariant, same_space, through_locals
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, callee, contains, descendants, expression_of, statements, text
from agent.source.span import Span

REAL = ("float", "double")


@frozen(eq=False)
class Pair:
    """``first`` folds each ``element``; ``second`` adds up a function of ``element - pivot``.

    ``element`` is the expression in ``second`` (that of ``first`` says the same), ``pivot`` the loop-invariant one
    subtracted from it. ``start`` is the statement that sets the second accumulator to zero between the two (None
    where it is zero from its declaration before the first)."""

    first: RowPass
    second: RowPass
    element: Node
    pivot: Node
    start: Node | None

    @property
    def type(self) -> str:
        return self.second.accumulator.type


def difference(node: Node | None, row: RowPass, facts: Facts) -> tuple[Node, Node] | None:
    """(element, pivot) of ``element - pivot`` where the pivot does not change in the loop."""
    node = through_locals(node, row.loop, facts)
    if node is None or node.type != "binary_expression" or text(node.child_by_field_name("operator")) != "-":
        return None
    element, pivot = bare(node.child_by_field_name("left")), bare(node.child_by_field_name("right"))
    if element is None or pivot is None or not is_invariant(pivot, row.loop, facts):
        return None
    return element, pivot


def pair(
    first: RowPass, second: RowPass, element: Node, pivot: Node, facts: Facts, apart: frozenset[Symbol] = frozenset()
) -> Pair | str:
    """The pair, or why the second pass cannot move into the first. ``apart`` are pointers that never point to where the
    elements lie."""
    if first.accumulator.type not in REAL or second.accumulator.type not in REAL:
        return f"{second.accumulator.name} is of type {second.accumulator.type}, not float or double"
    if first.accumulator is second.accumulator:
        return f"{first.accumulator.name} is used by both passes"
    if canonical(element, second.loop, facts, between(first, second)) is None:
        return f"`{text(element)}` need not be the same in both passes"
    reason = _moved_over(first, second, element, facts, apart)
    if reason is not None:
        return reason
    start = _start(first, second, facts)
    return start if isinstance(start, str) else Pair(first, second, element, pivot, start[0])


def same_elements(first: RowPass, second: RowPass, element: Node, facts: Facts) -> bool:
    """Whether both passes walk over the same elements, and these come from global memory."""
    span = between(first, second)
    one = canonical(first.fold.operand, first.loop, facts, span)
    two = canonical(element, second.loop, facts, span)
    return one is not None and one == two and bool(_reads(element, second, facts))


def between(first: RowPass, second: RowPass) -> Span:
    """From the start of the first pass to the end of the second."""
    return Span(first.node.start_byte, second.node.end_byte)


def siblings(first: RowPass, second: RowPass) -> bool:
    return first.node.parent == second.node.parent and first.node.end_byte <= second.node.start_byte


def alike(first: RowPass, second: RowPass) -> bool:
    return same_space(first.loop, second.loop)


def _reads(element: Node, row: RowPass, facts: Facts) -> bool:
    behind = through_locals(element, row.loop, facts)
    return behind is not None and (bool(global_reads(behind, facts)) or _local_reads(behind, row, facts))


def _local_reads(node: Node, row: RowPass, facts: Facts) -> bool:
    return any(
        global_reads(behind, facts)
        for name in descendants(node, "identifier")
        if (behind := through_locals(name, row.loop, facts)) is not None and behind != name
    )


def _moved_over(first: RowPass, second: RowPass, element: Node, facts: Facts, apart: frozenset[Symbol]) -> str | None:
    """What between the two passes could change the elements, or what the second pass does besides adding up."""
    for access in facts.accesses_between(first.node.start_byte, second.node.end_byte):
        allowed = access.root in apart or (second.store is not None and contains(second.store, access.node))
        if access.writes and access.space != "shared" and not allowed:
            return f"`{text(access.node)}` is written between the two passes, and what they read may lie there"
    shared = [access for access in facts.accesses_in(second.node) if access.space == "shared" and not access.writes]
    if any(contains(element, access.node) for access in shared):
        return f"`{text(element)}` lies in shared memory, so a pass over it costs no traffic"
    for call in facts.calls:
        inside = first.node.start_byte <= call.start_byte < second.node.end_byte
        if not inside or callee(call) in PURE or callee(call).startswith("__"):
            continue
        for argument in arguments(call):
            if any(_is_global(name, facts) for name in descendants(argument, "identifier")):
                return f"`{callee(call)}` is called between the two passes and may write where they read"
    return None


def _is_global(name: Node, facts: Facts) -> bool:
    symbol = facts.symbols.resolve(name)
    return symbol is not None and symbol.pointer > 0


def _start(first: RowPass, second: RowPass, facts: Facts) -> tuple[Node | None] | str:
    """Where the second accumulator becomes zero: between the passes (that statement moves up), or before both."""
    total = second.accumulator
    unclear = f"nothing shows that {total.name} is zero when the second pass begins"
    before = [write for write in total.writes if write.end_byte <= second.node.start_byte]
    between = [s for s in statements(first.node.parent) if first.node.end_byte <= s.start_byte < second.node.start_byte]
    uses = [
        name
        for name in descendants(facts.body, "identifier")
        if text(name) == total.name and first.node.start_byte <= name.start_byte < second.node.start_byte
    ]
    if total.declarator.start_byte >= first.node.end_byte:
        holder = next((s for s in between if contains(s, total.declarator)), None)
        lone = holder is not None and len(holder.children_by_field_name("declarator")) == 1
        if holder is None or before or not lone or not is_zero(total.init):
            return unclear
        return unclear if [name for name in uses if name != total.declarator] else (holder,)
    if not before:
        return unclear if uses or not is_zero(total.init) or _in_loop(first, total) else (None,)
    last = before[-1]
    holder = next((s for s in between if expression_of(s) == last), None)
    if holder is None or len([w for w in before if w.start_byte >= first.node.start_byte]) != 1:
        return unclear
    zeroed = text(last.child_by_field_name("operator")) == "=" and is_zero(last.child_by_field_name("right"))
    return (holder,) if zeroed and len(uses) == 1 else unclear


def _in_loop(first: RowPass, total: Symbol) -> bool:
    """Whether a loop lies between the declaration and the passes, so that a second turn would not begin at zero."""
    parent = first.node.parent
    return parent is None or parent != total.scope


def is_zero(node: Node | None) -> bool:
    node = bare(node)
    if node is None:
        return False
    try:
        return float(text(node).rstrip("fFuUlL")) == 0.0
    except ValueError:
        return False


def changed_between(symbol: Symbol, first: RowPass, second: RowPass) -> bool:
    return any(first.node.end_byte <= write.start_byte < second.node.start_byte for write in symbol.writes)
