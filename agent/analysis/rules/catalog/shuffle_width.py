"""W4: a shuffle over a width that there is not."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.mending import replaced
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import arguments, callee
from agent.analysis.values import value

FIRES = """\
__global__ void sum(float* x) {
    float v = x[threadIdx.x];
    v += __shfl_down_sync(0xffffffffu, v, 4, 24);  // W4
    v += __shfl_xor_sync(0xffffffffu, v, 1, 64);  // W4
    x[threadIdx.x] = v;
}
"""
RIGHT = """\
__global__ void sum(float* x, int width) {
    float v = x[threadIdx.x];
    v += __shfl_down_sync(0xffffffffu, v, 4, 8);
    v += __shfl_xor_sync(0xffffffffu, v, 1, warpSize);
    v += __shfl_xor_sync(0xffffffffu, v, 1, width);
    x[threadIdx.x] = v;
}
"""


@rule(
    id="W4",
    name="shuffle-width",
    title="The width of a shuffle is no power of two up to 32",
    why="A shuffle divides a warp into groups of 1, 2, 4, 8, 16 or 32 lanes; with another width results are undefined.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the width is not a known number",),
    fires=(FIRES,),
    silent=(RIGHT,),
)
def shuffle_width(view: View) -> Iterator[Hit]:
    for call in view.facts.calls:
        given = arguments(call)
        if callee(call).startswith("__shfl") and callee(call).endswith("_sync") and len(given) == 4:
            width = value(given[3], view.facts.scope).constant
            if width is not None and width not in (1, 2, 4, 8, 16, 32):
                whole = width > 32 and width & (width - 1) == 0
                yield hit(
                    given[3],
                    f"{width} is no width of a shuffle: it must be a power of two, at most 32",
                    mend=replaced("Shuffle over the whole warp: 32", (given[3], "32"), sure=False) if whole else None,
                )
