"""Where the time of a verdict goes on the card: prepare, screen and full of kernels against themselves, gate by gate.

``python -m tests.benchmarks timing_verdicts``; ``VERDICTS=softmax,matvec`` in the environment picks fixtures,
``VERDICTS_PICTURE=FILE.svg`` draws it."""

import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Failure, prepare
from agent.evaluation.setting import Setting
from agent.execution.compiler import Options
from agent.execution.gpu import Gpu, open_gpu, why_no_gpu
from agent.execution.targets import find_target
from agent.workload.program import Program
from tests.fixtures.cases import CASES, Case
from tests.fixtures.running import opened
from tests.pictures import bars

Bars = list[tuple[str, Mapping[str, float]]]


def main() -> None:
    card = open_gpu()
    if card is None:
        print(f"timing_verdicts: no card ({why_no_gpu()})")
        return
    card.figures()
    chosen = os.environ.get("VERDICTS", "").split(",")
    print("a verdict on the card, seconds (a kernel against itself, at its declared workload)")
    drawn: Bars = []
    cases = [case for case in CASES if chosen == [""] or case.name in chosen]
    rows = [row for case in cases if (row := _row(card, case, drawn)) is not None]
    if rows:
        medians = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"  {'median':18} prepare {medians[0]:6.1f}   screen {medians[1]:6.1f}   full {medians[2]:6.1f}")
    if picture := os.environ.get("VERDICTS_PICTURE"):
        Path(picture).write_text(
            bars(f"Where the time of a verdict goes: {card.name}, each fixture against itself", drawn, "s"),
            encoding="utf-8",
        )
    card.close()


def _row(card: Gpu, case: Case, drawn: Bars) -> tuple[float, float, float] | None:
    fixture = opened(case.file, case.kernel)
    setting = Setting(card, find_target(card.name), Options(arch=card.arch))
    stages: list[tuple[str, float]] = []
    start = time.perf_counter()
    prepared = prepare(
        fixture.program, fixture.workload, setting, lambda stage: stages.append((stage, time.perf_counter()))
    )
    ended = time.perf_counter()
    if isinstance(prepared, Failure):
        print(f"  {case.name:18} {prepared.message}")
        return None
    took = [later - earlier for (_, earlier), later in zip(stages, [*(t for _, t in stages[1:]), ended], strict=True)]
    print(
        f"  {case.name:18} prepare {ended - start:6.1f}   "
        + ", ".join(f"{name} {seconds:.1f}" for (name, _), seconds in zip(stages, took, strict=True))
    )
    found = [ended - start]
    same = Program(fixture.document, fixture.workload.plan, "itself")
    for depth in ("screen", "full"):
        start = time.perf_counter()
        verdict = judge(evolve(prepared, setting=evolve(setting, depth=depth)), same)
        found.append(time.perf_counter() - start)
        spent = {gate.gate: gate.seconds for gate in verdict.gates}
        drawn.append((f"{case.name} {depth}", {**spent, "the rest": max(0.0, found[-1] - sum(spent.values()))}))
        gates = ", ".join(f"{gate.gate} {gate.seconds:.1f}" for gate in verdict.gates if gate.seconds >= 0.05)
        speed = verdict.speed
        print(
            f"  {'':18} {depth:7} {found[-1]:6.1f}   {verdict.correctness.state}, {speed.state} {speed.ratio}; {gates}"
        )
        if depth == "full":
            print(f"  {'':18} {speed}")
            print(f"  {'':18} {[gate.reason for gate in verdict.gates[-3:]]}")
            print(f"  {'':18} {verdict.evidence.not_checked}")
    return found[0], found[1], found[2]


if __name__ == "__main__":
    main()
