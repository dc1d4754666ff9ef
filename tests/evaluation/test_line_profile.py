"""A kernel's profile against figures worked out by hand. All blocks run, so that every count is exact."""

import pytest

from agent.evaluation.estimates.counting import count
from agent.evaluation.lines.facts import Atomics, Branches, Facts, Local, SharedAccesses, Traffic, total
from agent.evaluation.lines.profile import Profile, profile
from agent.evaluation.setting import Setting
from agent.execution.compiler.result import CompileFailure, Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.source.document import parse
from agent.workload.find import find_workload

HOST = """
int main() {
    const int n = 64;
    float *x, *y;
    cudaMalloc(&x, n * n * sizeof(float));
    cudaMalloc(&y, n * n * sizeof(float));
    k<<<dim3(2, 2), dim3(32, 32)>>>(x, y, n);
}
"""
# Line numbers matter. 4 blocks of 32 warps.
NAIVE = """\
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
    float v = x[j * n + i];
    y[i * n + j] = v;
}
"""
TILED = """\
__global__ void k(const float* x, float* y, int n) {
    __shared__ float tile[32][WIDTH];
    int i = threadIdx.x, j = threadIdx.y;
    tile[j][i] = x[(blockIdx.y * 32 + j) * n + blockIdx.x * 32 + i];
    __syncthreads();
    float v = tile[i][j];
    y[(blockIdx.x * 32 + j) * n + blockIdx.y * 32 + i] = v;
}
"""
WARPS = 4 * 32


def found(text: str, **options: object) -> tuple[Profile, object] | CompileFailure | str:
    document = parse(text.encode(), "k.cu")
    kernel = next(one for one in document.kernels if one.name == "k")
    setting = Setting(Emulator(), find_target("H200"), Options("sm_90"))
    workload = find_workload(document, kernel)
    return profile(document, kernel, workload, setting, seconds=120.0, **options)  # type: ignore[arg-type]


def profiled(text: str, **options: object) -> Profile:
    answer = found(text, **options)
    assert isinstance(answer, tuple), answer
    return answer[0]


def lines(counted: Profile) -> dict[int, Facts]:
    return {line.number: line.facts for line in counted.lines}


def test_a_naive_transposition_writes_a_sector_for_each_lane() -> None:
    counted = profiled(NAIVE + HOST)
    by_line = lines(counted)
    assert by_line[3].loads == Traffic(WARPS, 4 * WARPS, 4 * WARPS) and by_line[3].stores == Traffic()
    assert by_line[4].stores == Traffic(WARPS, 32 * WARPS, 4 * WARPS) and by_line[4].loads == Traffic()
    assert by_line[4].stores.bytes == 32 * 32 * WARPS
    assert counted.total.sectors == 36 * WARPS and counted.total.ideal_sectors == 8 * WARPS
    assert counted.total.requests == 2 * WARPS
    (launch,) = counted.launches
    assert (launch.grid, launch.block, launch.blocks_run, launch.times) == ((2, 2, 1), (32, 32, 1), 4, 1)
    assert counted.complete and counted.declared and counted.sizes == "n=64"
    # 64x64 floats are 512 sectors, read once and written once
    assert (launch.moved.asked, launch.moved.compulsory) == (512, 2 * 512)
    assert launch.limit == "launch overhead" and launch.seconds == pytest.approx(2e-6, rel=1)
    assert (launch.occupancy.blocks_per_sm, launch.occupancy.ratio) == (2, 1.0)


@pytest.mark.parametrize(("width", "ways"), [(32, 32), (33, 1), (34, 2), (36, 4)])
def test_a_padded_tile_has_no_conflicts(width: int, ways: int) -> None:
    counted = profiled(TILED.replace("WIDTH", str(width)) + HOST)
    by_line = lines(counted)
    assert by_line[4].shared == SharedAccesses(WARPS, WARPS, WARPS)
    assert by_line[6].shared == SharedAccesses(WARPS, ways * WARPS, WARPS)
    assert by_line[4].loads == by_line[7].stores == Traffic(WARPS, 4 * WARPS, 4 * WARPS)
    assert by_line[5].barriers == WARPS and counted.total.barriers == WARPS


def test_every_count_is_in_a_line_or_elsewhere() -> None:
    counted = profiled(TILED.replace("WIDTH", "32") + HOST)
    assert total([*(line.facts for line in counted.lines), counted.elsewhere]) == counted.total
    for line in counted.lines:
        assert total(one.facts for one in line.ptx) == line.facts
        assert sum(line.facts.mix.values()) == line.facts.instructions
        assert line.facts.lanes == 32 * line.facts.instructions


