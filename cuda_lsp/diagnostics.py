"""What is wrong or could be better, as diagnostics: the rules' findings and the compiler's messages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from lsprotocol import types

from agent.source.kernel import Kernel
from agent.source.span import Span
from cuda_lsp.facts.facts import Message
from cuda_lsp.hints import hints_of
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

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
    found: dict[tuple[object, ...], types.Diagnostic] = {}
    for kernel in snapshot.document.kernels:
        for diagnostic in (*_findings(server, snapshot, kernel), *_compiled(server, snapshot, kernel)):
            start = diagnostic.range.start
            # two kernels that share a helper share its errors
            found.setdefault((start.line, start.character, diagnostic.code, diagnostic.message), diagnostic)
    return list(found.values())


def _findings(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> Iterator[types.Diagnostic]:
    related = server.session.client.related
    for finding in hints_of(server, snapshot, kernel):
        message = f"{finding.message} ({finding.cost})" if finding.cost else finding.message
        yield types.Diagnostic(
            range=snapshot.lines.range_of(finding.span),
            message=message,
            severity=_SEVERITIES[finding.severity.value],
            code=finding.rule,
            source=SOURCE,
            related_information=[
                types.DiagnosticRelatedInformation(
                    types.Location(snapshot.uri, snapshot.lines.range_of(other.span)), other.words
                )
                for other in finding.related
            ]
            if related and finding.related
            else None,
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
