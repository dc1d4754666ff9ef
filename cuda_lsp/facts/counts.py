"""What the lines of the kernels in view cost: counted in a worker of their own while nobody types, kept by content.

Only kernels whose facts are known are counted, one at a time, and none while a job of the user's runs: the emulator
takes a whole core.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from agent.evaluation.lines.costs import LineCounts
from agent.source.kernel import Kernel
from cuda_lsp.asking import with_session
from cuda_lsp.facts.facts import Facts, line_text
from cuda_lsp.facts.store import FactStore, Place, place_of
from cuda_lsp.session import Session, Snapshot
from cuda_lsp.worker.asked import Options, Task

if TYPE_CHECKING:  # takes long to import, and the server's start must not wait for it
    from agent.analysis.rules import Finding
    from cuda_lsp.worker.messages import Ended

log = logging.getLogger(__name__)

Run = Callable[[Task, Callable[[], bool]], "Ended"]

PAUSE = 0.8
"""Seconds without a key before anything is counted."""

SECONDS = 20.0
IN_VIEW = 12
"""How many kernels are kept counted: those that were looked at last."""

REMEMBERED = 256
# starting a worker anew takes longer than most counts do, so that one which an edit overtook may end by itself
_PATIENCE = 2.0


@frozen
class Counted:
    """Counts and the text that they are of: the kernel's lines, the first of which had the 1-based number ``first``,
    and other lines that were counted, by number. ``counts`` is None where there are none. ``findings`` are made from
    the counts; their places count from the kernel's start."""

    counts: LineCounts | None
    first: int
    lines: tuple[bytes, ...] = field(repr=False)
    outside: Mapping[int, bytes] = field(repr=False)
    findings: tuple[Finding, ...] = field(default=(), repr=False)


@frozen
class _Asked:
    snapshot: Snapshot
    kernel: Kernel
    key: str


