"""Counters of a histogram in shared memory, added to those in global memory at the end of a block."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.syntax import arguments, bare, text
from agent.ideas.atomics.site import ADDS, Atomics, atomics
from agent.ideas.buffers import buffer_of
from agent.ideas.gridloop.site import GridLoop, grid_loop
from agent.ideas.gridloop.write import in_loop, with_fewer_blocks
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_local, replace, source_text
from agent.ideas.view import View, evaluate, fixed_names
from agent.source.edits import Edit

COUNTED = ("int", "unsigned", "unsigned int", "uint32_t", "int32_t", "uint")
"""Types whose atomics shared memory has in hardware."""

ROOM = 48 * 1024
"""Bytes of shared memory that a kernel may declare (CUDA C++ Programming Guide, "Shared Memory")."""

FEWEST_EACH = 4
"""Elements a counter, below which a block's own counters cost more than they save."""


@frozen(eq=False)
class Histogram:
    """``updates`` go to ``bins`` counters. ``copies``: how many sets of them a block may keep."""

    updates: Atomics
    elements: GridLoop
    bins: int
    copies: tuple[int, ...]


def histogram(view: View) -> Histogram | str:
    found = atomics(view)
    if isinstance(found, str):
        return found
    elements = grid_loop(view)
    if isinstance(elements, str):
        return elements
    if any(symbol.space == "shared" for symbol in view.facts.symbols.all()) or view.facts.barriers:
        return "its threads share memory already"
    reasons: list[str] = []
    for updates in found:
        bins = _bins(updates, view)
        if isinstance(bins, str):
            reasons.append(bins)
            continue
        copies = tuple(count for count in (1, 2, 4, 8, 16, 32) if 4 * bins * count <= ROOM)
        work = (evaluate(view.launches[0].grid[0], view.sizes) or 0) * (view.block[0] or 0)
        if work < FEWEST_EACH * bins:
            return f"{work} threads for {bins} counters: a block's own would cost more than they save"
        return Histogram(updates, elements, bins, copies)
    return reasons[0]


def _bins(updates: Atomics, view: View) -> int | str:
    name = updates.root.name
    if updates.function not in ADDS:
        return f"{name} is not counted up"
    if updates.root.type not in COUNTED:
        return f"{name} is of type {updates.root.type}, which shared memory has no fast atomics for"
    if not any(_scattered(call) for call in updates.calls):
        return f"no two threads of a block need update the same element of {name}, or all update one"
    buffer = buffer_of(view, name)
    extent = None if buffer is None else evaluate(buffer.extent, fixed_names(view.request.workload, view.request.plan))
    if not isinstance(extent, int):
        return f"how many elements {name} has is not fixed, so no shared array can be declared for them"
    if 4 * extent > ROOM:
        return f"{name} has {extent} elements, too many for shared memory"
    return extent


def _scattered(call: Access) -> bool:
    """Whether the element follows from loaded data: threads of a block may meet at it."""
    return call.index is not None and bool({"memory", "unknown"} & call.index.depends)


def counted_in_blocks(view: View, found: Histogram, copies: int, blocks: int) -> Rewrite:
    """The rewrite; ``copies`` sets of counters lie interleaved, so that neighbouring lanes meet less often."""
    document = view.document
    root = found.updates.root
    own = fresh_local(styled(f"block_{root.name}", view), document, view.kernel)
    index = fresh_local(styled("bin", view), document, view.kernel)
    size = str(found.bins) if copies == 1 else f"{found.bins} * {copies}"
    before = (
        "\n".join(
            (
                *_comment(copies),
                f"__shared__ {root.type} {own}[{size}];",
                f"for (int {index} = threadIdx.x; {index} < {size}; {index} += blockDim.x) {own}[{index}] = 0;",
                "__syncthreads();",
                "",
            )
        ).rstrip()
        + "\n"
    )
    edits = [edit for call in found.updates.calls for edit in _moved(view, call, own, copies)]
    after = _merged(view, found, own, index, copies)
    made = in_loop(view, found.elements, before, after, edits)
    return Rewrite(tuple(made), (), with_fewer_blocks(view, blocks))


def _comment(copies: int) -> tuple[str, ...]:
    if copies == 1:
        return ("// The block's own counts, added to those of all blocks at the end.",)
    return (
        f"// The block's own counts, added to those of all blocks at the end: {copies} of each, side by side, so that",
        "// neighbouring threads seldom add to the same one.",
    )


def _moved(view: View, call: Access, own: str, copies: int) -> list[Edit]:
    """``atomicAdd(&bins[i], v)`` to ``atomicAdd(&block_bins[i], v)``."""
    target = bare(arguments(call.node)[0])
    assert target is not None
    index = _index(view, target)
    if copies > 1:
        plain = index.replace("_", "").isalnum() or (index.endswith("]") and index.count("[") == 1 and "+" not in index)
        index = f"{index if plain else f'({index})'} * {copies} + threadIdx.x % {copies}"
    return [replace(arguments(call.node)[0], f"&{own}[{index}]")]


def _index(view: View, target: Node) -> str:
    """The element as the user spells it: ``i`` of ``&bins[i]`` and of ``bins + i``."""
    document = view.document
    if target.type == "pointer_expression":
        inner = bare(target.child_by_field_name("argument"))
        listing = None if inner is None else inner.child_by_field_name("indices")
        if inner is not None and listing is not None and text(inner.child_by_field_name("argument")).isidentifier():
            return source_text(document, listing)[1:-1].strip()
    if target.type == "binary_expression" and text(target.child_by_field_name("operator")) == "+":
        left, right = target.child_by_field_name("left"), target.child_by_field_name("right")
        if left is not None and right is not None and left.type == "identifier":
            return source_text(document, right)
    return ""


def spelled_plainly(view: View, found: Histogram) -> bool:
    """Whether every update names its element in a way that can be moved to another array."""
    targets = [bare(arguments(call.node)[0]) for call in found.updates.calls]
    roots = [call.root is found.updates.root for call in found.updates.calls]
    named = [target is not None and found.updates.root.name in text(target) for target in targets]
    return all(roots) and all(named) and all(target is not None and _index(view, target) for target in targets)


def _merged(view: View, found: Histogram, own: str, index: str, copies: int) -> str:
    root, add = found.updates.root, found.updates.function
    total = fresh_local("count", view.document, view.kernel)
    head = f"for (int {index} = threadIdx.x; {index} < {found.bins}; {index} += blockDim.x) {{"
    if copies == 1:
        inside = [f"    const {root.type} {total} = {own}[{index}];"]
    else:
        copy = fresh_local("copy", view.document, view.kernel)
        inside = [
            f"    {root.type} {total} = 0;",
            f"    for (int {copy} = 0; {copy} < {copies}; ++{copy}) {total} += {own}[{index} * {copies} + {copy}];",
        ]
    return "\n".join(
        (
            "",
            "__syncthreads();",
            head,
            *inside,
            f"    if ({total} != 0) {add}(&{root.name}[{index}], {total});",
            "}",
        )
    )
