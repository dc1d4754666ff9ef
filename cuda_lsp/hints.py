"""The findings of the rules, kernel by kernel: at once for the kernel that is typed in, after a pause for all.

Between two keystrokes the findings of the other kernels move with their text. A kernel that does not parse at the
moment keeps those it had, but for what was edited: hints that come and go with each character would help nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from lsprotocol import types

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.source.parsing import changed_range
from agent.source.span import Span
from cuda_lsp.session import Session, Snapshot, ordinals, surroundings

if TYPE_CHECKING:
    from agent.analysis.rules import Finding

# so many kernels that were never looked at are examined at once; a file that was just opened has to wait for the rest
_AT_ONCE = 1

Key = tuple[str, int]
Hinted = tuple[Kernel, "tuple[Finding, ...]"]


@frozen
class _Entry:
    """``digest`` is of the kernel's text that the findings are about."""

    digest: bytes
    findings: tuple[Finding, ...]
    shown: list[types.Diagnostic] = field(factory=list, eq=False, repr=False)
    """The findings as diagnostics, once they were made: they hold until the findings move."""


_NOTHING = _Entry(b"", ())


class HintStore:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._tables: dict[str, dict[Key, _Entry]] = {}
        self._examined: dict[str, int] = {}
        self._surroundings: dict[str, bytes] = {}
        """Of each document, what stood around its kernels when all were looked at."""
        session.subscribe(self._on_change)

    def of(self, snapshot: Snapshot, kernel: Kernel) -> tuple[Finding, ...]:
        """What is known of one kernel and its launches, in the places of this snapshot, which must be the newest."""
        return self._entry(snapshot, kernel).findings

    def shown(
        self, snapshot: Snapshot, kernel: Kernel, show: Callable[[Finding], types.Diagnostic]
    ) -> list[types.Diagnostic]:
        """The same as diagnostics; ``show`` makes one."""
        entry = self._entry(snapshot, kernel)
        if len(entry.shown) != len(entry.findings):
            entry.shown[:] = map(show, entry.findings)
        return entry.shown

    def _entry(self, snapshot: Snapshot, kernel: Kernel) -> _Entry:
        if not self._session.settings.diagnostics:
            return _NOTHING
        table = self._tables.setdefault(snapshot.uri, {})
        key = (kernel.qualified_name, snapshot.once(ordinals)[kernel.span.start])
        entry = table.get(key)
        if kernel.damage is not None:
            return entry if entry and snapshot.document.hasty else _NOTHING
        digest = _digest(snapshot.document, kernel)
        if entry is not None and entry.digest == digest:
            return entry
        if self._examined.get(snapshot.uri, 0) >= _AT_ONCE:
            return entry or _NOTHING
        self._examined[snapshot.uri] = self._examined.get(snapshot.uri, 0) + 1
        from agent.analysis.rules import check

        table[key] = _Entry(digest, check(snapshot.document, kernel))
        return table[key]

    def stale(self, snapshot: Snapshot) -> tuple[Kernel, ...]:
        """The kernels to look at: all where what stands around them changed, else those that were not looked at."""
        if not self._session.settings.diagnostics:
            return ()
        kernels = snapshot.document.kernels
        if self._surroundings.get(snapshot.uri) != snapshot.once(surroundings):
            return kernels
        table, places = self._tables.get(snapshot.uri, {}), snapshot.once(ordinals)
        keys = ((kernel, (kernel.qualified_name, places[kernel.span.start])) for kernel in kernels)
        return tuple(k for k, key in keys if table.get(key, _NOTHING).digest != _digest(snapshot.document, k))

    def put(self, snapshot: Snapshot, found: Iterable[Hinted], last: bool = True) -> bool:
        """What was found in the background in this snapshot, which must be the newest still. Whether that is news."""
        table = self._tables.setdefault(snapshot.uri, {})
        places, news = snapshot.once(ordinals), False
        for kernel, findings in found:
            if kernel.span.start in places:
                entry = _Entry(_digest(snapshot.document, kernel), findings)
                key = (kernel.qualified_name, places[kernel.span.start])
                news = news or table.get(key, _NOTHING).findings != findings
                table[key] = entry
        if last:
            self._surroundings[snapshot.uri] = snapshot.once(surroundings)
        return news

    def _on_change(self, old: Snapshot | None, new: Snapshot | None) -> None:
        uri = (new or old).uri  # type: ignore[union-attr]
        self._examined[uri] = 0
        if new is None or old is None:
            self._tables.pop(uri, None)
            self._surroundings.pop(uri, None)
            self._examined.pop(uri, None)
        elif table := self._tables.get(uri):
            start, old_end, new_end = changed_range(old.text, new.text)
            move = _Move(start, old_end, new_end - old_end)
            self._tables[uri] = {key: move.entry(entry) for key, entry in table.items()}


def find(document: Document, kernels: Iterable[Kernel], stopped: Callable[[], bool]) -> list[Hinted]:
    """The findings of some kernels; slow for those that were never looked at, so in the background."""
    from agent.analysis.rules import check

    return [(kernel, check(document, kernel)) for kernel in kernels if not stopped()]


def _digest(document: Document, kernel: Kernel) -> bytes:
    return hashlib.blake2b(document.text[kernel.span.start : kernel.span.end], digest_size=16).digest()


@frozen
class _Move:
    """An edit of ``start`` to ``end`` that made the text longer ``by`` some bytes."""

    start: int
    end: int
    by: int

    def entry(self, entry: _Entry) -> _Entry:
        if all(self._is_before(finding) for finding in entry.findings):
            return entry
        moved = tuple(moved for finding in entry.findings if (moved := self._one(finding)) is not None)
        return _Entry(entry.digest, moved)

    def _is_before(self, finding: Finding) -> bool:
        return finding.span.end < self.start and all(one.span.end < self.start for one in finding.related)

    def _one(self, finding: Finding) -> Finding | None:
        span = self._span(finding.span)
        if span is None:
            return None
        related = tuple(evolve(one, span=moved) for one in finding.related if (moved := self._span(one.span)))
        return type(finding)(finding.rule, finding.message, span, finding.severity, related, finding.cost, finding.fix)

    def _span(self, span: Span) -> Span | None:
        """None where the edit touched it."""
        if span.end < self.start:
            return span
        if span.start > self.end or (span.start == self.end and self.start < self.end):
            return Span(span.start + self.by, span.end + self.by)
        return None
