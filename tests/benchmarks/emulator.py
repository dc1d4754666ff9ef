"""How fast the emulator is: million thread-instructions a second, beside the figures that it is to hold.

Run ``python -m tests.benchmarks.emulator``. Rates are by processor time, so that other work on the machine disturbs
them less; the rate by the clock is printed beside them. The NumPy back end uses one core; of the compiled one the rate
is that of one core times the cores it may use, two at most, and what the compiler takes is told apart. The best of
several runs counts, since anything else can only slow a run down.
"""

import os
import sys
import time

import numpy as np
from attrs import frozen

from agent.execution.device import Image, Poison, Request
from agent.execution.emulator import Emulator
from tests.execution.emulator.building import build, launch
from tests.execution.emulator.test_engine import MATMUL

SIZE = 256
CHECKS = frozenset({"bounds", "races", "initialised", "barriers"})

SPMV = """
extern "C" __global__ void spmv(const int* start, const int* column, const float* value, const float* x, float* y,
                                int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float s = 0;
    for (int k = start[row]; k < start[row + 1]; k++) s += value[k] * x[column[k]];
    y[row] = s;
}
"""


@frozen
class Figure:
    """Million thread-instructions per second of processor time (``rate``) and of the clock (``clock``).

    ``wanted`` is the figure to hold (None where there is none). ``first`` is how many seconds of processor time the
    first run took that the others did not: decoding, and compiling where that is done.
    """

    name: str
    rate: float
    clock: float
    wanted: float | None = None
    first: float = 0.0


Rates = tuple[float, float, float]


def product(kernel: str, checks: frozenset[str], count: bool, runs: int, back_end: str = "numpy") -> Rates:
    """Rates of a 256^3 matrix product, and what the first run took more."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float32).view(np.uint8).reshape(-1) for _ in range(2))
    images = (Image("a", a.nbytes, a), Image("b", b.nbytes, b), Image("c", a.nbytes, Poison()))
    step = launch(kernel, (SIZE // 16, SIZE // 16, 1), (16, 16, 1), "a", "b", "c", SIZE)
    return _best(Request(build(MATMUL), (step,), images, ("c",), checks, count=count), runs, back_end)


def divergent(checks: frozenset[str], runs: int, back_end: str = "numpy", rows: int = 1 << 15) -> Rates:
    """Rates of a sparse product whose rows differ in length by a factor of forty."""
    rng = np.random.default_rng(2)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 41, rows))]).astype(np.int32)
    column = rng.integers(0, rows, start[-1]).astype(np.int32)
    value, x = rng.standard_normal(start[-1]).astype(np.float32), rng.standard_normal(rows).astype(np.float32)
    inputs = {"start": start, "column": column, "value": value, "x": x}
    images = tuple(Image(name, data.nbytes, data.view(np.uint8)) for name, data in inputs.items())
    step = launch("spmv", rows // 256, 256, *inputs, "y", rows)
    return _best(
        Request(build(SPMV), (step,), (*images, Image("y", 4 * rows, Poison())), ("y",), checks), runs, back_end
    )


def _best(request: Request, runs: int, back_end: str) -> Rates:
    rates, clocks, times = [], [], []
    cores = min(2, len(os.sched_getaffinity(0))) if back_end == "compiled" else 1
    for _ in range(runs):
        started = time.process_time()
        answer = Emulator(back_end).run(request)
        used = time.process_time() - started
        if answer.status != "ok" or bool(answer.compiled) != (back_end == "compiled"):
            raise SystemExit(f"{back_end}: {answer.status} {answer.message} {answer.faults} {answer.compiled}")
        times.append(used)
        rates.append(cores * answer.thread_instructions / used / 1e6)
        clocks.append(answer.thread_instructions / answer.seconds / 1e6)
    return max(rates), max(clocks), times[0] - min(times)


def figures(runs: int = 5) -> list[Figure]:
    found = []
    for back_end, plain, checked in (("numpy", 300, 100), ("compiled", 2000, 500)):
        for kernel in ("naive", "tiled"):
            for words, checks, wanted in (("unchecked", frozenset[str](), plain), ("all checks", CHECKS, checked)):
                rate, clock, first = product(kernel, checks, False, runs, back_end)
                name = f"{back_end}: {kernel} {SIZE}^3, {words}"
                found.append(Figure(name, rate, clock, wanted if kernel == "naive" else None, first))
        for words, checks in (("unchecked", frozenset[str]()), ("all checks", CHECKS)):
            rate, clock, first = divergent(checks, runs, back_end)
            found.append(Figure(f"{back_end}: sparse product, {words}", rate, clock, first=first))
        # cost linear in threads: four times the rows at the same rate
        rate, clock, first = divergent(CHECKS, runs, back_end, 1 << 17)
        found.append(Figure(f"{back_end}: sparse product, all checks, 4 x the threads", rate, clock, first=first))
    for kernel in ("naive", "tiled"):
        rate, clock, first = product(kernel, CHECKS, True, runs)
        found.append(Figure(f"numpy: {kernel} {SIZE}^3, all checks, counted", rate, clock, first=first))
    return found


def main() -> int:
    held = True
    print("emulator, million thread-instructions a second (NumPy on one core, compiled code on two)")
    for figure in figures():
        line = f"  {figure.name:58} {figure.rate:8.0f}   ({figure.clock:.0f} by the clock, "
        line += f"first run {figure.first:+.2f} s)"
        if figure.wanted is not None:
            line += f"   design figure {figure.wanted:.0f}: {figure.rate / figure.wanted:.2f}x"
            held = held and figure.rate >= figure.wanted
        print(line)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
