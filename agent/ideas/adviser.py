"""Who is asked for ideas beside the catalogue."""

from attrs import frozen

from agent.models.model import Model


class NoCode(Exception):
    """An idea that came to no code; the message says why."""


@frozen(eq=False)
class Adviser:
    """``own`` are ideas in the user's words, ``rejected`` (title, reason) of those that the user wants no more. The
    model gives at most ``ideas`` ideas for a kernel, in answers of at most ``answer_tokens`` tokens. Without a model,
    own ideas cannot be turned into code, and that is said."""

    model: Model | None
    own: tuple[str, ...] = ()
    rejected: tuple[tuple[str, str], ...] = ()
    ideas: int = 4
    answer_tokens: int = 8192


@frozen
class Failure:
    """Why a candidate did not pass, for whoever wrote it. ``gate`` names the gate; ``diagnostics`` are (line, message)
    of the compiler, lines 1-based in the candidate's ``code`` and 0 where the fault lies elsewhere."""

    gate: str
    reason: str
    diagnostics: tuple[tuple[int, str], ...] = ()
