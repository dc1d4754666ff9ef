"""Whether each thread of a kernel walks over a row of its own, and what must be known to hand the row to several."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.guards import guards
from agent.analysis.loops import Loop
from agent.analysis.patterns.quiet_calls import is_quiet
from agent.analysis.patterns.reduction_loop import ReductionLoop, reduction_loop
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, callee, contains, descendants, statement_of, text
from agent.analysis.values import value
from agent.ideas.buffers import elements, may_be_one
from agent.ideas.reduction.site import SHUFFLED
from agent.ideas.view import View, evaluate

WARP = 32
NEAR = 8
"""Elements a turn: with more, the lanes of a warp would be as far apart as the rows are."""

FEWEST = 4
"""Elements in a row, below which there is nothing to hand out."""


@frozen(eq=False)
class Row:
    """The thread's own row: ``symbol``, set to ``start``. Where it goes on to further rows, ``loop`` does so by
    ``stride``."""

    symbol: Symbol
    start: Node
    stride: Node | None
    loop: Loop | None

    @property
    def units(self) -> tuple[str, ...]:
        """What one thread's row differs from its neighbour's by, in the values of expressions."""
        return ("threadIdx.x",) if self.loop is None else ("threadIdx.x", self.loop.atom.name)


@frozen(eq=False)
class RowWalk:
    """``row`` is what holds the thread's own row, ``walks`` the loops along it. ``guarded`` are the statements
    outside the loops that write memory: one lane shall do them. ``rows`` is the parameter that bounds the row (None
    where no guard says), ``length`` how many elements a row has at the declared sizes, on average (None: not known)."""

    row: Row
    walks: tuple[ReductionLoop, ...]
    guarded: tuple[Node, ...]
    rows: str | None
    length: float | None


def row_walk(view: View) -> RowWalk | str:
    """The kernel as a walk along rows, or why it is none."""
    row = _row(view)
    if isinstance(row, str):
        return row
    reason = _team_work(view)
    if reason is not None:
        return reason
    walks = _walks(view, row)
    if isinstance(walks, str):
        return walks
    for walk in walks:
        for one in walk.accumulators:
            templated = any(parameter.name == one.symbol.type for parameter in view.kernel.template)
            if one.symbol.type not in SHUFFLED and not templated:
                return f"a warp cannot shuffle {one.symbol.name}, of type {one.symbol.type}"
    guarded = _guarded(view, walks)
    if isinstance(guarded, str):
        return guarded
    if (shared := _read_by_all(view, guarded)) is not None:
        return f"{shared} is read by every lane and written by one, and nothing orders the two"
    length = _length(view, walks)
    if length is not None and length < FEWEST:
        return f"a row has {length:.0f} elements at the declared sizes, too few to be shared"
    return RowWalk(row, walks, guarded, _rows(view, row, walks, guarded), length)


def _read_by_all(view: View, guarded: tuple[Node, ...]) -> str | None:
    """What one lane will write and all will have read: a shuffle does not order memory."""

    def alone(node: Node) -> bool:
        return any(contains(one, node) for one in guarded)

    written = {one.root for one in view.facts.accesses if one.writes and one.root is not None and alone(one.node)}
    reads = (one for one in view.facts.accesses if one.reads and one.space == "global" and not alone(one.node))
    return next((one.name for one in reads if one.root in written), None)


def _row(view: View) -> Row | str:
    """The only variable that the thread's global index goes into: a local, or the variable of a loop that goes on by
    all threads of the grid."""
    threads = view.block[0]
    if not view.launches or threads is None or view.block[1:] != (1, 1) or threads % WARP:
        return "the launches do not all have one-dimensional blocks of a fixed whole number of warps"
    if any(evaluate(extent, view.sizes) != 1 for launch in view.launches for extent in launch.grid[1:]):
        return "the grid has more than one dimension"
    own = number(threads) * unknown(Atom("blockIdx.x")) + unknown(Atom("threadIdx.x"))
    found = [row for symbol in view.facts.symbols.all() if (row := _holding(symbol, own, view)) is not None]
    found += [row for loop in view.facts.loops if (row := _striding(loop, own, threads, view)) is not None]
    if len(found) != 1:
        return "no variable holds the thread's index in the grid"
    parts = [found[0].start, *([] if found[0].stride is None else [found[0].stride])]
    for built_in in descendants(view.facts.body, "field_expression"):
        name = text(built_in.child_by_field_name("argument"))
        if name in ("threadIdx", "blockIdx", "gridDim") and not any(contains(part, built_in) for part in parts):
            return f"`{text(built_in)}` is used beside {found[0].symbol.name}"
    return found[0]


def _holding(symbol: Symbol, own: Poly, view: View) -> Row | None:
    """``int row = blockIdx.x * blockDim.x + threadIdx.x;``"""
    if symbol.space != "local" or not symbol.fixed or symbol.init is None:
        return None
    return Row(symbol, symbol.init, None, None) if value(symbol.init, view.facts.scope) == own else None


def _striding(loop: Loop, own: Poly, threads: int, view: View) -> Row | None:
    """``for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x)``"""
    start = started(loop)
    if start is None or loop.start != own or loop.step_kind != "+":
        return None
    if loop.step != number(threads) * unknown(Atom("gridDim.x")):
        return None
    step = loop.update.child_by_field_name("right")
    if step is None or text(loop.update.child_by_field_name("operator")) != "+=":
        return None
    symbol = view.facts.symbols.resolve(step) if step.type == "identifier" else None
    if symbol is None:
        return Row(loop.variable, start, step, loop)
    uses = [name for name in descendants(view.facts.body, "identifier") if view.facts.symbols.resolve(name) is symbol]
    alone = symbol.fixed and symbol.init is not None and len(uses) == 2  # its declaration and this step
    return Row(loop.variable, start, symbol.init, loop) if alone else None


def started(loop: Loop) -> Node | None:
    """What a ``for`` loop's header sets its variable to."""
    header = loop.node.child_by_field_name("initializer")
    if header is None:
        return None
    declared = header.child_by_field_name("declarator")
    return header.child_by_field_name("right") if declared is None else declared.child_by_field_name("value")


