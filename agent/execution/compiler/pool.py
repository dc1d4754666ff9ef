"""A small pool of compiler children: started when first needed, restarted after a crash, gone when we go."""

import atexit
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from agent.execution.children.messages import AskCompiler, Compile, Compiled, CompilerIs
from agent.execution.process import Child, ChildCancelled, ChildDied, ChildTimeout, never, twice
from agent.execution.wire import Channel

T = TypeVar("T")

SIZE = 2
_START_SECONDS = 60.0
_MODULE = "agent.execution.children.nvrtc"

_slots = threading.BoundedSemaphore(SIZE)
_lock = threading.Lock()
_idle: list[Child] = []
_all: set[Child] = set()
_identity: CompilerIs | None = None


def identity() -> CompilerIs:
    """Which compiler there is; asked once, unless the child could not even start."""
    global _identity
    if _identity is None:
        try:
            talk = functools.partial(_ask, request=AskCompiler(), answer=CompilerIs)
            _identity = twice(lambda: _converse(talk, _START_SECONDS))
        except (ChildDied, ChildTimeout) as failure:
            return CompilerIs((0, 0), (), missing=f"the compiler process did not start: {failure}")
    return _identity


def compile_program(request: Compile, cancelled: Callable[[], bool] = never) -> Compiled:
    """Compile in a child. Raises ChildTimeout, ChildCancelled, or ChildDied when two children in turn died of it."""
    talk = functools.partial(_ask, request=request, answer=Compiled)
    return twice(lambda: _converse(talk, request.seconds, cancelled))


def _converse(talk: Callable[[Channel], T], seconds: float, cancelled: Callable[[], bool] = never) -> T:
    with _borrowed(cancelled) as child:
        return child.converse(talk, seconds, cancelled)


def _ask(channel: Channel, request: object, answer: type[T]) -> T:
    channel.send(request)
    reply: T = channel.receive(answer)
    return reply


def shutdown() -> None:
    """End every child. The next compilation starts anew."""
    with _lock:
        children = tuple(_all)
        _all.clear()
        _idle.clear()
    for child in children:
        child.close()


atexit.register(shutdown)


def _waiting() -> Child | None:
    """An idle child that can be used; those that cannot are buried."""
    while True:
        with _lock:
            child = _idle.pop() if _idle else None
        if child is None or child.usable:
            return child
        child.close()
        with _lock:
            _all.discard(child)


@contextlib.contextmanager
def _borrowed(cancelled: Callable[[], bool] = never) -> Iterator[Child]:
    while not _slots.acquire(timeout=0.05):
        if cancelled():
            raise ChildCancelled
    try:
        child = _waiting() or Child(_MODULE)
        with _lock:
            _all.add(child)
        try:
            yield child
        finally:
            with _lock:
                if child.alive and child in _all:
                    _idle.append(child)
                else:
                    _all.discard(child)
    finally:
        _slots.release()
