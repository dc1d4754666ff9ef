"""Counters against figures worked out by hand."""

import numpy as np
import pytest

from agent.execution.device import LaunchCounters, LineCounters
from agent.execution.emulator.sectors import wavefronts
from tests.execution.emulator.building import build, launch, run


def counted(
    source: str, grid: int, block: int, *arguments: object, shared: int = 0, **buffers: np.ndarray
) -> LaunchCounters:
    built = build(source)
    answer, _ = run(built, launch("k", grid, block, *arguments, shared=shared), buffers, count=True)
    assert answer.status == "ok", answer
    (counters,) = answer.counters
    return counters


F = np.zeros(1 << 14, np.float32)


@pytest.mark.parametrize(
    ("index", "sectors", "ideal"),
    [
        ("i", 4, 4),
        ("i + 1", 5, 4),
        ("i * 2", 8, 4),
        ("i * 8", 32, 4),
        ("i / 8", 1, 1),
        ("blockIdx.x", 1, 1),
        ("(i ^ 5)", 4, 4),
        ("i * 33 % 4096", 32, 4),
        ("(i % 2) * 512 + i / 2", 4, 4),
    ],
)
def test_sectors_of_a_load(index: str, sectors: int, ideal: int) -> None:
    source = f"""extern "C" __global__ void k(const float* x, float* y) {{
        int i = blockIdx.x * 64 + threadIdx.x; float v = x[{index}];
        y[i] = v; }}"""
    counters = counted(source, 4, 64, "x", "y", x=F, y=F)
    line = counters.lines[2]
    assert line.requests == 8
    if index == "i + 1":
        assert line.sectors == 8 * 5
    else:
        assert line.sectors == 8 * sectors
    assert line.ideal_sectors == 8 * ideal and line.load_sectors == line.sectors and line.store_sectors == 0
    store = counters.lines[3]
    assert (store.requests, store.sectors, store.store_sectors) == (8, 32, 32)


def test_wide_loads_and_a_partial_warp() -> None:
    source = """extern "C" __global__ void k(const float4* x, float4* y, int n) { int i = threadIdx.x;
        if (i < n) {
        y[i] = x[i]; } }"""
    counters = counted(source, 1, 64, "x", "y", 37, x=F, y=F)
    line = counters.lines[3]
    assert line.requests == 4  # a load and a store, by two warps each
    assert line.sectors == 2 * (16 + 3)  # 32 lanes of 16 bytes are 16 sectors, 5 lanes are 80 bytes: 3
    assert line.ideal_sectors == 2 * (16 + 3)
    branch = counters.lines[2]
    assert (branch.branches, branch.divergent) == (2, 1)
    assert counters.total("thread_instructions") == sum(one.thread_instructions for one in counters.lines.values())


@pytest.mark.parametrize(
    ("kind", "index", "wavefronts"),
    [
        ("float", "t", 1),
        ("float", "t * 2", 2),
        ("float", "t * 32", 32),
        ("float", "t * 33", 1),
        ("float", "0", 1),
        ("float", "t / 2", 1),
        ("float", "(t % 2) * 32", 2),
        ("unsigned char", "t", 1),
        ("double", "t", 2),
        ("double", "t * 2", 4),
        ("double", "0", 1),
        ("float4", "t", 4),
        ("float4", "t * 8", 32),
    ],
)
def test_wavefronts_of_a_shared_load(kind: str, index: str, wavefronts: int) -> None:
    member = ".x" if kind == "float4" else ""
    source = f"""extern "C" __global__ void k(float* y) {{ extern __shared__ {kind} s[]; int t = threadIdx.x;
        {kind} v = s[{index}];
        y[t] = v{member}; if (v{member} == 77.f) s[t] = v; }}"""
    if kind == "float4":
        source = source.replace("v.x;", "v.x + v.y + v.z + v.w;", 1)
    counters = counted(source, 3, 32, "y", shared=32 * 8 * 16, y=F)
    line = counters.lines[2]
    assert line.shared_requests == 3 and line.wavefronts == 3 * wavefronts


