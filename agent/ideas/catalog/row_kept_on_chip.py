"""Keep a row in shared memory between the passes over it."""

from collections.abc import Mapping

from attrs import frozen

from agent.analysis.facts import analyse
from agent.analysis.patterns.block_size import Resizable, resizable
from agent.analysis.patterns.row_reuse import RowReuse, disturbed, own_turns, row_reuses
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rowkeep.aligned import aligned
from agent.ideas.rowkeep.room import SM, Dynamic, capacity, dynamic, resident
from agent.ideas.rowkeep.whole import Room, kept_whole
from agent.ideas.rowkeep.write import Packs, copies_allowed, kept_in_packs, kept_in_shared, shared_bytes
from agent.ideas.terms import apart_from
from agent.ideas.vectors.site import BYTES, Site, sites
from agent.ideas.view import View, evaluate
from agent.workload.dtypes import from_c_type

BIG = SM.shared_per_sm // 2
"""Bytes of rows under way on an SM from which on they no longer stay in its L1, beside what is written."""

SMS, L2 = 132, 40 << 20
"""Multiprocessors of the card, and what of its L2 holds (bytes) while as much again is written through it."""

FEWEST, BUSY = 512, 1024
"""Threads of an SM below which it would wait for its own arithmetic, and with which it does not."""

