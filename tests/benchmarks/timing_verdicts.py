"""Where the time of a verdict goes on the card: prepare, screen and full of kernels against themselves, gate by gate.

``python -m tests.benchmarks timing_verdicts``; ``VERDICTS=softmax,matvec`` in the environment picks fixtures,
``VERDICTS_PICTURE=FILE.svg`` draws it. ``CUDA_LSP_SHARDS``, ``CUDA_LSP_SECONDS``: see ``tests/gpu/shards.py``."""

import os
import statistics
import time
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
from tests.gpu import shards
from tests.gpu.shards import Row
from tests.pictures import bars

FOLDERS = ("agent", "fixtures")
DEPTHS = ("screen", "full")


def main() -> None:
    card = open_gpu()
    if card is None:
        print(f"timing_verdicts: no card ({why_no_gpu()})")
        return
    card.figures()
    chosen = os.environ.get("VERDICTS", "").split(",")
    cases = [case for case in CASES if chosen == [""] or case.name in chosen]
    shard = shards.opened("timing_verdicts", FOLDERS)
    print("a verdict on the card, seconds (a kernel against itself, at its declared workload)")
    for case in cases:
        if case.name not in shard.rows and not shard.over:
            shard.add(case.name, _row(card, case))
        if case.name in shard.rows:
            print("\n".join(shard.rows[case.name]["said"]), flush=True)
    rows = {case.name: shard.rows[case.name] for case in cases if shard.rows.get(case.name, {}).get("seconds")}
    if rows:
        _report(rows, len(cases), card.name)
    card.close()


def _report(rows: dict[str, Row], count: int, card: str) -> None:
    medians = [statistics.median(column) for column in zip(*(row["seconds"] for row in rows.values()), strict=True)]
    print(f"  {'median':18} prepare {medians[0]:6.1f}   screen {medians[1]:6.1f}   full {medians[2]:6.1f}   "
          f"({len(rows)} of {count})")  # fmt: skip
    if picture := os.environ.get("VERDICTS_PICTURE"):
        drawn = [(f"{name} {depth}", spent) for name, row in rows.items() for depth, spent in row["spent"].items()]
        title = f"Where the time of a verdict goes: {card}, each fixture against itself"
        Path(picture).write_text(bars(title, drawn, "s"), encoding="utf-8")


def _row(card: Gpu, case: Case) -> Row:
    """``seconds``: of prepare, screen and full; ``spent``: seconds of each gate, by depth; ``said``: lines to print."""
    fixture = opened(case.file, case.kernel)
    setting = Setting(card, find_target(card.name), Options(arch=card.arch))
    stages: list[tuple[str, float]] = []
    start = time.perf_counter()
    prepared = prepare(
        fixture.program, fixture.workload, setting, lambda stage: stages.append((stage, time.perf_counter()))
    )
    ended = time.perf_counter()
    if isinstance(prepared, Failure):
        return {"seconds": [], "spent": {}, "said": [f"  {case.name:18} {prepared.message}"]}
    took = [later - earlier for (_, earlier), later in zip(stages, [*(t for _, t in stages[1:]), ended], strict=True)]
    parts = ", ".join(f"{name} {seconds:.1f}" for (name, _), seconds in zip(stages, took, strict=True))
    said = [f"  {case.name:18} prepare {ended - start:6.1f}   {parts}"]
    seconds, spent = [ended - start], {}
    same = Program(fixture.document, fixture.workload.plan, "itself")
    for depth in DEPTHS:
        start = time.perf_counter()
        verdict = judge(evolve(prepared, setting=evolve(setting, depth=depth)), same)
        seconds.append(time.perf_counter() - start)
        each = {gate.gate: gate.seconds for gate in verdict.gates}
        spent[depth] = {**each, "the rest": max(0.0, seconds[-1] - sum(each.values()))}
        gates = ", ".join(f"{name} {taken:.1f}" for name, taken in each.items() if taken >= 0.05)
        speed = verdict.speed
        said.append(f"  {'':18} {depth:7} {seconds[-1]:6.1f}   {verdict.correctness.state}, {speed.state} "
                    f"{speed.ratio}; {gates}")  # fmt: skip
        if depth == "full":
            said += [f"  {'':18} {one}" for one in (speed, [gate.reason for gate in verdict.gates[-3:]])]
            said.append(f"  {'':18} {verdict.evidence.not_checked}")
    return {"seconds": seconds, "spent": spent, "said": said}


if __name__ == "__main__":
    main()