def _team_work(view: View) -> str | None:
    """What threads do together stands in the way of another division of the work."""
    if any(symbol.space == "shared" for symbol in view.facts.symbols.all()):
        return "its threads share memory already"
    for call in view.facts.calls:
        name = callee(call)
        if not name.startswith("atomic") and not is_quiet(call, view.facts):
            return f"it calls `{name}`, which may look at the thread index or write"
    if any(access.space in ("unknown", "constant") and access.writes for access in view.facts.accesses):
        return "it writes where it cannot be followed"
    return None


def _walks(view: View, row: Row) -> tuple[ReductionLoop, ...] | str:
    """The outermost loops that run along the thread's row and can be dealt out."""
    found: list[ReductionLoop] = []
    reason = "no loop of a thread runs along neighbouring elements of its own row"
    for loop in view.facts.loops:
        if loop is row.loop or any(contains(walk.node, loop.node) for walk in found):
            continue
        streams = _streams(view, loop, row)
        if isinstance(streams, str):
            reason = streams
        elif streams:
            walk = reduction_loop(loop, view.facts, lambda one, other: may_be_one(view, one, other))
            if isinstance(walk, str):
                reason = walk
            elif walk.loop.step.constant != 1:
                reason = f"the loop at line {view.document.line(loop.node.start_byte)} does not step by one"
            else:
                found.append(walk)
    if not any(walk.accumulators or walk.stores for walk in found):
        return reason
    return tuple(found)


def _streams(view: View, loop: Loop, row: Row) -> bool | str:
    """Whether each thread reads or writes along its own row in the loop; a reason where lanes would lose by it."""
    along = False
    for access in view.facts.accesses_in(loop.node):
        if access.space != "global":
            continue
        step = None if access.index is None else access.index.coefficient(loop.atom.name)
        if access.index is None or step is None or not step.terms or _gathers(access):
            continue  # the same element in each turn, or no telling which
        own = "threadIdx.x" in access.index.depends
        if own and _side_by_side(access.index.without(loop.atom.name), row):
            return f"`{text(access.node)}` is next to that of the neighbouring thread already"
        near = step.constant is not None and 0 < abs(step.constant) <= NEAR
        if near and _own_row(access.index, loop, row):
            along = True
        elif not near:
            what = "neighbouring threads" if own else "all threads of a warp"
            return f"`{text(access.node)}` is read with a stride along the loop, and {what} share its sectors now"
    return along


def _side_by_side(index: Poly, row: Row) -> bool:
    steps = [index.coefficient(unit) for unit in row.units]
    return any(step is not None and step.constant is not None and 0 < abs(step.constant) <= NEAR for step in steps)


def _own_row(index: Poly, loop: Loop, row: Row) -> bool:
    """Whether neighbouring threads are a row apart: by a row's length, or because each loads where its row begins."""
    # The variable itself runs alike in all threads, wherever it is declared.
    steps = [index.without(loop.atom.name).coefficient(unit) for unit in row.units]
    far = any(step is not None and step.terms and (step.constant or NEAR + 1) > NEAR for step in steps)
    return far or {"memory", "threadIdx.x"} <= loop.start.depends


def _gathers(access: Access) -> bool:
    """Whether the index was loaded itself (``x[columns[i]]``)."""
    assert access.index is not None
    return any(atom.name.startswith("<") and "memory" in atom.depends for atom in access.index.atoms)


