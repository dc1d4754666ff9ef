"""What is wrong or could be better, as diagnostics: the rules' findings and the compiler's messages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

from agent.source.kernel import Kernel
from agent.source.span import Span
from cuda_lsp.facts.facts import Message
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

if TYPE_CHECKING:
    from agent.analysis.rules import Finding

SOURCE = "cuda-lsp"
COMPILER = "nvrtc"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


def diagnostics(server: CudaServer, snapshot: Snapshot) -> list[types.Diagnostic]:
    """Everything that is known about a snapshot, without waiting for anything."""
    if not server.session.settings.diagnostics:
        return []
    hints: list[types.Diagnostic] = []
    compiled: dict[tuple[object, ...], types.Diagnostic] = {}
    for kernel in snapshot.document.kernels:
        hints += server.hints.shown(snapshot, kernel, lambda finding: _of_finding(server, snapshot, finding))
        for diagnostic in _compiled(server, snapshot, kernel):
            # two kernels that share a helper share its errors
            start = diagnostic.range.start
            compiled.setdefault((start.line, start.character, diagnostic.message), diagnostic)
    return [*compiled.values(), *hints]


def _of_finding(server: CudaServer, snapshot: Snapshot, finding: Finding) -> types.Diagnostic:
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(snapshot.uri, snapshot.lines.range_of(other.span)), other.words
        )
        for other in (finding.related if server.session.client.related else ())
    ]
    return types.Diagnostic(
        range=snapshot.lines.range_of(finding.span),
        message=f"{finding.message} ({finding.cost})" if finding.cost else finding.message,
        severity=_SEVERITIES[finding.severity.value],
        code=finding.rule,
        source=SOURCE,
        related_information=related or None,
    )


def _compiled(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> Iterator[types.Diagnostic]:
    known = server.facts.of(snapshot, kernel)
    for message in known.facts.messages if known else ():
        span = _place(snapshot, kernel, message)
        if span is not None:
            yield types.Diagnostic(
                range=snapshot.lines.range_of(span),
                message=message.text,
                severity=_SEVERITIES[message.severity],
                code=COMPILER,
                source=SOURCE,
            )


def _place(snapshot: Snapshot, kernel: Kernel, message: Message) -> Span | None:
    """Where a message belongs now: the line that it was about, wherever that moved to. None where it was edited."""
    if not message.line:
        return kernel.name_span
    places = snapshot.once(lines_by_text).get(message.anchor, [])
    if not places:
        return None
    after = bisect_right(places, message.line)
    number = min(places[max(0, after - 1) : after + 1], key=lambda place: abs(place - message.line))
    start = snapshot.document.line_starts[number - 1]
    indent = len(message.anchor) - len(message.anchor.lstrip())
    return Span(start + indent, start + len(message.anchor))


def lines_by_text(snapshot: Snapshot) -> dict[bytes, list[int]]:
    """The 1-based numbers of the lines with a text."""
    found: dict[bytes, list[int]] = {}
    for number, line in enumerate(snapshot.text.split(b"\n"), 1):
        found.setdefault(line.rstrip(b"\r"), []).append(number)
    return found
