"""Nests of loops that fold products (or any pairing) of elements into a thread's own accumulators.

``for (i) sum += a[row][i] * b[i][col]``: each turn reads elements that depend on some of the thread's coordinates and
on the loops' variables, so that threads which share a coordinate read the same ones.
"""

from attrs import define, field, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.combination import combination
from agent.analysis.patterns.coordinates import Coordinate, Coordinates
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, callee, contains, descendants, expression_of, statements, text

_SAME_VALUE = ("__ldg", "float", "double", "__half2float", "__bfloat162float")
"""Calls that hand their argument's value on."""


@frozen(eq=False)
class Test:
    """``condition`` must hold (``taken``), or must not, for a turn to count or a thread to work."""

    condition: Node
    taken: bool


@frozen(eq=False)
class Load:
    """Reads of one element a turn: ``nodes`` are all that spell it; ``over`` are the digits that it depends on and
    ``turns`` the loop variables."""

    access: Access
    nodes: tuple[Node, ...]
    over: frozenset[Coordinate]
    turns: frozenset[Symbol]


@frozen(eq=False)
class Nest:
    """``loops`` from the outside in, with nothing in them but declarations, tests and the next loop. ``declarations``
    are those of all levels, ``tests`` what must hold for a turn to count. ``updates`` is the innermost statements from
    first to last. ``accumulators`` are the scalar locals that they change; ``cells`` are elements of global memory
    that they change (by their first spelling), the same one in each turn. ``product``: each update adds a product of
    which each load is a factor, so that a turn with a zero in it adds nothing."""

    loops: tuple[Loop, ...]
    declarations: tuple[Node, ...]
    tests: tuple[Test, ...]
    updates: tuple[Node, ...]
    accumulators: tuple[Symbol, ...]
    cells: tuple[Access, ...]
    loads: tuple[Load, ...]
    product: bool

    @property
    def node(self) -> Node:
        return self.loops[0].node


@define
class _Levels:
    loops: list[Loop] = field(factory=list)
    declarations: list[Node] = field(factory=list)
    tests: list[Test] = field(factory=list)
    updates: list[Node] = field(factory=list)


@frozen(eq=False)
class Reach:
    """What an expression depends on: digits of coordinates, loop variables, and names whose value changes."""

    over: frozenset[Coordinate] = frozenset()
    turns: frozenset[Symbol] = frozenset()
    loose: frozenset[str] = frozenset()

    def __or__(self, other: "Reach") -> "Reach":
        return Reach(self.over | other.over, self.turns | other.turns, self.loose | other.loose)


def nest_at(loop: Loop, places: Coordinates, facts: Facts) -> Nest | str:
    """The nest whose outermost loop is ``loop``, or why it is none."""
    levels = _Levels()
    reason = _enter(loop, levels, facts)
    if reason is not None:
        return reason
    variables = frozenset(one.variable for one in levels.loops)
    for one in levels.loops:
        if one.start.depends or one.bound.depends or not _steady(one.start) or not _steady(one.bound):
            return f"how often the loop over {one.variable.name} runs depends on the thread or changes on the way"
    changed = _changed(levels, facts)
    if isinstance(changed, str):
        return changed
    accumulators, cells = changed
    for cell in cells:
        moved = reach(cell.node, places, variables, facts)
        if moved.turns or moved.loose:
            return f"`{text(cell.node)}` is written in the loop"
    loads = _loads(levels, places, variables, cells, facts)
    if isinstance(loads, str):
        return loads
    return Nest(
        loops=tuple(levels.loops),
        declarations=tuple(levels.declarations),
        tests=tuple(levels.tests),
        updates=tuple(levels.updates),
        accumulators=accumulators,
        cells=cells,
        loads=loads,
        product=_adds_products(levels, loads, facts),
    )


def _enter(loop: Loop, levels: _Levels, facts: Facts) -> str | None:
    line = facts.document.line(loop.node.start_byte)
    if loop.node.type != "for_statement" or loop.setup is not None or loop.step_kind != "+" or loop.leaves_early:
        return f"the loop at line {line} does not count through a range in its header alone"
    if loop.step.constant != 1 or loop.relation not in ("<", "<="):
        return f"the loop at line {line} does not count upwards one by one"
    levels.loops.append(loop)
    return _within(loop.body, levels, facts)


