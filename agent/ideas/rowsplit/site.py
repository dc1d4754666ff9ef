"""Whether a kernel's blocks walk over rows that several blocks could share, and where its launches must part.

The statements of the kernel's body stand in one line: passes over the row that fold it into accumulators, loops that
write an element a turn, and the rest, which every block can do over again. A launch ends behind each pass, because what
follows needs what all blocks found.
"""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.dependence import conditions, returns_before
from agent.analysis.loops import Loop
from agent.analysis.patterns.quiet_calls import is_quiet
from agent.analysis.patterns.reduction_loop import (
    Accumulator,
    ReductionLoop,
    begins_neutral,
    reduction_loop,
)
from agent.analysis.patterns.row_pass import same_space
from agent.analysis.patterns.tree_reduction import tree_reductions
from agent.analysis.syntax import arguments, callee, contains, descendants, expression_of, statements, text
from agent.analysis.values import is_uniform
from agent.ideas.buffers import elements, may_be_one
from agent.ideas.reduction.site import Site, site
from agent.ideas.view import View, evaluate
from agent.workload.dtypes import from_c_type

MULTIPROCESSORS = 132
THREADS_EACH = 2048
"""Of an H100 or H200 (NVIDIA H100 Tensor Core GPU Architecture, 2022)."""

TURNS = 4
"""Turns of a loop that each thread should keep."""


@frozen(eq=False)
class Pass:
    """``walk`` folds the row. ``trees`` reduce its accumulators over the block, in order; empty where it is not known
    how the kernel does that: then each thread's own partial result is handed on."""

    walk: ReductionLoop
    trees: tuple[Site, ...]

    @property
    def last(self) -> Node:
        """The statement behind which the launch ends."""
        return self.trees[-1].tree.statement if self.trees else self.walk.node


@frozen(eq=False)
class RowSplit:
    """``spine`` is the block in which all loops stand. ``passes`` fold the row, in order; ``walks`` are the loops that
    only write. ``tail`` are the statements behind the last pass that write besides (one block shall do them).
    ``parts``: how many blocks may share a row, fewest first; ``best`` the one that fills the card. ``longest`` is the
    loop with the most turns."""

    spine: Node
    passes: tuple[Pass, ...]
    walks: tuple[ReductionLoop, ...]
    tail: tuple[Node, ...]
    parts: tuple[int, ...]
    best: int
    rows: int
    length: int
    longest: Loop


def row_split(view: View) -> RowSplit | str:
    reason = _launches(view)
    if reason is not None:
        return reason
    loops = _loops(view)
    if isinstance(loops, str):
        return loops
    passes = [_with_trees(loop, view) for loop in loops if loop.accumulators]
    if not passes:
        return "no loop of a block folds a row"
    spine = passes[0].walk.node.parent
    if spine is None or any(loop.node.parent != spine for loop in loops) or not _straight(spine, view):
        return "the loops over the row do not stand side by side in the kernel's body"
    reason = _leaves(passes, view) or _foreign(passes, view) or _between(loops, passes, view)
    if reason is not None:
        return reason
    tail = _tail(spine, loops, passes, view)
    if isinstance(tail, str):
        return tail
    fit = _parts(loops, view, all(one.trees for one in passes))
    if isinstance(fit, str):
        return fit
    walks = tuple(loop for loop in loops if not loop.accumulators)
    return RowSplit(spine, tuple(passes), walks, tail, *fit)


def _launches(view: View) -> str | None:
    if len(view.launches) != 1 or view.threads is None or view.block[1:] != (1, 1):
        return "the plan does not launch this kernel once with one-dimensional blocks of a fixed size"
    if any(evaluate(extent, view.sizes) != 1 for extent in view.launches[0].grid[1:]):
        return "the grid has more than one dimension"
    if any(text(node) in ("blockIdx.y", "gridDim.y") for node in descendants(view.facts.body, "field_expression")):
        return "it uses the grid's second dimension"
    for call in view.facts.calls:
        known = is_quiet(call, view.facts) or is_barrier_call(call) or callee(call).startswith("atomic")
        if not known and not _stays_in_block(call, view):
            return f"it calls `{callee(call)}`, whose effects are not known"
    return None


def _stays_in_block(call: Node, view: View) -> bool:
    """Whether a function of this file is handed no global memory, and asks for nothing but the thread's place in its
    block: such as reduces a value over the block."""
    given = [view.facts.symbols.resolve(name) for argument in arguments(call) for name in _names(argument)]
    if any(symbol is not None and symbol.pointer and symbol.space != "shared" for symbol in given):
        return False
    found = [
        function
        for function in descendants(view.document.tree.root_node, "function_definition")
        if _called(function) == callee(call) and function != view.facts.node
    ]
    words = {text(name) for function in found for name in descendants(function, "identifier")}
    outside = {"blockIdx", "gridDim", "printf"} | {word for word in words if word.startswith("atomic")}
    return bool(found) and not words & outside


