"""What is known about the kernel under the cursor: at its signature, and where it is launched."""

from __future__ import annotations

from lsprotocol import types

from agent.source.kernel import Kernel
from agent.source.span import Span
from cuda_lsp import words
from cuda_lsp.counted import counted_lines
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None:
            return None
        found = at(snapshot, snapshot.lines.offset_of(params.position))
        if found is None:
            return None
        kernel, where = found
        server.facts.want(snapshot, kernel)
        server.counts.want(snapshot, kernel)
        return types.Hover(content(server, snapshot, kernel), snapshot.lines.range_of(where))


def at(snapshot: Snapshot, offset: int) -> tuple[Kernel, Span] | None:
    """The kernel whose name, in its definition or at a launch, holds ``offset``."""
    kernels, launches = snapshot.document.kernels, snapshot.document.launches
    for kernel in kernels.touching(offset, offset):
        if kernel.name_span.start <= offset <= kernel.name_span.end:
            return kernel, kernel.name_span
    around = [index for index in range(len(launches)) if launches.start(index) <= offset <= launches.end(index)]
    for site in map(launches.__getitem__, around):
        if offset <= site.grid_span.start:
            launched = next((at for at, kernel in enumerate(kernels.as_read) if kernel.name == site.kernel), None)
            if launched is not None:
                return kernels[launched], Span(site.span.start, site.span.start + len(site.callee.encode()))
    return None


def content(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> types.MarkupContent:
    head = words.signature(snapshot.document, kernel)
    lines = list(words.at_length(snapshot.document, kernel, server.facts.of(snapshot, kernel)))
    counted = counted_lines(server, snapshot, kernel)
    lines += [f"line {bad.line}: {bad.words}{'' if bad.fresh else ' ...'}" for bad in counted]
    if server.session.client.markdown:
        listed = "\n".join(f"- {escaped(line)}" for line in lines)
        return types.MarkupContent(types.MarkupKind.Markdown, f"```cuda\n{head}\n```\n{listed}")
    return types.MarkupContent(types.MarkupKind.PlainText, "\n".join((head, *lines)))


def escaped(text: str) -> str:
    """``text`` with nothing in it that Markdown would take for mark-up."""
    return "".join("\\" + c if c in "\\`*_{}[]<>#|~" else c for c in " ".join(text.split()))
