"""The findings of the rules, kernel by kernel: at once for the kernel that is typed in, after a pause for all.

Between two keystrokes the findings of the other kernels move with their text. A kernel that does not parse at the
moment keeps those it had, but for what was edited: hints that come and go with each character would help nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from attrs import define, evolve, frozen
from lsprotocol import types

from agent.source.document import Document
from agent.source.edits import Edit
from agent.source.kernel import Kernel
from agent.source.parsing import changed_range
from agent.source.span import Span
from cuda_lsp.lines import LineIndex
from cuda_lsp.ruling import selection
from cuda_lsp.session import Session, Snapshot, ordinals, surroundings
from cuda_lsp.settings import Settings

if TYPE_CHECKING:
    from agent.analysis.rules import Finding

# so many kernels that were never looked at are examined at once; a file that was just opened has to wait for the rest
_AT_ONCE = 1
# so many entries more than twice the kernels are kept: what is half typed or undone is often back soon
_SPARE = 100

Key = tuple[str, int]
Hinted = tuple[Kernel, "tuple[Finding, ...]"]
Show = Callable[["Finding"], types.Diagnostic]


@define(eq=False)
class Shown:
    """Findings as diagnostics, and these as JSON without the brackets around them, once somebody made that."""

    diagnostics: list[types.Diagnostic]
    written: str = ""


@define(eq=False)
class _Entry:
    """What is known of one kernel. ``digest`` is of the kernel's text that the findings are about, ``home`` where that
    begins now. The findings stand ``by`` bytes further on by now. From ``first`` to ``last`` (without ``by``) an edit
    changes more than that: from the line of the first finding to the end of the last. ``shown`` are the findings as
    diagnostics while those hold."""

    digest: bytes
    home: int
    findings: tuple[Finding, ...]
    first: int
    last: int
    by: int = 0
    shown: Shown | None = None

    @classmethod
    def made(cls, digest: bytes, home: int, findings: tuple[Finding, ...], lines: LineIndex) -> _Entry:
        spans = [span for finding in findings for span in _spans(finding)]
        first = min((span.start for span in spans), default=0)
        return cls(digest, home, findings, lines.line_start(first), max((span.end for span in spans), default=0))

    def is_of(self, digest: bytes, kernel: Kernel) -> bool:
        return self.digest == digest and self.home == kernel.span.start

    def now(self) -> tuple[Finding, ...]:
        """The findings where they stand now."""
        if self.by:
            move = _Move(-1, -1, self.by)
            self.findings = tuple(moved for finding in self.findings if (moved := move.one(finding)) is not None)
            self.first, self.last, self.by = self.first + self.by, self.last + self.by, 0
        return self.findings

    def as_shown(self, show: Show) -> Shown:
        if self.shown is None:
            self.shown = Shown([show(finding) for finding in self.now()])
        return self.shown

    def after(self, move: _Move, lines: LineIndex, same_lines: bool) -> _Entry:
        """What is known after an edit; ``lines`` are those of the new text, ``same_lines`` whether it has as many."""
        if self.home >= move.end:
            self.home += move.by
        if not self.findings or self.last + self.by < move.start:
            return self
        if self.first + self.by > move.end:
            self.by += move.by
            self.shown = self.shown if same_lines else None
            return self
        moved = [moved for finding in self.now() if (moved := move.one(finding)) is not None]
        return _Entry.made(self.digest, self.home, tuple(moved), lines)


_NOTHING = _Entry(b"", -1, (), 0, 0)


class HintStore:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._tables: dict[str, dict[Key, _Entry]] = {}
        self._places: dict[str, dict[int, tuple[Kernel, Key, bytes]]] = {}
        """Of the kernels whose findings are known, by the identity of the kernel as it was read: one whose text was not
        read again is the same object, and nothing about it has to be compared."""
        self._examined: dict[str, int] = {}
        self._surroundings: dict[str, bytes] = {}
        """Of each document, what stood around its kernels when all were looked at."""
        session.subscribe(self._on_change)

    def of(self, snapshot: Snapshot, kernel: Kernel) -> tuple[Finding, ...]:
        """What is known of one kernel and its launches, in the places of this snapshot, which must be the newest."""
        return self._entry(snapshot, kernel).now()

    def every(self, snapshot: Snapshot, show: Show) -> Iterator[tuple[int, Shown]]:
        """The same of all kernels, as diagnostics, with the kernel's index; ``show`` makes one. Kernels without a
        finding are left out."""
        if not self._session.settings.diagnostics:
            return
        kernels = snapshot.document.kernels
        for index, item in enumerate(kernels.as_read):
            entry = self._placed(snapshot.uri, item, kernels.start(index))
            if entry is None:
                entry = self._entry(snapshot, kernels[index], item)
            if entry.findings:
                yield index, entry.as_shown(show)
        table, places = self._tables.get(snapshot.uri, {}), self._places.get(snapshot.uri, {})
        if max(len(table), len(places)) > 2 * len(kernels) + _SPARE:  # most are kernels of texts that are gone
            here = {id(item) for item in kernels.as_read}
            self._places[snapshot.uri] = {identity: known for identity, known in places.items() if identity in here}
            numbers = snapshot.once(ordinals)
            names = {(item.qualified_name, numbers[kernels.start(at)]) for at, item in enumerate(kernels.as_read)}
            self._tables[snapshot.uri] = {key: entry for key, entry in table.items() if key in names}

    def _placed(self, uri: str, item: Kernel, home: int) -> _Entry | None:
        """What is known of a kernel whose text was not read again since."""
        known = self._places.get(uri, {}).get(id(item))
        if known is None or known[0] is not item:
            return None
        entry = self._tables[uri].get(known[1])
        return entry if entry is not None and entry.digest == known[2] and entry.home == home else None

    def _entry(self, snapshot: Snapshot, kernel: Kernel, item: Kernel | None = None) -> _Entry:
        """``item`` is the kernel as it was read, see ``_places``."""
        if not self._session.settings.diagnostics:
            return _NOTHING
        table = self._tables.setdefault(snapshot.uri, {})
        key = (kernel.qualified_name, snapshot.once(ordinals)[kernel.span.start])
        entry = table.get(key)
        if kernel.damage is not None:
            return entry if entry and entry.home == kernel.span.start and snapshot.document.hasty else _NOTHING
        digest = _digest(snapshot.document, kernel)
        if entry is None or not entry.is_of(digest, kernel):
            if self._examined.get(snapshot.uri, 0) >= _AT_ONCE:
                return entry if entry is not None and entry.home == kernel.span.start else _NOTHING
            self._examined[snapshot.uri] = self._examined.get(snapshot.uri, 0) + 1
            from agent.analysis.rules import check

            found = check(snapshot.document, kernel, selection=selection(self._session.settings))
            entry = table[key] = _Entry.made(digest, kernel.span.start, found, snapshot.lines)
        if item is not None:
            self._places.setdefault(snapshot.uri, {})[id(item)] = (item, key, digest)
        return entry

    def again(self) -> None:
        """Other rules run now, or are shown otherwise."""
        self._tables.clear()
        self._places.clear()
        self._surroundings.clear()

    def stale(self, snapshot: Snapshot) -> tuple[Kernel, ...]:
        """The kernels to look at: all where what stands around them changed, else those that were not looked at."""
        if not self._session.settings.diagnostics:
            return ()
        kernels = snapshot.document.kernels
        if self._surroundings.get(snapshot.uri) != snapshot.once(surroundings):
            return tuple(kernels)
        table, places = self._tables.get(snapshot.uri, {}), snapshot.once(ordinals)
        keys = ((kernel, (kernel.qualified_name, places[kernel.span.start])) for kernel in kernels)
        return tuple(k for k, key in keys if not table.get(key, _NOTHING).is_of(_digest(snapshot.document, k), k))

    def put(self, snapshot: Snapshot, found: Iterable[Hinted], last: bool = True) -> bool:
        """What was found in the background in this snapshot, which must be the newest still. Whether that is news."""
        table = self._tables.setdefault(snapshot.uri, {})
        places, news = snapshot.once(ordinals), False
        for kernel, findings in found:
            if kernel.span.start in places:
                digest = _digest(snapshot.document, kernel)
                entry = _Entry.made(digest, kernel.span.start, findings, snapshot.lines)
                key = (kernel.qualified_name, places[kernel.span.start])
                news = news or table.get(key, _NOTHING).now() != findings
                table[key] = entry
        if last:
            self._surroundings[snapshot.uri] = snapshot.once(surroundings)
        return news

    def _on_change(self, old: Snapshot | None, new: Snapshot | None) -> None:
        uri = (new or old).uri  # type: ignore[union-attr]
        self._examined[uri] = 0
        if new is None or old is None:
            self._tables.pop(uri, None)
            self._places.pop(uri, None)
            self._surroundings.pop(uri, None)
            self._examined.pop(uri, None)
        elif table := self._tables.get(uri):
            start, old_end, new_end = changed_range(old.text, new.text)
            move = _Move(start, old_end, new_end - old_end)
            same = len(old.lines.starts) == len(new.lines.starts)
            self._tables[uri] = {key: entry.after(move, new.lines, same) for key, entry in table.items()}


def find(
    document: Document, kernels: Iterable[Kernel], settings: Settings, stopped: Callable[[], bool]
) -> list[Hinted]:
    """The findings of some kernels; slow for those that were never looked at, so in the background."""
    from agent.analysis.rules import check

    wanted = selection(settings)
    return [(kernel, check(document, kernel, selection=wanted)) for kernel in kernels if not stopped()]


def _digest(document: Document, kernel: Kernel) -> bytes:
    return hashlib.blake2b(document.text[kernel.span.start : kernel.span.end], digest_size=16).digest()


def _spans(finding: Finding) -> Iterator[Span]:
    """Every place that a finding names."""
    yield finding.span
    yield from (one.span for one in finding.related)
    yield from (edit.span for edit in (finding.repair.edits if finding.repair else ()))


@frozen
class _Move:
    """An edit of ``start`` to ``end`` that made the text longer ``by`` some bytes."""

    start: int
    end: int
    by: int

    def one(self, finding: Finding) -> Finding | None:
        """A finding after the edit. None where the edit touched it; a repair that was touched is no longer offered."""
        span = self._span(finding.span)
        if span is None:
            return None
        related = tuple(evolve(one, span=moved) for one in finding.related if (moved := self._span(one.span)))
        repair = finding.repair
        if repair is not None:
            edits = [Edit(moved, edit.text) for edit in repair.edits if (moved := self._span(edit.span))]
            repair = evolve(repair, edits=tuple(edits)) if len(edits) == len(repair.edits) else None
        return type(finding)(
            finding.rule, finding.message, span, finding.severity, related, finding.cost, finding.fix, repair
        )

    def _span(self, span: Span) -> Span | None:
        """None where the edit touched it."""
        if span.end < self.start:
            return span
        if span.start > self.end or (span.start == self.end and self.start < self.end):
            return Span(span.start + self.by, span.end + self.by)
        return None