class CountStore:
    """``changed()`` is called on the event loop when something new was counted; ``busy()`` says whether to wait."""

    def __init__(
        self,
        session: Session,
        facts: FactStore,
        run: Run,
        later: Callable[..., None],
        changed: Callable[[], None],
        busy: Callable[[], bool],
    ) -> None:
        self._session = session
        self._facts = facts
        self._run = run
        self._later = later
        self._changed = changed
        self._busy = busy
        self._wanted: dict[Place, None] = {}
        self._last: dict[Place, Counted] = {}
        self._telling: dict[Place, None] = {}
        self._known: dict[str, Counted] = {}
        self._touched: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._running = False
        self._ended = False
        session.subscribe(self._on_change)

    def names(self, snapshot: Snapshot) -> frozenset[str]:
        """The qualified names of a document's kernels of which anything may be known."""
        return frozenset(
            place.name for places in (self._wanted, self._last) for place in places if place.uri == snapshot.uri
        )

    def telling(self, snapshot: Snapshot) -> frozenset[str]:
        """Those of which counting found what no rule names, in this text or one before: an undo brings it back."""
        return frozenset(place.name for place in self._telling if place.uri == snapshot.uri)

    def of(self, snapshot: Snapshot, kernel: Kernel) -> tuple[Counted, bool] | None:
        """The newest counts of a kernel, and whether they are of the text as it is now."""
        place = place_of(snapshot, kernel)
        if place not in self._wanted and place not in self._last:
            return None
        fresh = self._known.get(self._facts.key(snapshot, kernel))
        found = fresh or self._last.get(place)
        return None if found is None or found.counts is None else (found, found is fresh)

    def hopeless(self, snapshot: Snapshot, kernel: Kernel) -> bool:
        """Whether a kernel that compiles cannot be counted, as far as is known: nothing says what to run it on, and no
        launch was made up yet, or what there is will not do."""
        if place_of(snapshot, kernel) not in self._wanted:
            return False
        known = self._facts.of(snapshot, kernel)
        if known is None or known.facts.problem or not known.facts.costs:
            return False
        tried = self._known.get(self._facts.key(snapshot, kernel))
        return tried.counts is None if tried is not None else not known.facts.workload

    def want(self, snapshot: Snapshot, kernel: Kernel) -> None:
        """Somebody looks at this kernel: count it once there is time."""
        place = place_of(snapshot, kernel)
        if place.ordinal:
            return  # of kernels of one name, a worker finds the first
        self._wanted.pop(place, None)
        self._wanted[place] = None
        while len(self._wanted) > IN_VIEW:
            del self._wanted[next(iter(self._wanted))]
        self.look()

    def again(self) -> None:
        """Something outside the documents changed: what was counted holds no longer."""
        self._known.clear()
        self.look()

    def look(self) -> None:
        """See soon whether there is something to count."""
        if self._timer is None and not self._ended and not self._running:
            self._timer = asyncio.get_running_loop().call_later(PAUSE / 4, self._begin)

    def end(self) -> None:
        """Count nothing more. The process is ended by whoever lent it."""
        self._ended = True

    # --- on the event loop -----------------------------------------------------------------------------------------

    def _on_change(self, old: Snapshot | None, new: Snapshot | None) -> None:
        if new is not None:
            self._touched[new.uri] = time.monotonic() if old is not None else 0.0
            return
        assert old is not None
        self._touched.pop(old.uri, None)
        for kept in (self._wanted, self._last, self._telling):
            for place in [place for place in kept if place.uri == old.uri]:
                del kept[place]

    def _begin(self) -> None:
        self._timer = None
        chosen = next(filter(None, map(self._due, reversed(self._wanted))), None)
        if chosen is None or self._running or self._ended:
            return
        snapshot = chosen.snapshot
        if self._busy() or time.monotonic() - self._touched.get(snapshot.uri, 0.0) < PAUSE:
            self.look()
            return
        self._running = True
        options = with_session(self._session, snapshot, Options(seconds=SECONDS))
        task = Task("count", snapshot.path, snapshot.text, chosen.kernel.qualified_name, options)
        threading.Thread(target=self._work, args=(task, chosen), daemon=True, name="cuda-lsp counts").start()

    def _due(self, place: Place) -> _Asked | None:
        """The kernel of a place where it can be counted, and was not."""
        snapshot = self._session.snapshot(place.uri)
        if snapshot is None or snapshot.document.hasty:
            return None
        named = [kernel for kernel in snapshot.document.kernels if kernel.qualified_name == place.name]
        known = self._facts.of(snapshot, named[0]) if named else None
        if known is None or not known.fresh or not _countable(known.facts):
            return None
        key = self._facts.key(snapshot, named[0])
        return None if key in self._known else _Asked(snapshot, named[0], key)

    def _done(self, asked: _Asked, counts: LineCounts | None, findings: tuple[Finding, ...] = ()) -> None:
        self._running = False
        while len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        found = self._known[asked.key] = _counted(asked, counts, findings)
        if counts is not None and self._session.snapshot(asked.snapshot.uri) is not None:
            place = place_of(asked.snapshot, asked.kernel)
            self._last[place] = found
            if findings:
                self._telling[place] = None
        self._changed()
        self.look()

    def _dropped(self) -> None:
        self._running = False
        self.look()

    # --- in the thread ---------------------------------------------------------------------------------------------

    def _work(self, task: Task, asked: _Asked) -> None:
        began = time.monotonic()

        def overtaken() -> bool:
            newest = self._session.snapshot(asked.snapshot.uri)
            stale = newest is None or newest.version != asked.snapshot.version
            return self._ended or (stale and time.monotonic() - began > _PATIENCE)

        try:
            ended = self._run(task, overtaken)
            counts, findings = ended.counts, _within(ended.found, asked.kernel)
        except Exception as error:
            log.info("nothing was counted (%s: %s)", type(error).__name__, error)
            if overtaken():
                self._later(self._dropped)
                return
            counts, findings = None, ()
        self._later(self._done, asked, counts, findings)


def _within(found: tuple[Finding, ...], kernel: Kernel) -> tuple[Finding, ...]:
    """The findings from the kernel's start on; of several kernels of one name, another may have been counted."""
    from agent.analysis.rules.from_counts import moved

    return tuple(moved(one, -kernel.span.start) for one in found if kernel.span.contains(one.span))


def _counted(asked: _Asked, counts: LineCounts | None, findings: tuple[Finding, ...]) -> Counted:
    document, span = asked.snapshot.document, asked.kernel.span
    first, last = document.line(span.start), document.line(span.end)
    outside = [line.number for line in counts.lines if not first <= line.number <= last] if counts else []
    there = {number: line_text(document, number) for number in outside if number <= len(document.line_starts)}
    lines = tuple(line_text(document, at) for at in range(first, last + 1))
    return Counted(counts, first, lines, there, findings)


def _countable(facts: Facts) -> bool:
    """Whether a kernel compiles, and nothing is wrong with what is stated to run it on; a launch can be made up."""
    return bool((facts.workload or facts.draft) and facts.costs and not facts.problem)
