"""Jobs from the server's side. All state is changed on the thread that calls; workers only post to it."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import evolve

from agent.execution.process import ChildCancelled, ChildDied, ChildTimeout
from agent.source.document import parse
from agent.source.errors import UnknownKernel
from cuda_lsp.jobs.job import CANCELLED, DONE, FAILED, HELD, QUEUED, RUNNING, Job, JobRefused, Listened, Text
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.jobs.waiting import Turns
from cuda_lsp.worker.asked import Options, Task

if TYPE_CHECKING:  # takes long to import, and the server's start must not wait for it
    from cuda_lsp.worker.messages import Ended, Message

Listener = Callable[[Job, Listened], None]
Post = Callable[[Callable[[], None]], None]

log = logging.getLogger(__name__)

_NO_TEXT = parse(b"")

MOST_WAITING = 64
KEPT = 64
"""How many jobs that ended are remembered."""


def at_once() -> int:
    """How many jobs run side by side: an emulated run takes a whole core, and the editor needs one too."""
    return max(1, min(2, (os.cpu_count() or 2) // 2))


class Jobs:
    """``post`` runs a function on the thread that owns this object (the server's loop)."""

    def __init__(self, post: Post, pool: Pool | None = None, limit: int | None = None) -> None:
        self._post = post
        self._pool = pool or Pool()
        self._limit = limit or at_once()
        self._jobs: dict[str, Job] = {}
        self._stops: dict[str, threading.Event] = {}
        self._listeners: list[Listener] = []
        self._turns = Turns()
        self._numbers = itertools.count(1)
        self._closed = False

    def subscribe(self, listener: Listener) -> None:
        """Be told of every change of a job, with the worker's message where that was the cause."""
        self._listeners.append(listener)

    def start(self, kind: str, text: Text, kernel: str, options: Options | None = None, *, held: bool = False) -> str:
        """The id of a new job on the text as it is now; one that is ``held`` begins with :meth:`release`. Raises
        JobRefused."""
        if self._closed:
            raise JobRefused("the server is shutting down")
        try:
            found = text.document.kernel(kernel)
        except UnknownKernel as error:
            raise JobRefused(str(error)) from error
        if found.damage:
            raise JobRefused(f"{found.name}: {found.damage}. Mend it first")
        name = found.qualified_name
        if (busy := self.active(text.uri, name)) is not None:
            raise JobRefused(f"a job is already running on {name} ({busy.kind}, {busy.stage}); cancel it first")
        if len(self._in(QUEUED)) + len(self._in(HELD)) >= MOST_WAITING:
            raise JobRefused(f"{MOST_WAITING} jobs are waiting already; wait for some to end")
        identifier, state = f"job-{next(self._numbers)}", HELD if held else QUEUED
        job = Job(identifier, kind, text.uri, text.version, name, options or Options(), text.document, state)
        self._change(job)
        self._next()
        return job.id

    def release(self, identifier: str, options: Options) -> None:
        """Let a held job begin. No harm where it was cancelled meanwhile."""
        job = self._jobs.get(identifier)
        if job is not None and job.state == HELD:
            self._change(evolve(job, state=QUEUED, stage="waiting", options=options))
            self._next()

    def waits(self, identifier: str, stage: str) -> None:
        """What a held job waits for, in words."""
        job = self._jobs.get(identifier)
        if job is not None and job.state == HELD:
            self._change(evolve(job, stage=stage))

    def cancel(self, identifier: str) -> bool:
        """Stop a job: what it runs is killed. False where there is no such job, or it has ended."""
        job = self._jobs.get(identifier)
        if job is None or not job.active:
            return False
        if (stop := self._stops.get(identifier)) is not None:
            stop.set()
        self._change(evolve(job, state=CANCELLED, stage="cancelled", message="cancelled"))
        self._next()
        return True

    def get(self, identifier: str) -> Job | None:
        """A job that runs, or one of the last that ended."""
        return self._jobs.get(identifier)

    def all(self) -> tuple[Job, ...]:
        """Every job that is remembered, oldest first."""
        return tuple(self._jobs.values())

    def active(self, uri: str, kernel: str) -> Job | None:
        """The job that waits for, or runs on, a kernel (by its qualified name)."""
        return next((job for job in self._jobs.values() if job.active and (job.uri, job.kernel) == (uri, kernel)), None)

    @property
    def busy(self) -> bool:
        """Whether a job runs, or waits for its turn."""
        return any(job.state in (QUEUED, RUNNING) for job in self._jobs.values())

    def aside(self, task: Task, cancelled: Callable[[], bool]) -> Ended:
        """Do a task that is no job of the user's in a process of the same pool; from any thread. Raises as the pool
        does."""
        return self._pool.run(task, lambda message: None, lambda: self._closed or cancelled())

    def renamed(self, old: str, new: str) -> None:
        """A file has another name: its jobs go on under that name."""
        self._jobs = {job.id: evolve(job, uri=new) if job.uri == old else job for job in self._jobs.values()}

    def leave(self, uri: str) -> None:
        """Stop every job on a document that is no more."""
        for job in self.all():
            if job.uri == uri:
                self.cancel(job.id)

    def close(self) -> None:
        """Kill everything, from any thread, and tell nobody: the server ends. No job is started after this."""
        self._closed = True
        for stop in tuple(self._stops.values()):
            stop.set()
        self._pool.close()

    def _in(self, state: str) -> list[Job]:
        return [job for job in self._jobs.values() if job.state == state]

    def _next(self) -> None:
        """Start what may start. A cancelled job holds its place until its process is gone."""
        while not self._closed and len(self._stops) < self._limit and (waiting := self._in(QUEUED)):
            job = evolve(self._turns.next(waiting, self._in(RUNNING)), state=RUNNING, stage="starting")
            stop = self._stops[job.id] = threading.Event()
            threading.Thread(target=self._work, args=(job, stop), daemon=True, name=f"cuda-lsp {job.id}").start()
            self._change(job)

    def _change(self, job: Job, message: Listened = None) -> None:
        self._jobs[job.id] = job if job.active else _remembered(job)
        ended = [other.id for other in self._jobs.values() if not other.active]
        for identifier in ended[: max(0, len(ended) - KEPT)]:
            del self._jobs[identifier]
        for listener in tuple(self._listeners):
            try:
                listener(job, message)
            except Exception:  # what one listener gets wrong costs neither the job nor the others
                log.exception("a listener failed on %s", job)

    def _work(self, job: Job, stop: threading.Event) -> None:
        """On a thread of the job's own."""
        from cuda_lsp.worker.messages import Staged

        task = Task(job.kind, job.path, job.document.text, job.kernel, job.options)
        result: Ended | str = ""
        for attempt in (1, 2):
            try:
                result = self._pool.run(
                    task, lambda message: self._post(lambda: self._heard(job.id, message)), stop.is_set
                )
            except ChildDied as death:
                times = "twice " if attempt == 2 else ""
                result = f"the worker died {times}on this job: {death}. A new one is started for the next job"
                # what a model may cost was spent by the one that died: it is asked no more, and all else is done again
                if attempt == 1 and not task.options.idea and not stop.is_set():
                    task = evolve(task, options=evolve(task.options, model=None))
                    again = Staged(f"the worker died ({death}); started again")
                    self._post(lambda message=again: self._heard(job.id, message))  # type: ignore[misc]
                    continue
            except ChildTimeout:
                result = f"no end after {job.options.seconds:g} s and more; the worker was killed"
            except ChildCancelled:
                result = "cancelled"
            except Exception as error:
                result = f"the worker cannot be used ({type(error).__name__}: {error})"
            break
        self._post(lambda: self._finished(job.id, result))

    def _heard(self, identifier: str, message: Message) -> None:
        from cuda_lsp.jobs.stages import stage

        job = self._jobs.get(identifier)
        if job is None or job.state != RUNNING:
            return
        if (now := stage(message)) is not None:
            job = evolve(job, stage=now[0], done=now[1], total=now[2])
        self._change(job, message)

    def _finished(self, identifier: str, result: Ended | str) -> None:
        self._stops.pop(identifier, None)
        job = self._jobs.get(identifier)
        if job is not None and job.state == RUNNING:
            if isinstance(result, str):
                self._change(evolve(job, state=FAILED, stage="failed", message=result))
            else:
                state = FAILED if result.reason in ("failed", "fault") else DONE
                self._change(evolve(job, state=state, stage=state, message=result.message, ended=result), result)
        self._next()


def _remembered(job: Job) -> Job:
    """An ended job without what is large: the parsed text, and rewrites, which are proposals by now."""
    ended = evolve(job.ended, rewrites=()) if job.ended else None
    return evolve(job, document=_NO_TEXT, ended=ended)
