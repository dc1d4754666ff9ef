"""What every way to a language model has in common: messages in, a text out, and what it cost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen


@frozen
class Message:
    """``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    text: str = field(repr=False)


@frozen
class Schema:
    """A JSON Schema that the answer should have. An endpoint may refuse or ignore it: the answer is always checked."""

    name: str
    shape: Mapping[str, Any] = field(repr=False)


@frozen
class Limits:
    """Of one question: at most so many ``tokens`` in the answer, ``seconds`` in all and ``requests``, retries
    included. ``cancelled`` is asked all the time; when it says yes, the connection is dropped at once."""

    tokens: int = 4096
    seconds: float = 300.0
    requests: int = 6
    cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)


@frozen
class Usage:
    """What was used up: tokens sent and received, and requests. ``exact`` is False where the endpoint did not count
    and the tokens are estimated from the text."""

    sent: int = 0
    received: int = 0
    requests: int = 0
    exact: bool = True

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.sent + other.sent,
            self.received + other.received,
            self.requests + other.requests,
            self.exact and other.exact,
        )

    @property
    def tokens(self) -> int:
        return self.sent + self.received


@frozen
class Reply:
    """``finish`` is ``stop``, ``length`` (cut at the limit on tokens) or ``refusal`` (``text`` is then the model's
    reason). ``usage`` counts failed attempts too."""

    text: str = field(repr=False)
    finish: str = "stop"
    usage: Usage = Usage()


class ModelError(Exception):
    """No answer. ``kind``: ``cancelled``, ``unauthorised``, ``not found``, ``context`` (the question is too long),
    ``busy`` (rate limit), ``server``, ``connection``, ``timeout``, ``cut off``, ``bad answer``, ``caps`` (what the user
    allowed is used up), ``missing`` (a package or a recording). The message says what to do and never holds a key.
    ``usage`` is what was used up all the same."""

    def __init__(self, kind: str, message: str, usage: Usage = Usage()) -> None:
        super().__init__(message)
        self.kind = kind
        self.usage = usage

    @property
    def final(self) -> bool:
        """Whether asking again in the same search is of no use."""
        return self.kind in ("cancelled", "unauthorised", "not found", "caps", "connection", "missing", "timeout")


class Model(Protocol):
    """``name`` and ``place`` (an endpoint's address, a file) are for people."""

    @property
    def name(self) -> str: ...

    @property
    def place(self) -> str: ...

    def ask(self, messages: Sequence[Message], schema: Schema | None, limits: Limits) -> Reply:
        """One answer. Raises ModelError."""
        ...


CHARACTERS_A_TOKEN = 3
"""For estimates, on the safe side: English has about 4, code about 3 (OpenAI's tokenizer guide gives 4)."""


def estimated_tokens(*texts: str) -> int:
    return sum(len(text) // CHARACTERS_A_TOKEN + 4 for text in texts)
