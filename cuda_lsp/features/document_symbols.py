"""The outline: kernels, and where they are launched."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from agent.source.kernel import Kernel
from agent.source.launch import LaunchSite
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

_LONGEST = 80


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def document_symbols(
        params: types.DocumentSymbolParams,
    ) -> list[types.DocumentSymbol] | list[types.SymbolInformation] | None:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None:
            return None
        found = sorted(symbols(snapshot), key=lambda symbol: (symbol.range.start.line, symbol.range.start.character))
        return found if server.session.client.nests_symbols else [flat(snapshot.uri, symbol) for symbol in found]


def symbols(snapshot: Snapshot) -> Iterator[types.DocumentSymbol]:
    for kernel in snapshot.document.kernels:
        yield _of_kernel(snapshot, kernel)
    for site in snapshot.document.launches:
        yield _of_launch(snapshot, site)


def _of_kernel(snapshot: Snapshot, kernel: Kernel) -> types.DocumentSymbol:
    lines = snapshot.lines
    return types.DocumentSymbol(
        name=kernel.qualified_name or "(kernel without a name)",
        detail=", ".join(f"{parameter.type} {parameter.name}".strip() for parameter in kernel.parameters),
        kind=types.SymbolKind.Function,
        range=lines.range_of(kernel.span),
        selection_range=lines.range_of(kernel.name_span),
    )


def _of_launch(snapshot: Snapshot, site: LaunchSite) -> types.DocumentSymbol:
    where = snapshot.lines.range_of(site.span)
    return types.DocumentSymbol(
        name=_short(f"{site.callee}<<<{site.grid}, {site.block}>>>"),
        detail=f"launch in {site.function}" if site.function else "launch",
        kind=types.SymbolKind.Event,
        range=where,
        selection_range=where,
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def flat(uri: str, symbol: types.DocumentSymbol) -> types.SymbolInformation:
    """For clients that know only the older form."""
    return types.SymbolInformation(
        name=symbol.name, kind=symbol.kind, location=types.Location(uri, symbol.selection_range)
    )
