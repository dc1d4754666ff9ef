"""Floats added in shared memory: the lanes that meet at one address go one after the other, whole numbers do not."""

import pytest
from attrs import evolve

from agent.evaluation.estimates.traffic import load
from agent.execution.device import InstructionCounters, LineCounters
from tests.evaluation.test_estimate import BLOCKS, BUFFERS, COPY_LINE, H200, SMALL, counters


@pytest.mark.parametrize(
    ("opcode", "rounds"),
    [
        ("atom.shared.add.f32", 32), ("red.relaxed.cta.shared::cta.add.f64", 32), ("atom.shared.add.u32", 0),
        ("atom.global.add.f32", 0), ("ld.shared.f32", 0),
    ],
)  # fmt: skip
def test_each_lane_that_meets_others_waits_for_them(opcode: str, rounds: int) -> None:
    # 8 warps a block, each with 32 passes at one address; 30 clocks to read and 30 to swap
    one = InstructionCounters(f"{opcode} %f1, [%r1], %f2;", "", 5, "atomic", 4, LineCounters(wavefronts=8 * 32))
    found = load(
        evolve(counters({5: COPY_LINE}, {"x": 32}, {"y": 32}), instructions=(one,)), BLOCKS, BUFFERS, SMALL, 0, H200
    )
    assert found.terms["latency"] == pytest.approx((7 * 3 + 600 + rounds * 60) * 249 / 1.98e9, rel=1e-12)
