"""Who is asked for ideas beside the catalogue, from a task; and what came of it, in words."""

from __future__ import annotations

import time
from collections.abc import Sequence

from attrs import define, evolve, field

from agent.ideas.adviser import Adviser
from agent.ideas.expert import SOURCE
from agent.ideas.idea import Idea
from agent.ideas.model.advise import OWN
from agent.models.budget import Metered
from agent.models.keys import Key
from agent.models.model import Limits, Message, Model, ModelError, Reply, Schema
from agent.models.openai import OpenAI
from agent.models.settings import read_model
from agent.search import events
from agent.workload.settings import SettingsError
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Opened
from cuda_lsp.terminal.render import event_lines
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Message as Told
from cuda_lsp.worker.messages import Staged
from cuda_lsp.worker.tasks import Tell


@define(eq=False)
class Announced:
    """A model whose questions are stages of the job. No answer is waited for beyond ``ends``, on the clock of
    ``time.monotonic``: the job has to end in time, whenever its last question is asked."""

    model: Model
    tell: Tell
    ends: float

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def place(self) -> str:
        return self.model.place

    def ask(self, messages: Sequence[Message], schema: Schema | None, limits: Limits) -> Reply:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise ModelError("caps", f"the time is over; {self.name} is asked no more")
        self.tell(Staged(f"asking {self.name} for {schema.name if schema and schema.name == 'ideas' else 'code'}"))
        return self.model.ask(messages, schema, evolve(limits, seconds=min(limits.seconds, left)))


def adviser_of(task: Task, opened: Opened, tell: Tell) -> Adviser | None:
    """None where nobody is asked. The caps are the project's; the server saw to the user's consent. Raises
    CommandError."""
    use = task.options.model
    own = (task.options.idea,) if task.options.idea else ()
    if use is None:
        return Adviser(None, own, task.options.rejected) if own else None
    try:
        settings = read_model(opened.settings.model, opened.settings.path)
    except SettingsError as error:
        raise CommandError(Exit.INPUT, str(error)) from error
    seconds = task.options.seconds
    asked = Announced(OpenAI(use.name, use.endpoint, Key(use.key, use.origin)), tell, time.monotonic() + seconds)
    model = Metered(asked, evolve(settings.budget, caps=evolve(settings.budget.caps, seconds=seconds)))
    # to an idea of the user's own, the model adds none
    ideas = 0 if own else settings.ideas
    return Adviser(model, own, task.options.rejected, ideas, settings.answer_tokens)


@define(eq=False)
class Heard:
    """Passes a search's events on, and remembers what its model said and cost: ``lines`` are for the log."""

    tell: Tell
    adviser: Adviser | None
    lines: list[str] = field(factory=list)
    _gave: bool = False
    _dropped: str = ""

    def __call__(self, message: Told) -> None:
        if isinstance(message, events.IdeasFound):
            self._gave = self._gave or any(idea.source != SOURCE for idea in message.ideas)
        elif isinstance(message, events.IdeaDropped):
            self.lines.append(f"{message.title}: {message.reason}")
            self._dropped = self._dropped or message.reason
        elif isinstance(message, events.ModelUsed | events.Note):
            self.lines += event_lines(message)
        self.tell(message)

    @property
    def trouble(self) -> str:
        """Why the model gave nothing, or gave up; empty where there is nothing to say: that its caps are used up after
        a while is as the user wanted it, and what came of an idea of the user's own is said with it."""
        model = self.adviser.model if self.adviser and not self.adviser.own else None
        if model is None:
            return ""
        ended = model.ended if isinstance(model, Metered) else None
        why = str(ended) if ended and ended.kind != "caps" else "" if self._gave else self._dropped
        return f"{model.name} could not help{' any more' if self._gave else ''}: {why}" if why else ""


def origin(ideas: Sequence[Idea], adviser: Adviser | None, suggested: bool = False) -> str:
    """Whose ideas a rewrite rests on, where they are not the catalogue's alone: ``idea from qwen3-coder``. What the
    model ``suggested`` before comes back in the place of the user's own."""
    if adviser is None or adviser.model is None or all(idea.source == SOURCE for idea in ideas):
        return ""
    own = not suggested and any(idea.source == OWN for idea in ideas)
    return f"your idea, code from {adviser.model.name}" if own else f"idea from {adviser.model.name}"


def credited(title: str, ideas: Sequence[Idea], adviser: Adviser | None) -> str:
    """A title that says whose idea it is."""
    whose = origin(ideas, adviser)
    return f"{title} ({whose})" if whose else title
