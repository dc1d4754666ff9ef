"""What a job makes of a language model: stages, time, and what is said of it at the end."""

import time
from collections.abc import Sequence

import pytest
from attrs import define, field

from agent.ideas.adviser import Adviser
from agent.ideas.idea import Idea, Scope
from agent.models.budget import Budget, Caps, Metered
from agent.models.model import Limits, Message, ModelError, Reply, Schema
from agent.search import events
from cuda_lsp.worker.advising import Announced, Heard, credited, origin
from cuda_lsp.worker.messages import Message as Told
from cuda_lsp.worker.messages import Staged

QUESTION = [Message("user", "how?")]


@define(eq=False)
class Model:
    """Answers, or fails with what it is given."""

    fault: ModelError | None = None
    asked: list[Limits] = field(factory=list)
    name: str = "tiny"
    place: str = "nowhere"

    def ask(self, messages: Sequence[Message], schema: Schema | None, limits: Limits) -> Reply:
        self.asked.append(limits)
        if self.fault is not None:
            raise self.fault
        return Reply("{}")


def idea(source: str) -> Idea:
    return Idea(f"{source}-one", "one", "why", (), "", Scope.DROP_IN, source, 1)


def test_each_question_is_a_stage_and_none_is_waited_for_beyond_the_job_s_own_time() -> None:
    told: list[Told] = []
    model = Model()
    asked = Announced(model, told.append, time.monotonic() + 100.0)
    asked.ask(QUESTION, Schema("ideas", {}), Limits(seconds=1e6))
    asked.ask(QUESTION, Schema("rewrite", {}), Limits(seconds=5.0))
    assert told == [Staged("asking tiny for ideas"), Staged("asking tiny for code")]
    assert model.asked[0].seconds <= 100.0 and model.asked[1].seconds == 5.0
    late = Announced(model, told.append, time.monotonic() - 1.0)
    with pytest.raises(ModelError, match="the time is over") as ended:
        late.ask(QUESTION, None, Limits())
    assert ended.value.kind == "caps" and len(model.asked) == 2 and len(told) == 2


def test_what_the_caps_do_not_cover_is_no_stage() -> None:
    told: list[Told] = []
    meter = Metered(Announced(Model(), told.append, time.monotonic() + 100.0), Budget(Caps(tokens=10)))
    with pytest.raises(ModelError, match="do not cover"):
        meter.ask(QUESTION, None, Limits())
    assert told == []


@pytest.mark.parametrize(
    ("fault", "gave", "own", "said"),
    [
        (None, True, False, ""),
        (None, False, False, "its list of ideas is empty"),
        (ModelError("unauthorised", "refused the key"), False, False, "refused the key"),
        (ModelError("connection", "went away"), True, False, "went away"),
        (ModelError("caps", "used up"), True, False, ""),
        (ModelError("connection", "went away"), False, True, ""),
    ],
)
def test_what_is_said_of_a_model_at_the_end(fault: ModelError | None, gave: bool, own: bool, said: str) -> None:
    """An idea of the user's own says itself what came of it."""
    passed: list[Told] = []
    meter = Metered(Model(fault), Budget())
    heard = Heard(passed.append, Adviser(meter, ("mine",) if own else ()))
    if fault is not None:
        with pytest.raises(ModelError):
            meter.ask(QUESTION, None, Limits())
    heard(events.IdeasFound("0", (idea("catalog"), *([idea("model")] if gave else [])), ()))
    heard(events.IdeaDropped("ideas of tiny", str(fault) if fault else "its list of ideas is empty"))
    assert heard.trouble == (f"tiny could not help{' any more' if gave else ''}: {said}" if said else "")
    assert len(passed) == 2 and heard.lines == [f"ideas of tiny: {fault or 'its list of ideas is empty'}"]


def test_nobody_asked_is_nobody_s_fault() -> None:
    assert Heard(lambda message: None, None).trouble == ""
    assert Heard(lambda message: None, Adviser(None, ("mine",))).trouble == ""


def test_whose_idea_it_is() -> None:
    adviser = Adviser(Model())
    known, new, own = idea("catalog"), idea("model"), idea("user")
    assert origin((known,), adviser) == "" and origin((new,), None) == ""
    assert origin((known, new), adviser) == "idea from tiny"
    assert origin((own, known), adviser) == "your idea, code from tiny"
    assert origin((own,), adviser, suggested=True) == "idea from tiny"
    assert credited("one", (known,), adviser) == "one"
    assert credited("one", (new,), adviser) == "one (idea from tiny)"
