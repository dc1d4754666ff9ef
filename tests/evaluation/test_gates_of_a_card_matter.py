"""For each gate that needs a card, what passes when that gate alone is switched off. The card runs in the emulator; its
clock and its sanitizer say what the attack would make a real one say. The gates that need none have their attacks in
``tests/attacks/test_gates_matter.py``."""

from collections.abc import Callable

import pytest
from attrs import define, evolve, field

from agent.evaluation.gates import gates
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.trial import REGISTERED, passed
from agent.evaluation.verdict import Verdict
from agent.execution.device import Fault, Request, Where
from agent.execution.sanitizing import Sanitized
from cuda_lsp.terminal.render import beside_text
from tests.attacks.test_gates_matter import ONLY
from tests.evaluation.kernels import original, rewrite, setting
from tests.evaluation.test_baseline import REFERRED, Card, Function
from tests.evaluation.test_timing import OLD, OTHER

SHORT, SHORTER = (text.replace("n = 20000", "n = 2000") for text in (REFERRED, OTHER))

STRAY = Fault("out-of-bounds read", "scale", Where("test.cu", 9, (0, 0, 0), (1, 0, 0)), "1 byte past the end")


@define
class Watched(Card):
    """``reports``: what memcheck finds in the machine code of the rewrite, and not in that of the original."""

    reports: tuple[Fault, ...] = ()
    first: object = None
    asked: list[str] = field(factory=list)

    def sanitize(self, request: Request, tool: str) -> Sanitized:
        self.asked.append(tool)
        found = tool == "memcheck" and request.build is not self.first
        return Sanitized("ok", self.reports if found else ())


class Torch(Function):
    """Slower than the rewrite as it is, and faster once it is compiled."""

    def times(self, tensors, numbers, compiled, flush, cancelled):  # type: ignore[no-untyped-def]
        return self.compiled if compiled else self.eager


def lucky() -> Callable[[int, bool], tuple[float, float]]:
    """Twice as fast in the first process, and in no other."""
    seen = iter([OLD / 2])
    return lambda n, control: (OLD, OLD if control else next(seen, OLD))


def judged(card: Watched) -> Verdict:
    program, workload = original(SHORT)
    prepared = prepare(program, workload, setting(device=card, depth="full", reference=Torch()))
    assert isinstance(prepared, Prepared)
    card.first = prepared.build
    return judge(prepared, rewrite(SHORTER, program.plan))


ATTACKS: dict[str, tuple[Callable[[], Watched], Callable[[Verdict], object], object, object]] = {
    "sanitizer": (
        lambda: Watched(reports=(STRAY,)), lambda found: found.correctness.state, "wrong", "right",
    ),
    "timing": (lambda: Watched(cheats=True), lambda found: found.correctness.state, "wrong", "right"),
    "confirmation": (
        lambda: Watched(times=lucky()), lambda found: found.speed.state, "not faster", "faster",
    ),
    "baseline": (
        Watched, lambda found: beside_text(found.evidence),
        "refs.py:scale eager 2 ms, refs.py:scale torch.compile 500 us", "",
    ),
    "floor": (lambda: Watched(peak=1e7), lambda found: found.speed.state, "timing not verified", "faster"),
}  # fmt: skip
"""By gate: the card under attack, what a reader looks at, what it says with the gate and what without."""


@pytest.mark.parametrize("name", ATTACKS)
def test_without_its_gate_the_attack_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    card, seen, caught, fooled = ATTACKS[name]
    assert seen(judged(card())) == caught
    monkeypatch.setitem(REGISTERED, name, evolve(REGISTERED[name], run=lambda trial: passed(trial, "switched off")))
    found = judged(card())
    assert seen(found) == fooled
    assert found.correctness.state == "right"
    assert not [gate for gate in found.gates if gate.outcome in ("failed", "undecided")]


def test_an_honest_rewrite_passes_them_all() -> None:
    card = Watched()
    found = judged(card)
    assert (found.correctness.state, found.speed.state) == ("right", "faster")
    assert {gate.gate: gate.outcome for gate in found.gates if gate.gate in ATTACKS} == dict.fromkeys(ATTACKS, "passed")
    assert len(card.asked) == 4


def test_with_those_that_need_no_card_these_are_all_gates() -> None:
    assert {gate.name for gate in gates()} == {*ONLY, *ATTACKS}
