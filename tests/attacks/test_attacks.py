"""The red team: every attack is refused, by the gate that is there for it and for its reason; every control passes."""

from collections import Counter

import pytest

from tests.attacks.entry import Attack, Control, verdict
from tests.attacks.tables import ATTACKS, CONTROLS


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_refused_for_its_reason(attack: Attack) -> None:
    found = verdict(attack)
    last = found.gates[-1]
    assert (found.correctness.state, last.gate) in attack.refusals, last
    assert attack.words in last.reason
    assert not found.shown
    assert found.speed.state == "none" or found.correctness.state == "right"


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_an_honest_control_is_accepted(control: Control) -> None:
    found = verdict(control)
    assert found.correctness.state == "right", found.gates[-1]
    assert found.precision.state in control.precision, found.gates[-1]
    assert all(gate.outcome not in ("failed", "undecided") for gate in found.gates)


def test_there_are_enough_of_both_and_each_is_told_by_its_name() -> None:
    assert len(ATTACKS) >= 40 and len(CONTROLS) >= 20
    names = Counter([*(attack.name for attack in ATTACKS), *(control.name for control in CONTROLS)])
    assert not [name for name, count in names.items() if count > 1]