def _within(body: Node, levels: _Levels, facts: Facts) -> str | None:
    inside = [one for one in statements(body) if one.type != "preproc_call"]
    for at, statement in enumerate(inside):
        last = at == len(inside) - 1
        if statement.type == "declaration":
            levels.declarations.append(statement)
        elif (test := _skips(statement)) is not None:
            levels.tests.append(test)
        elif statement.type == "for_statement" and last and not levels.updates:
            inner = facts.loop(statement)
            line = facts.document.line(statement.start_byte)
            return f"the loop at line {line} has no plain range" if inner is None else _enter(inner, levels, facts)
        elif statement.type == "if_statement" and last and not levels.updates and _plain_if(statement):
            condition = statement.child_by_field_name("condition")
            inner_body = statement.child_by_field_name("consequence")
            assert condition is not None and inner_body is not None
            levels.tests.append(Test(condition, True))
            return _within(inner_body, levels, facts)
        else:
            levels.updates.append(statement)
    return None if levels.updates else "its innermost loop changes nothing"


def _plain_if(statement: Node) -> bool:
    """An ``if`` without ``else`` that is no update itself (``if (x > m) m = x``)."""
    folds = combination(statement, lambda node: node.type == "identifier") is not None
    return statement.child_by_field_name("alternative") is None and not folds


def _skips(statement: Node) -> Test | None:
    """``if (condition) continue;``"""
    if statement.type != "if_statement" or statement.child_by_field_name("alternative") is not None:
        return None
    inside = statements(statement.child_by_field_name("consequence"))
    condition = statement.child_by_field_name("condition")
    if condition is None or len(inside) != 1 or inside[0].type != "continue_statement":
        return None
    return Test(condition, False)


def _steady(poly: Poly) -> bool:
    return not any("unknown" in atom.depends or "memory" in atom.depends for atom in poly.atoms)


def _changed(levels: _Levels, facts: Facts) -> tuple[tuple[Symbol, ...], tuple[Access, ...]] | str:
    """What the updates change: accumulators and elements of global memory."""
    symbols: dict[Symbol, None] = {}
    cells: dict[Poly, Access] = {}
    outer = levels.loops[0].node
    for statement in levels.updates:
        if not any(True for _ in descendants(statement, "assignment_expression", "update_expression")):
            return f"line {facts.document.line(statement.start_byte)} does something else than fold elements"
        for change in descendants(statement, "assignment_expression", "update_expression"):
            target = bare(change.child_by_field_name("left") or change.child_by_field_name("argument"))
            symbol = None if target is None or target.type != "identifier" else facts.symbols.resolve(target)
            if symbol is not None and not symbol.is_memory and not symbol.escapes:
                if not contains(outer, symbol.declarator):
                    symbols[symbol] = None
                continue
            cell = next((one for one in facts.accesses if one.node == target), None)
            if cell is None or cell.space != "global" or cell.index is None or cell.atomic:
                return f"line {facts.document.line(change.start_byte)} changes something that is no accumulator"
            cells.setdefault(cell.index, cell)
    for declaration in levels.declarations:
        for name in declaration.children_by_field_name("declarator"):
            if name.type != "init_declarator":
                return f"line {facts.document.line(name.start_byte)} declares a variable without a value in the loop"
    if not symbols and not cells:
        return "its innermost loop folds nothing into a variable of the thread"
    return tuple(symbols), tuple(cells.values())


def _loads(
    levels: _Levels, places: Coordinates, variables: frozenset[Symbol], cells: tuple[Access, ...], facts: Facts
) -> tuple[Load, ...] | str:
    """Every element that the nest reads from global memory, once for each index."""
    outer = levels.loops[0].node
    kept = {(cell.root, cell.index) for cell in cells}
    found: dict[tuple[Symbol | None, Poly], list[Access]] = {}
    for access in facts.accesses_in(outer):
        spelled = text(access.node)
        if access.space in ("constant", "local") and access.reads and not access.writes:
            if reach(access.node, places, variables, facts).over:
                return f"`{spelled}` depends on the thread's place and is no element of a buffer"
            continue
        if access.space != "global" or access.index is None or access.atomic:
            return f"where `{spelled}` points cannot be followed"
        if (access.root, access.index) in kept:
            continue
        if access.writes:
            return f"`{spelled}` is written in the loop"
        found.setdefault((access.root, access.index), []).append(access)
    stray = _stray_pointer(outer, facts)
    if stray is not None:
        return stray
    loads = []
    for reads in found.values():
        seen = reach(reads[0].node, places, variables, facts)
        if seen.turns and reads[0].index is not None and reads[0].index.depends & {"memory", "unknown"}:
            return f"where `{text(reads[0].node)}` points depends on loaded data"
        if seen.loose:
            return f"`{text(reads[0].node)}` depends on {sorted(seen.loose)[0]}, which changes"
        loads.append(Load(reads[0], tuple(one.node for one in reads), seen.over, seen.turns))
    return tuple(loads)