MIXED = """\
__device__ float pick(const float* x, int i) {
    float own[8];
    for (int j = 0; j < 8; ++j) own[j] = x[j];
    return own[i & 7];
}
// cuda-lsp: workload
//   size    n = 128
//   buffer  x: f32[n] in
//   buffer  y: f32[n] inout
//   repeat 3 {
//     launch k<<<1, 64>>>(x, y, n)
//   }
__global__ void k(const float* x, float* y, int n) {
    int t = threadIdx.x;
    float v = pick(x, (int)x[0]);
    if (t % 32 < 20)
        atomicAdd(&y[t % 4], v);
    double d = x[t] * 3.3 + 0.1;
    y[t + 64] = (float)d + sqrtf(v);
}
"""


def test_atomics_branches_local_memory_and_the_mix_over_three_launches() -> None:
    counted = profiled(MIXED)
    by_line, warps = lines(counted), 3 * 2
    assert [launch.times for launch in counted.launches] == [3]
    # 20 lanes want four addresses, five each; a request touches one sector
    assert by_line[17].atomics == Atomics(warps, 5 * warps)
    assert by_line[17].updates == Traffic(warps, warps, warps) and by_line[17].stores == Traffic()
    assert by_line[16].branches == Branches(warps, warps, 32 * warps)
    # all lanes read the same word of their own arrays, 128 bytes a warp
    assert by_line[4].local == Local(warps, 4 * warps) and by_line[4].local.bytes == 128 * warps
    # one fused multiply-add, and a root
    assert by_line[18].mix["fp64"] == warps and by_line[19].mix["special"] >= warps
    assert counted.launches[0].queues == {"y": (2 * 5, 2 * 5)}


def test_launches_of_other_kernels_count_nothing() -> None:
    other = NAIVE.replace("void k(", "void other(")
    both = HOST.replace("    k<<<", "    other<<<dim3(2, 2), dim3(32, 32)>>>(y, x, n);\n    k<<<")
    assert profiled(NAIVE + other + both).total == profiled(NAIVE + HOST).total


def test_at_a_size_that_is_asked_for() -> None:
    counted = profiled(NAIVE + HOST.replace("dim3(2, 2)", "dim3(n / 32, n / 32)"), sizes={"n": 96})
    assert counted.sizes == "n=96" and counted.declared
    assert counted.total.stores == Traffic(9 * 32, 32 * 9 * 32, 4 * 9 * 32)


def test_a_large_grid_is_scaled_from_a_few_blocks() -> None:
    counted = profiled(NAIVE + HOST.replace("dim3(2, 2)", "dim3(n / 32, n / 32)").replace("n = 64", "n = 1024"))
    assert not counted.complete and counted.launches[0].blocks_run == 9
    assert counted.total.loads == Traffic(32 * 1024, 4 * 32 * 1024, 4 * 32 * 1024)


@pytest.mark.parametrize(("slow", "blocks", "n"), [(1, 1, 1024), (2, 9, 256)])
def test_where_time_is_short_fewer_blocks_run_and_then_smaller_sizes(
    slow: int, blocks: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempts are said to take too long, without waiting for that."""
    asked: list[object] = []

    def counted(*arguments: object, **options: object) -> object:
        asked.append(options)
        return "more than 10 seconds" if len(asked) <= slow else count(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("agent.evaluation.lines.profile.count", counted)
    grid = HOST.replace("dim3(2, 2)", "dim3(n / 32, n / 32)").replace("n = 64", "n = 4096" if slow > 1 else "n = 1024")
    found = profiled(NAIVE + grid)
    assert found.launches[0].blocks_run == blocks and found.sizes == f"n={n}"
    assert found.declared == (slow == 1)
    assert found.total.stores.requests == n * n // 32


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("y[i * n + j]", "y[i * n + j + n * n]", "y"),  # out of bounds
        ("float v = x", 'asm volatile("brkpt;"); float v = x', "brkpt"),
    ],
)
def test_what_cannot_run_says_why(old: str, new: str, words: str) -> None:
    said = found(NAIVE.replace(old, new) + HOST)
    assert isinstance(said, str) and words in said


def test_what_does_not_compile_says_so() -> None:
    said = found(NAIVE.replace("x[j * n + i]", "nothing[j]") + HOST)
    assert isinstance(said, CompileFailure) and "nothing" in said.message
