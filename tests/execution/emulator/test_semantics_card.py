"""The table of semantics against what a card computes: recorded from an NVIDIA H200, and live where there is one."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.execution.emulator.semantics_cases import Case, cases
from tests.execution.emulator.semantics_inputs import Bits, inputs
from tests.execution.emulator.semantics_record import key, on_card
from tests.execution.emulator.semantics_running import emulated

RECORDED = Path(__file__).with_name("semantics_h200.npz")
CASES = cases()

# what PTX leaves to the card, with how far apart the two may be: a share of the value, or an amount
APPROXIMATE = {
    "ex2.approx.f32": (2**-22, 0.0),
    "lg2.approx.f32": (2**-21, 2**-21),
    "sin.approx.f32": (0.0, 2**-20.5),
    "cos.approx.f32": (0.0, 2**-20.5),
    "tanh.approx.f32": (2**-10, 0.0),
    "rcp.approx.f32": (2**-22, 0.0),
    "rsqrt.approx.f32": (2**-22, 0.0),
    "sqrt.approx.f32": (2**-22, 0.0),
    "div.approx.f32": (2**-21, 2**-149),
    "div.full.f32": (2**-20, 2**-149),
    "rcp.approx.f64": (2**-19, 0.0),
    "rsqrt.approx.f64": (2**-19, 0.0),
    "ex2.approx.f16": (2**-9.9, 2**-24),
    "tanh.approx.f16": (2**-9.9, 0.0),
    "ex2.approx.bf16": (2**-7, 0.0),
    "tanh.approx.bf16": (2**-7, 0.0),
}


@lru_cache(maxsize=1)
def recorded() -> dict[str, Any]:
    with np.load(RECORDED) as file:
        return {name: file[name] for name in file.files}


def values(bits: Bits, kind: str) -> list[Any]:
    """The numbers that the patterns stand for, one array for each half of a packed type."""
    if kind.endswith("x2"):
        part = kind.removesuffix("x2")
        return [*values(bits & np.uint64(0xFFFF), part), *values(bits >> np.uint64(16), part)]
    if kind == "bf16":
        return [(bits << np.uint64(16)).astype(np.uint32).view(np.float32).astype(np.float64)]
    size = int(kind[1:]) // 8
    return [bits.astype(f"u{size}").view(f"f{size}").astype(np.float64)]


def opcode(case: Case) -> str:
    """Without the modifiers and the packing that do not matter for accuracy."""
    return case.text.split()[0].replace(".ftz", "").removesuffix("x2")


def compare(case: Case, rows: Bits, card: Bits) -> None:
    agree(case, rows, emulated(case, rows), card)


def agree(case: Case, rows: Bits, found: Bits, card: Bits) -> None:
    """Equal, or as near as PTX asks where it leaves the last bits to the card."""
    if opcode(case) not in APPROXIMATE:
        wrong = np.flatnonzero((found != card).any(axis=0))
        lanes = [([hex(x) for x in rows[:, lane]], hex(found[0, lane]), hex(card[0, lane])) for lane in wrong[:3]]
        assert not len(wrong), f"{case.text} {len(wrong)} of {rows.shape[1]} lanes: {lanes}"
        return
    share, amount = APPROXIMATE[opcode(case)]
    for ours, theirs in zip(values(found[0], case.results[0]), values(card[0], case.results[0]), strict=True):
        finite = np.isfinite(theirs)
        assert np.array_equal(ours[~finite], theirs[~finite], equal_nan=True), case.text
        distance, size = np.abs(ours[finite] - theirs[finite]), np.abs(theirs[finite])
        assert (distance <= np.maximum(size * share, amount)).all(), (case.text, distance.max())


def test_recording_holds_every_case() -> None:
    missing = [case.text for case in CASES if case.text not in recorded()]
    assert not missing


@pytest.mark.parametrize("case", CASES, ids=[case.text for case in CASES])
def test_equals_the_recorded_card(case: Case) -> None:
    compare(case, recorded()[key(case.sources)], recorded()[case.text].astype(np.uint64))


@pytest.mark.gpu
def test_equals_the_card_in_this_machine() -> None:
    cupy = pytest.importorskip("cupy")
    if not cupy.is_available():
        pytest.skip("no NVIDIA GPU here")
    for case in CASES:
        rows = inputs(case.sources)
        compare(case, rows, on_card(case, rows))