WORTH_KEEPING = 0.4
THREADS = (256, 512, 1024)
AT_ONCE = (1, 2, 4, 8)

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 4096, cols = 32768
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows * cols] out
//   launch   scale_to_peak<<<rows, 256>>>(x, y, cols)
__global__ void scale_to_peak(const float* x, float* y, int cols) {
    __shared__ float s[256];
    int t = threadIdx.x;
    const float* in = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    float peak = 0.0f;
    for (int i = t; i < cols; i += blockDim.x) {
        peak = fmaxf(peak, fabsf(in[i]));
    }
    s[t] = peak;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] = fmaxf(s[t], s[t + stride]);
        __syncthreads();
    }
    peak = s[0];
    for (int i = t; i < cols; i += blockDim.x) {
        out[i] = in[i] / peak;
    }
}
"""


@frozen(eq=False)
class _Row:
    """``length`` (elements) at the declared sizes, the longest of all launches."""

    reuse: RowReuse
    length: int
    element: int
    threads: int
    own: Dynamic


@catalogued(
    name="row-kept-on-chip",
    title="Keep a row in shared memory between the passes over it",
    rationale=(
        "A block that walks over its row several times reads it from DRAM each time, once the rows of all blocks under "
        "way outgrow the caches. Each thread visits the same elements in every pass, so it can copy them to shared "
        "memory first, all at once and without a register for each (cp.async, sm_80 and later): no barrier is needed. "
        "What of the row does not fit there is kept in registers, and the rest of longer rows is read again. Fewer and "
        "larger blocks leave each of them more room."
    ),
    needs=(
        "two or more loops side by side that give each thread of a block the same elements of a row",
        "the first reads its element in every turn; nothing writes to the row before it was last read",
        "the rows under way on an SM do not fit into its L1; dynamic shared memory in use has a fixed size",
        "other numbers of threads: they only share out the turns of loops and fold what they got by trees",
    ),
    effect="DRAM reads of the row from one for each pass to one",
    risk="larger blocks than a card's shared memory allows do not launch; fewer blocks hide less latency",
    example=EXAMPLE,
    enables=("warp-shuffle-reduction",),
    conflicts=("fused-row-passes",),
)
def row_kept_on_chip(view: View) -> Match | Refusal:
    found = _row(view)
    if isinstance(found, str):
        return Refusal(found)
    variants = _variants(found, view)
    if not variants:
        return Refusal("with its number of threads, a block that keeps a row leaves the SM too few loads in flight")
    return _match(found, view, variants)


def _row(view: View) -> _Row | str:
    facts = view.facts
    if view.block[0] is None or view.block[1:] != (1, 1):
        return "the block's size is not a fixed number of threads in one dimension"
    reuses = [one for one in row_reuses(facts) if own_turns(one.passes[0], facts)]
    if not reuses:
        return "no two loops side by side give each thread of a block the same elements of a row"
    return _worth(reuses[0], view)


def _worth(reuse: RowReuse, view: View) -> _Row | str:
    reason = disturbed(reuse, view.facts, apart_from(reuse.root, view))
    if reason is not None:
        return reason
    element = view.element_bytes(reuse.reads[0][0])
    if element is None or from_c_type(reuse.root.type) is None:
        return f"the type of {reuse.root.name}'s elements is not a plain one"
    assert view.block[0] is not None
    lengths = []
    for launch in view.launches:
        nbytes = shared_bytes(launch, reuse, view, 1 << 40, element)
        value = None if nbytes is None else evaluate(nbytes, view.sizes)
        if not isinstance(value, int):
            return "the row's length cannot be told from the launch, so no room can be asked for"
        lengths.append(value // element)
    row = max(lengths)
    under_way = row * element * min(SM.threads_per_sm // view.block[0], SM.blocks_per_sm)
    if under_way < BIG:
        return f"the rows under way on an SM take {under_way >> 10} KB, which its L1 keeps between the passes"
    if under_way * SMS < L2 // 2:
        return f"the rows under way on the card take {under_way * SMS >> 20} MB, which its L2 keeps between the passes"
    own = dynamic(view, reuse.root.type)
    if isinstance(own, str):
        return own
    kept = capacity(view, row, element, view.block[0], own.bytes)
    if kept < WORTH_KEEPING * row:
        return f"of a row of {row * element >> 10} KB, a block can keep {kept * element >> 10} KB: too little to help"
    return _Row(reuse, row, element, view.block[0], own)


def _variants(found: _Row, view: View) -> tuple[Variant, ...]:
    sizes = {count: checked for count in THREADS if count > found.threads and (checked := _resized(found, view, count))}
    counts = (*((found.threads,) if _busy(found, view, found.threads) else ()), *sizes)
    passes = _passes(found.reuse, view)
    if not counts:
        return ()
    if passes is None or aligned(view, passes, BYTES // found.element) is None:
        return (_elements(found, view, sizes, counts),)
    whole = {n: room for n in counts if (room := _room(found, view, n)) is not None} if copies_allowed(view) else {}
    if whole and BYTES // found.element in passes[0].widths:
        return (_whole(found, view, passes, sizes, whole),)
    return (_packs(found, view, passes, sizes, counts),)


def _whole(
    found: _Row, view: View, passes: tuple[Site, ...], sizes: Mapping[int, Resizable], rooms: Mapping[int, Room]
) -> Variant:
    busy = [n for n in rooms if n * _resident(found, view, n) >= BUSY]
    return Variant(
        "whole row in larger blocks" if sizes else "whole row",
        "all of a row is on its way to the SM at once; few blocks with a row each fit there, so each gets enough "
        "threads to work on it",
        Scope.RELAUNCH,
        lambda threads: kept_whole(found.reuse, view, passes, rooms[threads], sizes.get(threads), found.own),
        (Tunable("threads", tuple(rooms), min(busy, default=max(rooms)), "threads a block"),),
    )


def _packs(
    found: _Row, view: View, passes: tuple[Site, ...], sizes: Mapping[int, Resizable], counts: tuple[int, ...]
) -> Variant:
    """Each thread keeps packs of neighbouring elements: where few blocks fit, that keeps their loads in flight."""
    widths = tuple(width for width in passes[0].widths if width * found.element <= 2 * BYTES)
    wide = max(width for width in widths if width * found.element <= BYTES or width == widths[0])
    return Variant(
        "packs in larger blocks" if sizes else "packs",
        "few blocks with so much of a row each fit on an SM, so each gets enough threads, and these several wide loads "
        "at once, to keep memory busy",
        Scope.RELAUNCH,
        lambda threads, width, at_once: kept_in_packs(
            found.reuse, view, passes, Packs(width, at_once), _kept(found, view, threads), threads, sizes.get(threads),
            found.own,
        ),
        (
            _threads(found, view, counts),
            Tunable("width", widths, wide, "neighbouring elements a load"),
            Tunable("at_once", AT_ONCE, 8, "loads of a thread under way together"),
        ),
    )  # fmt: skip


def _elements(found: _Row, view: View, sizes: Mapping[int, Resizable], counts: tuple[int, ...]) -> Variant:
    return Variant(
        "larger blocks" if sizes else "same threads",
        "all of a row that there is room for is on its way to the SM at once; few such blocks fit there, so each gets "
        "enough threads to work on it",
        Scope.RELAUNCH,
        lambda threads=found.threads: kept_in_shared(
            found.reuse, view, _kept(found, view, threads), threads, sizes.get(threads), found.own
        ),
        (_threads(found, view, counts),) if counts != (found.threads,) else (),
    )


def _threads(found: _Row, view: View, counts: tuple[int, ...]) -> Tunable:
    busy = [n for n in counts if n * _resident(found, view, n) >= BUSY]
    return Tunable("threads", counts, min(busy, default=max(counts)), "threads a block")


def _room(found: _Row, view: View, threads: int) -> Room | None:
    """Where a block keeps the whole row, or None."""
    shared = _kept(found, view, threads)
    turns = -(-max(0, found.length - shared) * found.element // (threads * BYTES))
    return Room(shared, turns, threads) if turns * BYTES // 4 <= SM.registers_per_sm // threads // 2 else None


def _passes(reuse: RowReuse, view: View) -> tuple[Site, ...] | None:
    """What packs can be made of in each pass, where they replace every read of the row in it."""
    walked = sites(view)
    if isinstance(walked, str):
        return None
    found = []
    for loop, reads in zip(reuse.passes, reuse.reads, strict=True):
        mine = [site for site in walked if site.loop is not None and site.loop.node == loop.node]
        groups = [
            group
            for site in mine
            for group in site.groups
            if any(one.node == read.node for one in group.accesses for read in reads)
        ]
        if len(mine) != 1 or len(groups) != 1 or not groups[0].loaded:
            return None
        if not all(any(one.node == read.node for one in groups[0].accesses) for read in reads):
            return None
        found += mine
    return tuple(found)


def _resized(found: _Row, view: View, threads: int) -> Resizable | None:
    known = {"blockDim.x": threads, "blockDim.y": 1, "blockDim.z": 1}
    checked = resizable(analyse(view.document, view.kernel, known))
    if not isinstance(checked, Resizable):
        return None
    # A dynamic array that grows with the block must be one of those that are known to need that.
    grows = found.own.array is not None and found.own.each
    return checked if not grows or any(array.extern for array in checked.arrays) else None


def _kept(found: _Row, view: View, threads: int) -> int:
    return capacity(view, found.length, found.element, threads, found.own.grown(threads, found.element))


def _resident(found: _Row, view: View, threads: int) -> int:
    own = found.own.grown(threads, found.element)
    return resident(view, _kept(found, view, threads) * found.element + own, threads)


def _busy(found: _Row, view: View, threads: int) -> bool:
    return threads * _resident(found, view, threads) >= FEWEST


def _match(found: _Row, view: View, variants: tuple[Variant, ...]) -> Match:
    passes = len(found.reuse.passes)
    name = found.reuse.root.name
    size = found.length * found.element >> 10
    share = min(1.0, _kept(found, view, found.threads) / found.length)
    whole = "the whole row" if share == 1 else f"{share:.0%} of it"
    wide = variants[0].name.startswith(("whole row", "packs"))
    width = BYTES // found.element if wide else 1
    fewer = round(2 / (passes + 1) / width, 3)
    return Match(
        line=view.document.line(found.reuse.passes[0].node.start_byte),
        title="keep the row in shared memory between the passes over it",
        why=(
            f"{passes} passes read the same {size} KB of {name}, and the rows under way outgrow the caches; a block's "
            f"shared memory holds {whole}"
        ),
        expects=(
            Expectation("DRAM bytes", round(2 / (passes + 1), 2), f"reads of the row {passes} -> 1"),
            Expectation("sectors", round(2 / (passes + 1), 2), "global sectors fall alike"),
            Expectation("requests", fewer, f"requests of global memory to {fewer:.0%}"),
        ),
        variants=variants,
    )
