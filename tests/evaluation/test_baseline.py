"""PyTorch's own time beside a measured rewrite: shown, and refusing nothing. The clock is the test's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.verdict import Verdict
from cuda_lsp.terminal.render import beside_text
from tests.evaluation.kernels import original, rewrite, setting
from tests.evaluation.test_timing import OTHER, TEXT, Clock

REFERRED = TEXT.replace("//   launch", "//   reference refs.py:scale\n//   launch")


@define
class Card(Clock):
    alone_with: list[object] = field(factory=list)

    def exclusively(self, action: Callable[[], Any], cancelled: Callable[[], bool]) -> Any:
        self.alone_with.append(action)
        return action()


@define
class Function:
    """Twice its input; its times are given."""

    eager: tuple[float, ...] | str = (3e-3, 1e-3, 2e-3)
    compiled: tuple[float, ...] | str = (5e-4, 4e-4, 6e-4)
    asked: list[dict[str, tuple[str, bytes]]] = field(factory=list)

    def answer(self, tensors, numbers, outputs, cancelled, seconds):  # type: ignore[no-untyped-def]
        return {"y": 2.0 * tensors["x"]}

    def times(self, tensors, numbers, compiled, flush, cancelled):  # type: ignore[no-untyped-def]
        assert numbers["n"] == 20000 and flush == 1 << 20
        self.asked.append(tensors)
        return self.compiled if compiled else self.eager


def verdicts(card: Card, function: Function | None, depth: str = "full", times: int = 1) -> list[Verdict]:
    program, workload = original(REFERRED)
    prepared = prepare(program, workload, setting(device=card, depth=depth, reference=function))
    assert isinstance(prepared, Prepared)
    return [judge(prepared, rewrite(OTHER, program.plan)) for _ in range(times)]


def test_medians_are_shown_and_taken_once() -> None:
    card, function = Card(), Function()
    for found in verdicts(card, function, times=2):
        assert [(one.name, one.seconds) for one in found.evidence.baselines] == [
            ("refs.py:scale eager", 2e-3),
            ("refs.py:scale torch.compile", 5e-4),
        ]
        assert found.correctness.state == "right" and found.speed.state == "faster"
    assert len(function.asked) == len(card.alone_with) == 2
    dtype, data = function.asked[0]["x"]
    assert dtype == "<f4" and len(np.frombuffer(data, dtype)) == 20000


def test_what_is_missing_is_listed() -> None:
    (found,) = verdicts(Card(), Function(compiled="refs.py:scale: no compiler"))
    assert [one.name for one in found.evidence.baselines] == ["refs.py:scale eager"]
    assert "the time of PyTorch: torch.compile: refs.py:scale: no compiler" in found.evidence.not_checked


@pytest.mark.parametrize(("function", "depth"), [(None, "full"), (Function(), "screen")])
def test_not_in_a_screen_and_not_unasked(function: Function | None, depth: str) -> None:
    (found,) = verdicts(Card(), function, depth)
    assert found.evidence.baselines == ()
    assert {gate.gate: gate.outcome for gate in found.gates}["baseline"] == "not applicable"


def test_a_reader_sees_it() -> None:
    (found,) = verdicts(Card(), Function())
    assert beside_text(found.evidence) == "refs.py:scale eager 2 ms, refs.py:scale torch.compile 500 us"
