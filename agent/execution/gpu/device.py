"""The local card as a :class:`~agent.execution.device.Device`: a child process for each program."""

import atexit
import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from attrs import evolve

from agent.execution.children import gpu_messages as say
from agent.execution.children.timing_messages import Calibrate, Calibrated, Look, Looked, Measure, Measured, Recompute
from agent.execution.compiler.result import Build, CompileFailure
from agent.execution.compiler.slices import mend_compiler
from agent.execution.device import NOWHERE, Answer, Bytes, Digest, Fault, Request
from agent.execution.gpu import lock, peaks, racing
from agent.execution.gpu.jobs import CHUNK, BadRequest, make_job
from agent.execution.gpu.lock import LockCancelled
from agent.execution.gpu.profiler import profiled
from agent.execution.gpu.runners import KEPT, MODULE, START_SECONDS, Runners
from agent.execution.gpu.sanitizer import sanitized
from agent.execution.gpu.support import support
from agent.execution.gpu.talking import ask, upload
from agent.execution.nsight import Counted
from agent.execution.nvml import watch
from agent.execution.process import Child, ChildCancelled, ChildDied, ChildTimeout, never, twice
from agent.execution.sanitizing import Sanitized
from agent.execution.timing import Figures, Race, Timed
from agent.execution.wire import Channel
from agent.workload.binding import BoundLaunch

T = TypeVar("T")
_MEMORY_EACH = 2 << 30
_ROOMY = 32 << 30
"""Bytes of a card that holds the buffers of idle runners beside those of a timing."""

MOST_READY = 8
"""Runners that wait at once: each holds a context of some hundred megabytes."""

MOST_KEPT = 8
"""Programs that keep their runners on a roomy card: originals that are judged in turns need not start anew."""

_THROUGH_MEMORY = 1 << 20
_SLOWEST_COPY = 50e6  # bytes a second: below this something hangs


