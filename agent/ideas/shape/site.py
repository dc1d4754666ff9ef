"""Whether a kernel's block may have another shape, and what is wrong with the one that it has."""

from math import ceil, prod

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Atom, number, unknown
from agent.analysis.loops import Loop
from agent.analysis.patterns.straight import pieces
from agent.analysis.syntax import contains, descendants, text
from agent.ideas.elements.places import bound, place, reached, thread_number
from agent.ideas.exchange.plane import obstacles
from agent.ideas.view import AXES, View, evaluate
from agent.workload.plan import Launch

WARP = 32
SMS = 132
"""Of an H200 and an H100 SXM (NVIDIA H100 Tensor Core GPU Architecture); a block for each at least, to use them all."""
RESIDENT = 2048
"""Threads that an SM of these holds (CUDA C++ Programming Guide, technical specifications)."""
LARGE = 512


@frozen(eq=False)
class Site:
    """``bounds`` are, by axis, what a test keeps the thread's place below. ``loop``: a grid-stride loop over x, whose
    grid is free as well. ``why`` says what is wrong."""

    bounds: dict[int, Node]
    loop: Loop | None
    why: str


def site(view: View) -> Site | str:
    x, y, z = view.block
    if x is None or y is None or z is None:
        return "the block's extents are not fixed numbers"
    if (obstacle := obstacles(view)) is not None:
        return obstacle
    if view.facts.barriers or any(symbol.space == "shared" for symbol in view.facts.symbols.all()):
        return "its threads work together in a block of the size that it has"
    if view.kernel.launch_bounds:
        return "__launch_bounds__ says what blocks it is made for"
    loop = _stride_loop(view)
    if loop is not None:
        if (y, z) != (1, 1):
            return "it has a second thread index"
        why = _idle_stride(view, loop, x)
        return "its grid fills the card already" if why is None else Site({}, loop, why)
    return _by_bounds(view, (x, y, z))


def _by_bounds(view: View, block: tuple[int, int, int]) -> Site | str:
    why = _wrong(view, block)
    if why is None:
        return "its blocks are whole warps, and there are enough of them"
    parts = pieces(view.facts)
    if isinstance(parts, str):
        return parts
    bounds: dict[int, Node] = {}
    for axis in range(3):
        found = place(view, axis)
        if found is None:
            if block[axis] != 1 or _uses(view, axis):
                return f"threadIdx.{AXES[axis]} is not used for one coordinate alone"
            continue
        if not any(text(node) == f"blockDim.{AXES[axis]}" for node in descendants(found.init, "field_expression")):
            return f"it takes the block's width along {AXES[axis]} for a fixed number"
        limit = bound(view, parts, found.start)
        if limit is None or not reached(view, axis, limit):
            return f"no test keeps {found.symbol.name} below a bound that the launch reaches at every size"
        bounds[axis] = limit
    return Site(bounds, None, why) if bounds else "it does not use the thread's index"


def _uses(view: View, axis: int) -> bool:
    names = (f"threadIdx.{AXES[axis]}", f"blockDim.{AXES[axis]}")
    return any(text(node) in names for node in descendants(view.facts.body, "field_expression"))


def _stride_loop(view: View) -> Loop | None:
    """The only loop that walks from the thread's place in steps of the grid, where nothing else looks at either."""
    extent = view.block[0]
    assert extent is not None
    for loop in view.facts.loops:
        whole = unknown(Atom("gridDim.x")) * number(extent)
        if loop.start == thread_number(view, 0) and loop.step == whole and loop.relation == "<":
            spelled = [node for node in descendants(view.facts.body, "field_expression") if _built_in(node)]
            inside = [node for node in spelled if contains(loop.body, node)]
            fixed = not any(text(node) == "blockDim.x" for node in spelled)
            return None if inside or fixed else loop
    return None


def _built_in(node: Node) -> bool:
    return text(node.child_by_field_name("argument")) in ("threadIdx", "blockIdx", "blockDim", "gridDim")


def _idle_stride(view: View, loop: Loop, extent: int) -> str | None:
    """A grid of too few threads for the card, where there is more to do."""
    for launch in view.launches:
        blocks = evaluate(launch.grid[0], view.sizes)
        end = loop.bound.evaluate(view.parameters(launch))
        if not isinstance(blocks, int) or end is None:
            continue
        threads = blocks * extent
        if threads < SMS * RESIDENT // 2 and end > 2 * threads:
            return f"{blocks} blocks of {extent} threads leave room for more on {SMS} SMs, while each thread loops"
    return None


def _wrong(view: View, block: tuple[int, int, int]) -> str | None:
    threads = prod(block)
    spelled = " x ".join(str(extent) for extent in block if extent != 1) or "1"
    if threads < 2 * WARP:
        return f"a block of {spelled} threads: an SM holds 32 blocks at most, so half of its places stay empty or more"
    if threads % WARP:
        return f"a block of {spelled} threads: the last warp of each runs with idle lanes"
    blocks = [_blocks(view, launch) for launch in view.launches]
    most = max(blocks, default=SMS)
    if 2 * busiest(most * threads, threads) >= 3 * busiest(most * threads, WARP):
        return f"{most} blocks of {spelled} threads: of {SMS} SMs some get much more work than others"
    if threads > LARGE:
        return f"a block of {spelled} threads: two fit on an SM at most, which idles until all warps of one are done"
    return None


def busiest(total: int, threads: int) -> int:
    """Warps of the SM that gets most of them, if ``total`` threads come in blocks of so many."""
    return ceil(ceil(total / threads) / SMS) * (threads // WARP)


def total_threads(view: View) -> int:
    """Threads of the largest launch at the declared sizes."""
    block = prod(extent for extent in view.block if extent is not None)
    return max((_blocks(view, launch) for launch in view.launches), default=1) * block


def _blocks(view: View, launch: Launch) -> int:
    extents = [evaluate(one, view.sizes) for one in launch.grid]
    return prod(extent for extent in extents if isinstance(extent, int))
