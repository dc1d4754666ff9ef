"""A limit on time that every wait keeps: what may be cancelled ends by itself when the time is over."""

import time
from collections.abc import Callable

from attrs import evolve, frozen

from agent.evaluation.setting import Setting


@frozen
class Deadline:
    """``asked`` is who else may cancel; ``ends`` on the clock of ``time.monotonic``, after ``seconds``."""

    asked: Callable[[], bool]
    ends: float
    seconds: float

    def __call__(self) -> bool:
        return self.asked() or self.over

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.ends

    @property
    def words(self) -> str:
        return f"its {self.seconds:g} s were over"


def until(setting: Setting, ends: float, seconds: float) -> Setting:
    """The setting, whose runs, compilations and waits for a card are all given up at ``ends``."""
    return evolve(setting, cancelled=Deadline(setting.cancelled, ends, seconds))


def timely(setting: Setting) -> Setting:
    """The setting with its own ``seconds`` as the limit, from now on."""
    return until(setting, time.monotonic() + setting.seconds, setting.seconds)


def ended(setting: Setting) -> str:
    """Why nothing goes on: ``cancelled``, or that the time is over. For a setting whose ``cancelled`` says so."""
    found = setting.cancelled
    return found.words if isinstance(found, Deadline) and not found.asked() else "cancelled"
