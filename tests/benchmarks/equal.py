"""Identical code against itself on a card: what the timing of a verdict calls "faster" among equals must be nothing.

``python -m tests.benchmarks equal``: 200 timings, 20 of each of ten kernels from 5 microseconds to 50 milliseconds, by
the very function that a verdict asks (``measure``: control, race, every timed output checked in a process of its own).
One in twenty is a full verdict's confirmation (three processes), the others a screen's. As in a search, the control of
a screen is timed once for each kernel and run. Takes about ten minutes; it resumes (``tests/gpu/shards.py``), and
``CUDA_LSP_EQUAL`` is another number of timings of each kernel.
"""

import os
import statistics
import sys
import time
from collections.abc import Iterable, Mapping

from attrs import frozen

from agent.evaluation.contracts.contract import Contract
from agent.evaluation.contracts.selftest import SelfTest
from agent.evaluation.measures.measurement import Measurement
from agent.evaluation.measures.measuring import CONFIRM, SCREEN, measure
from agent.evaluation.oracles.truth import Bench
from agent.evaluation.prepare import Prepared
from agent.evaluation.ptx import traits
from agent.evaluation.setting import FULL, Setting
from agent.evaluation.trial import Trial
from agent.execution.compiler import Build, Options, build
from agent.execution.gpu import open_gpu, why_no_gpu
from agent.execution.targets import find_target
from agent.execution.timing import Timer
from agent.workload.program import Program
from tests.fixtures.running import opened
from tests.gpu import shards
from tests.gpu.shards import Row

EACH = int(os.environ.get("CUDA_LSP_EQUAL", "20"))
FULL_EVERY = 20
WANTED = 0.01
_RESTS_ON = (
    "agent/source", "agent/workload", "agent/execution", "agent/evaluation", "fixtures", "tests/benchmarks/equal.py",
)  # fmt: skip


@frozen
class Sized:
    """A kernel of the fixtures at sizes that give it the time wanted on an H200 (others differ; what it took is in the
    row)."""

    file: str
    kernel: str
    sizes: Mapping[str, int]


KERNELS = (
    Sized("bias_gelu.cu", "bias_gelu", {"rows": 128, "cols": 4096}),
    Sized("black_scholes.cu", "black_scholes", {"n": 1 << 20}),
    Sized("rmsnorm.cu", "rmsnorm", {"rows": 3072, "cols": 4096}),
    Sized("transpose.cu", "transpose", {"rows": 2816, "cols": 2816}),
    Sized("argmax.cu", "argmax", {"rows": 4096, "cols": 50257}),
    Sized("cosine.cu", "cosine", {"pairs": 262144, "dims": 384}),
    Sized("lennard_jones.cu", "lj_forces", {"n": 16384}),
    Sized("conv2d.cu", "conv2d", {"images": 100, "channels": 3, "height": 224, "width": 224, "filters": 96}),
    Sized("histogram.cu", "histogram", {"n": 1 << 26}),
    Sized("matmul.cu", "matmul", {"m": 1440, "n": 4096, "k": 4096}),
)


def main() -> None:
    card = open_gpu()
    if card is None:
        print(f"equal: no card ({why_no_gpu()})")
        return
    held = shards.opened("equal", _RESTS_ON)
    begun = time.perf_counter()
    setting = Setting(card, find_target(card.name), Options(arch=card.arch))
    fill(held, card, setting, KERNELS, EACH)
    card.close()
    print(f"identical code against itself on {card.name}, {time.perf_counter() - begun:.0f} s in this run")
    faster = report(held.rows.values(), EACH * len(KERNELS))
    if faster:
        sys.exit(f"equal: {faster} timings of identical code were called faster")


