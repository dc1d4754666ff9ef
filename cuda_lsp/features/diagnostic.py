"""Diagnostics for clients that ask for them, and can be told to ask again."""

from __future__ import annotations

import hashlib

from lsprotocol import types

from cuda_lsp.diagnostics import SOURCE, written
from cuda_lsp.server import CudaServer
from cuda_lsp.transport import Written


def register(server: CudaServer) -> None:
    if not server.session.client.pulls_diagnostics:
        return
    options = types.DiagnosticOptions(identifier=SOURCE, inter_file_dependencies=False, workspace_diagnostics=False)

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    def diagnostic(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport | Written:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None:
            return types.RelatedFullDocumentDiagnosticReport(items=[])
        items = written(server, snapshot)
        state = hashlib.blake2b(items.encode(), digest_size=16).hexdigest()
        if params.previous_result_id == state:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=state)
        return Written(f'{{"kind": "full", "resultId": "{state}", "items": {items}}}')

    server.at_refresh(lambda: server.workspace_diagnostic_refresh(None))
