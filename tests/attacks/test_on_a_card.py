"""The same attacks and controls where there is a card: timed, and judged at the declared size as a whole.

With ``--junitxml=FILE`` each verdict's gates, their seconds and their words are in the file. With ``-n N --dist
loadgroup`` the rewrites of one original go to one process, which prepares it once.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from _pytest.mark import ParameterSet

from agent.evaluation.verdict import Verdict
from agent.execution.gpu import Gpu
from tests.attacks.entry import Attack, Control, prepared, verdict
from tests.attacks.tables import ATTACKS, CONTROLS

pytestmark = pytest.mark.gpu

Judge = Callable[[Attack | Control], Verdict]


TOGETHER = 10
"""Rewrites of one original that one process judges."""


def grouped(entries: Sequence[Attack] | Sequence[Control]) -> list[ParameterSet]:
    """One after the other by original, and named after it for xdist."""
    seen = Counter[str]()
    found = []
    for entry in sorted(entries, key=lambda one: one.of):
        group = f"{entry.of}-{seen[entry.of] // TOGETHER}"
        seen[entry.of] += 1
        found.append(pytest.param(entry, id=entry.name, marks=pytest.mark.xdist_group(group)))
    return found


@pytest.fixture
def judged(card: Gpu, record_property: Callable[[str, object], None]) -> Judge:
    """The judge, who writes down what each gate said."""

    def there(entry: Attack | Control) -> Verdict:
        found = verdict(entry, lambda name, special: prepared(name, special, card))
        gates = [(gate.gate, gate.outcome, round(gate.seconds, 2), gate.reason) for gate in found.gates]
        record_property("verdict", json.dumps([found.correctness.state, found.speed.state, gates]))
        return found

    return there


@pytest.mark.parametrize("attack", grouped(ATTACKS))
def test_an_attack_is_refused_for_its_reason(attack: Attack, judged: Judge) -> None:
    found = judged(attack)
    last = found.gates[-1]
    assert not found.shown, last
    known = attack.refusals_on_card
    assert [one for one in known if one[:2] == (found.correctness.state, last.gate) and one[2] in last.reason], last


@pytest.mark.parametrize("control", grouped(CONTROLS))
def test_an_honest_control_is_accepted(control: Control, judged: Judge) -> None:
    found = judged(control)
    assert found.correctness.state == "right", found.gates[-1]
    assert found.precision.state in control.precision, found.gates[-1]
    assert all(gate.outcome not in ("failed", "undecided") for gate in found.gates)


def test_the_originals_are_the_same_there(card: Gpu) -> None:
    assert not prepared("scale", card=card).contract.broken