def _called(function: Node) -> str:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return text(None if declarator is None else declarator.child_by_field_name("declarator"))


def is_barrier_call(call: Node) -> bool:
    return callee(call) in ("__syncthreads", "__syncwarp")


def _loops(view: View) -> tuple[ReductionLoop, ...] | str:
    """The loops in which the threads of a block take turns along global memory."""
    found: list[ReductionLoop] = []
    for loop in view.facts.loops:
        if any(contains(outer.node, loop.node) for outer in found):
            continue
        touched = [access for access in view.facts.accesses_in(loop.node) if access.space not in ("shared", "local")]
        if not touched:
            continue
        line = view.document.line(loop.node.start_byte)
        if not _by_turns(loop, view):
            return f"the loop at line {line} is not shared by the threads of a block"
        walk = reduction_loop(loop, view.facts, lambda one, other: may_be_one(view, one, other))
        if isinstance(walk, str):
            return walk
        found.append(walk)
    return tuple(found)


def _by_turns(loop: Loop, view: View) -> bool:
    """``for (i = threadIdx.x + ...; ...; i += blockDim.x)``, or by all threads of the grid."""
    assert view.threads is not None
    step = number(view.threads)
    grid = step * unknown(Atom("gridDim.x"))
    starts = loop.start.coefficient("threadIdx.x")
    return loop.step in (step, grid) and starts == number(1)


def _straight(spine: Node, view: View) -> bool:
    """The kernel's body, or the branch of an ``if`` without ``else`` that ends it."""
    if spine == view.facts.body:
        return True
    branch = spine.parent
    if branch is None or branch.type != "if_statement" or branch.child_by_field_name("alternative") is not None:
        return False
    return branch.parent == view.facts.body and statements(view.facts.body)[-1] == branch


def _leaves(passes: list[Pass], view: View) -> str | None:
    """Threads that return before a pass would leave their places in the scratch buffers empty."""
    for leave in returns_before(passes[-1].last, view.facts.body):
        if not all(is_uniform(test, view.facts.scope) for test in conditions(leave, view.facts.body)):
            return f"some threads of a block may return at line {view.document.line(leave.start_byte)}"
    return None


def _foreign(passes: list[Pass], view: View) -> str | None:
    for one in passes:
        for accumulator in one.walk.accumulators:
            name, kind = accumulator.symbol.name, accumulator.symbol.type
            if from_c_type(kind) is None:
                return f"{name} is of type {kind}, which no scratch buffer holds"
            if not begins_neutral(accumulator, one.walk.loop, view.facts):
                return f"nothing shows that {name} is neutral when its loop begins"
    return None


def _with_trees(walk: ReductionLoop, view: View) -> Pass:
    """The pass with the trees that reduce each of its accumulators, if that is all that becomes of them."""
    found = [one for tree in tree_reductions(view.facts) if isinstance(one := site(tree, view), Site)]
    trees: list[Site] = []
    for accumulator in walk.accumulators:
        own = next((one for one in found if _reduces(one, accumulator, walk, view)), None)
        if own is None:
            return Pass(walk, ())
        trees.append(own)
    return Pass(walk, tuple(sorted(trees, key=lambda one: one.tree.statement.start_byte)))


def _reduces(one: Site, accumulator: Accumulator, walk: ReductionLoop, view: View) -> bool:
    symbol = accumulator.symbol
    if one.store is None or one.value is None or one.tree.combination.op != accumulator.op:
        return False
    if one.tree.statement.parent != walk.node.parent or one.first.start_byte < walk.node.end_byte:
        return False
    if one.value.type != "identifier" or view.facts.symbols.resolve(one.value) is not symbol:
        return False
    if one.array.type != symbol.type:
        return False
    names = [name for name in descendants(view.facts.body, "identifier") if view.facts.symbols.resolve(name) is symbol]
    after = [name for name in names if name.start_byte >= walk.node.end_byte]
    return after[0] == one.value and (len(after) == 1 or _set_anew(after[1], one))


def _set_anew(name: Node, one: Site) -> bool:
    """Whether a use is ``name = ...;``, in a statement at the tree's level."""
    holder = name.parent
    while holder is not None and holder.type != "expression_statement":
        holder = holder.parent
    assigned = None if holder is None else expression_of(holder)
    return (
        assigned is not None
        and holder is not None
        and holder.parent == one.tree.statement.parent
        and assigned.type == "assignment_expression"
        and assigned.child_by_field_name("left") == name
        and text(assigned.child_by_field_name("operator")) == "="
        and text(name) not in {text(inner) for inner in _names(assigned.child_by_field_name("right"))}
    )


def _names(node: Node | None) -> list[Node]:
    if node is None:
        return []
    return [node] if node.type == "identifier" else list(descendants(node, "identifier"))


