"""Races on shared memory by table: planted ones at their lines, and their race-free twins without a word."""

import numpy as np
import pytest

from agent.execution.device import Answer
from tests.execution.emulator.building import build, launch, run
from tests.execution.emulator.global_races import EQUAL, Case
from tests.execution.emulator.shared_races import CASES, RACE

CHECKS = frozenset({"races", "barriers"})
HEAD = 'extern "C" __global__ void k(int* a, int* b) { __shared__ int s[256], w[32]; int t = threadIdx.x; '
HEAD += "a += blockIdx.x * 256; b += blockIdx.x * 256;\n"


def execute(case: Case, *options: str) -> Answer:
    buffers = {"a": np.arange(1024, dtype=np.int32), "b": np.zeros(1024, np.int32)}
    built = build(HEAD + case.body + "\n}", *options)
    return run(built, launch("k", case.blocks, case.threads, *buffers), buffers, checks=CHECKS)[0]


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_verdict(case: Case, options: tuple[str, ...]) -> None:
    answer = execute(case, *options)
    assert all(fault.kind == "shared-memory race" for fault in answer.faults), answer.faults
    found = {EQUAL if fault.benign else RACE for fault in answer.faults}
    assert found - {EQUAL} == case.found - {EQUAL} and found >= case.found, (case.why, answer)
    assert answer.status == ("fault" if RACE in case.found else "ok"), answer
    if case.lines:
        pairs = {(fault.where.line, fault.other.line) for fault in answer.faults if fault.other and not fault.benign}
        assert case.lines in {tuple(sorted(pair)) for pair in pairs}, (case.why, pairs)
