"""Findings of one file as every output tells them: with lines, columns and what knows them again."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from agent.analysis.headers import learn
from agent.analysis.rules import Finding, check
from agent.analysis.rules.registry import by_id
from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.source.span import Span
from cuda_lsp.ruling import selection, severity
from cuda_lsp.settings import Settings
from cuda_lsp.terminal.hints.walk import CUDA
from cuda_lsp.terminal.unread import parse_error

LARGEST = 16 << 20
"""Bytes: a longer file is machine-made, and is not looked at."""
_BOM = b"\xef\xbb\xbf"
_AROUND = 80
"""So many characters of a line are shown on each side of a finding."""


@frozen
class Place:
    """From 1 on; columns count UTF-16 code units, as editors and SARIF do, and the end is the first one behind."""

    line: int
    column: int
    end_line: int
    end_column: int


@frozen
class Nearby:
    """Another place in the same file that belongs to a finding."""

    place: Place
    words: str


@frozen
class Excerpt:
    """The line that a finding begins on, cut where it is long. ``marked`` is what the finding is about."""

    before: str
    marked: str
    after: str


@frozen
class Reported:
    """One finding. ``line_hash`` is of its line without regard to blanks, ``occurrence`` counts the findings of the
    same rule on such lines of the file, from 1 on: together they know a finding again when lines move. ``counted``: it
    was made from the counts of a run."""

    path: str
    rule: str
    name: str
    severity: str
    message: str
    place: Place
    related: tuple[Nearby, ...]
    idea: str | None
    line_hash: str
    occurrence: int
    source: Excerpt
    counted: bool = False


@frozen
class Looked:
    """What was found in one file. ``damaged`` kernels have parse errors, and nothing is said about them. Where kernels
    were to be counted, ``ran`` were, and ``unrun`` says why each of the others was not. ``unread``: the file
    and its first parse error, where no kernel was found in it."""

    findings: tuple[Reported, ...]
    kernels: int
    damaged: int
    ran: int = 0
    unrun: tuple[str, ...] = ()
    unread: str = ""


Examine = Callable[[Document, Kernel, tuple[Finding, ...]], tuple[tuple[Finding, ...], str]]
"""From the rules' findings in a kernel to those that hold once it was run, and why it was not, or nothing."""

_NOTHING = Looked((), 0, 0)


def look(path: str, settings: Settings, examine: Examine | None = None) -> Looked:
    """The findings of a file in text order. Raises SourceError for what is no readable CUDA text."""
    if os.path.splitext(path)[1].lower() not in CUDA and not holds_kernels(path):  # noqa: PTH122
        return _NOTHING
    try:
        return found_in(document_of(path), settings, examine)
    except RecursionError:
        raise SourceError(f"{path} is nested too deeply to be read; exclude it") from None


def found_in(document: Document, settings: Settings, examine: Examine | None = None) -> Looked:
    wanted = selection(settings)
    learn(document)
    by_kernel, unrun = [], []
    for kernel in document.kernels:
        found = check(document, kernel, selection=wanted)
        if examine is not None and kernel.damage is None:
            found, why = examine(document, kernel, found)
            unrun.append(why)
        by_kernel.append(found)
    # a function that launches two kernels is looked at for both
    every = {
        (finding.span, finding.rule, finding.message): finding
        for found in by_kernel
        for finding in found
        if not finding.counted or wanted.admits(by_id()[finding.rule])
    }
    seen: Counter[tuple[str, str]] = Counter()
    reported = []
    for key in sorted(every):
        finding, line = every[key], _line_hash(document, every[key].span.start)
        seen[finding.rule, line] += 1
        reported.append(_reported(document, finding, settings, line, seen[finding.rule, line]))
    damaged = sum(kernel.damage is not None for kernel in document.kernels)
    left = tuple(filter(None, unrun))
    lost = f"{document.path}: {where}" if (where := parse_error(document)) else ""
    return Looked(tuple(reported), len(document.kernels), damaged, len(unrun) - len(left), left, lost)


def document_of(path: str) -> Document:
    """A file that is not too large. Raises SourceError."""
    if _size(path) > LARGEST:
        raise SourceError(f"{path} is larger than {LARGEST >> 20} MiB; exclude it")
    return read(path)


def holds_kernels(path: str) -> bool:
    """Whether the word that makes a kernel stands in a file. Raises SourceError where it cannot be read."""
    try:
        return _size(path) <= LARGEST and b"__global__" in Path(path).read_bytes()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None


def _reported(document: Document, finding: Finding, settings: Settings, line_hash: str, occurrence: int) -> Reported:
    return Reported(
        path=document.path,
        rule=finding.rule,
        name=by_id()[finding.rule].name,
        severity=severity(settings, finding.rule, finding.severity.value),
        message=f"{finding.message} ({finding.cost})" if finding.cost else finding.message,
        place=_place(document, finding.span),
        related=tuple(Nearby(_place(document, other.span), other.words) for other in finding.related),
        idea=finding.fix,
        line_hash=line_hash,
        occurrence=occurrence,
        source=_excerpt(document, finding.span),
        counted=finding.counted,
    )


def _place(document: Document, span: Span) -> Place:
    line, end_line = document.line(span.start), document.line(span.end)
    return Place(line, _column(document, line, span.start), end_line, _column(document, end_line, span.end))


def _column(document: Document, line: int, offset: int) -> int:
    start = document.line_starts[line - 1]
    before = document.text[start:offset]
    return 1 + len(_text(before if line > 1 else before.removeprefix(_BOM)).encode("utf-16-le", "surrogatepass")) // 2


def _text(piece: bytes) -> str:
    """A byte of another encoding than UTF-8 counts as one character."""
    return piece.decode("utf-8", "surrogateescape")


def _bounds(document: Document, offset: int) -> tuple[int, int]:
    """The line of an offset, without its end."""
    start = document.line_starts[document.line(offset) - 1]
    end = document.text.find(b"\n", offset)
    return start, len(document.text) if end < 0 else end


def _line_hash(document: Document, offset: int) -> str:
    start, end = _bounds(document, offset)
    plain = b" ".join(document.text[start:end].removeprefix(_BOM).split())
    return hashlib.sha256(plain).hexdigest()[:16]


def _excerpt(document: Document, span: Span) -> Excerpt:
    start, end = _bounds(document, span.start)
    stop = min(span.end, end)
    before, marked, after = (
        document.text[a:b].decode("utf-8", "replace") for a, b in ((start, span.start), (span.start, stop), (stop, end))
    )
    return Excerpt(before.lstrip("\ufeff \t")[-_AROUND:], marked[:_AROUND].rstrip("\r"), after[:_AROUND].rstrip())
