"""Answers that are played back: for offline replays of a search, and for tests."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import cattrs
from attrs import define, field

from agent.models.model import Limits, Message, Model, ModelError, Reply, Schema, Usage, estimated_tokens

Answer = str | Reply | ModelError | Callable[[Sequence[Message]], str]


@define(eq=False)
class Scripted:
    """Gives its answers in order, whatever is asked; ``asked`` keeps the questions. A function answers for itself, an
    error is raised."""

    answers: Iterator[Answer]
    name: str = "scripted"
    place: str = "memory"
    asked: list[tuple[Message, ...]] = field(factory=list)

    def ask(self, messages: Sequence[Message], schema: Schema | None, limits: Limits) -> Reply:
        self.asked.append(tuple(messages))
        if limits.cancelled():
            raise ModelError("cancelled", "cancelled")
        answer = next(self.answers, None)
        if answer is None:
            raise ModelError("missing", f"the recording {self.place} has no further answer")
        if isinstance(answer, ModelError):
            raise answer
        if isinstance(answer, Reply):
            return answer
        text = answer if isinstance(answer, str) else answer(messages)
        sent = estimated_tokens(*(message.text for message in messages))
        return Reply(text, "stop", Usage(sent, estimated_tokens(text), 1, exact=False))


@define(eq=False)
class Recording:
    """Asks ``model`` and appends each question and answer to ``path``, one JSON object a line. No key is in it: keys
    are in no message."""

    model: Model
    path: Path

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def place(self) -> str:
        return self.model.place

    def ask(self, messages: Sequence[Message], schema: Schema | None, limits: Limits) -> Reply:
        reply = self.model.ask(messages, schema, limits)
        record = {
            "model": self.name,
            "messages": cattrs.unstructure(list(messages)),
            "reply": cattrs.unstructure(reply),
        }
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise ModelError("missing", f"{self.path} cannot be written ({error.strerror})", reply.usage) from error
        return reply


def replay(path: Path) -> Scripted:
    """The answers of a recording, in order. Raises ModelError where it cannot be read."""
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        replies = [cattrs.structure(record["reply"], Reply) for record in records]
    except (OSError, ValueError, KeyError, TypeError, cattrs.BaseValidationError) as error:
        raise ModelError("missing", f"{path} is no recording of a model's answers ({type(error).__name__})") from error
    return Scripted(
        iter(replies), name=str(records[0].get("model", "replay")) if records else "replay", place=str(path)
    )
