"""The findings of the rules, kernel by kernel: at once for the kernel that is typed in, after a pause for all.

Between two keystrokes the findings of the other kernels move with their text. A kernel that does not parse at the
moment keeps those it had, but for what was edited: hints that come and go with each character would help nobody.
"""

from __future__ import annotations

import hashlib
import re
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

# so many kernels are examined at once, of those that were edited or just opened; the others have to wait for a pause
_AT_ONCE = 1
# so many entries more than twice the kernels are kept: what is half typed or undone is often back soon
_SPARE = 100
_LINE = re.compile(r'(?<="line": )\d+')

Key = tuple[str, int]
Hinted = tuple[Kernel, "tuple[Finding, ...]"]
Show = Callable[["Finding"], types.Diagnostic]


@define(eq=False)
class Shown:
    """Findings as diagnostics. Those of a large file are many, and a key changes few: what is known of the others is
    kept, as values and as JSON, and at most their lines have to be counted on."""

    _diagnostics: list[types.Diagnostic]
    _written: str = ""
    _lines: int = 0
    """So many lines further down than ``_diagnostics`` and ``_written`` say."""

    def down(self, lines: int) -> None:
        """All of them stand so many lines further down."""
        self._lines += lines

    @property
    def diagnostics(self) -> list[types.Diagnostic]:
        self._count_on()
        return self._diagnostics

    def written(self, write: Callable[[list[types.Diagnostic]], str]) -> str:
        """As JSON without the brackets around them; ``write`` makes it, brackets included."""
        self._count_on()
        if not self._written:
            self._written = write(self._diagnostics)[1:-1]
        return self._written

    def _count_on(self) -> None:
        if lines := self._lines:
            self._lines = 0
            self._diagnostics = [_further(one, lines) for one in self._diagnostics]
            # a quote inside a message has a backslash before it, so that this meets no text
            self._written = _LINE.sub(lambda line: str(int(line[0]) + lines), self._written)


def _further(one: types.Diagnostic, lines: int) -> types.Diagnostic:
    related = [
        evolve(other, location=evolve(other.location, range=_down(other.location.range, lines)))
        for other in one.related_information or ()
    ]
    return evolve(one, range=_down(one.range, lines), related_information=related or one.related_information)


def _down(place: types.Range, lines: int) -> types.Range:
    start, end = place.start, place.end
    return types.Range(
        types.Position(start.line + lines, start.character), types.Position(end.line + lines, end.character)
    )


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

    def after(self, move: _Move, lines: LineIndex, added: int) -> _Entry:
        """What is known after an edit; ``lines`` are those of the new text, ``added`` is how many more it has."""
        if self.home >= move.end:
            self.home += move.by
        if not self.findings or self.last + self.by < move.start:
            return self
        if self.first + self.by > move.end:
            self.by += move.by
            if added and self.shown is not None:
                self.shown.down(added)
            return self
        moved = [moved for finding in self.now() if (moved := move.one(finding)) is not None]
        return _Entry.made(self.digest, self.home, tuple(moved), lines)


_NOWHERE = Span(0, 0)
_NOTHING = _Entry(b"", -1, (), 0, 0)


