"""Keep a row in shared memory between the passes over it."""

from collections.abc import Mapping, Sequence

from attrs import frozen

from agent.analysis.facts import analyse
from agent.analysis.patterns.block_size import Resizable, resizable
from agent.analysis.patterns.row_reuse import RowReuse, disturbed, own_turns, row_reuses
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rowkeep.aligned import aligned
from agent.ideas.rowkeep.room import SM, Dynamic, capacity, dynamic, resident
from agent.ideas.rowkeep.write import Packs, kept_in_packs, kept_in_shared, shared_bytes
from agent.ideas.terms import apart_from
from agent.ideas.vectors.site import Site, sites
from agent.ideas.view import View, evaluate
from agent.workload.dtypes import from_c_type

BIG = SM.shared_per_sm // 2
"""Bytes of rows under way on an SM from which on they no longer stay in its L1, beside what is written."""

SMS, L2 = 132, 40 << 20
"""Multiprocessors of the card, and what of its L2 holds (bytes) while as much again is written through it."""

IN_FLIGHT = 32 << 10
"""Bytes that an SM must have asked for to get its share of DRAM's bandwidth: 4.3 TB/s over 132, for some 0.8 us, and a
little more."""

WORTH_KEEPING = 0.4
LEAST = 0.3
THREADS = (256, 512, 1024)
SHARING = (1, 2, 3)
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
        "way outgrow the caches. Each thread visits the same elements in every pass, so it can put them into shared "
        "memory as it first reads them: no barrier is needed, and a row that does not fit is kept as far as it does. "
        "Fewer and larger blocks leave each of them more room, and what they read again is still in L2."
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
    packs = _packs(found, view, sizes)
    if packs is not None:
        return (packs,)
    variants = [_more_threads(found, view, sizes)] if sizes else []
    same = _kept(found, view, found.threads)
    if found.threads * _resident(found, view, found.threads) >= 512:
        variants.append(
            Variant(
                "same threads",
                "the block stays as it is and gets dynamic shared memory for its row",
                Scope.RELAUNCH,
                lambda: kept_in_shared(found.reuse, view, same, found.threads, None, found.own),
            )
        )
    return tuple(variants)


def _packs(found: _Row, view: View, sizes: Mapping[int, Resizable]) -> Variant | None:
    """Each thread keeps packs of neighbouring elements: where few blocks fit, that keeps their loads in flight."""
    walked = sites(view)
    if isinstance(walked, str) or not _covers(walked, found.reuse) or aligned(view, walked, 2) is None:
        return None
    busy = found.threads * _resident(found, view, found.threads) >= 512
    counts = (*((found.threads,) if busy else ()), *sizes)
    widths = tuple(width for width in walked[0].widths if width * found.element <= 32)
    if not counts or not widths:
        return None
    blocks = tuple(n for n in SHARING if _share(found, view, max(counts), n) >= LEAST)
    if not blocks:
        return None
    sharing = next((n for n in blocks[1:] if _stays(found, view, max(counts), n)), blocks[0])
    wide = max(width for width in widths if width * found.element <= 16 or width == widths[0])
    enough = [n for n in counts if n * sharing * wide * found.element >= IN_FLIGHT]
    return Variant(
        "packs in larger blocks" if sizes else "packs",
        "few blocks with a row each fit on an SM, so each gets enough threads, and these wide accesses, to keep its "
        "loads in flight",
        Scope.RELAUNCH,
        lambda threads, width, blocks, at_once: kept_in_packs(
            found.reuse, view, walked, Packs(width, at_once), _kept(found, view, threads, blocks), threads,
            sizes.get(threads), found.own,
        ),
        (
            Tunable("threads", counts, min(enough, default=max(counts)), "threads a block"),
            Tunable("width", widths, wide, "neighbouring elements a thread"),
            Tunable("blocks", blocks, sharing, "blocks that share an SM's memory"),
            Tunable("at_once", AT_ONCE, 4, "packs of a thread under way together"),
        ),
    )  # fmt: skip


def _covers(walked: Sequence[Site], reuse: RowReuse) -> bool:
    """Whether packs replace every read of the row, and each loop brings one pack of it."""
    for loop, reads in zip(reuse.passes, reuse.reads, strict=True):
        groups = [group for site in walked if site.loop is not None and site.loop.node == loop.node
                  for group in site.groups]  # fmt: skip
        mine = [group for group in groups if any(one.node == read.node for one in group.accesses for read in reads)]
        if len(mine) != 1 or not all(any(one.node == read.node for one in mine[0].accesses) for read in reads):
            return False
        if not mine[0].loaded:
            return False
    return True


def _share(found: _Row, view: View, threads: int, blocks: int) -> float:
    return _kept(found, view, threads, blocks) / found.length


def _stays(found: _Row, view: View, threads: int, blocks: int) -> bool:
    """Whether L2 keeps what so many blocks an SM read again; while one waits for memory, another computes."""
    again = max(0, found.length - _kept(found, view, threads, blocks)) * found.element
    return again * blocks * SMS <= L2


def _more_threads(found: _Row, view: View, sizes: Mapping[int, Resizable]) -> Variant:
    enough = [n for n in sizes if n * _resident(found, view, n) >= 1024]
    return Variant(
        "larger blocks",
        "few blocks with a whole row each fit on an SM, so each gets more threads to keep its loads in flight",
        Scope.RELAUNCH,
        lambda threads: kept_in_shared(
            found.reuse, view, _kept(found, view, threads), threads, sizes[threads], found.own
        ),
        (Tunable("threads", tuple(sizes), min(enough, default=max(sizes)), "threads a block"),),
    )


def _resized(found: _Row, view: View, threads: int) -> Resizable | None:
    known = {"blockDim.x": threads, "blockDim.y": 1, "blockDim.z": 1}
    checked = resizable(analyse(view.document, view.kernel, known))
    if not isinstance(checked, Resizable):
        return None
    # A dynamic array that grows with the block must be one of those that are known to need that.
    grows = found.own.array is not None and found.own.each
    return checked if not grows or any(array.extern for array in checked.arrays) else None


def _kept(found: _Row, view: View, threads: int, blocks: int = 1) -> int:
    return capacity(view, found.length, found.element, threads, found.own.grown(threads, found.element), blocks)


def _resident(found: _Row, view: View, threads: int) -> int:
    own = found.own.grown(threads, found.element)
    return resident(view, _kept(found, view, threads) * found.element + own, threads)


def _match(found: _Row, view: View, variants: tuple[Variant, ...]) -> Match:
    passes = len(found.reuse.passes)
    name = found.reuse.root.name
    size = found.length * found.element >> 10
    share = min(1.0, _kept(found, view, found.threads) / found.length)
    whole = "the whole row" if share == 1 else f"{share:.0%} of it"
    width = next((one.default for one in variants[0].tunables if one.name == "width"), 1)
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