# passes for loads of 4, 8 and 16 bytes at element numbers of lane t, counted on an NVIDIA H200 with Nsight
# Compute: l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
COUNTED = (
    ("t", (1, 2, 4)),
    ("0 * t", (1, 1, 2)),
    ("t // 2", (1, 1, 2)),
    ("t // 4", (1, 1, 2)),
    ("t // 8", (1, 1, 2)),
    ("t // 16", (1, 1, 2)),
    ("t * 2", (2, 4, 8)),
    ("t * 4", (4, 8, 16)),
    ("t * 8", (8, 16, 32)),
    ("t * 16", (16, 32, 32)),
    ("t % 16", (1, 2, 4)),
    ("t & 1", (1, 1, 2)),
    ("t ^ 1", (1, 2, 4)),
    ("31 - t", (1, 2, 4)),
    ("t % 2 * 16 + t // 2", (1, 4, 8)),
    ("(t & 15) * 2 + (t >> 4)", (1, 4, 8)),
    ("t % 8 * 4 + t // 8", (1, 4, 16)),
    ("t * 5 % 32", (1, 2, 4)),
    ("t * 17", (1, 2, 4)),
    ("np.where(t < 16, t, t + 16)", (2, 2, 4)),
    ("np.where(t < 16, 0, 8)", (1, 1, 2)),
    ("np.where(t < 16, 0, 1)", (1, 1, 2)),
    ("t // 2 * 16", (8, 16, 16)),
    ("t % 4 * 8", (1, 4, 16)),
    ("t * 9", (1, 2, 4)),
    ("np.where(t < 1, 0, 16)", (1, 3, 5)),
    ("t // 16 * 16 + t % 2", (1, 2, 2)),
    ("t % 16 * 2", (1, 4, 8)),
    ("t & 3", (1, 2, 4)),
    ("(t >> 2) * 4", (1, 2, 4)),
)


@pytest.mark.parametrize(("elements", "passes"), COUNTED, ids=[elements for elements, _ in COUNTED])
def test_wavefronts_are_those_that_a_card_counted(elements: str, passes: tuple[int, int, int]) -> None:
    lanes = eval(elements, {"np": np, "t": np.arange(32)})[None]
    everyone = np.ones((1, 1), bool)
    assert tuple(wavefronts(lanes * span, everyone, span) for span in (4, 8, 16)) == passes


def test_a_naive_transpose_and_its_tiled_form() -> None:
    naive = """extern "C" __global__ void k(const float* x, float* y, int n) {
        int c = blockIdx.x % 4 * 32 + threadIdx.x % 32, r = blockIdx.x / 4 * 8 + threadIdx.x / 32;
        float v = x[r * n + c];
        y[c * n + r] = v; }"""
    counters = counted(naive, 64, 256, "x", "y", 128, x=F, y=F)
    load, store = counters.lines[3], counters.lines[4]
    assert load.sectors / load.requests == 4 and store.sectors / store.requests == 32
    assert counters.touched_read == {"x": 128 * 128 // 8} and counters.touched_written == {"y": 128 * 128 // 8}
    assert counters.block_touched == {"x": 128 * 128 // 8, "y": 64 * 32}  # each block writes 32 sectors in full


def test_atomics_barriers_local_and_mix() -> None:
    source = """extern "C" __global__ void k(const int* x, int* y) {
        int a[8]; int t = threadIdx.x;
        for (int i = 0; i < 8; i++) a[i] = x[i];
        __syncthreads();
        atomicAdd(y, a[t % 8]);
        }"""
    counters = counted(source, 2, 96, "x", "y", x=np.zeros(8, np.int32), y=np.zeros(1, np.int32))
    assert counters.lines[4].barriers == 6
    assert counters.lines[5].atomics == counters.mix["atomic"] == 6
    assert counters.total("local_requests") >= 6
    assert counters.mix["barrier"] == 6 and counters.blocks_run == 2
    assert counters.lines[5].requests == 6 and counters.lines[5].sectors == 6


def test_divergence_is_counted_by_warp_and_instructions_by_lane() -> None:
    source = """extern "C" __global__ void k(int* y) {
        int t = threadIdx.x;
        if (t % 64 < 40)
            atomicAdd(y, 1);
        }"""
    counters = counted(source, 1, 128, "y", y=np.zeros(1, np.int32))
    assert counters.lines[3].branches == 4 and counters.lines[3].divergent == 2
    assert counters.lines[4].atomics == 4
    per_lane = counters.lines[4].thread_instructions / counters.lines[4].instructions
    assert per_lane == 20  # 32, 8, 32 and 8 lanes of four warps


def test_counts_do_not_depend_on_how_blocks_are_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """extern "C" __global__ void k(const float* x, float* y, int n) { __shared__ float s[64];
        int t = threadIdx.x, i = blockIdx.x * 64 + t; s[t] = i < n ? x[i * 3 % n] : 0; __syncthreads();
        float v = 0; for (int k = 0; k <= t % 5; k++) v += s[(t * 7 + k) % 64];
        if (i < n) y[i] = v; }"""
    n = 2000
    x = np.arange(n, dtype=np.float32)
    together = counted(source, 32, 64, "x", "y", n, x=x, y=x)
    monkeypatch.setattr("agent.execution.emulator.launch.LANES", 64)
    assert counted(source, 32, 64, "x", "y", n, x=x, y=x) == together


def test_line_counters_are_plain_numbers() -> None:
    assert LineCounters().sectors == 0
