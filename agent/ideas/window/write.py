"""Writing it: the block fills its part of the array together, and each window reads from there."""

from collections.abc import Mapping, Sequence

from tree_sitter import Node

from agent.analysis.patterns.window import Axis
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, descendants, enclosing, text
from agent.ideas.product.texts import comment_above, replaced
from agent.ideas.rewriting import Rewrite, fresh_local, indent_unit, indented, insert_after, remove, replace, with_unit
from agent.ideas.spelling import spelled
from agent.ideas.view import View
from agent.ideas.window.edges import Asked
from agent.ideas.window.site import Limit, Site
from agent.source.edits import Edit
from agent.source.span import Span


def in_shared(site: Site, view: View, given: Mapping[str, int], zeros: Sequence[Asked] = ()) -> Rewrite:
    """``given``: the values of parameters that the window has room for; for others the loops stay as they are.
    ``zeros``: where the loops need not ask for the edge any more, as there are zeros beyond it."""
    name, row, col, top, left = (
        fresh_local(wanted, view.document, view.kernel) for wanted in ("window", "r", "c", "top", "left")
    )
    rows, cols = site.window.rows, site.window.cols
    shared = f"{name}[{_within(rows)}][{_within(cols)}]"
    condition = " && ".join(f"{name} == {value}" for name, value in given.items())
    filling = _filling(site, view, (name, row, col, top, left), condition, beyond=bool(zeros))
    edits = [
        *(replace(read.node, shared) for read in site.window.reads),
        *(edit for one in zeros for edit in _left_of(one)),
        *(remove(view.document, statement) for statement in _unused(site, view, zeros)),
        *(edit for axis in (rows, cols) if axis.given for edit in _numbers(axis)),
    ]
    return Rewrite(
        (
            insert_after(view.document, site.anchor, with_unit(filling, indent_unit(view.document, view.kernel))),
            *([_either(site.window.nest, view, condition, edits)] if given else edits),
        )
    )


def _either(nest: Node, view: View, condition: str, edits: Sequence[Edit]) -> Edit:
    """The changed loops where the condition holds, and the loops as they were where not."""
    swaps = {edit.span.start: (edit.span.end, edit.text.decode("utf-8", "surrogateescape")) for edit in edits}
    lines = [f"if ({condition}) {{"]
    for changes, close in ((swaps, "} else {"), ({}, "}")):
        inside = replaced(view.document, nest, nest, changes).split("\n")
        unit = indent_unit(view.document, view.kernel)
        lines += [*(unit + line if line.strip() else line for line in inside), close]
    return replace(nest, indented(view.document, nest, "\n".join(lines)))


def _numbers(axis: Axis) -> list[Edit]:
    """A loop's bounds as numbers, so that the compiler may unroll it."""
    init, header = axis.loop.variable.init, axis.loop.node.child_by_field_name("initializer")
    start = init if header is not None and init is not None and contains(header, init) else None
    if start is None and header is not None:
        start = header.child_by_field_name("right")
    found = [] if start is None else [replace(start, str(axis.first))]
    bound = axis.loop.bound_node
    alone = text(bare(bound)) != axis.loop.variable.name  # a condition that is the variable has no bound to see
    return [*found, replace(bound, str(axis.loop.bound.constant))] if alone else found


def _within(axis: Axis) -> str:
    return f"{axis.place.lane} + {axis.loop.variable.name}" + _plus(-axis.first)


def _plus(amount: int) -> str:
    return f" + {amount}" if amount > 0 else f" - {-amount}" if amount < 0 else ""


def _left_of(one: Asked) -> tuple[Edit, Edit]:
    """What asks is cut away on both sides of what stays, with the comment above it."""
    start = comment_above(one.node) if one.node.type == "if_statement" else one.node
    return (
        Edit(Span(start.start_byte, one.kept.start_byte), b""),
        Edit(Span(one.kept.end_byte, one.node.end_byte), b""),
    )


