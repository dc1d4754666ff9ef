"""Caps hold before a question is asked, and what was spent is added up."""

import pytest

from agent.models.budget import Budget, Caps, Metered, Price
from agent.models.model import Limits, Message, ModelError, Reply, Usage
from agent.models.replay import Answer, Scripted

QUESTION = (Message("user", "x" * 300),)


def metered(budget: Budget, *answers: Answer) -> Metered:
    return Metered(Scripted(iter(answers)), budget)


def paid(sent: int, received: int) -> Reply:
    return Reply("ok", "stop", Usage(sent, received, 1))


def test_spending_adds_up_and_is_said() -> None:
    meter = metered(Budget(Caps(), Price(0.5, 2.0)), paid(1000, 100), paid(3000, 400))
    for _ in range(2):
        meter.ask(QUESTION, None, Limits())
    # 4000 tokens at $0.50 and 500 at $2.00 a million
    assert meter.dollars == pytest.approx(0.002 + 0.001)
    assert meter.used == Usage(4000, 500, 2)


def test_failed_questions_cost_too() -> None:
    meter = metered(Budget(), ModelError("cut off", "broke off", Usage(50, 20, 5, exact=False)))
    with pytest.raises(ModelError):
        meter.ask(QUESTION, None, Limits())
    assert meter.used == Usage(50, 20, 5, exact=False)


def test_tokens_run_out_before_the_question_is_asked() -> None:
    meter = metered(Budget(Caps(tokens=2000)), paid(1000, 800), paid(1, 1))
    meter.ask(QUESTION, None, Limits())
    with pytest.raises(ModelError, match="2000 tokens") as caught:
        meter.ask(QUESTION, None, Limits())
    assert caught.value.kind == "caps" and caught.value.final
    assert meter.used.requests == 1


def test_an_answer_may_take_what_is_left() -> None:
    seen: list[Limits] = []

    class Watching(Scripted):
        def ask(self, messages, schema, limits):  # type: ignore[no-untyped-def]
            seen.append(limits)
            return super().ask(messages, schema, limits)

    meter = Metered(Watching(iter([paid(1, 1)] * 9)), Budget(Caps(tokens=1500, requests=5)))
    meter.ask(QUESTION, None, Limits(tokens=4096, requests=9))
    assert 1300 <= seen[0].tokens < 1500
    assert seen[0].requests == 5


def test_money_caps_what_may_be_answered() -> None:
    # 104 tokens of question at $10 a million leave less than a cent; 2000 tokens of answer cost two cents at $10.
    meter = metered(Budget(Caps(dollars=0.02), Price(10.0, 10.0)), paid(104, 1800), paid(1, 1))
    meter.ask(QUESTION, None, Limits())
    with pytest.raises(ModelError, match=r"\$0.02"):
        meter.ask(QUESTION, None, Limits())


def test_without_a_price_there_is_no_cap_on_money_and_it_says_so() -> None:
    budget = Budget(Caps(tokens=5000, dollars=1.0))
    assert "cannot be kept" in budget.note("tiny") and "5000 tokens" in budget.note("tiny")
    assert Budget(Caps(dollars=1.0), Price(1, 1)).note("tiny") == ""
    assert Budget().note("tiny") == ""
    meter = metered(budget, paid(10, 10))
    meter.ask(QUESTION, None, Limits())
    assert meter.dollars is None


def test_requests_and_waiting_time_run_out() -> None:
    meter = metered(Budget(Caps(requests=1)), paid(1, 1), paid(1, 1))
    meter.ask(QUESTION, None, Limits())
    with pytest.raises(ModelError, match="1 requests"):
        meter.ask(QUESTION, None, Limits())
    waiting = metered(Budget(Caps(seconds=10.0)), paid(1, 1))
    waiting.waited = 10.0
    with pytest.raises(ModelError, match="10 s"):
        waiting.ask(QUESTION, None, Limits())


def test_cancelling_reaches_the_model() -> None:
    meter = Metered(Scripted(iter(["x"])), Budget(), cancelled=lambda: True)
    with pytest.raises(ModelError) as caught:
        meter.ask(QUESTION, None, Limits())
    assert caught.value.kind == "cancelled"


def test_after_a_failure_for_good_nothing_is_asked() -> None:
    meter = metered(Budget(), ModelError("unauthorised", "the key is refused"), paid(1, 1))
    for _ in range(2):
        with pytest.raises(ModelError, match="the key is refused"):
            meter.ask(QUESTION, None, Limits())
    assert len(meter.model.asked) == 1  # type: ignore[attr-defined]
    busy = metered(Budget(), ModelError("busy", "try later"), paid(1, 1))
    with pytest.raises(ModelError):
        busy.ask(QUESTION, None, Limits())
    assert busy.ask(QUESTION, None, Limits()).text == "ok"
