"""Our medians against Nsight Compute's ``gpu__time_duration`` on ten fixtures at their declared sizes: within 3 %.

``python -m tests.benchmarks profiler``. Like is compared with like: both sides are cold calls on fresh contents, made
by the same functions, after the level-2 cache was read full by us. ``ncu`` is therefore told ``--cache-control none``
(its own flush would come on top) and ``--clock-control none`` (it would lock the clocks to their base, where no timing
of ours runs). One metric takes one pass, so nothing is replayed. ncu times the kernel on the card; ours is what lies
between two events less what they show around an empty kernel, which itself is a microsecond or two long: only kernels
of a hundred microseconds and more can agree within 3 %, and all of these fixtures are.

ncu reads counters as root, or where the driver lets everybody (NVreg_RestrictProfilingToAdminUsers=0); where it may
not, that is said. ``CUDA_LSP_SHARDS`` names a folder that keeps what ncu said (``profiler.csv``).
"""

import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from agent.evaluation.measures.measuring import SCREEN
from agent.evaluation.measures.statistics import seconds
from agent.execution import wire
from agent.execution.compiler import Build
from agent.execution.gpu import Gpu, open_gpu, racing, why_no_gpu
from agent.execution.gpu.support import support
from agent.execution.process import kill
from agent.execution.timing import Entry, Figures
from agent.execution.toolkit import tool
from tests.conftest import ROOT
from tests.fixtures.cases import CASES
from tests.gpu.launcher import Order
from tests.gpu.racing import fixture, race

CHOSEN = (
    "argmax", "bias_gelu", "black_scholes", "conv2d", "cosine", "gaussian_blur", "matvec", "rmsnorm", "softmax",
    "transpose",
)  # fmt: skip
CALLS = 11
WANTED = 0.03
METRIC = "gpu__time_duration.sum"
LIMIT = 120.0
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
"""Releases of ncu write ``ns`` or ``nsecond``."""


@frozen
class Profiled:
    """A kernel, its entry, and its family of contents."""

    kernel: str
    entry: Entry
    family: str


def main() -> None:
    card, ncu = open_gpu(), tool("ncu")
    if card is None or ncu is None:
        print(f"profiler: {f'no card ({why_no_gpu()})' if card is None else 'no ncu (part of the CUDA toolkit)'}")
        return
    begun = time.perf_counter()
    kernels = [Profiled(case.kernel, *fixture(case.file, case.kernel, card)) for case in CASES if case.name in CHOSEN]
    ours = {item.kernel: _ours(card, item) for item in kernels}
    theirs = _theirs(ncu, order(kernels, card))
    card.close()
    print(f"cold calls on {card.name}, medians in microseconds ({time.perf_counter() - begun:.0f} s)")
    if isinstance(theirs, str):
        print(f"  ncu could not tell: {theirs}")
        return
    report(ours, theirs)


def _ours(card: Gpu, item: Profiled) -> float | str:
    """As a screen times it, against itself."""
    asked = race(item.entry, item.entry, item.family, blocks=SCREEN.blocks, warm=0, budget=SCREEN.budget)
    timed = card.race(asked)
    return seconds([timed.cold], 0) if timed.status == "ok" else timed.message or timed.status


def order(kernels: Iterable[Profiled], card: Gpu) -> Order:
    """The same calls for the launcher."""
    figures, built = card.figures(), support(card.arch)
    assert isinstance(figures, Figures) and isinstance(built, Build), (figures, built)
    asked = [race(item.entry, item.entry, item.family) for item in kernels]
    assert not any(True for one in asked for _ in racing.chunks(one)), "contents that no kernel makes"
    return Order(tuple(racing.measure(one, built, figures.flush, 4 << 30) for one in asked), CALLS)


def command(ncu: Path, names: Iterable[str], file: Path) -> list[str]:
    """How ncu is called: only the kernels of that name are looked at, ours around them run as they are."""
    return [
        str(ncu), "--csv", "--print-units", "base", "--clock-control", "none", "--cache-control", "none",
        "--metrics", METRIC, "--kernel-name-base", "function", "--kernel-name", f"regex:{'|'.join(names)}",
        sys.executable, "-m", "tests.gpu.launcher", str(file),
    ]  # fmt: skip


def _theirs(ncu: Path, asked: Order) -> dict[str, list[float]] | str:
    names = [request.sides[0].steps[0].label for request in asked.requests]  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "order"
        file.write_bytes(wire.encode(asked))
        process = subprocess.Popen(
            command(ncu, names, file),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            kill(process)
            return f"it did not end within {LIMIT:.0f} s"
    if os.environ.get("CUDA_LSP_SHARDS"):
        (Path(os.environ["CUDA_LSP_SHARDS"]) / "profiler.csv").write_text(out + err, encoding="utf-8")
    if "ERR_NVGPUCTRPERM" in out + err:
        return "it may not read counters: be root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
    found = durations(out.splitlines(), names)
    return found or f"it ended with exit code {process.returncode}: {(err or out).strip()[-500:]}"


def durations(lines: Iterable[str], names: Iterable[str]) -> dict[str, list[float]]:
    """Seconds of each launch by kernel, from what ncu prints as CSV among other lines. A name may be mangled or have
    its parameters with it."""
    known = sorted(names, key=len, reverse=True)
    table = [line for line in lines if line.startswith('"')]
    found: dict[str, list[float]] = {}
    for row in csv.DictReader(table):
        kernel = next((name for name in known if name in row["Kernel Name"]), None)
        if kernel is None or row["Metric Name"] != METRIC:
            continue
        value = float(row["Metric Value"].replace(",", ""))
        found.setdefault(kernel, []).append(value * _SECONDS[row["Metric Unit"].removesuffix("econd")])
    return found


def report(ours: dict[str, float | str], theirs: dict[str, list[float]]) -> None:
    """Print both and how far they are apart."""
    print(f"  {'kernel':16} {'ours':>10} {'ncu':>10} {'apart':>8}   ncu's least and most of its calls")
    apart: list[float] = []
    for kernel, mine in ours.items():
        seen = theirs.get(kernel)
        if isinstance(mine, str) or not seen:
            print(f"  {kernel:16} {mine if isinstance(mine, str) else 'ncu saw none of its launches'}")
            continue
        middle = statistics.median(seen)
        apart.append(mine / middle - 1)
        span = f"{min(seen) * 1e6:.2f} {max(seen) * 1e6:.2f} of {len(seen)}"
        print(f"  {kernel:16} {mine * 1e6:10.2f} {middle * 1e6:10.2f} {apart[-1]:+8.2%}   {span}")
    if apart:
        within = sum(abs(value) <= WANTED for value in apart)
        print(f"  {within} of {len(ours)} within {WANTED:.0%}, the furthest {max(apart, key=abs):+.2%}")


if __name__ == "__main__":
    main()
