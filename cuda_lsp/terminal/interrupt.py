"""Ctrl-C as a request to stop: the first is taken at the next safe point, the second ends the process at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stoppable(announce: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether to stop. ``announce`` is called once, when the first Ctrl-C arrives."""
    asked = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.signal(signal.SIGINT, signal.default_int_handler)
            raise KeyboardInterrupt
        asked.set()
        announce()

    previous = signal.signal(signal.SIGINT, on_signal)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
