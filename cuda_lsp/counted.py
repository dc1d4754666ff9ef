"""Where counted facts stand in the text as it is now; and where nothing can be counted, what the rules foretell."""

from __future__ import annotations

from attrs import frozen

from agent.evaluation.lines.costs import bad_lines
from agent.source.kernel import Kernel
from cuda_lsp.contradicting import FORETELL
from cuda_lsp.diagnostics import lines_by_text
from cuda_lsp.facts.counts import Counted
from cuda_lsp.facts.facts import line_text
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

MADE_UP = ", launch made up"
"""Behind what was counted where nothing states what the kernel runs on."""


@frozen
class BadLine:
    """A counted fact in its place: ``line`` is 1-based now. ``words`` are few, ``meaning`` says more and where it is
    from; not ``fresh``: the kernel was edited since."""

    line: int
    words: str
    meaning: str
    fresh: bool


def counted_lines(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> tuple[BadLine, ...]:
    """The lines of a kernel, and of what it calls, that cost a good deal more than they must, as far as is known."""
    known = server.counts.of(snapshot, kernel)
    if known is None or known[0].counts is None:
        return _foretold(server, snapshot, kernel) if server.counts.hopeless(snapshot, kernel) else ()
    counted, fresh = known
    assert counted.counts is not None
    found: dict[int, BadLine] = {}
    for bad in bad_lines(counted.counts):
        line = _now(counted, snapshot, kernel, bad.line, fresh)
        if line is None:
            continue
        before = found.get(line)
        words = f"{before.words}; {bad.words}" if before else bad.words
        meaning = f"{before.meaning}\n{bad.meaning}" if before else bad.meaning
        found[line] = BadLine(line, words, meaning, fresh)
    where, told = counted.counts.where, MADE_UP if counted.counts.made_up else ""
    return tuple(BadLine(one.line, one.words + told, f"{one.meaning}\n({where})", fresh) for one in found.values())


def _foretold(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> tuple[BadLine, ...]:
    """What is read off the indices of a kernel that nothing can be run on; and says so."""
    found: dict[int, BadLine] = {}
    for finding in server.hints.of(snapshot, kernel):
        if finding.rule in FORETELL and finding.cost:
            line = snapshot.document.line(finding.span.start)
            meaning = f"{finding.rule}: {finding.message}\n(read off the index; nothing was run)"
            found.setdefault(line, BadLine(line, f"{finding.cost}, not counted", meaning, True))
    return tuple(found.values())


def _now(counted: Counted, snapshot: Snapshot, kernel: Kernel, number: int, fresh: bool) -> int | None:
    """Where a line that was counted stands now; None where it was edited, or cannot be told from others."""
    first = snapshot.document.line(kernel.span.start)
    if number in counted.outside:
        places = snapshot.once(lines_by_text).get(counted.outside[number], [])
        return places[0] if len(places) == 1 else None
    at = number - counted.first
    if not 0 <= at < len(counted.lines):
        return None
    if fresh:
        return first + at
    wanted = counted.lines[at]
    last = snapshot.document.line(kernel.span.end)
    now = [line for line in range(first, last + 1) if line_text(snapshot.document, line) == wanted]
    before = [place for place, text in enumerate(counted.lines) if text == wanted]
    return now[before.index(at)] if len(now) == len(before) else None