def segment(node: Node, passes: list[Pass] | tuple[Pass, ...]) -> int:
    """In which launch a loop runs: how many passes end before it."""
    return sum(1 for one in passes if one.walk.node.end_byte <= node.start_byte)


def _between(loops: tuple[ReductionLoop, ...], passes: list[Pass], view: View) -> str | None:
    """Whether what one loop stores may be read where another block has, or has not yet, written it."""
    stores = [(loop, store) for loop in loops for store in loop.stores]
    inside = [loop.node for loop in loops]
    for loop, store in stores:
        for access in view.facts.accesses:
            if not access.reads or not _one_buffer(access, store, view) or contains(loop.node, access.node):
                continue
            other = next((walk for walk in loops if contains(walk.node, access.node)), None)
            if other is None and not any(contains(node, access.node) for node in inside):
                return f"`{text(access.node)}` may be read while another block writes it"
            if other is None or segment(other.node, passes) != segment(loop.node, passes):
                continue
            if not same_space(other.loop, loop.loop) or not _same_element(access, store, other, loop):
                return f"`{text(access.node)}` may be read while another block writes it"
    return None


def _same_element(one: Access, other: Access, first: ReductionLoop, second: ReductionLoop) -> bool:
    if one.index is None or other.index is None:
        return False
    at = unknown(Atom("@turn"))
    moved: list[Poly] = [
        one.index.substitute(first.loop.atom.name, at),
        other.index.substitute(second.loop.atom.name, at),
    ]
    return moved[0] == moved[1]


def _one_buffer(one: Access, other: Access, view: View) -> bool:
    if one.space in ("shared", "local", "constant"):
        return False
    if one.root is None or other.root is None:
        return True
    return may_be_one(view, one.root, other.root)


def _tail(spine: Node, loops: tuple[ReductionLoop, ...], passes: list[Pass], view: View) -> tuple[Node, ...] | str:
    """The statements besides the loops that write global memory: all behind the last pass, and free of barriers."""
    found: list[Node] = []
    for access in view.facts.accesses:
        if not access.writes or access.space in ("shared", "local"):
            continue
        if any(contains(loop.node, access.node) for loop in loops):
            continue
        holder = next((one for one in statements(spine) if contains(one, access.node)), None)
        if holder is None or holder.start_byte < passes[-1].last.end_byte:
            return f"`{text(access.node)}` is written before the last reduction over the row"
        if any(is_barrier_call(call) and contains(holder, call) for call in view.facts.calls):
            return f"`{text(access.node)}` is written beside a barrier"
        if holder.type not in ("expression_statement", "if_statement"):
            return f"`{text(access.node)}` is written inside a larger statement"
        if holder not in found:
            found.append(holder)
    written = [access for one in found for access in view.facts.accesses_in(one) if access.writes]
    for access in view.facts.accesses:
        apart = access.reads and not any(contains(one, access.node) for one in found)
        if apart and any(write.space == "global" and _one_buffer(access, write, view) for write in written):
            return f"`{text(access.node)}` may be read while another block writes it"
    return tuple(found)


Fit = tuple[tuple[int, ...], int, int, int, Loop]
"""(choices of parts, the best, blocks now, elements of a row, the longest loop)"""


def _parts(loops: tuple[ReductionLoop, ...], view: View, by_block: bool) -> Fit | str:
    """As many parts as fill the card and leave each thread enough."""
    assert view.threads is not None
    blocks = evaluate(view.launches[0].grid[0], view.sizes)
    names = {**view.parameters(view.launches[0]), "threadIdx.x": 0, "blockIdx.x": 0}
    if not isinstance(blocks, int):
        return "the number of blocks is not known at the declared sizes"
    names["gridDim.x"] = blocks
    lengths = [(loop.loop.bound - loop.loop.start).evaluate(names) for loop in loops]
    known = [length for length in lengths if length is not None]
    if not known:  # rows of loaded lengths: as long as what they lie in allows, on average
        walked = [access for loop in loops for access in view.facts.accesses_in(loop.node)]
        known = [count // blocks for access in walked if (count := elements(view, access)) is not None]
    if not known:
        return "the length of a row is not known at the declared sizes"
    share = max(1, loops[0].loop.step.evaluate(names) or 1)
    turns = max(known) // share
    full = MULTIPROCESSORS * THREADS_EACH // (blocks * view.threads)
    best = min(full if by_block else full // 2, turns // TURNS)
    if best < 2:
        why = "its blocks fill the card already" if full < 2 else "its rows are too short to be shared"
        return f"{why}: {blocks} blocks of {view.threads} threads, {max(known)} elements"
    choices = sorted({max(2, best // 4), max(2, best // 2), best, max(2, min(2 * best, turns // TURNS))})
    longest = max(zip(lengths, loops, strict=True), key=lambda pair: pair[0] or 0)[1].loop
    return tuple(choices), best, blocks, max(known), longest
