"""Where the time of a verdict goes, in the emulator: the original prepared, a screen and a full verdict of itself."""

import statistics
import time

from attrs import evolve

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Failure, prepare
from agent.evaluation.setting import Setting
from agent.execution.compiler import Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.workload.program import Program
from tests.fixtures.cases import CASES, Case
from tests.fixtures.running import opened


def main() -> None:
    print("a verdict in the emulator, seconds (a kernel against itself, at its declared workload)")
    print(f"  {'fixture':20} {'prepare':>8} {'screen':>8} {'full':>8}")
    rows = [row for case in CASES if (row := _row(case)) is not None]
    medians = [statistics.median(column) for column in zip(*rows, strict=True)]
    print(f"  {'median':20} {medians[0]:8.1f} {medians[1]:8.1f} {medians[2]:8.1f}")


def _row(case: Case) -> tuple[float, float, float] | None:
    fixture = opened(case.file, case.kernel)
    setting = Setting(Emulator(), find_target("H200"), Options(arch="sm_90"))
    start = time.perf_counter()
    prepared = prepare(fixture.program, fixture.workload, setting)
    first = time.perf_counter() - start
    if isinstance(prepared, Failure):
        print(f"  {case.name:20} {prepared.message}")
        return None
    seconds, states = [], []
    same = Program(fixture.document, fixture.workload.plan, "itself")
    for depth in ("screen", "full"):
        start = time.perf_counter()
        verdict = judge(evolve(prepared, setting=evolve(setting, depth=depth)), same)
        seconds.append(time.perf_counter() - start)
        states.append(verdict.correctness.state)
    print(f"  {case.name:20} {first:8.1f} {seconds[0]:8.1f} {seconds[1]:8.1f}   {', '.join(states)}")
    return first, seconds[0], seconds[1]


if __name__ == "__main__":
    main()