class Gpu:
    """Runs each program in a runner of its own; a fault, a crash or a hang costs that runner and nothing else."""

    emulated = False

    def __init__(self, card: say.Card) -> None:
        self.card = card
        self.runners = Runners(MOST_KEPT if card.memory >= _ROOMY else KEPT)
        self._figures: Figures | str | None = None
        atexit.register(self.close)

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def arch(self) -> str:
        """What to compile for: ``sm_90``."""
        return f"sm_{self.card.capability}"

    @property
    def reads_parts(self) -> bool:
        """Whether our own kernels, which digest, are there."""
        return not isinstance(support(self.arch), CompileFailure)

    def run(self, request: Request) -> Answer:
        """Run it; whatever happens to the runner, the answer says so and the next run is none the worse. That a runner
        dies proves nothing against what it ran: it is run once more, in another."""
        start = time.monotonic()
        if request.blocks is not None:
            return _answer("refused", "a card runs whole launches; only the emulator can run chosen blocks")
        if (problem := self._refusal(request.build)) is not None:
            return _answer("refused", problem)
        try:
            return twice(lambda: self._run(request))
        except LockCancelled:
            return _answer("cancelled", "the run was cancelled while another process was timing on the card", start)
        except BadRequest as error:
            return _answer("refused", str(error))
        except ChildTimeout:
            return _answer(
                "timeout", f"the run did not end within {request.seconds:g} s; its process was killed", start
            )
        except ChildCancelled:
            return _answer("cancelled", "the run was cancelled; its process was killed", start)
        except ChildDied as death:
            if death.killed:
                return _answer("unavailable", f"two processes that ran it were killed by somebody: {death}", start)
            return _answer("crashed", f"two processes that ran it died: {death}", start)

    def _run(self, request: Request) -> Answer:
        """In one runner. Raises what becomes of it."""
        child: Child | None = None
        try:
            child, fresh = self.runners.of(request.build.key)
            if fresh and (missing := _missing(child, request.cancelled)):  # making its context takes nobody's turn
                return _answer("unavailable", f"the GPU cannot be used: {missing}")
            with lock.held(self.card.address, False, request.cancelled):
                answer = self._in_child(child, request)
            if answer.status == "ok":
                self.runners.keep(request.build.key, child)
                child = None
            return answer
        finally:
            if child is not None:
                child.close()
            self.runners.rest()

    def close(self) -> None:
        """Let the runners go, and their memory on the card with them."""
        self.runners.close()

    def figures(self, cancelled: Callable[[], bool] = never) -> Figures | str:
        """The card's own peaks: from the cache of an earlier run, else measured now."""
        if self._figures is not None:
            return self._figures
        found = peaks.figures(self.card, self.arch, lambda request: self._calibrated(request, cancelled))
        if not cancelled():  # one that was given up is measured when somebody waits for it
            self._figures = found
        return found

    def ready(self, count: int) -> None:
        """Start so many runners at once: nothing is begun while others time. Those that hold programs do nothing
        meanwhile; they are let go where the card may need their memory."""
        if self.card.memory < _ROOMY:
            self.runners.release()
        self.runners.ready(self._at_most(count))

    def begin(self, count: int) -> None:
        """Let so many come while something else is done; only on a card that has room for them beside what runs."""
        if self.card.memory >= _ROOMY // 2:
            self.runners.begin(self._at_most(count))

    def _at_most(self, count: int) -> int:
        return min(count, max(2, self.card.memory // _MEMORY_EACH), MOST_READY)

    def race(self, race: Race) -> Timed:
        """Time two programs in one fresh process; whatever happens to it, the answer says so."""
        return self._timing(race, lambda built, flush: racing.measure(race, built, flush, self._set_memory), True)

    def alone(self, race: Race, timed: Timed) -> Timed:
        """What the last side answers to the same calls where nobody times it: among others that run."""
        return self._timing(race, lambda built, flush: racing.recompute(race, built, timed), False)

    @property
    def _set_memory(self) -> int:
        return min(4 << 30, self.card.memory // 8)

    def _timing(self, race: Race, ask: Callable[[Build, int], Measure | Recompute], exclusive: bool) -> Timed:
        figures, built = self.figures(race.cancelled), support(self.arch)
        if race.cancelled():
            return Timed("cancelled", "cancelled")
        if isinstance(figures, str) or isinstance(built, CompileFailure):
            return Timed("unavailable", figures if isinstance(figures, str) else built.message)  # type: ignore[union-attr]
        problem = next(filter(None, (self._refusal(side.build) for side in race.sides)), None)
        if problem is not None:
            return Timed("refused", problem)
        try:
            request = ask(built, figures.flush)
            return twice(lambda: self._time(race, request, exclusive))
        except BadRequest as error:
            return Timed("refused", str(error))
        except ChildTimeout:
            return Timed("timeout", f"the timing did not end within {race.seconds:g} s; its process was killed")
        except (ChildCancelled, LockCancelled):
            return Timed("cancelled", "cancelled")
        except ChildDied as death:
            return Timed("crashed", f"two processes that timed it died: {death}")

    def _time(self, race: Race, request: Measure | Recompute, exclusive: bool) -> Timed:
        """In one fresh process. Raises what becomes of it."""
        child: Child | None = None
        try:
            child = self.runners.fresh()
            with lock.held(self.card.address, exclusive, race.cancelled) as note:
                foreign = self._foreign()
                measured: Measured = child.converse(
                    lambda channel: _send(channel, request, racing.chunks(race)), race.seconds, race.cancelled
                )
            found = racing.timed(measured, race, foreign)
            return evolve(found, unwatched="; ".join(filter(None, (found.unwatched, note))))
        finally:
            if child is not None:
                child.close()
            self.runners.rest()

    def _foreign(self) -> int:
        """Other processes that hold a compute context on the card. Ids say nothing inside a container, so they are
        counted: all but ours."""
        watching = watch(self.card.address)
        computing = None if isinstance(watching, str) else watching.computing()
        return max(0, len(computing) - 1 - self.runners.count) if computing else 0

    def _calibrated(self, request: Calibrate, cancelled: Callable[[], bool]) -> Calibrated:
        try:
            return twice(lambda: self._calibrate(request, cancelled))
        except (ChildCancelled, LockCancelled):
            return Calibrated("cancelled")
        except (ChildDied, ChildTimeout) as failure:
            return Calibrated(f"the process that measured the card failed: {failure}")

    def _calibrate(self, request: Calibrate, cancelled: Callable[[], bool]) -> Calibrated:
        child = self.runners.fresh()
        try:
            with lock.held(self.card.address, True, cancelled):
                found: Calibrated = child.converse(
                    lambda channel: ask(channel, request, Calibrated), START_SECONDS, cancelled
                )
                return found
        finally:
            child.close()

    def exclusively(self, action: Callable[[], T], cancelled: Callable[[], bool] = never) -> T | None:
        """Do it while no other process of ours uses the card; None where cancelled. Runners that hold programs go."""
        self.runners.release()
        try:
            with lock.held(self.card.address, True, cancelled):
                return action()
        except LockCancelled:
            return None

    def sanitize(self, request: Request, tool: str) -> Sanitized:
        """Run it under one tool of compute-sanitizer; whatever happens to the process, the answer says so."""
        if (problem := self._refusal(request.build)) is not None:
            return Sanitized("unavailable", message=problem)
        try:
            with lock.held(self.card.address, False, request.cancelled):
                return sanitized(request, tool, START_SECONDS + request.seconds)
        except BadRequest as error:
            return Sanitized("unavailable", message=str(error))
        except (ChildCancelled, LockCancelled):
            return Sanitized("cancelled", message="cancelled")
        except ChildTimeout:
            return Sanitized("unavailable", message=f"the run under {tool} did not end in time; its process was killed")
        except ChildDied as death:
            return Sanitized("unavailable", message=f"the run under {tool} died: {death}")

    def counters(self, request: Request) -> tuple[Counted, ...] | str:
        """Each launch as the card's own counters have it, by Nsight Compute; or why there is none."""
        if (problem := self._refusal(request.build)) is not None:
            return problem
        try:
            with lock.held(self.card.address, True, request.cancelled):
                return profiled(request, START_SECONDS + request.seconds)
        except BadRequest as error:
            return str(error)
        except (ChildCancelled, LockCancelled):
            return "cancelled"
        except ChildTimeout:
            return "the run under ncu did not end in time; its process was killed"
        except ChildDied as death:
            return f"the run under ncu died: {death}"

    def _refusal(self, build: Build) -> str | None:
        if not build.cubin:
            return "the build holds no machine code; compile it for a real architecture (sm_90, not compute_90)"
        number = int("".join(filter(str.isdigit, build.arch)))
        same_family = number // 10 == self.card.capability // 10 and number <= self.card.capability
        if not same_family:
            return f"the build is for {build.arch}, the {self.name} is {self.arch}: compile for {self.arch}"
        return None

    def _in_child(self, child: Child, request: Request) -> Answer:
        built = support(self.arch)
        job = make_job(request, b"" if isinstance(built, CompileFailure) else built.cubin)
        traffic = sum(image.nbytes for image in request.images) / _SLOWEST_COPY
        prepared: say.Prepared = child.converse(
            lambda channel: upload(channel, job, request), START_SECONDS + traffic, request.cancelled
        )
        if prepared.problem:
            return _answer("refused", prepared.problem)
        ran: say.Ran = child.converse(
            lambda channel: ask(channel, say.Go(), say.Ran), request.seconds, request.cancelled
        )
        if ran.kind:
            return _failed(ran)
        sizes = {image.name: image.nbytes for image in request.images}
        outputs, digests = child.converse(
            lambda channel: _fetched(channel, request, sizes), START_SECONDS + traffic, request.cancelled
        )
        return evolve(_finished(ran, outputs, sizes, _launched(request)), digests=digests)


def _missing(child: Child, cancelled: Callable[[], bool]) -> str:
    """What keeps a fresh runner from the card; empty when it has its context."""
    card: say.Card = child.converse(lambda channel: channel.receive(say.Card), START_SECONDS, cancelled)
    return card.missing


def _send(channel: Channel, request: Measure | Recompute, contents: Iterator[say.Chunk]) -> Measured:
    channel.send(request)
    for chunk in contents:
        channel.send(chunk)
    reply: Measured = channel.receive(Measured)
    return reply


def _fetched(channel: Channel, request: Request, sizes: dict[str, int]) -> tuple[dict[str, Bytes], dict[str, Digest]]:
    """Each output: whole, or its parts and its digest."""
    outputs: dict[str, Bytes] = {}
    digests: dict[str, Digest] = {}
    for name in request.outputs:
        wanted = request.parts.get(name)
        if wanted is None:
            outputs[name] = _download(channel, name, sizes[name])
            continue
        look = Look(racing.lanes_of(name, sizes[name], wanted.dtype), wanted.ranges, wanted.key)
        seen = ask(channel, look, Looked)
        outputs[name], digests[name] = np.frombuffer(seen.data, np.uint8), racing.digest_of(seen.digest)
    return outputs, digests


def _download(channel: Channel, name: str, nbytes: int) -> Bytes:
    if nbytes >= _THROUGH_MEMORY and hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return _through_memory(channel, name, nbytes)
    data = np.empty(nbytes, np.uint8)
    for start in range(0, nbytes, CHUNK):
        chunk = ask(channel, say.Read(name, start, min(CHUNK, nbytes - start)), say.Chunk)
        data[start : start + len(chunk.data)] = np.frombuffer(chunk.data, np.uint8)
    return data


def _through_memory(channel: Channel, name: str, nbytes: int) -> Bytes:
    """By way of memory that both processes see. It has no name in any folder: it is gone with its last user, however
    that one ends. Raises OSError where there is no room for it, or where the runner may not open it."""
    descriptor = os.memfd_create("cuda-lsp")
    with os.fdopen(descriptor, "r+b") as file:
        os.posix_fallocate(descriptor, 0, nbytes)
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
        reply = ask(channel, say.Read(name, 0, nbytes, path), say.Chunk)
        if reply.problem:
            raise OSError(reply.problem)
        return np.asarray(np.memmap(file, np.uint8, "c", shape=(nbytes,)))


def _answer(status: str, message: str, start: float | None = None) -> Answer:
    seconds = 0.0 if start is None else time.monotonic() - start
    return Answer(status, {}, None, (), (), message, seconds, complete=False)


def _failed(ran: say.Ran) -> Answer:
    """A step that CUDA reports as failed. What the card knows of it is little: neither thread nor address."""
    if ran.kind in ("refused", "timeout"):
        return Answer(ran.kind, {}, None, (), (), ran.message, ran.seconds, complete=False)
    message = f"{ran.kind} in {ran.kernel or 'a copy'}: {ran.message}"
    fault = Fault(ran.kind, ran.kernel, NOWHERE, message)
    return Answer("fault", {}, None, (fault,), (), message, ran.seconds, complete=False)


def _launched(request: Request) -> str:
    """The kernels of a request: of several, nobody knows which one wrote beside a buffer."""
    return " or ".join(dict.fromkeys(step.kernel for step in request.steps if isinstance(step, BoundLaunch)))


def _finished(ran: say.Ran, outputs: dict[str, Bytes], sizes: dict[str, int], kernel: str) -> Answer:
    faults = tuple(_overrun(name, offset, sizes[name], kernel) for name, offset in ran.guards)
    message = "; ".join(fault.message for fault in faults)
    status, changed = "fault" if faults else "ok", frozenset(ran.changed)
    return Answer(status, outputs, None, faults, (), message, ran.seconds, changed=changed)


def _overrun(name: str, offset: int, nbytes: int, kernel: str) -> Fault:
    where = f"{-offset} bytes before its start" if offset < 0 else f"{offset - nbytes} bytes past its end"
    message = f"{name} ({nbytes} bytes) was written outside its bounds, {where}; the card does not say by which thread"
    return Fault("out-of-bounds write", kernel, NOWHERE, message)


_found: say.Card | None = None


def open_gpu() -> Gpu | None:
    """The first card that CUDA shows, or None; :func:`why_no_gpu` says why there is none. Makes no context."""
    card = _probe()
    return None if card.missing else Gpu(card)


def why_no_gpu() -> str | None:
    """Why :func:`open_gpu` gives None, and what to do; None where there is a card."""
    return _probe().missing or None


def _probe(cancelled: Callable[[], bool] = never) -> say.Card:
    """Asked once; what a process could not tell because it was killed may be asked again."""
    global _found
    if _found is None:
        try:
            _found = _look(cancelled)
        except (ChildDied, ChildTimeout) as failure:
            return say.Card("", 0, 0, 0, 0, missing=f"the process that asks for the card failed: {failure}")
    return _found


def _look(cancelled: Callable[[], bool]) -> say.Card:
    """Raises ChildDied, ChildTimeout, ChildCancelled."""
    if not _driver_there():
        return say.Card("", 0, 0, 0, 0, missing="no NVIDIA driver on this machine")
    card = twice(lambda: _asked(cancelled))
    if "ModuleNotFoundError" in card.missing or "ImportError" in card.missing:
        return say.Card("", 0, 0, 0, 0, missing=f"CuPy is missing: {mend_compiler()} ({card.missing})")
    return card


def _asked(cancelled: Callable[[], bool]) -> say.Card:
    child = Child(MODULE)
    try:
        return child.converse(lambda channel: ask(channel, say.AskCard(), say.Card), START_SECONDS, cancelled)
    finally:
        child.close()


def _driver_there() -> bool:
    """Whether the driver's library can be loaded; it is not initialised here."""
    with contextlib.suppress(OSError):
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        return True
    return False
