"""A kernel that makes each point of a new plane out of a few neighbours in an old one: one step of a simulation."""

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.dependence import PURE
from agent.analysis.facts import Facts
from agent.analysis.guards import COMPARISONS, guards
from agent.analysis.patterns.bounds import Known, known
from agent.analysis.patterns.lane_bounds import parts
from agent.analysis.patterns.places import Place, places
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import callee, contains, descendants, enclosing, statements, text
from agent.analysis.values import difference, leaves, replaced, value

FARTHEST = 4
ROW, COLUMN = Atom("row", frozenset({"threadIdx.y"})), Atom("column", frozenset({"threadIdx.x"}))


@frozen(eq=False)
class Read:
    """An access to the old plane, so many rows and columns from the thread's own point."""

    access: Access
    down: int
    right: int


@frozen(eq=False)
class Axis:
    """A point's place along one axis runs from ``low`` to ``high`` (polynomials over parameters) where it is written;
    ``reach`` is how far its neighbours lie. ``rim``: some of them lie outside, where nothing is written and the buffer
    keeps what it has."""

    place: Place
    low: Poly
    high: Poly
    reach: int
    rim: bool


@frozen(eq=False)
class StencilStep:
    """``target`` at a point (element ``pitch * row + column + offset``) is made of ``reads`` of ``source``.
    ``rim``: some neighbours are points that no step writes. ``body`` is what stands after the places' declarations."""

    source: Symbol
    target: Symbol
    rows: Axis
    columns: Axis
    pitch: Poly
    offset: Poly
    reads: tuple[Read, ...]
    writes: tuple[Access, ...]
    body: tuple[Node, ...]

    @property
    def rim(self) -> bool:
        return self.rows.rim or self.columns.rim


def stencil_step(facts: Facts, old: str) -> StencilStep | str:
    """The kernel as a step from what the parameter ``old`` points to, or why it is none."""
    own = list(places(facts))
    if len(own) != 2 or own[0].thread == own[1].thread or own[0].block == own[1].block:
        return "it does not name a thread's row and column in a plane"
    reason = _works_alone(own, facts)
    if reason is not None:
        return reason
    writes = tuple(a for a in facts.accesses if a.writes and a.space != "local")
    target = writes[0].root if writes else None
    if target is None or any(a.root is not target or a.reads or a.index != writes[0].index for a in writes):
        return "it does not write one element of one array for each thread"
    if any(access.root is target and access.reads for access in facts.accesses):
        return f"it reads {target.name}, which it writes"
    index = writes[0].index
    laid = None if index is None else _laid_out(index, own, facts)
    if laid is None:
        return f"`{text(writes[0].node)}` is no point of a plane that is laid out in rows"
    rows, columns, pitch, offset = laid
    source = next(symbol for symbol in facts.symbols.all() if symbol.name == old and symbol.space == "parameter")
    return _step(facts, source, target, writes, (rows, columns), pitch, offset)


def _works_alone(own: list[Place], facts: Facts) -> str | None:
    if any(symbol.space == "shared" for symbol in facts.symbols.all()) or facts.barriers:
        return "its threads work together through shared memory already"
    if any(access.atomic for access in facts.accesses):
        return "it uses atomic operations"
    inits = [place.symbol.init for place in own]
    for node in descendants(facts.body, "field_expression"):
        inside = any(init is not None and contains(init, node) for init in inits)
        if (
            text(node.child_by_field_name("argument")) in ("threadIdx", "blockIdx", "gridDim", "blockDim")
            and not inside
        ):
            return f"`{text(node)}` is used beside the thread's place"
    for call in facts.calls:
        known_call = callee(call) in PURE or callee(call) in facts.symbols.formulas
        if not known_call and any(_is_pointer(name, facts) for name in descendants(call, "identifier")):
            return f"`{callee(call)}` is handed memory"
    return None


def _is_pointer(name: Node, facts: Facts) -> bool:
    symbol = facts.symbols.resolve(name)
    inside = name.parent is not None and name.parent.type == "subscript_expression"
    return symbol is not None and symbol.pointer > 0 and not inside


def _laid_out(index: Poly, own: list[Place], facts: Facts) -> tuple[Place, Place, Poly, Poly] | None:
    """(row's place, column's place, pitch, offset): the column is what neighbours in memory differ in."""
    for rows, columns in (own, own[::-1]):
        pitch, unit = index.coefficient(rows.lane), index.coefficient(columns.lane)
        if pitch is None or unit != number(1) or not pitch.terms or pitch.depends:
            continue
        offset = index - pitch * value(rows.symbol.init, facts.scope) - value(columns.symbol.init, facts.scope)
        if not offset.depends:
            return rows, columns, pitch, offset
    return None


