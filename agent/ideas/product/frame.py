"""A kernel around its nest: definitions of indices, guards, what is set up before, what is done with the result."""

from attrs import define, field, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.facts import Facts
from agent.analysis.patterns.coordinates import Coordinates
from agent.analysis.patterns.product_nest import Nest, Test, nest_at
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, bare, contains, descendants, expression_of, statements


@frozen(eq=False)
class Frame:
    """``guards`` are the tests that a thread passes to reach the nest. ``before`` are the definitions in front of the
    nest that are no coordinates, ``opening`` the assignments to what the nest changes, ``after`` the statements behind
    it, and ``stores`` what they write to global memory (the nest's own cells included)."""

    places: Coordinates
    guards: tuple[Test, ...]
    before: tuple[Node, ...]
    opening: tuple[Node, ...]
    nest: Nest
    after: tuple[Node, ...]
    stores: tuple[Access, ...]


@define
class _Found:
    guards: list[Test] = field(factory=list)
    before: list[Node] = field(factory=list)
    opening: list[Node] = field(factory=list)
    nest: Nest | None = None
    after: list[Node] = field(factory=list)


def frame(places: Coordinates, facts: Facts) -> Frame | str:
    """The kernel in these parts, or why it does not fall into them."""
    found = _Found()
    reason = _read(facts.body, found, places, facts)
    if reason is not None:
        return reason
    if found.nest is None:
        return "it has no loop that folds elements into a variable of the thread"
    reason = _opening(found, facts) or _afterwards(found, facts)
    if reason is not None:
        return reason
    return Frame(
        places, tuple(found.guards), tuple(found.before), tuple(found.opening), found.nest, tuple(found.after),
        tuple(one for one in facts.accesses if one.writes and one.space == "global"),
    )  # fmt: skip


def _read(body: Node, found: _Found, places: Coordinates, facts: Facts) -> str | None:
    inside = [one for one in statements(body) if one.type != "preproc_call"]
    for at, statement in enumerate(inside):
        line = facts.document.line(statement.start_byte)
        if found.nest is not None:
            found.after.append(statement)
        elif statement.type == "declaration":
            reason = _declaration(statement, found, places, facts)
            if reason is not None:
                return reason
        elif statement.type == "if_statement":
            test = _guard(statement, at == len(inside) - 1)
            if test is None:
                return f"what line {line} decides comes before the loop and is no guard of the whole thread"
            found.guards.append(test)
            if test.taken:
                consequence = statement.child_by_field_name("consequence")
                return None if consequence is None else _read(consequence, found, places, facts)
        elif statement.type in LOOPS:
            loop = facts.loop(statement)
            nest = f"the loop at line {line} has no plain range" if loop is None else nest_at(loop, places, facts)
            if isinstance(nest, str):
                return nest
            found.nest = nest
        elif (assignment := expression_of(statement)) is not None and assignment.type == "assignment_expression":
            found.opening.append(statement)
        else:
            return f"line {line} does something before the loop that cannot be moved"
    return None


def _declaration(statement: Node, found: _Found, places: Coordinates, facts: Facts) -> str | None:
    own = [symbol for symbol in facts.symbols.all() if contains(statement, symbol.declarator)]
    line = facts.document.line(statement.start_byte)
    if any(symbol.space == "shared" for symbol in own):
        return f"it stages data in shared memory already (line {line})"
    index = [symbol in places.declared for symbol in own]
    if any(index) and not all(index):
        return f"line {line} declares an index and something else at once"
    if not any(index):
        found.before.append(statement)
    return None


def _guard(statement: Node, last: bool) -> Test | None:
    condition = statement.child_by_field_name("condition")
    if condition is None or statement.child_by_field_name("alternative") is not None:
        return None
    inside = statements(statement.child_by_field_name("consequence"))
    if len(inside) == 1 and inside[0].type == "return_statement":
        return Test(condition, False)
    return Test(condition, True) if last else None


def _opening(found: _Found, facts: Facts) -> str | None:
    """Assignments before the nest may only set what the nest goes on to change."""
    assert found.nest is not None
    for statement in found.opening:
        assignment = expression_of(statement)
        target = None if assignment is None else bare(assignment.child_by_field_name("left"))
        symbol = facts.symbols.resolve(target) if target is not None and target.type == "identifier" else None
        cell = next((one for one in facts.accesses if one.node == target), None)
        same_cell = cell is not None and any(
            one.root is cell.root and one.index == cell.index for one in found.nest.cells
        )
        if symbol not in found.nest.accumulators and not same_cell and not _runs(symbol, found.nest):
            line = facts.document.line(statement.start_byte)
            return f"line {line} sets something before the loop that the loop does not change"
    return None


def _runs(symbol: Symbol | None, nest: Nest) -> bool:
    return any(loop.variable is symbol for loop in nest.loops)


def _afterwards(found: _Found, facts: Facts) -> str | None:
    assert found.nest is not None
    for statement in found.after:
        line = facts.document.line(statement.start_byte)
        if any(True for _ in descendants(statement, *LOOPS, "goto_statement")):
            return f"the loop at line {line}, behind the nest, would run once for each of a thread's results"
        if any(True for _ in descendants(statement, "return_statement")):
            return f"a thread may leave at line {line}, before all of its results are stored"
    for loop in found.nest.loops:
        used = [node for one in found.after for node in descendants(one, "identifier")]
        if any(facts.symbols.resolve(node) is loop.variable for node in used):
            return f"{loop.variable.name} is used behind its loop"
    for symbol in found.nest.accumulators:
        if symbol.is_memory or symbol.escapes:
            return f"{symbol.name} is no plain number"
    return None
