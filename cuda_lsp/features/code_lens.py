"""One line over each kernel: what it costs, how many hints it has, and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from agent.source.kernel import Kernel
from cuda_lsp import protocol
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None or not server.session.settings.lenses:
            return None
        return [lens for kernel in snapshot.document.kernels for lens in lenses(server, snapshot, kernel)]


def lenses(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> Iterator[types.CodeLens]:
    where = snapshot.lines.range_of(kernel.name_span)
    target = protocol.as_argument(protocol.reference(snapshot, kernel))
    for title, command in _entries(server, snapshot, kernel):
        if server.offers(command):
            yield types.CodeLens(where, types.Command(title, command, arguments=[target]))


def _entries(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> Iterator[tuple[str, str]]:
    if kernel.damage:
        yield f"cannot be rewritten: {kernel.damage}", protocol.SHOW_KERNEL
        return
    yield "Kernel", protocol.SHOW_KERNEL
    yield "Suggest ideas", protocol.SUGGEST
    yield "Optimize", protocol.OPTIMIZE