def _step(
    facts: Facts,
    source: Symbol,
    target: Symbol,
    writes: tuple[Access, ...],
    own: tuple[Place, Place],
    pitch: Poly,
    offset: Poly,
) -> StencilStep | str:
    reads: list[Read] = []
    for access in facts.accesses:
        if access.root is source:
            near = _near(access, writes[0], pitch)
            if near is None:
                return f"`{text(access.node)}` is no neighbour at a fixed distance"
            reads.append(Read(access, *near))
    if not reads:
        return f"it reads nothing of {source.name}"
    body = _body(own, facts)
    if isinstance(body, str):
        return body
    domain = _domain(writes, own, facts)
    if isinstance(domain, str):
        return domain
    if not _always(list(body), writes, facts):
        return f"`{text(writes[0].node)}` is not written in every point of a rectangle"
    axes = _axes(domain, own, reads, facts)
    if isinstance(axes, str):
        return axes
    return StencilStep(source, target, *axes, pitch, offset, tuple(reads), writes, body)


def _near(access: Access, centre: Access, pitch: Poly) -> tuple[int, int] | None:
    """(rows down, columns right) of an access from the point that is written."""
    if access.index is None or centre.index is None:
        return None
    apart = access.index - centre.index
    fixed = pitch.constant
    if fixed is not None:
        whole = apart.constant
        down = None if whole is None else (whole + fixed // 2) // fixed
        found = None if down is None or whole is None else (down, whole - down * fixed)
    else:
        product, factor = next(term for term in pitch.terms if term[0])
        down, odd = divmod(dict(apart.terms).get(product, 0), factor)
        rest = None if odd else (apart - number(down) * pitch).constant
        found = None if rest is None else (down, rest)
    return found if found is not None and max(map(abs, found)) <= FARTHEST else None


def _body(own: tuple[Place, Place], facts: Facts) -> tuple[Node, ...] | str:
    """The statements without the places' declarations, which stand first."""
    declared = [enclosing(place.symbol.declarator, "declaration") for place in own]
    found = statements(facts.body)
    rest = tuple(statement for statement in found if statement not in declared)
    for node in declared:
        others = [] if node is None else node.children_by_field_name("declarator")
        if len(others) > sum(1 for one in declared if one == node):
            return f"`{text(node)}` declares more than the thread's place"
    first = max(node.start_byte for node in declared if node is not None)
    if any(statement.start_byte < first for statement in rest):
        return "statements stand before the thread's place is known"
    return rest


def _conditions(node: Node, facts: Facts) -> list[tuple[Node, bool]]:
    return [(guard.condition, guard.taken) for guard in guards(node, facts.body) if guard.kind != "switch"]


def _domain(writes: tuple[Access, ...], own: tuple[Place, Place], facts: Facts) -> list[tuple[Node, bool]] | str:
    """The conditions that every write stands under."""
    each = [_conditions(write.node, facts) for write in writes]
    common = [one for one in each[0] if all(one in other for other in each[1:])]
    return common or "no condition bounds the points that are written"


def _always(body: list[Node], writes: tuple[Access, ...], facts: Facts) -> bool:
    """Whether every way through statements that does not leave at once writes: a test that leaves, or one that holds
    all that follows, bounds the points; below that, both branches of a test must write."""
    rest = [statement for statement in body if statement.type not in ("declaration", "comment")]
    while rest and _leaves(rest[0]):
        rest = rest[1:]
    if len(rest) == 1 and rest[0].type == "if_statement" and rest[0].child_by_field_name("alternative") is None:
        return _always(statements(rest[0].child_by_field_name("consequence")), writes, facts)
    return _writes(rest, writes)


def _leaves(statement: Node) -> bool:
    """``if (...) return;``"""
    if statement.type != "if_statement" or statement.child_by_field_name("alternative") is not None:
        return False
    inside = statements(statement.child_by_field_name("consequence"))
    return len(inside) == 1 and inside[0].type == "return_statement"


def _writes(body: list[Node], writes: tuple[Access, ...]) -> bool:
    """Whether a run of statements writes on every way through it."""
    for statement in body:
        if statement.type == "expression_statement" and any(contains(statement, write.node) for write in writes):
            return True
        if statement.type == "compound_statement" and _writes(statements(statement), writes):
            return True
        if statement.type == "if_statement":
            yes, no = statement.child_by_field_name("consequence"), statement.child_by_field_name("alternative")
            otherwise = [] if no is None else [child for child in no.named_children if child.type != "comment"]
            one = _writes(statements(yes), writes)
            if one and otherwise and _writes([s for child in otherwise for s in statements(child)], writes):
                return True
            leaves = any(True for _ in descendants(statement, "return_statement"))
            if leaves and not (one and not otherwise):
                return False
        elif any(True for _ in descendants(statement, "return_statement")):
            return False
    return False


def _axes(
    domain: list[tuple[Node, bool]], own: tuple[Place, Place], reads: list[Read], facts: Facts
) -> tuple[Axis, Axis] | str:
    bounds = _plane(known(domain, [value(place.symbol.init, facts.scope) for place in own], facts), own, facts)
    reason = _rectangle(domain, bounds, own, facts)
    if reason is not None:
        return reason
    found: list[Axis] = []
    for place, atom, moves in (
        (own[0], ROW, [(read.access, read.down) for read in reads]),
        (own[1], COLUMN, [(read.access, read.right) for read in reads]),
    ):
        axis = _axis(place, atom, max(abs(move) for _, move in moves), bounds)
        if axis is None:
            return "the points that are written are not bounded by a number below and by parameters above"
        rim = any(not _inside(access, move, axis, atom, own, facts) for access, move in moves)
        found.append(evolve(axis, rim=rim))
    return found[0], found[1]


def _rectangle(domain: list[tuple[Node, bool]], bounds: Known, own: tuple[Place, Place], facts: Facts) -> str | None:
    """What keeps the conditions from describing a rectangle, one bound each."""
    for condition, holds in domain:
        for test, so in parts(condition, holds):
            operator = text(test.child_by_field_name("operator"))
            if test.type != "binary_expression" or operator not in COMPARISONS:
                return f"`{text(test)}` is no bound of a row or a column"
            (rest,) = _plane(Known((difference(test, facts.scope),)), own, facts).least
            held = {atom for atom in (ROW, COLUMN) if atom in leaves(rest)}
            loose = any(atom.depends for atom in leaves(rest) - held)
            if (
                loose
                or len(held) > 1
                or any(rest.coefficient(atom.name) not in (number(1), number(-1)) for atom in held)
            ):
                return f"`{text(test)}` is no bound of a row or a column"
            apart = operator in ("==", "!=") and (operator == "!=") == so
            if (
                held
                and operator in ("==", "!=")
                and not (apart and (bounds.holds(rest - number(1)) or bounds.holds(-rest - number(1))))
            ):
                return f"`{text(test)}` leaves a gap among the points that are written"
    return None


def _axis(place: Place, atom: Atom, reach: int, bounds: Known) -> Axis | None:
    lows = [unknown(atom) - poly for poly in bounds.least if poly.coefficient(atom.name) == number(1)]
    highs = [poly + unknown(atom) for poly in bounds.least if poly.coefficient(atom.name) == number(-1)]
    numbers = [low.constant for low in lows]
    if None in numbers or not highs or any(high.depends or (high - highs[0]).constant is None for high in highs):
        return None
    high = min(highs, key=lambda one: (one - highs[0]).constant or 0)
    return Axis(place, number(max(one for one in numbers if one is not None)), high, reach, False)


def _plane(bounds: Known, own: tuple[Place, Place], facts: Facts) -> Known:
    """Bounds with the row and the column in the place of the thread's and the block's indices."""
    names: dict[str, Poly] = {}
    for place, atom in zip(own, (ROW, COLUMN), strict=True):
        start = number(place.extent) * unknown(Atom(f"blockIdx.{place.block}"))
        names[place.lane] = unknown(atom) - start
    return Known(tuple(replaced(poly, names) for poly in bounds.least))


def _inside(access: Access, move: int, axis: Axis, atom: Atom, own: tuple[Place, Place], facts: Facts) -> bool:
    """Whether a neighbour lies, along one axis, surely where points are written."""
    start = [value(place.symbol.init, facts.scope) for place in own]
    at = _plane(known(_conditions(access.node, facts), start, facts), own, facts)
    there = unknown(atom) + number(move)
    return at.holds(there - axis.low) and at.holds(axis.high - there)
