"""How fast the emulator is: million thread-instructions a second, beside the figures that it is to hold.

Run ``python -m tests.benchmarks.emulator``. Rates are by processor time of the one core that the emulator uses, so that
other work on the machine disturbs them less; the rate by the clock is printed beside them. The best of several runs
counts, since anything else can only slow a run down.
"""

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

    ``wanted`` is the figure to hold (None where there is none).
    """

    name: str
    rate: float
    clock: float
    wanted: float | None = None


def product(kernel: str, checks: frozenset[str], count: bool, runs: int) -> tuple[float, float]:
    """Rates of a 256^3 matrix product."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float32).view(np.uint8).reshape(-1) for _ in range(2))
    images = (Image("a", a.nbytes, a), Image("b", b.nbytes, b), Image("c", a.nbytes, Poison()))
    step = launch(kernel, (SIZE // 16, SIZE // 16, 1), (16, 16, 1), "a", "b", "c", SIZE)
    return _best(Request(build(MATMUL), (step,), images, ("c",), checks, count=count), runs)


def divergent(checks: frozenset[str], runs: int) -> tuple[float, float]:
    """Rates of a sparse product whose rows differ in length by a factor of forty."""
    rng = np.random.default_rng(2)
    rows = 1 << 15
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 41, rows))]).astype(np.int32)
    column = rng.integers(0, rows, start[-1]).astype(np.int32)
    value, x = rng.standard_normal(start[-1]).astype(np.float32), rng.standard_normal(rows).astype(np.float32)
    inputs = {"start": start, "column": column, "value": value, "x": x}
    images = tuple(Image(name, data.nbytes, data.view(np.uint8)) for name, data in inputs.items())
    step = launch("spmv", rows // 256, 256, *inputs, "y", rows)
    return _best(Request(build(SPMV), (step,), (*images, Image("y", 4 * rows, Poison())), ("y",), checks), runs)


def _best(request: Request, runs: int) -> tuple[float, float]:
    rates, clocks = [], []
    for _ in range(runs):
        started = time.process_time()
        answer = Emulator().run(request)
        used = time.process_time() - started
        if answer.status != "ok":
            raise SystemExit(f"{answer.status}: {answer.message} {answer.faults}")
        rates.append(answer.thread_instructions / used / 1e6)
        clocks.append(answer.thread_instructions / answer.seconds / 1e6)
    return max(rates), max(clocks)


def figures(runs: int = 5) -> list[Figure]:
    found = []
    for kernel in ("naive", "tiled"):
        found.append(Figure(f"{kernel} {SIZE}^3, unchecked", *product(kernel, frozenset(), False, runs), 300))
        found.append(Figure(f"{kernel} {SIZE}^3, all checks", *product(kernel, CHECKS, False, runs), 100))
        found.append(Figure(f"{kernel} {SIZE}^3, all checks, counted", *product(kernel, CHECKS, True, runs)))
    found.append(Figure("sparse product, unchecked", *divergent(frozenset(), runs)))
    found.append(Figure("sparse product, all checks", *divergent(CHECKS, runs)))
    return found


def main() -> int:
    held = True
    print("emulator, million thread-instructions a second (one core)")
    for figure in figures():
        line = f"  {figure.name:34} {figure.rate:8.0f}   ({figure.clock:.0f} by the clock)"
        if figure.wanted is not None:
            line += f"   design figure {figure.wanted:.0f}: {figure.rate / figure.wanted:.2f}x"
            held = held and figure.rate >= figure.wanted
        print(line)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
