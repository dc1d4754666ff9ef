"""Counted facts at the ends of lines, and only where they are bad."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lsprotocol import types

from agent.source.kernel import Kernel
from cuda_lsp.counted import BadLine, counted_lines
from cuda_lsp.facts.counts import IN_VIEW
from cuda_lsp.facts.facts import line_text
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot


def register(server: CudaServer) -> None:
    client = server.session.client
    if not client.inlay_hints:
        return

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintOptions(resolve_provider=False))
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None or not server.session.settings.inlay_hints:
            return None
        shown = snapshot.lines.span_of(params.range)
        kernels = snapshot.document.kernels.touching(shown.start, shown.end)
        for kernel in islice(kernels, IN_VIEW):
            server.facts.want(snapshot, kernel)
            server.counts.want(snapshot, kernel)
        lines = range(params.range.start.line, params.range.end.line + 1)
        return [hint for hint in hints(server, snapshot, kernels) if hint.position.line in lines]

    if client.refreshes_inlay_hints:
        server.at_refresh(lambda: server.workspace_inlay_hint_refresh(None))


def hints(server: CudaServer, snapshot: Snapshot, kernels: list[Kernel]) -> Iterator[types.InlayHint]:
    """One a line: two kernels that share a helper may both have counted it."""
    seen: set[int] = set()
    for kernel in kernels:
        for bad in counted_lines(server, snapshot, kernel):
            if bad.line not in seen:
                seen.add(bad.line)
                yield _hint(snapshot, bad)


def _hint(snapshot: Snapshot, bad: BadLine) -> types.InlayHint:
    start = snapshot.document.line_starts[bad.line - 1]
    end = start + len(line_text(snapshot.document, bad.line).rstrip())
    words = bad.words if bad.fresh else f"{bad.words} ..."
    return types.InlayHint(snapshot.lines.position_of(end), words, tooltip=bad.meaning, padding_left=True)