def _filling(site: Site, view: View, taken: tuple[str, str, str, str, str], condition: str, *, beyond: bool) -> str:
    name, row, col, top, left = taken
    rows, cols, read = site.window.rows, site.window.cols, site.window.reads[0]
    y, x = rows.place.symbol, cols.place.symbol
    names = {y: top, x: left}
    tests = [_tested(test, holds, view, names) for test, holds in site.window.tests]
    tests += [_limited(limit, view, top if limit.axis is rows else left) for limit in site.limits]
    element = _spelled(read.node, view, names)
    inside = " && ".join(tests)
    store = f"{name}[{row}][{col}] = {element};"
    if tests:
        store = f"{name}[{row}][{col}] = {inside} ? {element} : 0;" if beyond else f"if ({inside}) {store}"
    loop = f"for (int {row} = {rows.place.lane}; {row} < {rows.width}; {row} += blockDim.{rows.place.thread}) {{"
    lines = [
        f"// What the block's windows on {read.name} reach over, each element fetched once"
        + (", with zeros beyond the edge." if beyond else "."),
        f"__shared__ {site.element} {name}[{rows.width}][{site.pitch}];",
        f"const {y.type} {top} = {y.name} - {rows.place.lane};",
        f"const {x.type} {left} = {x.name} - {cols.place.lane};",
        f"if ({condition}) {loop}" if condition else loop,
        f"    for (int {col} = {cols.place.lane}; {col} < {cols.width}; {col} += blockDim.{cols.place.thread}) {{",
        f"        const int {rows.loop.variable.name} = {row}{_plus(rows.first)};",
        f"        const int {cols.loop.variable.name} = {col}{_plus(cols.first)};",
        f"        {store}",
        "    }",
        "}",
        "__syncthreads();",
    ]
    return "\n".join(lines)


def _spelled(node: Node, view: View, names: dict[Symbol, str]) -> str:
    def written_out(symbol: Symbol) -> bool:
        return symbol.space == "local" and symbol.type != "float"

    return spelled(node, view.facts, names, written_out).replace("\r\n", "\n")


def _tested(test: Node, holds: bool, view: View, names: dict[Symbol, str]) -> str:
    inner = bare(test) or test
    found = _spelled(inner, view, names)
    joined = text(inner.child_by_field_name("operator")) == "||"
    return f"!({found})" if not holds else f"({found})" if joined else found


def _limited(limit: Limit, view: View, start: str) -> str:
    """The bound of a thread's place as a bound of what its window reaches: moved by the farthest offset."""
    axis, condition = limit.axis, limit.condition
    left, right = bare(condition.child_by_field_name("left")), bare(condition.child_by_field_name("right"))
    assert left is not None and right is not None
    operator = text(condition.child_by_field_name("operator"))
    own = view.facts.symbols.resolve(left) is axis.place.symbol if left.type == "identifier" else False
    if not own:
        operator = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}[operator]
    if not limit.holds:
        operator = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}[operator]
    bound = text(right if own else left)
    reach = axis.last if operator in ("<", "<=") else axis.first
    return f"{start} + {axis.loop.variable.name} {operator} {bound}{_plus(reach)}"


def _unused(site: Site, view: View, zeros: Sequence[Asked]) -> list[Node]:
    """Declarations inside the loops that only the replaced reads used, and the conditions that go."""
    gone: list[Node] = [read.node for read in site.window.reads]
    gone += [test for one in zeros if (test := one.node.child_by_field_name("condition")) is not None]
    found: list[Node] = []
    grew = True
    while grew:
        grew = False
        for symbol in view.facts.symbols.all():
            statement = enclosing(symbol.declarator, "declaration")
            if statement is None or statement in found or not contains(site.window.nest, statement):
                continue
            alone = len(statement.children_by_field_name("declarator")) == 1
            if alone and symbol.init is not None and symbol.fixed and _only_in(symbol, gone, view):
                in_header = statement.parent is not None and statement.parent.type != "compound_statement"
                if not in_header:
                    found.append(statement)
                    gone.append(statement)
                    grew = True
    return found


def _only_in(symbol: Symbol, gone: list[Node], view: View) -> bool:
    return all(
        any(contains(node, name) for node in gone)
        for name in descendants(view.facts.body, "identifier")
        if name != symbol.declarator and view.facts.symbols.resolve(name) is symbol
    )
