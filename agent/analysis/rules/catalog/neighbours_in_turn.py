"""M4: each thread takes neighbours of its own, one request after another."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.traffic import fills, requests
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void norms(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k) sum += x[i * 8 + k] * x[i * 8 + k];  // M4
    y[i] = sum;
}
"""
PIXELS = """\
__global__ void fill(unsigned char* image, const float3* at, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    image[4 * i + 0] = 0;  // M4
    image[4 * i + 1] = 1;
    image[4 * i + 2] = 2;
    image[4 * i + 3] = 255;
    float3 here = at[i];  // M4
    y[i] = here.x + here.y + here.z;
}
"""
AT_ONCE = """\
__global__ void fill(uchar4* image, const float4* at, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    image[i] = make_uchar4(0, 1, 2, 255);
    float4 here = at[i];
    y[i] = here.x + here.y + here.z + here.w;
}
"""


@rule(
    id="M4",
    name="neighbours-in-turn",
    title="Each thread takes neighbouring elements one by one",
    why="What a thread takes in several requests lies between it and its neighbour, so that each request touches all "
    "of the sectors again: the cache serves them, at the price of a request each; stores go on to L2 each time.",
    cost=Cost.TRAFFIC,
    severity=Severity.HINT,
    silent_when=(
        "the index, the element's size or the block cannot be followed",
        "the thread leaves out some of what lies between, or that is more than 32 bytes (see M1)",
        "fewer than twice the sectors are touched that as many lanes side by side would need",
    ),
    fires=(FIRES, PIXELS),
    silent=(AT_ONCE,),
)
def neighbours_in_turn(view: View) -> Iterator[Hit]:
    bad = [found for found in requests(view) if found.bad and found.by_number and fills(found, view)]
    for name in dict.fromkeys(found.access.name for found in bad):
        first, *others = [found for found in bad if found.access.name == name]
        yield hit(
            first.access.node,
            f"each thread takes {first.step} bytes of {name} in several requests, each of which touches all of them: "
            "one vector for each thread, or lanes side by side, would touch them once",
            f"{first.words} ({first.ideal} would do)",
            tuple((other.access.node, f"{other.sectors} sectors here ({text(other.access.node)})") for other in others),
        )
