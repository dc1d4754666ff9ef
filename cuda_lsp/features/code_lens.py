"""One line over each kernel: what it costs, how many hints it has, and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from agent.source.kernel import Kernel
from cuda_lsp import protocol, words
from cuda_lsp.server import CudaServer, Offer
from cuda_lsp.session import Snapshot
from cuda_lsp.upheld import upheld


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None or not server.session.settings.lenses:
            return None
        return [lens for kernel in snapshot.document.kernels for lens in lenses(server, snapshot, kernel)]

    if server.session.client.refreshes_lenses:
        server.at_refresh(lambda: server.workspace_code_lens_refresh(None))


def lenses(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> Iterator[types.CodeLens]:
    where = snapshot.lines.range_of(kernel.name_span)
    target = protocol.as_argument(protocol.reference(snapshot, kernel))
    for offer in _offers(server, snapshot, kernel):
        if server.offers(offer.command):
            yield types.CodeLens(where, types.Command(offer.title, offer.command, arguments=[target, *offer.arguments]))


def _offers(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> Iterator[Offer]:
    if kernel.damage:
        yield Offer(f"cannot be rewritten: {kernel.damage}", protocol.SHOW_KERNEL)
        return
    if (known := words.in_short(server.facts.of(snapshot, kernel))) is not None:
        yield Offer(known, protocol.SHOW_KERNEL)
    if count := len(upheld(server, snapshot, kernel, server.hints.of(snapshot, kernel))):
        yield Offer(f"{count} hint{'s' if count > 1 else ''}", protocol.SHOW_HINTS)
    for source in server.lens_sources:
        yield from source(snapshot, kernel)
