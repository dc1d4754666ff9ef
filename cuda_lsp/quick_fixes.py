"""What can be done about a hint from its own line: mend it, try the idea that it names, or silence it.

Offered from what is known already. What changes a kernel is proved before it is written (``fixing.py``); other edits
are made when they are wanted, on the text that they were offered on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from agent.source.edits import Edit
from agent.source.kernel import Kernel
from agent.source.line_ends import line_end
from agent.source.span import Span
from cuda_lsp import protocol
from cuda_lsp.applying import workspace_edit
from cuda_lsp.diagnostics import of_finding
from cuda_lsp.fixing import careful, is_provable
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot
from cuda_lsp.upheld import upheld

if TYPE_CHECKING:
    from agent.analysis.rules import Finding

KIND = types.CodeActionKind.QuickFix.value
_MEND, _SILENCE = "mend", "silence"
_MOST_KERNELS = 16


def quick_fixes(
    server: CudaServer, snapshot: Snapshot, kernels: list[Kernel], asked: Span
) -> Iterator[types.CodeAction]:
    """For the hints that ``asked`` touches."""
    if not server.session.client.literal_actions:
        return
    for kernel in kernels[:_MOST_KERNELS]:
        near = [one for one in server.hints.of(snapshot, kernel) if _touch(one.span, asked)]
        if near:
            for finding in upheld(server, snapshot, kernel, careful(server, snapshot, kernel)):
                if _touch(finding.span, asked):
                    yield from _of(server, snapshot, kernel, finding)


def _touch(one: Span, other: Span) -> bool:
    return one.start <= other.end and other.start <= one.end


def _of(server: CudaServer, snapshot: Snapshot, kernel: Kernel, finding: Finding) -> Iterator[types.CodeAction]:
    diagnostic = of_finding(server, snapshot, finding)
    told = protocol.as_argument(protocol.reference(snapshot, kernel))
    if finding.repair is not None:
        preferred = finding.repair.sure and finding.fix is None and server.session.client.preferred_actions
        mend = types.CodeAction(finding.repair.title, KIND, [diagnostic], is_preferred=preferred or None)
        if not is_provable(kernel, finding):
            mend.title = f"{finding.repair.title} (code of the host: not run)"
            yield _lazily(server, snapshot, kernel, mend, {**told, **_told(finding, _MEND)})
        elif server.offers(protocol.FIX):
            mend.title = f"Verify and apply: {finding.repair.title}"
            which = {"rule": finding.rule, "start": finding.span.start - kernel.span.start}
            mend.command = types.Command(mend.title, protocol.FIX, arguments=[told, which])
            yield mend
    if finding.fix is not None and server.offers(protocol.OPTIMIZE):
        yield _try(server, snapshot, kernel, finding, diagnostic, told)
    silence = types.CodeAction(f"Silence {finding.rule} on this line", KIND, [diagnostic])
    if _silence(snapshot, finding) is not None:
        yield _lazily(server, snapshot, kernel, silence, {**told, **_told(finding, _SILENCE)})


def _try(
    server: CudaServer, snapshot: Snapshot, kernel: Kernel, finding: Finding, diagnostic: types.Diagnostic, told: Any
) -> types.CodeAction:
    title = f"Verify and apply {finding.fix} to {kernel.name}"
    reasons = (ask(snapshot, kernel, protocol.OPTIMIZE) for ask in server.obstacles)
    if (reason := next(filter(None, reasons), None)) is not None and server.session.client.disabled_actions:
        return types.CodeAction(title, KIND, [diagnostic], disabled=types.CodeActionDisabled(reason))
    options = {"only": [finding.fix], "scope": "plan", "apply": True}
    command = types.Command(title, protocol.OPTIMIZE, arguments=[told, options])
    return types.CodeAction(title, KIND, [diagnostic], command=command)


def _told(finding: Finding, what: str) -> dict[str, Any]:
    return {"fix": what, "rule": finding.rule, "start": finding.span.start, "end": finding.span.end}


def _lazily(
    server: CudaServer, snapshot: Snapshot, kernel: Kernel, action: types.CodeAction, data: dict[str, Any]
) -> types.CodeAction:
    if server.session.client.resolves_edits:
        action.data = data
    else:
        action.edit = fix_edit(server, snapshot, kernel, data)
    return action


def fix_edit(
    server: CudaServer, snapshot: Snapshot, kernel: Kernel, data: Mapping[str, Any]
) -> types.WorkspaceEdit | None:
    """The edit behind an action of ours; None where there is no such finding in this text."""
    wanted = (data.get("rule"), data.get("start"), data.get("end"))
    for finding in careful(server, snapshot, kernel):
        if (finding.rule, finding.span.start, finding.span.end) == wanted:
            edits = _edits(snapshot, finding, data.get("fix"))
            return workspace_edit(server.session, snapshot, edits) if edits else None
    return None


def _edits(snapshot: Snapshot, finding: Finding, what: object) -> tuple[Edit, ...]:
    if what == _MEND:
        return finding.repair.edits if finding.repair else ()
    silence = _silence(snapshot, finding)
    return (silence,) if silence is not None else ()


def _silence(snapshot: Snapshot, finding: Finding) -> Edit | None:
    """A comment on a line of its own above the finding; None where a macro or a string goes on over the line end."""
    text = snapshot.text
    start = text.rfind(b"\n", 0, finding.span.start) + 1
    if text[:start].rstrip(b"\r\n").endswith(b"\\") or _inside_text(snapshot, start):
        return None
    line = text[start : finding.span.start]
    indent = line[: len(line) - len(line.lstrip())]
    return Edit(Span(start, start), indent + f"// cuda-lsp: ignore[{finding.rule}]".encode() + line_end(text))


def _inside_text(snapshot: Snapshot, at: int) -> bool:
    """Whether a place is inside a comment or a string: a raw string may hold whole lines."""
    node = snapshot.document.tree.root_node.descendant_for_byte_range(at, at)
    while node is not None:
        inside = node.start_byte < at < node.end_byte
        if inside and (node.type == "comment" or "string" in node.type or node.type == "preproc_def"):
            return True
        node = node.parent
    return False
