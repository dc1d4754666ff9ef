"""The server's side of the index: one thread of ours talks to the process that holds it.

The process is started with the first document or question. Questions go before the building, which is asked for in
short pieces; a process that dies is started again, and what it was reading then is passed over.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from attrs import evolve, frozen

from agent.execution.process import Child, ChildCancelled, ChildDied, ChildTimeout
from agent.execution.wire import Channel
from cuda_lsp.indexing.messages import Answer, Look, Progress, Question, Text, Work
from cuda_lsp.session import Snapshot

T = TypeVar("T")

MODULE = "cuda_lsp.indexing"
SLICE = 0.1
"""Seconds of building between two looks for a question."""
PATIENCE = 60.0
"""Seconds for one piece of work or one answer, after which the process is taken for stuck."""
DEATHS = 5
"""So many processes in a row may die before one has read everything; then there is no index."""

log = logging.getLogger(__name__)


@frozen(eq=False)
class _Asked:
    question: Question
    snapshots: tuple[Snapshot, ...]
    """All open documents as they were when it was asked."""
    told: asyncio.Future[Answer]
    loop: asyncio.AbstractEventLoop


class Indexer:
    """Its methods are called on the event loop; ``progressed`` is called in the thread."""

    def __init__(self, progressed: Callable[[Progress], None]) -> None:
        self._progressed = progressed
        self._condition = threading.Condition()
        self._asked: deque[_Asked] = deque()
        self._folders: tuple[str, ...] | None = None
        self._building = False
        self._resting = False
        self._thread: threading.Thread | None = None
        self._child: Child | None = None
        self._ended = False
        # of the thread
        self._sent: dict[str, weakref.ref[Snapshot]] = {}
        self._looked: tuple[str, ...] = ()
        self._avoid: list[str] = []
        self._next = ""
        self._careful = False
        self._deaths = 0

    def look(self, folders: Iterable[str]) -> None:
        """Look through the folders, again where that was done before."""
        with self._condition:
            self._folders = tuple(folders)
            self._wake()

    def ask(self, question: Question, snapshots: tuple[Snapshot, ...]) -> asyncio.Future[Answer]:
        """The answer, from what is known by then and from the documents as they are given. One that is cancelled is not
        looked for."""
        loop = asyncio.get_running_loop()
        asked = _Asked(question, snapshots, loop.create_future(), loop)
        with self._condition:
            if self._ended or self._deaths >= DEATHS:
                asked.told.set_result(Answer())
            else:
                self._asked.append(asked)
                self._wake()
        return asked.told

    def stop_building(self) -> None:
        """What was not read yet stays out, until the folders are looked through again."""
        with self._condition:
            self._building = False

    def rest(self) -> None:
        """Let the process go. It is started again with the next question, or when there is something to look at."""
        with self._condition:
            self._building, self._folders, self._resting = False, None, True
            self._condition.notify()

    def end(self) -> None:
        with self._condition:
            self._ended = True
            self._condition.notify()
        if self._child is not None:
            self._child.close()

    @property
    def pid(self) -> int | None:
        """The process, where there is one, for tests and for measuring."""
        child = self._child
        return child.pid if child is not None else None

    def _wake(self) -> None:
        self._condition.notify()
        if self._thread is None and not self._ended:
            self._thread = threading.Thread(target=self._run, name="cuda-lsp index", daemon=True)
            self._thread.start()

    # --- in the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._deaths < DEATHS:
            with self._condition:
                while not (self._asked or self._folders is not None or self._building
                           or self._resting or self._ended):  # fmt: skip
                    self._condition.wait()
                if self._ended:
                    return
                resting, self._resting = self._resting, False
                folders, self._folders = self._folders, None
                asked = self._asked.popleft() if folders is None and self._asked else None
            if resting:
                self._close()
            try:
                self._do(folders, asked)
            except (ChildDied, ChildTimeout, ChildCancelled) as error:
                self._mourn(error, asked)
        log.error("the index is given up: its process ended %d times", self._deaths)
        self._give_up()

    def _do(self, folders: tuple[str, ...] | None, asked: _Asked | None) -> None:
        if folders is not None:
            self._looked = folders
            self._say(Look(folders, tuple(self._avoid)), Progress)
            with self._condition:
                self._building = True
        elif asked is not None:
            self._answer(asked)
        elif self._building:
            progress = self._say(Work(0.0 if self._careful else SLICE), Progress)
            self._next = progress.next
            if progress.ended:
                self.stop_building()
                self._deaths = 0
            self._progressed(progress)

    def _close(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child, self._sent = None, {}

    def _answer(self, asked: _Asked) -> None:
        if asked.told.cancelled():
            return
        now = {snapshot.path or snapshot.uri: snapshot for snapshot in asked.snapshots}
        texts = tuple(Text(one.uri, one.path, one.text) for key, one in now.items() if self._known(key) is not one)
        gone = tuple(self._sent.keys() - now.keys())
        answer = self._say(evolve(asked.question, texts=texts, gone=gone), Answer)
        self._sent = {key: weakref.ref(snapshot) for key, snapshot in now.items()}
        _tell(asked, answer)

    def _known(self, key: str) -> Snapshot | None:
        """What the process knows an open document by."""
        found = self._sent.get(key)
        return found() if found is not None else None

    def _say(self, message: Any, kind: type[T]) -> T:
        if self._child is None:
            self._child = Child(MODULE)

        def talk(channel: Channel) -> T:
            channel.send(message)
            answer: T = channel.receive(kind)
            return answer

        return self._child.converse(talk, PATIENCE, lambda: self._ended)

    def _mourn(self, error: Exception, asked: _Asked | None) -> None:
        """The process is gone, with all that it knew. What it was reading is passed over from now on, where that is
        known; from now on it says before each file which one it is."""
        self._child = None
        self._sent = {}
        if self._ended:
            return
        self._deaths += 1
        log.warning("the process that holds the index: %s", error)
        if asked is not None:
            _tell(asked, Answer())
        elif self._careful and self._next:
            self._avoid.append(self._next)
        self._careful = self._careful or asked is None
        with self._condition:
            self._folders = self._folders if self._folders is not None else self._looked

    def _give_up(self) -> None:
        with self._condition:
            waiting, self._asked = list(self._asked), deque()
        for asked in waiting:
            _tell(asked, Answer())


def _tell(asked: _Asked, answer: Answer) -> None:
    def tell() -> None:
        if not asked.told.done():
            asked.told.set_result(answer)

    if not asked.loop.is_closed():
        asked.loop.call_soon_threadsafe(tell)