def _stray_pointer(outer: Node, facts: Facts) -> str | None:
    """A pointer that is used in another way than by an access which is known."""
    known = [access.node for access in facts.accesses_in(outer)]
    for node in descendants(outer, "identifier"):
        symbol = facts.symbols.resolve(node)
        if symbol is not None and symbol.is_memory and not any(contains(one, node) for one in known):
            declared = symbol.space == "local" and symbol.fixed and node == symbol.declarator
            inner = symbol.space == "parameter" and _initialises_pointer(node, facts)
            if not declared and not inner:
                return f"line {facts.document.line(node.start_byte)} hands {symbol.name} on as a whole"
    return None


def _initialises_pointer(node: Node, facts: Facts) -> bool:
    """Whether a pointer stands in the definition of a local pointer that keeps its value."""
    return any(
        symbol.space == "local" and symbol.is_memory and symbol.fixed and symbol.init is not None
        and contains(symbol.init, node)
        for symbol in facts.symbols.all()
    )  # fmt: skip


def reach(node: Node | None, places: Coordinates, variables: frozenset[Symbol], facts: Facts) -> Reach:
    """What an expression depends on, seen through locals that keep their value."""
    found = Reach()
    if node is None:
        return found
    for name in descendants(node, "identifier"):
        found = found | _reach_of(name, places, variables, facts)
    return found


def _reach_of(name: Node, places: Coordinates, variables: frozenset[Symbol], facts: Facts) -> Reach:
    symbol = facts.symbols.resolve(name)
    if symbol is None:
        return Reach()
    if (digits := places.of(symbol)) != ():
        return Reach(over=frozenset(digits))
    if symbol in variables:
        return Reach(turns=frozenset({symbol}))
    if symbol.space == "parameter" and symbol.fixed:
        return Reach()
    if symbol.fixed and symbol.init is not None and not symbol.dims and not contains(symbol.init, name):
        return reach(symbol.init, places, variables, facts)
    return Reach(loose=frozenset({symbol.name}))


def _adds_products(levels: _Levels, loads: tuple[Load, ...], facts: Facts) -> bool:
    """Whether every update adds a product in which each load is a factor."""
    for statement in levels.updates:
        operand = _added(statement)
        if operand is None:
            return False
        named = {place for factor in _factors(operand, facts) for place in (factor.start_byte,)}
        if not all(any(node.start_byte in named for node in load.nodes) for load in loads if load.turns):
            return False
    return True


def _added(statement: Node) -> Node | None:
    found = combination(statement, lambda node: node.type in ("identifier", "subscript_expression"))
    if found is not None:
        return found.operand if found.op == "sum" else None
    assignment = expression_of(statement)
    if assignment is None or assignment.type != "assignment_expression":
        return None
    target, right = bare(assignment.child_by_field_name("left")), bare(assignment.child_by_field_name("right"))
    if target is None or right is None or text(assignment.child_by_field_name("operator")) != "=":
        return None
    given = arguments(right)
    if callee(right) in ("fma", "fmaf", "__fmaf_rn") and len(given) == 3 and text(bare(given[2])) == text(target):
        return right
    return None


def _factors(node: Node, facts: Facts) -> list[Node]:
    """The factors of a product, seen through casts and locals that keep their value."""
    inner = bare(node)
    if inner is None:
        return []
    if inner.type == "binary_expression" and text(inner.child_by_field_name("operator")) == "*":
        parts = [inner.child_by_field_name("left"), inner.child_by_field_name("right")]
        return [factor for part in parts if part is not None for factor in _factors(part, facts)]
    if inner.type == "cast_expression" and (value := inner.child_by_field_name("value")) is not None:
        return _factors(value, facts)
    if inner.type == "call_expression" and callee(inner) in ("fma", "fmaf", "__fmaf_rn"):
        return [factor for part in arguments(inner)[:2] for factor in _factors(part, facts)]
    if inner.type == "call_expression" and callee(inner) in _SAME_VALUE:
        return [factor for part in arguments(inner) for factor in _factors(part, facts)]
    if inner.type == "identifier":
        symbol = facts.symbols.resolve(inner)
        if symbol is not None and symbol.fixed and symbol.init is not None and not symbol.is_memory:
            return _factors(symbol.init, facts)
    return [inner]
