"""The facts of all kernels that are open: asked for at once, found in the background, told when they are there.

One thread of ours compiles, in the compiler's own child process. It begins after a pause in typing, takes the kernels
that were edited or looked at first, and drops what an edit has overtaken.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from attrs import define, frozen

from agent.source.document import Document, parse
from agent.source.kernel import Kernel
from cuda_lsp.facts.facts import Facts
from cuda_lsp.hints import Hinted, HintStore, find
from cuda_lsp.session import Session, Snapshot, ordinals, surroundings

log = logging.getLogger(__name__)

# of a file with hundreds of kernels, not all are compiled because it was opened; those that are looked at are
AT_ONCE = 12
# a compilation that nobody waits for any more may end by itself: starting the compiler anew takes longer than most
_PATIENCE = 1.0
# seconds without a key after which half a statement is taken for what the user means
_HALF_TYPED = 1.0
_HINTED_TOGETHER = 16
# so many kernels that are gone are remembered beyond what there are: what is undone is often back soon
_SPARE = 100
# so many keys tell how fast somebody types; so many seconds apart, they are not typed in a row
_KEYS = 4
_TYPING = 0.4


@frozen
class Place:
    """A kernel of a document: the ``ordinal``-th of its name."""

    uri: str
    name: str
    ordinal: int


@frozen
class Known:
    """Facts, and whether they are about the text as it is now."""

    facts: Facts
    fresh: bool


@define
class _Entry:
    key: str
    facts: Facts


@frozen
class _Job:
    place: Place
    key: str
    snapshot: Snapshot
    kernel: Kernel


@frozen
class _Work:
    """``run`` is called in the thread; what it returns, on the event loop."""

    uri: str
    run: Callable[[], Callable[[], None] | None]


class FactStore:
    """``changed(uri)`` is called on the event loop whenever something new is known about a document."""

    def __init__(
        self, session: Session, hints: HintStore, later: Callable[..., None], changed: Callable[[str], None]
    ) -> None:
        self._session = session
        self._hints = hints
        self._later = later
        self._changed = changed
        self._known: dict[Place, _Entry] = {}
        self._wanted: dict[str, dict[Place, None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._gaps: dict[str, deque[float]] = {}
        self._typed: dict[str, float] = {}
        self._queue: list[_Work] = []
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False
        self.generation = 0
        """Grows whenever what :meth:`of` says may have changed without an edit."""
        session.subscribe(self._on_change)

    # --- asking ----------------------------------------------------------------------------------------------------

    def of(self, snapshot: Snapshot, kernel: Kernel) -> Known | None:
        """What is known about a kernel, without waiting."""
        entry = self._known.get(place_of(snapshot, kernel))
        return Known(entry.facts, entry.key == self.key(snapshot, kernel)) if entry else None

    def has_messages(self, snapshot: Snapshot) -> bool:
        """Whether the compiler said anything about a document."""
        return any(place.uri == snapshot.uri and entry.facts.messages for place, entry in self._known.items())

    def want(self, snapshot: Snapshot, kernel: Kernel) -> None:
        """Somebody looks at this kernel: find its facts soon, and keep them up to date."""
        place = place_of(snapshot, kernel)
        wanted = self._wanted.setdefault(snapshot.uri, {})
        known = self.of(snapshot, kernel)
        first = place not in wanted
        wanted.pop(place, None)
        wanted[place] = None  # the last is the most urgent
        typing = snapshot.uri in self._timers  # the pause finds them; before it they would be in the way of a key
        if first and not typing and (known is None or not known.fresh):
            self._wait(snapshot.uri, 0.0)

    def again(self) -> None:
        """Something outside the documents changed (a header, a setting): find everything anew."""
        self.generation += 1
        for entry in self._known.values():
            entry.key = ""
        for snapshot in self._session.snapshots():
            self._wait(snapshot.uri, 0.0)

    # --- waiting for a pause ---------------------------------------------------------------------------------------

    def _on_change(self, old: Snapshot | None, new: Snapshot | None) -> None:
        if new is None:
            assert old is not None
            self._forget(old.uri)
            return
        self._enqueue(new.uri, [])  # nobody waits any more for what concerns the text before
        self._wait(new.uri, self._pause(new.uri) if old else 0.0)

    def _pause(self, uri: str) -> float:
        """How long no key comes before that is a pause, in seconds: as set, and longer than between the last few keys.
        Work that begins between two of them is in the way of the second, and overtaken by it."""
        gaps, now = self._gaps.setdefault(uri, deque(maxlen=_KEYS)), time.monotonic()
        gaps.append(now - self._typed.get(uri, 0.0))
        self._typed[uri] = now
        between = max((gap for gap in gaps if gap < _TYPING), default=0.0)
        return max(self._session.settings.delay / 1e3, 2 * between)

    def _wait(self, uri: str, seconds: float) -> None:
        if (timer := self._timers.pop(uri, None)) is not None:
            timer.cancel()
        self._timers[uri] = asyncio.get_running_loop().call_later(seconds, self._begin, uri)

    def _forget(self, uri: str) -> None:
        if (timer := self._timers.pop(uri, None)) is not None:
            timer.cancel()
        for table in (self._wanted, self._gaps, self._typed):
            table.pop(uri, None)
        for place in [place for place in self._known if place.uri == uri]:
            del self._known[place]

    def _begin(self, uri: str, patient: bool = False) -> None:
        """The pause is there: read carefully what was read in haste, then find the facts."""
        self._timers.pop(uri, None)
        snapshot = self._session.snapshot(uri)
        if snapshot is None or self._ended:
            return
        if not snapshot.document.hasty:
            self._choose(snapshot)
        elif snapshot.base is not None and not snapshot.base.broken and not patient:
            # something is half typed: there is nothing to compile yet, and the next key will come
            self._timers[uri] = asyncio.get_running_loop().call_later(_HALF_TYPED, self._begin, uri, True)
        else:
            self._enqueue(uri, [_Work(uri, lambda: self._settle(snapshot))])

    def _choose(self, snapshot: Snapshot) -> None:
        """Queue what is not known, the most urgent first."""
        uri = snapshot.uri
        jobs = [self._job(snapshot, kernel) for kernel in snapshot.document.kernels]
        self._tidy(uri, {job.place for job in jobs})
        wanted = {place: rank for rank, place in enumerate(reversed(self._wanted.get(uri, {})), -len(jobs))}
        chosen = [
            job
            for number, job in enumerate(jobs)
            if self._is_stale(job) and (number < AT_ONCE or job.place in self._known or job.place in wanted)
        ]
        chosen.sort(key=lambda job: wanted.get(job.place, job.place not in self._known))
        compiling = [_Work(uri, partial(self._find, job)) for job in chosen] if self._session.settings.compile else []
        urgent = sum(job.place in wanted for job in chosen) or 1
        self._enqueue(uri, [*compiling[:urgent], *self._hinting(snapshot), *compiling[urgent:]])

    def _tidy(self, uri: str, here: set[Place]) -> None:
        """Let go of kernels that are no longer there, once there are many: of every name that was half typed."""
        gone = [place for place in self._known if place.uri == uri and place not in here]
        if len(gone) > len(here) + _SPARE:
            for place in gone:
                del self._known[place]
        wanted = self._wanted.get(uri, {})
        if len(wanted) > 2 * len(here) + _SPARE:
            self._wanted[uri] = {place: None for place in wanted if place in here}

    def _hinting(self, snapshot: Snapshot) -> list[_Work]:
        """Look for hints in all kernels, some at a time: what is shown need not wait for the last."""
        kernels = self._hints.stale(snapshot)
        starts = range(0, len(kernels), _HINTED_TOGETHER)
        return [
            _Work(snapshot.uri, partial(self._hint, snapshot, kernels[at : at + _HINTED_TOGETHER], at == starts[-1]))
            for at in starts
        ]

    def _enqueue(self, uri: str, work: list[_Work]) -> None:
        """In place of what was queued for this document."""
        with self._condition:
            self._queue = [other for other in self._queue if other.uri != uri] + work
            if work:  # woken for nothing, the thread would be in the way of the key
                self._condition.notify()
        if work and self._thread is None:
            self._thread = threading.Thread(target=self._work, name="cuda-lsp facts", daemon=True)
            self._thread.start()

    def _is_stale(self, job: _Job) -> bool:
        entry = self._known.get(job.place)
        return entry is None or entry.key != job.key

    def _job(self, snapshot: Snapshot, kernel: Kernel) -> _Job:
        return _Job(place_of(snapshot, kernel), self.key(snapshot, kernel), snapshot, kernel)

    def key(self, snapshot: Snapshot, kernel: Kernel) -> str:
        """Changes whenever the facts may: with the kernel's text, and with all text outside the kernels."""
        own = snapshot.text[kernel.span.start : kernel.span.end]
        parts = (own, snapshot.once(surroundings), self._session.settings.target.encode())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    # --- in the thread ---------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._queue and not self._ended:
                    self._condition.wait()
                if self._ended:
                    return
                work = self._queue.pop(0)
            try:
                tell = work.run()
            except Exception:
                log.exception("work in the background failed")
                continue
            if tell is not None:
                self._later(tell)

    def _settle(self, snapshot: Snapshot) -> Callable[[], None]:
        document = parse(snapshot.text, snapshot.path, snapshot.base)
        document.kernels, document.launches, document.state  # noqa: B018 -- found here, and not on the event loop
        return lambda: self._settled(snapshot, document)

    def _hint(self, snapshot: Snapshot, kernels: Sequence[Kernel], last: bool) -> Callable[[], None]:
        settings = self._session.ruling(snapshot.uri)
        snapshot.document.state  # noqa: B018 -- what the next key is read from; found here, and not on the event loop
        found = find(snapshot.document, kernels, settings, lambda: self._session.snapshot(snapshot.uri) is not snapshot)
        return lambda: self._hinted(snapshot, found, last)

    def _find(self, job: _Job) -> Callable[[], None] | None:
        from cuda_lsp.facts.examine import examine

        began = time.monotonic()

        def overtaken() -> bool:
            newest = self._session.snapshot(job.place.uri)
            stale = newest is None or newest.version != job.snapshot.version
            return self._ended or (stale and time.monotonic() - began > _PATIENCE)

        try:
            facts = examine(job.snapshot.document, job.kernel, self._session.settings.target, overtaken)
        except Exception as error:  # one kernel that cannot be examined must not end the figures of all
            log.exception("could not examine a kernel")
            facts = Facts(problem=f"an error of cuda-lsp ({type(error).__name__}); the log says more")
        return None if overtaken() else lambda: self._found(job, facts)

    # --- back on the event loop ------------------------------------------------------------------------------------

    def _settled(self, snapshot: Snapshot, document: Document) -> None:
        if self._session.snapshot(snapshot.uri) is snapshot:
            snapshot.settle(document)
            self.generation += 1
            self._changed(snapshot.uri)
            self._choose(snapshot)

    def _hinted(self, snapshot: Snapshot, found: list[Hinted], last: bool) -> None:
        if self._session.snapshot(snapshot.uri) is snapshot and self._hints.put(snapshot, found, last):
            self.generation += 1
            self._changed(snapshot.uri)

    def _found(self, job: _Job, facts: Facts) -> None:
        if self._session.snapshot(job.place.uri) is not None:
            self._known[job.place] = _Entry(job.key, facts)
            self.generation += 1
            self._changed(job.place.uri)

    def end(self) -> None:
        """Stop the thread and the compiler's children."""
        with self._condition:
            self._ended = True
            self._queue.clear()
            self._condition.notify()
        if self._thread is not None:
            from agent.execution.compiler import shutdown

            shutdown()


def place_of(snapshot: Snapshot, kernel: Kernel) -> Place:
    return Place(snapshot.uri, kernel.qualified_name, snapshot.once(ordinals)[kernel.span.start])
