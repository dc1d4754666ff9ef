"""The worker processes: started when needed, kept warm a while, killed with all that they started."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.execution.process import Child
from agent.execution.wire import Channel
from cuda_lsp.worker.asked import Task

if TYPE_CHECKING:  # takes long to import, and the server's start must not wait for it
    from cuda_lsp.worker.messages import Ended, Message

MODULE = "cuda_lsp.worker"
IDLE_SECONDS = 120.0
GRACE = 120.0
"""Beyond a task's own limit on time: starting, compiling, and the one verdict that is under way when it ends."""


class Pool:
    """Lends a process to one task at a time. Thread-safe."""

    def __init__(self, module: str = MODULE, idle: float = IDLE_SECONDS) -> None:
        self._module = module
        self._idle_seconds = idle
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._all: set[Child] = set()
        self._closed = False
        self._timer: threading.Timer | None = None

    def run(self, task: Task, tell: Callable[[Message], None], cancelled: Callable[[], bool]) -> Ended:
        """Do the task in a process. Raises ChildDied, ChildTimeout, ChildCancelled; the process is then gone."""
        child = self._take()
        try:
            ended = child.converse(lambda channel: _talk(channel, task, tell), task.options.seconds + GRACE, cancelled)
        except BaseException:
            with self._lock:
                self._all.discard(child)
            raise
        self._put(child)
        return ended

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes there are, for tests and for reports."""
        with self._lock:
            return tuple(child.pid for child in self._all)

    def close(self) -> None:
        """Kill every process; none is started again."""
        with self._lock:
            self._closed = True
        self._drop(lambda: self._all)

    def rest(self) -> None:
        """Let the processes go that have nothing to do."""
        self._drop(lambda: set(self._idle))

    def _drop(self, which: Callable[[], set[Child]]) -> None:
        with self._lock:
            gone = tuple(which())
            self._all -= set(gone)
            self._idle = [child for child in self._idle if child not in gone]
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for child in gone:
            child.close()

    def _take(self) -> Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.usable:
                    return child
                self._all.discard(child)
                child.close()
        child = Child(self._module)
        with self._lock:
            if not self._closed:
                self._all.add(child)
                return child
        child.close()
        return child

    def _put(self, child: Child) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(child)
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = threading.Timer(self._idle_seconds, self.rest)
                self._timer.daemon = True
                self._timer.start()


def _talk(channel: Channel, task: Task, tell: Callable[[Message], None]) -> Ended:
    from cuda_lsp.worker.messages import MESSAGES, Ended

    channel.send(task)
    while True:
        message: Message = channel.receive(*MESSAGES)
        if isinstance(message, Ended):
            return message
        tell(message)