def _guarded(view: View, walks: tuple[ReductionLoop, ...]) -> tuple[Node, ...] | str:
    """The statements outside the walks that write memory."""
    found: list[Node] = []
    outside = [
        access
        for access in view.facts.accesses
        if access.space == "global" and not any(contains(walk.node, access.node) for walk in walks)
    ]
    for access in outside:
        if not access.writes or (found and contains(found[-1], access.node)):
            continue
        statement = statement_of(access.node)
        if statement.type != "expression_statement":
            return f"`{text(access.node)}` writes inside a larger statement"
        if _changes_locals(statement, view):
            return f"the statement at line {view.document.line(statement.start_byte)} writes memory and a variable"
        found.append(statement)
    for access in outside:
        if not access.reads or access.atomic or any(contains(one, access.node) for one in found):
            continue
        for one in found:
            if _may_see(access, one, view):
                return f"`{text(access.node)}` may read what one lane alone will have written"
    stored = [store for walk in walks for store in walk.stores]
    for store in stored:
        for access in view.facts.accesses:
            walk = next(walk for walk in walks if contains(walk.node, store.node))
            if access.reads and access.node.start_byte > walk.node.end_byte and _one_buffer(store, access, view):
                return f"`{text(access.node)}` may read what other lanes will have written"
    return tuple(found)


def _may_see(access: Access, statement: Node, view: View) -> bool:
    written = [write for write in view.facts.accesses_in(statement) if write.writes]
    if not any(_one_buffer(write, access, view) for write in written):
        return False
    return access.node.start_byte > statement.start_byte or bool(view.facts.loops_around(statement))


def _one_buffer(one: Access, other: Access, view: View) -> bool:
    if one.root is None or other.root is None:
        return True
    return one.root is other.root or may_be_one(view, one.root, other.root)


def _changes_locals(statement: Node, view: View) -> bool:
    for node in descendants(statement, "assignment_expression", "update_expression"):
        target = bare(node.child_by_field_name("left") or node.child_by_field_name("argument"))
        if target is not None and target.type == "identifier":
            return True
    return False


def _rows(view: View, row: Row, walks: tuple[ReductionLoop, ...], guarded: tuple[Node, ...]) -> str | None:
    """The parameter ``n`` where nothing is written unless ``row < n``, and the launches have a thread for each row."""
    places = [*(walk.node for walk in walks), *guarded]
    bounds = [_bounds(view, row, place) for place in places]
    common = set.intersection(*(set(found) for found in bounds))
    for name in sorted(common):
        at = [parameter.name for parameter in view.kernel.parameters].index(name)
        enough = [
            (threads := evaluate(launch.grid[0], view.sizes)) is not None
            and view.block[0] is not None
            and (rows := evaluate(launch.arguments[at], view.sizes)) is not None
            and threads * view.block[0] >= rows
            and launch.arguments[at].names <= launch.grid[0].names  # and goes on doing so at other sizes
            for launch in view.launches
        ]
        if all(enough):
            return name
    return None


def _bounds(view: View, row: Row, place: Node) -> list[str]:
    found: list[str] = []
    own = {parameter.name for parameter in view.kernel.parameters if not parameter.pointer_depth}
    for guard in guards(place, view.facts.node):
        test = bare(guard.condition)
        if test is None or test.type != "binary_expression":
            continue
        left, right = bare(test.child_by_field_name("left")), bare(test.child_by_field_name("right"))
        operator = text(test.child_by_field_name("operator"))
        is_row = left is not None and left.type == "identifier" and view.facts.symbols.resolve(left) is row.symbol
        symbol = None if right is None or right.type != "identifier" else view.facts.symbols.resolve(right)
        below = operator == ("<" if guard.taken else ">=")
        if is_row and below and symbol is not None and symbol.fixed and symbol.name in own:
            found.append(symbol.name)
    return found


def _length(view: View, walks: tuple[ReductionLoop, ...]) -> float | None:
    """Elements in a row: turns of the longest walk, or the elements of what it runs along by the number of threads."""
    parameters = view.parameters(view.launches[0])
    turns = [(walk.loop.bound - walk.loop.start).evaluate(parameters) for walk in walks]
    known = [count for count in turns if count is not None]
    if known:
        return float(max(known))
    threads = evaluate(view.launches[0].grid[0], view.sizes)
    extents = [elements(view, access) for walk in walks for access in view.facts.accesses_in(walk.node)
               if access.index is not None and access.index.coefficient(walk.loop.atom.name) == number(1)]  # fmt: skip
    counted = [extent for extent in extents if extent is not None]
    if not counted or threads is None or view.block[0] is None:
        return None
    return max(counted) / (threads * view.block[0])


def along_row(view: View, found: RowWalk) -> Access:
    """An access that each thread makes along its own row."""
    return next(
        access
        for walk in found.walks
        for access in view.facts.accesses_in(walk.node)
        if access.space == "global"
        and access.index is not None
        and not _gathers(access)
        and (step := access.index.coefficient(walk.loop.atom.name)) is not None
        and step.constant not in (None, 0)
    )