class HintStore:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._tables: dict[str, dict[Key, _Entry]] = {}
        self._examined: dict[str, int] = {}
        self._typed: dict[str, Span] = {}
        """Of each document, what the newest edit wrote: all of it where it was just opened."""
        self._surroundings: dict[str, bytes] = {}
        """Of each document, what stood around its kernels when all were looked at."""
        session.subscribe(self._on_change)

    def of(self, snapshot: Snapshot, kernel: Kernel) -> tuple[Finding, ...]:
        """What is known of one kernel and its launches, in the places of this snapshot, which must be the newest."""
        if not self._session.settings.diagnostics:
            return ()
        return self._entry(snapshot, kernel).now()

    def holders(self, snapshot: Snapshot, asked: Span) -> list[Kernel]:
        """The kernels with a finding that touches a place, wherever that is: many stand in code of the host."""
        if not self._session.settings.diagnostics:
            return []
        kernels, found = snapshot.document.kernels, []
        for index, item in enumerate(kernels.as_read):
            entry = self._known(snapshot, item, kernels.start(index))
            if entry.first + entry.by <= asked.end and asked.start <= entry.last + entry.by:
                spans = (finding.span for finding in entry.now())
                if any(span.start <= asked.end and asked.start <= span.end for span in spans):
                    found.append(kernels[index])
        return found

    def every(self, snapshot: Snapshot, show: Show) -> Iterator[tuple[int, Shown]]:
        """The same of all kernels, as diagnostics, with the kernel's index; ``show`` makes one. Kernels without a
        finding are left out."""
        if not self._session.settings.diagnostics:
            return
        kernels, typed = snapshot.document.kernels, self._typed.get(snapshot.uri, _NOWHERE)
        near = range(*kernels.touched(typed.start - 1, typed.end + 1))
        for index, item in enumerate(kernels.as_read):
            if index in near:
                entry = self._entry(snapshot, kernels[index])
            else:
                entry = self._known(snapshot, item, kernels.start(index))
            if entry.findings:
                yield index, entry.as_shown(show)
        table = self._tables.get(snapshot.uri, {})
        if len(table) > 2 * len(kernels) + _SPARE:  # most are kernels of texts that are gone
            numbers = snapshot.once(ordinals)
            names = {(item.qualified_name, numbers[kernels.start(at)]) for at, item in enumerate(kernels.as_read)}
            self._tables[snapshot.uri] = {key: entry for key, entry in table.items() if key in names}

    def _known(self, snapshot: Snapshot, kernel: Kernel, start: int) -> _Entry:
        """What is known of a kernel that begins there and was not edited; where it was read does not matter."""
        entry = self._tables.get(snapshot.uri, {}).get((kernel.qualified_name, snapshot.once(ordinals)[start]))
        if entry is None or entry.home != start or (kernel.damage is not None and not snapshot.document.hasty):
            return _NOTHING
        return entry

    def _entry(self, snapshot: Snapshot, kernel: Kernel) -> _Entry:
        """What is known of a kernel, which is examined where it was edited."""
        known, typed = self._known(snapshot, kernel, kernel.span.start), self._typed.get(snapshot.uri, _NOWHERE)
        edited = typed.start <= kernel.span.end and kernel.span.start <= typed.end
        if kernel.damage is not None or not edited:
            return known
        digest = _digest(snapshot.document, kernel)
        examined = self._examined.get(snapshot.uri, 0)
        if known.is_of(digest, kernel) or examined >= _AT_ONCE:
            return known
        self._examined[snapshot.uri] = examined + 1
        from agent.analysis.rules import check

        found = check(snapshot.document, kernel, selection=selection(self._session.ruling(snapshot.uri)))
        entry = _Entry.made(digest, kernel.span.start, found, snapshot.lines)
        key = (kernel.qualified_name, snapshot.once(ordinals)[kernel.span.start])
        self._tables.setdefault(snapshot.uri, {})[key] = entry
        return entry

    def again(self) -> None:
        """Other rules run now, or are shown otherwise."""
        self._tables.clear()
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
                key = (kernel.qualified_name, places[kernel.span.start])
                known = table.get(key, _NOTHING)
                digest = _digest(snapshot.document, kernel)
                if known.home == kernel.span.start and known.now() == findings:
                    known.digest = digest  # as it is shown already
                else:
                    news = news or known.now() != findings
                    table[key] = _Entry.made(digest, kernel.span.start, findings, snapshot.lines)
        if last:
            self._surroundings[snapshot.uri] = snapshot.once(surroundings)
        return news

    def _on_change(self, old: Snapshot | None, new: Snapshot | None) -> None:
        uri = (new or old).uri  # type: ignore[union-attr]
        if new is None or old is None:
            for known in (self._tables, self._surroundings, self._examined, self._typed):
                known.pop(uri, None)
            if new is not None:
                self._typed[uri] = Span(0, len(new.text))
            return
        self._examined[uri] = 0
        start, old_end, new_end = changed_range(old.text, new.text)
        self._typed[uri] = Span(start, new_end)
        move, added = _Move(start, old_end, new_end - old_end), len(new.lines.starts) - len(old.lines.starts)
        table = self._tables.get(uri, {})
        # most stand as they are or stand elsewhere, which is noted in place
        table |= {
            key: after for key, known in table.items() if (after := known.after(move, new.lines, added)) is not known
        }


def find(
    document: Document, kernels: Iterable[Kernel], settings: Settings, stopped: Callable[[], bool]
) -> list[Hinted]:
    """The findings of some kernels; slow for those that were never looked at, so in the background."""
    from agent.analysis.headers import learn
    from agent.analysis.rules import check

    wanted = selection(settings)
    learn(document)
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
