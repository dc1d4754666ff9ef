"""For each gate one attack that passes when that gate alone is switched off. Timing, confirmation and floor need a card
(or a simulated one): ``tests/evaluation/test_timing.py`` and ``tests/gpu/test_timing.py`` have theirs."""

import pytest
from attrs import evolve

from agent.evaluation.gates import gates
from agent.evaluation.sizes import bound_at
from agent.evaluation.trial import REGISTERED, Ruling, Trial, passed
from agent.execution.compiler import build
from agent.execution.compiler.result import Build
from tests.attacks.entry import verdict
from tests.attacks.tables import ATTACKS

ONLY = {
    "source": "a drop-in rewrite that changes the launch",
    "compile": "a block larger than the kernel promises",
    "instructions": "a slow first turn that sleeps",
    "self-test": "nothing, where the workload never shows an output",
    "correctness": "one size that nobody declared is wrong",
    "special values": "a maximum that loses a NaN, where the user refuses that",
    "numerics": "tf32 inside a product",
    "memory": "the barrier before a tree is left out",
}


def _off(trial: Trial) -> Ruling:
    """A gate that looks at nothing; what later gates need from it (a bound plan, a build) is made without a check."""
    bound = trial.bound or bound_at(trial.prepared.workload, trial.candidate)
    built = trial.build or build(trial.candidate, trial.prepared.setting.options)
    assert isinstance(built, Build), built
    return passed(evolve(trial, bound=bound, build=built), "switched off")


@pytest.mark.parametrize("name", ONLY)
def test_without_its_gate_the_attack_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attack = next(entry for entry in ATTACKS if entry.name == ONLY[name])
    assert attack.gate == name
    assert verdict(attack).gates[-1].outcome in ("failed", "undecided")
    monkeypatch.setitem(REGISTERED, name, evolve(REGISTERED[name], run=_off))
    found = verdict(attack)
    assert found.correctness.state == "right", found.gates[-1]
    assert not [gate for gate in found.gates if gate.outcome in ("failed", "undecided")]


def test_every_gate_that_needs_no_card_has_one() -> None:
    assert {gate.name for gate in gates()} == {*ONLY, "sanitizer", "timing", "confirmation", "baseline", "floor"}
