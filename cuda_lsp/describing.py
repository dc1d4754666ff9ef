"""Writing a workload down: a directive as an edit above the kernel."""

from __future__ import annotations

from lsprotocol import types

from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits, reanchor
from agent.source.kernel import Kernel
from agent.source.line_ends import line_end
from agent.source.span import Span
from cuda_lsp.jobs import Job
from cuda_lsp.server import CudaServer


async def write_directive(server: CudaServer, job: Job) -> None:
    """Put the directive that a job found above its kernel, wherever that is by now, and say what was found."""
    assert job.ended is not None
    questions = "".join(f"\n- {question}" for question in job.ended.lines) if job.ended.reason == "questions" else ""
    snapshot = server.session.snapshot(job.uri)
    kernel = reanchor(job.document.kernel(job.kernel), job.document, snapshot.read()) if snapshot else None
    edit = insertion(snapshot.document, kernel, job.ended.directive) if snapshot and kernel else None
    if snapshot is None or edit is None:
        server.say(
            f"{job.kernel} was edited or closed meanwhile; nothing was written. This is its workload:\n"
            f"{job.ended.directive}"
        )
        return
    applied = await server.applier.apply(snapshot, [edit], f"cuda-lsp: describe the workload of {job.kernel}")
    if not applied.ok:
        server.say(f"{applied.message}. Put this above {job.kernel}:\n{job.ended.directive}{questions}")
    elif questions:
        server.say(f"fill in the blanks above {job.kernel}:{questions}")
    else:
        server.say(job.message, types.MessageType.Info)


def insertion(document: Document, kernel: Kernel, directive: str) -> Edit | None:
    """The directive on lines of its own above the kernel, indented as it is; None where it would not be read there."""
    from agent.workload.directive import find_directive  # brings in what the server starts without

    start = document.line_starts[document.line(kernel.span.start) - 1]
    line = document.text[start : kernel.span.start]
    indent = line[: len(line) - len(line.lstrip())]
    end = line_end(document.text)
    text = b"".join(indent + part.encode() + end for part in directive.splitlines())
    edit = Edit(Span(start, start), text)
    new = parse(apply_edits(document.text, [edit]), document.path, document)
    there = [other for other in new.kernels if other.span.start == kernel.span.start + len(text)]
    return edit if there and find_directive(new, there[0]) is not None else None
