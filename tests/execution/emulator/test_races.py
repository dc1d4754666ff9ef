"""Races on shared memory: planted ones at the right lines and threads, and their race-free twins without a word."""

import numpy as np
import pytest

from agent.execution.device import Answer
from tests.execution.emulator.building import build, launch, run

CHECKS = frozenset({"races", "barriers"})
BOTH = pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])


def execute(source: str, threads: int = 64, blocks: int = 3, options: tuple[str, ...] = (), shared: int = 0) -> Answer:
    """Run kernel ``k(int* y)``, each block with its own part of ``y``; the source's first line is line 1."""
    head = "void k(int* y) {"
    assert head in source
    built = build(source.replace(head, f"{head} y += blockIdx.x * 1024;"), *options)
    y = np.zeros(4096, np.int32)
    return run(built, launch("k", blocks, threads, "y", shared=shared), {"y": y}, checks=CHECKS)[0]


def lines(answer: Answer, benign: bool = False) -> set[tuple[int, int]]:
    assert all(fault.kind == "shared-memory race" and fault.other for fault in answer.faults), answer.faults
    return {(fault.where.line, fault.other.line) for fault in answer.faults if fault.other and fault.benign is benign}


@BOTH
def test_a_missing_barrier_between_store_and_load(options: tuple[str, ...]) -> None:
    racy = """extern "C" __global__ void k(int* y) { __shared__ int s[64]; int t = threadIdx.x;
        s[t] = t;
        y[t] = s[63 - t]; }"""
    answer = execute(racy, options=options)
    assert lines(answer) == {(3, 2)}
    fault = answer.faults[0]
    assert fault.other is not None
    assert fault.where.block == fault.other.block == (0, 0, 0)
    assert fault.where.thread[0] == 63 - fault.other.thread[0] and fault.count == 3 * 64
    assert execute(racy.replace("s[t] = t;", "s[t] = t; __syncthreads();"), options=options).status == "ok"


@BOTH
def test_a_missing_barrier_at_the_end_of_a_loop(options: tuple[str, ...]) -> None:
    racy = """extern "C" __global__ void k(int* y) { __shared__ int s[64]; int t = threadIdx.x, v = 0;
        for (int r = 0; r < 3; r++) {
            s[t] = t + r;
            __syncthreads();
            v += s[63 - t];
        } y[t] = v; }"""
    assert lines(execute(racy, options=options)) == {(3, 5)}
    assert execute(racy.replace("v += s[63 - t];", "v += s[63 - t]; __syncthreads();"), options=options).status == "ok"


def test_an_unsynchronised_tree_reduction_is_racy_only_beyond_what_it_orders() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ int s[128]; int t = threadIdx.x;
        s[t] = t; __syncthreads();
        for (int d = blockDim.x / 2; d > 0; d /= 2) {
            if (t < d) s[t] += s[t + d];
            BARRIER
        } if (t == 0) y[blockIdx.x] = s[0]; }"""
    assert execute(source.replace("BARRIER", "__syncthreads();"), threads=128).status == "ok"
    racy = execute(source.replace("BARRIER", ""), threads=128)
    assert (4, 4) in lines(racy)


def test_warp_synchronous_code_needs_syncwarp() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ volatile int s[64]; int t = threadIdx.x;
        s[t] = t; __syncthreads();
        if (t < 32) {
            int v = s[t];
            v += s[t + 32]; SYNC s[t] = v; SYNC
            v += s[(t + 16) % 64]; SYNC s[t] = v; SYNC
            v += s[(t + 8) % 64]; SYNC s[t] = v; SYNC
        }
        if (t == 0) y[blockIdx.x] = s[0]; }"""
    assert lines(execute(source.replace("SYNC", ""))) >= {(6, 5)}
    assert execute(source.replace("SYNC", "__syncwarp();")).status == "ok"


def test_a_shuffle_orders_no_memory() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ volatile int s[32]; int t = threadIdx.x;
        s[t] = t; ORDER
        y[t] = s[31 - t]; }"""
    shuffle = "int z = __shfl_xor_sync(~0u, t, 1); y[64 + t] = z;"
    assert lines(execute(source.replace("ORDER", shuffle), threads=32)) == {(3, 2)}
    assert execute(source.replace("ORDER", "__syncwarp();"), threads=32).status == "ok"


def test_syncwarp_of_half_a_warp_orders_that_half_alone() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ volatile int s[32]; int t = threadIdx.x;
        s[t] = t;
        if (t < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000);
        y[t] = s[t ^ DISTANCE]; }"""
    assert execute(source.replace("DISTANCE", "7"), threads=32).status == "ok"
    answer = execute(source.replace("DISTANCE", "16"), threads=32)
    assert lines(answer) == {(4, 2)} and answer.faults[0].count == 3 * 32


