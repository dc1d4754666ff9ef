"""What single instructions count, against figures worked out by hand."""

import numpy as np
import pytest

from agent.execution.device import LineCounters
from tests.execution.emulator.test_counters import F, counted

INTS = np.zeros(1 << 10, np.int32)


@pytest.mark.parametrize(
    ("target", "rounds"),
    [
        ("&f[t % 4]", 8),  # eight lanes of a warp want each of four words
        ("&f[t]", 1),
        ("&f[0]", 32),
        ("&f[t / 31]", 31),  # 31 lanes, and one
        ("&n[t % 4]", 8),
        ("&n[0]", 1),  # whole numbers of a warp for one address are added up first
    ],
)
def test_atomics_of_a_warp_queue_where_they_meet(target: str, rounds: int) -> None:
    source = f"""extern "C" __global__ void k(float* f, int* n) {{ int t = threadIdx.x % 32;
        atomicAdd({target}, 1); }}"""
    line = counted(source, 2, 96, "f", "n", f=F, n=INTS).lines[2]
    assert (line.atomics, line.atomic_rounds) == (6, 6 * rounds)


def test_shared_atomics_take_a_round_for_each_lane_on_one_bank() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ int s[64]; int t = threadIdx.x;
        s[t] = 0; s[t + 32] = 0; __syncthreads();
        int old = atomicAdd(&s[t % 2 * 32], t);
        y[t] = old + s[t]; }"""
    line = counted(source, 1, 32, "y", y=INTS).lines[3]
    assert (line.atomics, line.atomic_rounds) == (1, 32)


@pytest.mark.parametrize(
    ("index", "sectors"),
    [
        ("x[0] & 7", 4),  # the same word of 32 lanes: 128 bytes in a row
        ("(x[0] + t) & 7", 32),  # eight lanes that would share a sector want eight words
        ("(x[0] + t / 8) & 7", 4),
        ("(x[0] + t % 2) & 7", 8),
    ],
)
def test_sectors_of_local_memory(index: str, sectors: int) -> None:
    source = f"""extern "C" __global__ void k(const int* x, int* y) {{ int a[8]; int t = threadIdx.x % 32;
        for (int i = 0; i < 8; i++) a[i] = x[i];
        y[t] = a[{index}]; }}"""
    line = counted(source, 3, 64, "x", "y", x=INTS, y=INTS).lines[3]
    assert (line.local_requests, line.local_sectors) == (6, 6 * sectors)


def test_a_part_of_a_warp_has_fewer_sectors_of_local_memory() -> None:
    source = """extern "C" __global__ void k(const int* x, int* y) { int a[8]; int t = threadIdx.x;
        for (int i = 0; i < 8; i++) a[i] = x[i];
        if (t < 40)
        y[t] = a[x[t] & 7]; }"""
    line = counted(source, 1, 64, "x", "y", x=INTS, y=INTS).lines[4]
    assert (line.local_requests, line.local_sectors) == (2, 4 + 1)


def test_lanes_at_a_branch() -> None:
    source = """extern "C" __global__ void k(int* y) { int t = threadIdx.x;
        if (t % 32 < 20)
        if (t % 32 < 5)
        atomicAdd(y + t, 1); }"""
    counters = counted(source, 1, 64, "y", y=INTS)
    lanes = sum(line.branch_lanes for line in counters.lines.values())
    branches = counters.total("branches")
    # compilers may make one condition of the two
    assert (branches, lanes) in ((2, 64), (4, 64 + 40))
    (update,) = [one.counts for one in counters.instructions if one.kind == "atomic"]
    assert (update.instructions, update.thread_instructions) == (2, 10)


TWO_SIDES = """extern "C" __global__ void k(const float4* x, double* y, int n) { __shared__ double s[64];
    int t = threadIdx.x; float4 v = x[t];
    s[t] = v.x + v.w;
    __syncthreads();
    if (n == 7)
    y[t + 64] = s[63 - t] / 3.0;
    y[t] = s[t ^ 1]; }"""


def test_instructions_add_up_to_lines() -> None:
    counters = counted(TWO_SIDES, 2, 64, "x", "y", 5, x=F, y=F)
    for name in LineCounters.__attrs_attrs__:
        if name.name != "waits":
            by_instruction = sum(getattr(one.counts, name.name) for one in counters.instructions)
            assert by_instruction == counters.total(name.name), name.name
    mix = dict.fromkeys(counters.mix, 0)
    for one in counters.instructions:
        if one.counts.instructions:
            mix[one.kind] += one.counts.instructions
    assert mix == counters.mix


def test_each_instruction_is_named_with_its_width_and_whether_it_ran() -> None:
    counters = counted(TWO_SIDES, 2, 64, "x", "y", 5, x=F, y=F)
    (load,) = [one for one in counters.instructions if one.kind == "load"]
    assert load.text.startswith("ld.global") and (load.line, load.width) == (2, 16)
    assert (load.counts.requests, load.counts.sectors) == (4, 4 * 16)
    shared = {(one.line, one.width): one.counts for one in counters.instructions if one.kind == "shared"}
    # 32 lanes of 8 bytes take two passes
    assert (shared[3, 8].shared_requests, shared[3, 8].wavefronts) == (4, 8)
    stores = {one.line: one.counts.requests for one in counters.instructions if one.kind == "store"}
    assert stores == {6: 0, 7: 4}
    assert all(one.file.endswith(".cu") for one in counters.instructions)
