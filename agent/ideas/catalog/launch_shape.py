"""Launch blocks of another shape, where the one that there is leaves the card idle."""

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.shape.site import Site, busiest, site, total_threads
from agent.ideas.shape.write import more_blocks, reshaped
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 24
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 31) / 32, 32>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""


@catalogued(
    name="launch-shape",
    title="Launch blocks of another shape",
    rationale=(
        "Each SM holds a fixed number of blocks and of threads. Blocks of one warp fill half of the places at most; "
        "blocks of 1024 threads leave them empty until the slowest warp is done; a few large blocks leave whole SMs "
        "without work, as does a small grid whose threads loop. A kernel that takes its place from blockIdx, blockDim "
        "and threadIdx alone runs in blocks of any shape."
    ),
    needs=(
        "the thread's index along each axis is used for one coordinate alone, written with blockDim, which a test "
        "keeps below a bound that every launch reaches; or for a loop in steps of the grid",
        "no shared memory, barrier, warp operation or __launch_bounds__",
        "a block of fewer than 64 or more than 512 threads, or of no whole warps; or fewer blocks than SMs",
    ),
    effect="occupancy, and SMs with work",
    risk="caches may see another order of accesses; the best shape differs from card to card",
    example=EXAMPLE,
)
def launch_shape(view: View) -> Match | Refusal:
    found = site(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Site) -> Match:
    return Match(
        line=view.kernel.line,
        title="launch more blocks" if found.loop is not None else "launch blocks of another shape",
        why=found.why,
        expects=(Expectation("time", 0.8, "more warps at work at a time"),),
        variants=(_variant(view, found),),
    )


def _variant(view: View, found: Site) -> Variant:
    sizes = (32, 64, 128, 256, 512, 1024)
    total = total_threads(view)
    default = min(sizes[1:4], key=lambda threads: (busiest(total, threads), -threads))
    threads = Tunable("threads", sizes, default, "threads in a block")
    if found.loop is not None:
        blocks = Tunable("blocks", (132, 264, 528, 1056, 2112), 1056, "blocks at most")
        why = "enough blocks to fill the card, each thread with fewer turns"
        return Variant(
            "more blocks", why, Scope.RELAUNCH, lambda threads, blocks: more_blocks(view, found, threads, blocks),
            (threads, blocks),
        )  # fmt: skip
    axes = sorted(found.bounds)
    if len(axes) == 1:
        why = "the same elements, in blocks of another size"
        return Variant(
            "another block", why, Scope.RELAUNCH,
            lambda threads: reshaped(view, found, _along(axes[0], threads)), (threads,),
        )  # fmt: skip
    width = Tunable("width", (16, 32, 64, 128), 32, "threads of a block along x")
    height = Tunable("height", (2, 4, 8), 8 if 1 in axes else 2, "threads of a block along the next axis")
    why = "the same elements, in blocks a warp wide"
    return Variant(
        "another block", why, Scope.RELAUNCH,
        lambda width, height: reshaped(view, found, _plane(axes, width, height)), (width, height),
    )  # fmt: skip


def _along(axis: int, threads: int) -> tuple[int, int, int]:
    extents = [1, 1, 1]
    extents[axis] = min(threads, 64) if axis == 2 else threads  # the most along z is 64
    return extents[0], extents[1], extents[2]


def _plane(axes: list[int], width: int, height: int) -> tuple[int, int, int]:
    extents = [1, 1, 1]
    extents[axes[0]], extents[axes[1]] = width, height
    return extents[0], extents[1], extents[2]