def fill(held: shards.Shard, timer: Timer, setting: Setting, kernels: Iterable[Sized], each: int) -> None:
    """Time what is not in ``held`` yet, round by round, until its time is over."""
    benches: dict[str, Trial] = {}
    for number in range(each):
        depth, effort = (FULL, CONFIRM) if number % FULL_EVERY == FULL_EVERY - 1 else ("screen", SCREEN)
        for sized in kernels:
            key = f"{sized.kernel} {number}"
            if key in held.rows or held.over:
                continue
            if sized.kernel not in benches:
                benches[sized.kernel] = against_itself(sized, setting)
            begun = time.perf_counter()
            found = measure(benches[sized.kernel], timer, sized.sizes, effort, then=2)  # for the next one
            row = _row(found) if isinstance(found, Measurement) else {"state": "unmeasured", "why": found.reason}
            took = round(time.perf_counter() - begun, 2)
            held.add(key, {"kernel": sized.kernel, "depth": depth, "took": took, **row})


def against_itself(sized: Sized, setting: Setting) -> Trial:
    """What the timing gate sees of a rewrite that changes nothing; nothing else is asked of the kernel."""
    fixture = opened(sized.file, sized.kernel)
    built = build(fixture.program, setting.options)
    assert isinstance(built, Build), built
    prepared = Prepared(
        fixture.program,
        fixture.workload,
        setting,
        Bench(fixture.program, fixture.workload, setting, built),
        Contract("not asked for", False, {}, {}, {}, True, frozenset(), {}, False),
        SelfTest((), (), (), (), ()),
        "not asked for",
        (),
        traits(built.ptx),
        "not asked for",
    )
    return Trial(prepared, Program(fixture.document, fixture.workload.plan, "itself"), False, "plan", build=built)


def _row(found: Measurement) -> Row:
    return {
        "state": found.state,
        "us": found.original_seconds * 1e6,
        "ratio": found.cold.ratio,
        "low": found.cold.low,
        "high": found.cold.high,
        "control": [found.control.low, found.control.high],
        "blocks": sum(len(race.cold) for race in found.races),
        "sets": min(race.sets for race in found.races),
        "clocks": [race.clocks for race in found.races],
        "notes": found.notes,
    }


def report(rows: Iterable[Row], wanted: int) -> int:
    """Print it by kernel and by depth; the number of those called faster."""
    found = list(rows)
    print(
        f"  {'kernel':16} {'us':>10} {'sets':>4} {'timings':>7} faster slower {'none':>6} {'half-width':>10} {'s':>6}"
    )
    for kernel in dict.fromkeys(row["kernel"] for row in found):
        _line(kernel, [row for row in found if row["kernel"] == kernel])
    for depth in ("screen", FULL):
        _line(depth, [row for row in found if row["depth"] == depth])
    _line("all", found)
    print(f"  {len(found)} of {wanted} timings made; wanted: none called faster, half-width under {WANTED:.0%}")
    for row in found:
        if row["state"] != "same":
            print(f"  {row['kernel']}, {row['depth']}: {row['state']} {row.get('why') or (row['low'], row['high'])}")
    return sum(row["state"] == "faster" for row in found)


def _line(name: str, rows: list[Row]) -> None:
    timed = [row for row in rows if row["state"] != "unmeasured"]
    if not timed:
        print(f"  {name:16} nothing timed ({len(rows)} tried)")
        return
    one = len({row["kernel"] for row in timed}) == 1
    count = {state: sum(row["state"] == state for row in rows) for state in ("faster", "slower", "unmeasured")}
    half = statistics.median((row["high"] - row["low"]) / 2 for row in timed)
    us = f"{statistics.median(row['us'] for row in timed):10.2f}" if one else " " * 10
    sets = f"{min(row['sets'] for row in timed):4}" if one else " " * 4
    print(
        f"  {name:16} {us} {sets} {len(rows):7} {count['faster']:6} {count['slower']:6} {count['unmeasured']:6} "
        f"{half:10.2%} {sum(row['took'] for row in rows):6.1f}"
    )


if __name__ == "__main__":
    main()
