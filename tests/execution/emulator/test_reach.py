"""How far accesses go in each buffer: bytes, blocks, and whether something was read before anything wrote it."""

import numpy as np
from attrs import evolve

from agent.execution.device import Image, Reached, Request
from agent.execution.emulator import Emulator
from agent.workload.binding import BoundLaunch, PointerArgument
from tests.execution.emulator.building import build, launch

SOURCE = """
extern "C" __global__ void shift(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i - 1] + x[i + 2];
}
extern "C" __global__ void twice(float* y, int* count) {
    extern __shared__ float s[];
    s[threadIdx.x + 8] = 1.0f;
    y[threadIdx.x] = 2.0f;
    y[threadIdx.x] = y[threadIdx.x] + s[threadIdx.x + 8];
    if (blockIdx.y == 1) atomicAdd(count, 1);
}
"""
BEFORE = 256


def reached(step: BoundLaunch, *names: str) -> tuple[dict[str, list[Reached]], int]:
    arguments = tuple(evolve(one, offset=BEFORE) if isinstance(one, PointerArgument) else one for one in step.arguments)
    images = tuple(Image(name, 4096, np.zeros(4096, np.uint8)) for name in names)
    request = Request(build(SOURCE), (evolve(step, arguments=arguments),), images, names, reach=True)
    answer = Emulator().run(request)
    assert answer.status == "ok", answer
    return {name: [one for one in answer.reached if one.buffer == name] for name in names}, answer.shared_reached


def test_bytes_and_blocks_of_each_access() -> None:
    found, _ = reached(launch("shift", 9, 32, "x", "y", np.int32(70)), "x", "y")
    spans = sorted((one.low - BEFORE, one.high - BEFORE, one.blocks) for one in found["x"])
    # elements -1 to 68 and 2 to 71; of nine blocks the first three have something to do
    assert spans == [(-4, 69 * 4, (3, 1, 1)), (8, 72 * 4, (3, 1, 1))]
    (written,) = found["y"]
    assert (written.low - BEFORE, written.high - BEFORE, written.blocks) == (0, 280, (3, 1, 1))
    assert written.writes and not written.reads and not written.fresh
    assert all(one.reads and one.fresh and not one.writes and one.line for one in found["x"])


def test_what_was_written_before_is_not_fresh_and_an_atomic_reads() -> None:
    found, shared = reached(launch("twice", (1, 2, 1), 32, "y", "count", shared=1024), "y", "count")
    assert not any(one.fresh for one in found["y"])
    (atomic,) = found["count"]
    assert atomic.reads and atomic.writes and atomic.fresh and atomic.blocks == (1, 2, 1)
    assert shared % 128 == 40 * 4 % 128 and shared >= 40 * 4


def test_nobody_asks_nothing_is_kept() -> None:
    step = launch("twice", (1, 1, 1), 32, "y", "count", shared=1024)
    images = tuple(Image(name, 4096, np.zeros(4096, np.uint8)) for name in ("y", "count"))
    answer = Emulator().run(Request(build(SOURCE), (step,), images, ("y",)))
    assert answer.reached == () and answer.shared_reached == 0
