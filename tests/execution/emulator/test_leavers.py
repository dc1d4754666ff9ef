"""Barriers that some threads of a block leave the kernel before."""

import numpy as np
import pytest

from agent.execution.device import Answer
from tests.execution.emulator.building import build, launch, run

CHECKS = frozenset({"races", "barriers"})
BOTH = pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
LOOP = """extern "C" __global__ void k(int* y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x, sum = 0;
#pragma unroll UNROLLED
    for (int b = 0; b < 4; b++) {
        if (threadIdx.x + 64 * b < n) {
            sum += b;
            __syncthreads();
        }
    }
    y[i] = sum;
}"""


def execute(source: str, *more: int, options: tuple[str, ...] = ()) -> Answer:
    built = build(source, *options)
    return run(built, launch("k", 2, 64, "y", *more), {"y": np.zeros(128, np.int32)}, checks=CHECKS)[0]


@pytest.mark.parametrize("unrolled", ["1", "4"])
@BOTH
def test_a_barrier_that_some_threads_come_to_once_more_than_others(options: tuple[str, ...], unrolled: str) -> None:
    """240 is no multiple of 64: in the last turn 48 threads come, and 16 leave instead."""
    source = LOOP.replace("UNROLLED", unrolled)
    (fault,) = execute(source, 240, options=options).faults
    assert (fault.kind, fault.where.line, fault.benign) == ("divergent barrier", 7, False)
    assert fault.where.thread == (0, 0, 0) and fault.other is not None and fault.other.thread == (48, 0, 0)
    assert "16 threads" in fault.message and fault.count == 2 * 48
    assert execute(source, 256, options=options).faults == ()
    assert execute(source, 128, options=options).faults == ()


@BOTH
def test_threads_that_leave_before_their_warp_comes_to_a_barrier(options: tuple[str, ...]) -> None:
    source = """extern "C" __global__ void k(int* y, int n) {
        if (threadIdx.x >= n) return;
        __syncthreads();
        y[blockIdx.x * 64 + threadIdx.x] = 1; }"""
    (fault,) = execute(source, 40, options=options).faults
    assert (fault.kind, fault.where.line, fault.where.thread, fault.benign, fault.count) == (
        "barrier of a split warp", 3, (32, 0, 0), True, 2 * 8,
    )  # fmt: skip
    assert execute(source, 32, options=options).faults == ()
    assert execute(source, 64, options=options).faults == ()


@BOTH
def test_threads_that_leave_after_the_last_barrier_or_between_two(options: tuple[str, ...]) -> None:
    source = """extern "C" __global__ void k(int* y, int n) {
        __syncthreads();
        if (threadIdx.x >= n) return;
        AGAIN
        y[blockIdx.x * 64 + threadIdx.x] = 1; }"""
    assert execute(source.replace("AGAIN", ""), 40, options=options).faults == ()
    (fault,) = execute(source.replace("AGAIN", "__syncthreads();"), 40, options=options).faults
    assert (fault.kind, fault.where.line, fault.benign) == ("barrier of a split warp", 4, True)
