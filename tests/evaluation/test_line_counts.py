"""What lines cost, against numbers worked out by hand, and which of them deserve a word."""

import pytest

from agent.evaluation.lines.costs import CountedLine, LineCounts, bad_lines
from agent.evaluation.lines.counts import count_lines
from agent.evaluation.setting import Setting
from agent.execution.compiler.result import Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.source.document import parse
from agent.workload.find import find_workload

# 8 warps in each of the blocks that are counted; line numbers matter.
TEXT = """\
__global__ void k(const float* a, float* b, const float4* v) {
    __shared__ float tile[32][32];
    __shared__ float4 wide[256];
    int x = threadIdx.x % 32, y = threadIdx.x / 32, i = blockIdx.x * 256 + threadIdx.x;
    float strided = a[i * 32];
    float straight = a[i];
    tile[y][x] = straight;
    wide[threadIdx.x] = v[i];
    __syncthreads();
    float column = tile[x][y];
    float4 own = wide[threadIdx.x];
    b[i] = strided + column + own.x + own.y + own.z + own.w;
}
int main() {
    float *a, *b; float4* v;
    cudaMalloc(&a, 16 * 256 * 32 * sizeof(float));
    cudaMalloc(&b, 16 * 256 * sizeof(float));
    cudaMalloc(&v, 16 * 256 * sizeof(float4));
    k<<<16, 256>>>(a, b, v);
}
"""


def counted(text: str) -> LineCounts | str:
    document = parse(text.encode(), "k.cu")
    kernel = document.kernels[0]
    setting = Setting(Emulator(), find_target("H200"), Options("sm_90"))
    return count_lines(document, kernel, find_workload(document, kernel), setting)


def test_each_line_is_counted_as_it_is_by_hand() -> None:
    counts = counted(TEXT)
    assert isinstance(counts, LineCounts)
    assert (counts.blocks, counts.block, counts.sizes) == (9, (256, 1, 1), "the only size")
    lines = {line.number: line for line in counts.lines}
    warps = 9 * 8
    # lanes 128 bytes apart: a sector each; neighbours: 128 bytes in 4 sectors; 16 bytes a lane: 512 bytes in 16
    assert (lines[5].requests, lines[5].sectors, lines[5].ideal_sectors) == (warps, 32 * warps, 4 * warps)
    assert (lines[6].requests, lines[6].sectors, lines[6].ideal_sectors) == (warps, 4 * warps, 4 * warps)
    assert (lines[8].requests, lines[8].sectors) == (warps, 16 * warps)
    # 32 rows of 32 words: a column is in one bank; 16 bytes a lane take four passes and need four
    assert (lines[7].shared_requests, lines[7].passes, lines[7].ideal_passes) == (warps, warps, 1)
    assert (lines[10].shared_requests, lines[10].passes) == (warps, 32 * warps)
    assert (lines[11].passes, lines[11].ideal_passes) == (4 * warps, 4)
    found = [(bad.line, bad.words) for bad in bad_lines(counts)]
    assert found == [(5, "32 sectors per request (4 would do)"), (10, "32 passes per shared access (1 would do)")]
    assert counts.where == "counted in the emulator: 9 blocks of 256 threads of k at the only size"


def test_local_arrays_and_idle_lanes() -> None:
    text = """\
__global__ void k(const int* at, float* y) {
    float own[64];
    for (int i = 0; i < 64; ++i) own[i] = i * y[threadIdx.x];
    float sum = 0.0f;
    if (threadIdx.x % 8 == 0) {
        for (int i = 0; i < 64; ++i) sum += own[at[i] & 63];
    }
    y[threadIdx.x] = sum;
}
int main() {
    int* at; float* y;
    cudaMalloc(&at, 64 * sizeof(int));
    cudaMalloc(&y, 64 * sizeof(float));
    k<<<1, 64>>>(at, y);
}
"""
    counts = counted(text)
    assert isinstance(counts, LineCounts)
    found = {(bad.line, bad.words) for bad in bad_lines(counts)}
    assert (6, "4 of 32 lanes at work") in found
    assert any(words == "an array in local memory" for _, words in found)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a[i * 32]", "a[i * 64]", "out-of-bounds"),
        ("float straight = a[i]", "float straight = nothing[i]", "nothing"),
    ],
)
def test_what_cannot_be_run_is_not_counted(old: str, new: str, words: str) -> None:
    said = counted(TEXT.replace(old, new))
    assert isinstance(said, str)
    assert words in said or "read" in said


LINE = CountedLine(3, requests=10, sectors=320, ideal_sectors=40, instructions=100, lanes=3200)


@pytest.mark.parametrize(
    ("lines", "bad"),
    [
        ((LINE,), 1),
        # a twentieth of the traffic is not worth a word
        ((LINE, CountedLine(4, requests=1000, sectors=40000, ideal_sectors=40000)), 0),
        # less than twice what would do
        ((CountedLine(3, requests=10, sectors=79, ideal_sectors=40),), 0),
        # where an update goes is the data's choice
        ((CountedLine(3, requests=10, sectors=320, ideal_sectors=40, atomics=10),), 0),
        ((CountedLine(3, shared_requests=10, passes=40, ideal_passes=4),), 0),
        ((CountedLine(3, shared_requests=10, passes=80, ideal_passes=4),), 1),
        ((), 0),
    ],
)
def test_only_what_is_bad_gets_a_word(lines: tuple[CountedLine, ...], bad: int) -> None:
    assert len(bad_lines(LineCounts("k", lines, 1, (32, 1, 1), "n=1"))) == bad


def test_a_bad_store_is_not_thinned_by_a_good_load_of_its_line() -> None:
    text = """\
__global__ void turned(const float* x, float* y, int n) {
    y[threadIdx.x * 8 + blockIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    y[threadIdx.x * 8 + blockIdx.x] = x[threadIdx.x * 8 + blockIdx.x];
}
int main() {
    int n = 8; float *x, *y;
    cudaMalloc(&x, 2048 * sizeof(float)); cudaMalloc(&y, 2048 * sizeof(float));
    turned<<<8, 256>>>(x, y, n);
}
"""
    counts = counted(text)
    assert isinstance(counts, LineCounts)
    # 32 bytes from lane to lane: a sector each; neighbours fill 4
    words = "32 sectors per store (4 would do)", "32 sectors per request (4 would do)"
    assert [(bad.line, bad.words) for bad in bad_lines(counts)] == [(2, words[0]), (3, words[1])]