def test_syncwarp_orders_nothing_between_warps() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ volatile int s[64]; int t = threadIdx.x;
        s[t] = t; __syncwarp();
        y[t] = s[63 - t]; }"""
    assert lines(execute(source)) == {(3, 2)}


def test_writes_of_the_same_value_are_benign() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ int s[2]; int t = threadIdx.x;
        if (t % 2) *(volatile int*)s = VALUE;
        __syncthreads(); y[t] = s[0]; }"""
    same = execute(source.replace("VALUE", "7"))
    assert same.status == "ok" and lines(same, benign=True) == {(2, 2)} and same.faults[0].benign
    assert lines(execute(source.replace("VALUE", "t"))) == {(2, 2)}


def test_two_lanes_of_one_instruction_and_two_warps() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ int s[64]; int t = threadIdx.x;
        s[INDEX] = t;
        __syncthreads(); y[t] = s[t]; }"""
    assert lines(execute(source.replace("INDEX", "t & ~1"))) == {(2, 2)}
    assert lines(execute(source.replace("INDEX", "t % 32"))) == {(2, 2)}
    assert execute(source.replace("INDEX", "t")).status == "ok"


def test_bytes_side_by_side_are_no_race() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ unsigned char s[256]; int t = threadIdx.x;
        s[t * STRIDE] = t;
        __syncthreads(); y[t] = s[t]; }"""
    assert execute(source.replace("STRIDE", "1")).status == "ok"
    assert lines(execute(source.replace("t * STRIDE", "t / 2"))) == {(2, 2)}


def test_atomics_do_not_race_among_themselves_but_with_plain_accesses() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ int s[4]; int t = threadIdx.x;
        if (t < 4) s[t] = 0;
        FIRST
        atomicAdd(&s[t % 4], 1);
        SECOND
        if (t < 4) y[t] = s[t]; }"""
    sync = "__syncthreads();"
    assert execute(source.replace("FIRST", sync).replace("SECOND", sync)).status == "ok"
    assert lines(execute(source.replace("FIRST", "").replace("SECOND", sync))) == {(4, 2)}
    assert lines(execute(source.replace("FIRST", sync).replace("SECOND", ""))) == {(6, 4)}


def test_reading_what_others_then_write_is_seen_whoever_read_last() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ int s[64]; int t = threadIdx.x;
        s[t] = t; __syncthreads();
        int v = s[READ];
        BARRIER
        s[WRITE] = v + 1;
        __syncthreads(); y[t] = s[t]; }"""

    def racy(read: str, write: str, barrier: str = "") -> Answer:
        return execute(source.replace("READ", read).replace("WRITE", write).replace("BARRIER", barrier))

    assert racy("t", "t").status == "ok"
    assert lines(racy("63 - t", "t")) == {(5, 3)}
    assert lines(racy("0", "t")) == {(5, 3)}  # read by all, written by the first lane
    assert lines(racy("t / 2 * 2 + 1", "t")) == {(5, 3)}  # read by two lanes of a warp, written by one of them
    assert racy("0", "t", "__syncthreads();").status == "ok"


def test_divergent_blocks_and_ragged_grids_are_told_apart() -> None:
    source = """extern "C" __global__ void k(int* y) { __shared__ int s[64];
        int t = threadIdx.x, i = blockIdx.x * 64 + t; if (i >= 100) return;
        s[t] = i;
        if (blockIdx.x == 0) __syncthreads();
        y[i] = s[t ^ 1]; }"""
    answer = execute(source, blocks=2)
    assert lines(answer) == {(5, 3)}
    assert answer.faults[0].where.block == (1, 0, 0) and answer.faults[0].count == 36


def test_a_softmax_whose_first_warp_clears_what_others_fill() -> None:
    racy = """extern "C" __global__ void k(int* y) { __shared__ int sums[32]; int t = threadIdx.x, w = t / 32, v = t;
        if (w == 0) sums[t] = 0;
        BARRIER
        for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
        if (t % 32 == 0) sums[w] = v;
        __syncthreads();
        int total = 0; for (int i = 0; i < blockDim.x / 32; i++) total += sums[i];
        y[t] = total; }"""
    answer = execute(racy.replace("BARRIER", ""), threads=128)
    assert (5, 2) in lines(answer) or (2, 5) in lines(answer)
    assert execute(racy.replace("BARRIER", "__syncthreads();"), threads=128).status == "ok"
