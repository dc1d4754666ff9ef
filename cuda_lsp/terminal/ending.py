"""SIGTERM, and a terminal that is closed: the command ends at once, by that signal, and leaves nothing behind."""

import os
import signal
import threading
from types import FrameType

from agent.execution.leaving import leave_nothing

PATIENCE = 2.0
"""Seconds in which what was begun may be put in order: files beside those that were to be replaced."""


class Ended(SystemExit):
    """Raised in the main thread when such a signal comes. Nothing but :func:`finish` answers it."""


_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_came: list[int] = []


def watch() -> None:
    """From here on. What whoever started us told us to ignore (``nohup``) is ignored."""
    for number in _SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def finish() -> None:
    """End by the signal that came; nothing happens where none did."""
    if _came:
        leave_nothing()
        signal.signal(_came[0], signal.SIG_DFL)
        os.kill(os.getpid(), _came[0])


def _end(number: int, frame: FrameType | None) -> None:
    for other in (*_SIGNALS, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    _came.append(number)
    late = threading.Timer(PATIENCE, _late)
    late.daemon = True
    late.start()
    leave_nothing()
    raise Ended(128 + number)


def _late() -> None:
    leave_nothing()
    os._exit(128 + _came[0])
