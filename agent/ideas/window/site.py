"""A window that a block can bring into shared memory as a whole, and the limits of what it may read."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.guards import exits_before, guards
from agent.analysis.patterns.lane_bounds import parts
from agent.analysis.patterns.window import Axis, Window, keeps_inside
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, enclosing, statements, text
from agent.analysis.values import dependence, difference, leaves, replaced, value
from agent.ideas.spelling import is_pure
from agent.ideas.terms import apart_from
from agent.ideas.view import View


@frozen(eq=False)
class Limit:
    """Threads at work have ``left operator right``, which hangs on the place of one axis only."""

    axis: Axis
    condition: Node
    holds: bool


@frozen(eq=False)
class Site:
    """``anchor`` is the statement after which every thread of the block still runs and the places are known.
    ``limits`` keep the block from reading what none of its windows reaches (none where the index keeps to the array by
    itself). ``pitch`` is the length of a row in shared memory."""

    window: Window
    anchor: Node
    limits: tuple[Limit, ...]
    pitch: int

    @property
    def element(self) -> str:
        return self.window.reads[0].element


def site(window: Window, view: View) -> Site | str:
    """The site, or why the window has to stay."""
    facts, root = view.facts, window.reads[0].root
    assert root is not None
    anchor = _anchor(window, view)
    if isinstance(anchor, str):
        return anchor
    if facts.loops_around(window.nest):
        return "the window stands inside another loop"
    apart = apart_from(root, view)
    for access in facts.accesses:
        before = access.node.start_byte < window.nest.end_byte
        if access.writes and before and access.space not in ("local", "shared") and access.root not in apart:
            return f"`{text(access.node)}` is written before the window was read, and may be part of it"
    for symbol in _used(window, view):
        if symbol.init is not None and not is_pure(symbol.init, facts):
            return f"{symbol.name} cannot be found again for other elements"
    limits = _limits(window, view)
    if not isinstance(limits, str) and _reaches_no_further(window, limits, view):
        limits = ()
    return limits if isinstance(limits, str) else Site(window, anchor, limits, _pitch(window))


def _anchor(window: Window, view: View) -> Node | str:
    """The later of the two places' declarations; before it stand declarations only."""
    declared = [enclosing(axis.place.symbol.declarator, "declaration") for axis in (window.rows, window.cols)]
    last = max((node for node in declared if node is not None), key=lambda node: node.start_byte)
    for statement in statements(view.facts.body):
        if statement.start_byte > last.start_byte:
            break
        if statement.type != "declaration":
            return f"line {view.document.line(statement.start_byte)} stands before the thread's place is known"
    return last


def _used(window: Window, view: View) -> list[Symbol]:
    """The locals behind the index and the conditions."""
    found: list[Symbol] = []
    waiting = [read.node for read in window.reads[:1]] + [test for test, _ in window.tests]
    while waiting:
        node = waiting.pop()
        for symbol in view.facts.symbols.all():
            used = symbol.space == "local" and not symbol.is_memory and symbol not in found
            if used and any(view.facts.symbols.resolve(name) is symbol for name in _names(node)):
                found.append(symbol)
                if symbol.fixed and symbol.init is not None and symbol not in _places(window):
                    waiting.append(symbol.init)
    return [symbol for symbol in found if symbol not in _places(window) and symbol not in _variables(window)]


def _names(node: Node) -> list[Node]:
    if node.type == "identifier":
        return [node]
    return [name for child in node.named_children for name in _names(child)]


def _places(window: Window) -> list[Symbol]:
    return [window.rows.place.symbol, window.cols.place.symbol]


def _variables(window: Window) -> list[Symbol]:
    return [window.rows.loop.variable, window.cols.loop.variable]


