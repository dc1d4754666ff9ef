"""Y4: a loop with one barrier where it needs two."""

from collections.abc import Iterator

from attrs import evolve

from agent.analysis.rules.finding import Cost, Hit, Severity
from agent.analysis.rules.mending import with_barrier
from agent.analysis.rules.races import has_barrier, races, said
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void product(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16];
    __shared__ float right[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int t = 0; t < n / 16; ++t) {
        left[y][x] = a[row * n + t * 16 + x];
        right[y][x] = b[(t * 16 + y) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            sum += left[y][k] * right[k][x];  // Y4
        }
    }
    c[row * n + col] = sum;
}
void run(const float* a, const float* b, float* c, int n) {
    product<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n);
}
"""
TWO = FIRES.replace("  // Y4", "").replace(
    "        }\n    }\n    c[", "        }\n        __syncthreads();\n    }\n    c["
)
DOUBLE_BUFFER = """\
// The two halves are written in turns: what is read now is written two turns later.
__global__ void smooth(const float* x, float* y, int n) {
    __shared__ float s[2][256];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) {
        s[i & 1][t] = x[i * 256 + t];
        __syncthreads();
        sum += s[i & 1][255 - t];
    }
    y[t] = sum;
}
"""


@rule(
    id="Y4",
    name="single-barrier",
    title="A loop needs a second barrier before shared memory is written again",
    why="A fast warp begins the next turn and overwrites what a slow one has still to read.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "an index or a condition cannot be followed",
        "a call between the read and the next turn's write may hold a barrier",
        "halves of a buffer are used in turns",
    ),
    fires=(FIRES,),
    silent=(TWO, DOUBLE_BUFFER),
)
def single_barrier(view: View) -> Iterator[Hit]:
    seen: set[str] = set()
    for race in races(view):
        if race.name not in seen and has_barrier(race, view):
            seen.add(race.name)
            yield evolve(said(race), mend=with_barrier(race, view))
