"""One line over each kernel: what it costs, how many hints it has, and what can be done with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from lsprotocol import types

from agent.source.kernel import Kernel
from cuda_lsp import protocol, words
from cuda_lsp.server import CudaServer, Offer
from cuda_lsp.session import Snapshot
from cuda_lsp.transport import Written
from cuda_lsp.upheld import upheld

_IN_A_ROW = 0.002
"""Seconds of work on lenses after which the server looks whether something came in."""
_RESTARTS = 3
"""So many times the work begins anew for a text that was changed meanwhile; then it is done in one go."""


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def code_lens(params: types.CodeLensParams) -> Written | None:
        for last in (*[False] * _RESTARTS, True):
            snapshot = server.session.snapshot(params.text_document.uri)
            if snapshot is None or not server.session.settings.lenses:
                return None
            if (written := await _written(server, snapshot, last)) is not None:
                return Written(f"[{', '.join(written)}]")
        raise AssertionError("unreachable")

    if server.session.client.refreshes_lenses:
        server.at_refresh(lambda: server.workspace_code_lens_refresh(None))


async def _written(server: CudaServer, snapshot: Snapshot, to_the_end: bool) -> list[str] | None:
    """The lenses of a document as JSON, each. A large file has a thousand, and a key that is typed meanwhile does not
    wait for them: what came in is looked at now and then. None where the text was changed by that."""
    written, began = [], time.perf_counter()
    for kernel in snapshot.document.kernels:
        written += [server.protocol.written(lens) for lens in lenses(server, snapshot, kernel)]
        if time.perf_counter() - began > _IN_A_ROW and not to_the_end:
            await asyncio.sleep(0)
            if server.session.snapshot(snapshot.uri) is not snapshot:
                return None
            began = time.perf_counter()
    return written


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
