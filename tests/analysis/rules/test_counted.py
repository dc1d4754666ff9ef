"""What counts say of findings: figures by hand."""

import pytest

from agent.analysis.rules.counted import DECIDERS, Counted, Executed, decide
from agent.analysis.rules.registry import by_id

LOAD = Executed(kind="load", opcode="ld.global.f32", warps=10, lanes=320, requests=10, sectors=40, ideal_sectors=40)
STRIDED = Executed(kind="load", opcode="ld.global.f32", warps=10, lanes=320, requests=10, sectors=320, ideal_sectors=40)
ALONE = Executed(kind="load", opcode="ld.global.f32", warps=10, lanes=10, requests=10, sectors=10, ideal_sectors=10)
SPILL = Executed(opcode="ld.local.u32", warps=10, lanes=320, local=10)
COLUMN = Executed(kind="shared", opcode="ld.shared.f32", warps=4, lanes=128, shared=4, passes=128, ideal_passes=4)
ROW = Executed(kind="shared", opcode="ld.shared.f32", warps=4, lanes=128, shared=4, passes=4, ideal_passes=4)
DOUBLE = Executed(opcode="mul.rn.f64", warps=1, lanes=32)
PLAIN = Executed(opcode="mul.rn.f32", warps=1, lanes=32)

CASES = [
    ("M1", Counted((LOAD, STRIDED)), True),
    ("M1", Counted((LOAD,)), False),
    ("M1", Counted((ALONE,)), None),  # one lane says nothing of its neighbours
    ("M1", Counted(()), None),
    ("M2", Counted((Executed(warps=1, lanes=32, sectors=6, ideal_sectors=4),)), None),
    ("S1", Counted((COLUMN,)), True),
    ("S2", Counted((ROW,)), False),
    ("R1", Counted((SPILL,), (SPILL,)), True),
    ("R1", Counted((), (LOAD,)), False),
    ("R1", Counted((), ()), None),
    ("A1", Counted((DOUBLE,), (DOUBLE,)), True),
    ("A1", Counted((PLAIN,), (PLAIN,)), False),
    ("A1", Counted((PLAIN,), (PLAIN, DOUBLE)), None),
    ("A6", Counted((Executed(opcode="rem.s32", warps=1),)), True),
    ("A6", Counted((Executed(opcode="shr.u32", warps=1),)), False),
    ("L1", Counted(threads=100), True),
    ("L1", Counted(threads=128), False),
    ("L1", Counted(), None),
    ("M10", Counted((Executed(kind="store", warps=64, lanes=2048),), warps=4), True),
    ("M10", Counted((Executed(kind="store", warps=4, lanes=128),), warps=4), False),
    ("M6", Counted((), (LOAD,), promised=5), True),
    ("M6", Counted((), (LOAD,), promised=10), None),
    ("M10", Counted((Executed(kind="store", warps=64), Executed(kind="store", warps=4)), warps=4), True),  # unrolled
    ("M10", Counted((Executed(kind="store", warps=4), Executed(kind="store", warps=4)), warps=4), None),
    ("M10", Counted((Executed(kind="store"),), warps=4), None),  # no warp came there
    ("S3", Counted((), (Executed(opcode="st.shared.f32"), LOAD)), True),
    ("S3", Counted((), (Executed(opcode="ld.shared.f32"), Executed(opcode="mov.u32"))), True),
    ("S3", Counted((), (Executed(opcode="st.shared.f32"), Executed(opcode="ld.shared.f32"))), None),
    ("S3", Counted((), (Executed(opcode="st.shared.f32"), Executed(opcode="ld.f32"))), None),  # anywhere
    ("S3", Counted((), (Executed(opcode="st.shared.f32"), Executed(opcode="cp.async.ca.shared.global"))), None),
    ("S6", Counted((), (ROW,), dynamic=False), True),
    ("S6", Counted((), (LOAD,), dynamic=True), False),
    ("S6", Counted((), (LOAD,)), None),
    ("S8", Counted(raced=False), True),
    ("S8", Counted(raced=True), False),
    ("Y5", Counted(), None),
    ("A4", Counted((PLAIN,) * 100), True),
    ("A4", Counted((PLAIN,) * 3), False),
    ("A4", Counted((PLAIN,) * 40), None),
    ("A4", Counted((), (PLAIN,)), None),
    ("A5", Counted((PLAIN,), (PLAIN, LOAD)), False),  # the compiler knows the root
    ("A5", Counted((PLAIN,), (PLAIN, Executed(opcode="sqrt.rn.f32"))), None),
    ("L4", Counted(faults=frozenset(("out-of-bounds write",))), True),
    ("L14", Counted(declared="gone"), True),
    ("L14", Counted(declared="deprecated"), True),
    ("L14", Counted(declared="declared"), False),
    ("Y3", Counted(faults=frozenset(("shared-memory race",))), True),
    ("Y3", Counted((LOAD,)), None),  # that no run raced proves nothing
    ("W1", Counted(problem='identifier "__shfl_down" is undefined'), True),
    ("W1", Counted(problem='identifier "TILE" is undefined'), None),
    ("L14", Counted((STRIDED,)), None),
    ("L9", Counted((STRIDED,)), None),
]


@pytest.mark.parametrize(("rule", "counted", "expected"), CASES)
def test_what_counts_say(rule: str, counted: Counted, expected: bool | None) -> None:
    assert decide(rule, counted) is expected


def test_the_table_names_rules_that_there_are() -> None:
    assert set(DECIDERS) <= set(by_id())
