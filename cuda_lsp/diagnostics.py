"""What is wrong or could be better, as diagnostics: the rules' findings and the compiler's messages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

from agent.source.kernel import Kernel
from agent.source.span import Span
from agent.workload.stray import Stray, stray_directives
from cuda_lsp.facts.facts import Message
from cuda_lsp.hints import Shown
from cuda_lsp.rule_pages import address
from cuda_lsp.ruling import severity
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot
from cuda_lsp.upheld import upheld

if TYPE_CHECKING:
    from agent.analysis.rules import Finding

SOURCE = "cuda-lsp"
COMPILER = "nvrtc"
DIRECTIVE = "directive"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


def written(server: CudaServer, snapshot: Snapshot) -> str:
    """Everything that is known about a snapshot, without waiting for anything, as a JSON array. What did not change
    since it was last written is not written again: a large file has hundreds, and a keystroke changes few of them."""
    parts = [shown.written(server.protocol.written) for shown in _shown(server, snapshot)]
    return f"[{', '.join(filter(None, parts))}]"


def _shown(server: CudaServer, snapshot: Snapshot) -> Iterator[Shown]:
    if not server.session.settings.diagnostics:
        return
    if unread := [_of_directive(snapshot, one) for one in snapshot.once(_stray)]:
        yield Shown(unread)
    if compiled := _of_compiler(server, snapshot):
        yield Shown(compiled)
    kernels, counted = snapshot.document.kernels, server.counts.names(snapshot)
    telling = _telling(server, snapshot)
    for index, shown in server.hints.every(snapshot, lambda finding: of_finding(server, snapshot, finding)):
        telling.discard(index)
        is_counted = bool(counted) and kernels[index].qualified_name in counted
        yield _upheld(server, snapshot, kernels[index], shown) if is_counted else shown
    for index in sorted(telling):
        yield _upheld(server, snapshot, kernels[index], Shown([]))


def _telling(server: CudaServer, snapshot: Snapshot) -> set[int]:
    """The kernels, by index, of which counting may have found what no rule names: they may have no other finding."""
    names = server.counts.telling(snapshot)
    kernels = enumerate(snapshot.document.kernels.as_read if names else ())
    return {index for index, item in kernels if item.qualified_name in names}


def _stray(snapshot: Snapshot) -> tuple[Stray, ...]:
    return stray_directives(snapshot.document)


def _of_directive(snapshot: Snapshot, stray: Stray) -> types.Diagnostic:
    return types.Diagnostic(
        range=snapshot.lines.range_of(stray.span),
        message=stray.message,
        severity=types.DiagnosticSeverity.Warning,
        code=DIRECTIVE,
        source=SOURCE,
    )


def _of_compiler(server: CudaServer, snapshot: Snapshot) -> list[types.Diagnostic]:
    found: dict[tuple[object, ...], types.Diagnostic] = {}
    for kernel in snapshot.document.kernels if server.facts.has_messages(snapshot) else ():
        for diagnostic in _compiled(server, snapshot, kernel):
            # two kernels that share a helper share its errors
            start = diagnostic.range.start
            found.setdefault((start.line, start.character, diagnostic.message), diagnostic)
    return list(found.values())


def _upheld(server: CudaServer, snapshot: Snapshot, kernel: Kernel, shown: Shown) -> Shown:
    """Those that counting does not contradict, and those that are made from it."""
    findings = server.hints.of(snapshot, kernel)
    kept = upheld(server, snapshot, kernel, findings)
    if len(kept) == len(findings) and not any(one.counted for one in kept):
        return shown
    known = {id(one): diagnostic for one, diagnostic in zip(findings, shown.diagnostics, strict=True)}
    return Shown([known.get(id(one)) or of_finding(server, snapshot, one) for one in kept])


def of_finding(server: CudaServer, snapshot: Snapshot, finding: Finding) -> types.Diagnostic:
    """A finding as the client sees it: the same each time, so that an action can say which one it mends."""
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(snapshot.uri, snapshot.lines.range_of(other.span)), other.words
        )
        for other in (finding.related if server.session.client.related else ())
    ]
    return types.Diagnostic(
        range=snapshot.lines.range_of(finding.span),
        message=f"{finding.message} ({finding.cost})" if finding.cost else finding.message,
        severity=_SEVERITIES[severity(server.session.ruling(snapshot.uri), finding.rule, finding.severity.value)],
        code=finding.rule,
        code_description=types.CodeDescription(address(finding.rule))
        if server.session.client.describes_codes
        else None,
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