def _limits(window: Window, view: View) -> tuple[Limit, ...] | str:
    facts = view.facts
    tests = tuple(guards(window.nest, facts.body))
    for leave, _ in exits_before(window.nest, facts.body):
        if not any(test.kind == "exit" and contains(test.node, leave) for test in tests):
            return f"which threads are left after line {facts.document.line(leave.start_byte)} is not clear"
    found: list[Limit] = []
    for guard in tests:
        for condition, holds in parts(guard.condition, guard.taken):
            axes = [axis for axis in (window.rows, window.cols) if _hangs_on(condition, axis, view)]
            if len(axes) > 1 or (axes and not _plain(condition, holds, axes[0], view)):
                return f"`{text(condition)}` is no simple bound of a thread's place"
            found += [Limit(axis, condition, holds) for axis in axes]
    return tuple(found)


def _reaches_no_further(window: Window, limits: tuple[Limit, ...], view: View) -> bool:
    """Whether the elements for places that no thread works at (past the last one) are elements for others too: the
    index is cut off, or goes round, no later than at the last window's end."""
    lanes = {axis.place.lane for axis in (window.rows, window.cols)}
    if not keeps_inside(window.index, lanes):
        return False
    for axis in (window.rows, window.cols):
        ends = [end for limit in limits if limit.axis is axis and (end := _end(limit, view)) is not None]
        for atom in window.index.atoms:
            if axis.place.lane in {leaf.name for leaf in leaves(unknown(atom))} and not _attained(atom, axis, ends):
                return False
    return True


def _attained(atom: Atom, axis: Axis, ends: list[Poly]) -> bool:
    """Whether windows of places below some of ``ends`` reach all that an operation may give. A remainder by no more
    than the number of their elements takes every value there."""
    cut = _cut(atom, axis)
    if cut is None or not ends:
        return cut is not None
    past = number(axis.last - axis.first if cut[1] else axis.last)
    return any((apart := (end + past - cut[0]).constant) is not None and apart >= 0 for end in ends)


def _end(limit: Limit, view: View) -> Poly | None:
    """``n`` of ``place < n``."""
    operator = text(limit.condition.child_by_field_name("operator"))
    rest = difference(limit.condition, view.facts.scope)
    own = value(limit.axis.place.symbol.init, view.facts.scope)
    strict = {("<", True): -rest, (">=", False): -rest, (">", True): rest, ("<=", False): rest}
    found = strict.get((operator, limit.holds))
    return None if found is None or (found + own).depends else found + own


def _cut(atom: Atom, axis: Axis) -> tuple[Poly, bool] | None:
    """(end, goes round): an index that is cut off at ``end - 1``, or taken modulo ``end``."""
    assert atom.formula is not None
    operation, operands = atom.formula
    if operation == "%":
        return operands[1], True
    if operation == "max":
        inner = [one for operand in operands for one in operand.atoms if one.formula and one.formula[0] == "min"]
        return _cut(inner[0], axis) if inner else None
    ends = [operand for operand in operands if axis.place.lane not in {leaf.name for leaf in leaves(operand)}]
    return (ends[0] + number(1), False) if operation == "min" and len(ends) == 1 else None


def _hangs_on(condition: Node, axis: Axis, view: View) -> bool:
    return bool(dependence(condition, view.facts.scope) & {axis.place.lane, "unknown"})


def _plain(condition: Node, holds: bool, axis: Axis, view: View) -> bool:
    """``place < bound`` and its like, the place being spelled alone on one side."""
    operator = text(condition.child_by_field_name("operator"))
    sides = [bare(condition.child_by_field_name(side)) for side in ("left", "right")]
    if operator not in ("<", "<=", ">", ">=") or None in sides:
        return False
    own = [value(side, view.facts.scope) == value(axis.place.symbol.init, view.facts.scope) for side in sides]
    other = sides[0] if own[1] else sides[1]
    moved = replaced(value(other, view.facts.scope), {axis.place.lane: number(0)})
    return any(own) and moved == value(other, view.facts.scope)


def _pitch(window: Window) -> int:
    """A row's length such that the rows that one warp reads lie in different banks."""
    extent, width = window.cols.place.extent, window.cols.width
    if extent >= 32 or 32 % extent:
        return width
    return width + (extent - width) % 32
