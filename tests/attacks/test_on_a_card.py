"""The same attacks and controls where there is a card: timed, and judged at the declared size as a whole."""

from collections.abc import Iterator

import pytest
from attrs import evolve

from agent.evaluation.prepare import Prepared, prepare
from agent.execution.gpu import Gpu, open_gpu, why_no_gpu
from tests.attacks.entry import Attack, Control, prepared, verdict
from tests.attacks.tables import ATTACKS, CONTROLS

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def card() -> Iterator[Gpu]:
    gpu = open_gpu()
    if gpu is None:
        pytest.skip(f"needs an NVIDIA GPU: {why_no_gpu()}")
    yield gpu
    gpu.close()


def _there(found: Prepared, card: Gpu) -> Prepared:
    again = prepare(found.original, found.workload, evolve(found.setting, device=card))
    assert isinstance(again, Prepared), again
    return again


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_refused(attack: Attack, card: Gpu) -> None:
    found = verdict(attack, lambda emulated: _there(emulated, card))
    assert not found.shown, found.gates[-1]
    assert found.gates[-1].outcome in ("failed", "undecided")


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_an_honest_control_is_accepted(control: Control, card: Gpu) -> None:
    found = verdict(control, lambda emulated: _there(emulated, card))
    assert found.correctness.state == "right", found.gates[-1]


def test_the_originals_are_the_same_there(card: Gpu) -> None:
    assert not _there(prepared("scale"), card).contract.broken
