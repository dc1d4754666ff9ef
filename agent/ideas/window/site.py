"""A window that a block can bring into shared memory as a whole, and the limits of what it may read."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Poly, number, unknown
from agent.analysis.guards import exits_before, guards
from agent.analysis.patterns.lane_bounds import parts
from agent.analysis.patterns.window import Axis, Window
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, enclosing, statements, text
from agent.analysis.values import dependence, leaves, replaced, value
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
    limits = () if _keeps_inside(window) else _limits(window, view)
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


def _keeps_inside(window: Window) -> bool:
    """Whether both places come into the index through a minimum, maximum or remainder only."""
    lanes = {axis.place.lane for axis in (window.rows, window.cols)}
    return all(
        atom.formula is not None and _bounded(unknown(atom), lanes)
        for atom in window.index.atoms
        if any(leaf.name in lanes for leaf in leaves(unknown(atom)))
    )


def _bounded(poly: Poly, lanes: set[str]) -> bool:
    """``min(max(...))`` either way round, or a remainder."""
    (atom,) = poly.atoms
    assert atom.formula is not None
    operation, operands = atom.formula
    if operation == "%":
        return True
    other = {"min": "max", "max": "min"}.get(operation)
    inner = [one for operand in operands for one in operand.atoms if one.formula is not None]
    return any(one.formula is not None and one.formula[0] == other for one in inner)


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
