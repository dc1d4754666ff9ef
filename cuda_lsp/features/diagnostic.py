"""Diagnostics for clients that ask for them, and can be told to ask again."""

from __future__ import annotations

from lsprotocol import types

from cuda_lsp.diagnostics import SOURCE, diagnostics
from cuda_lsp.server import CudaServer


def register(server: CudaServer) -> None:
    if not server.session.client.pulls_diagnostics:
        return
    options = types.DiagnosticOptions(identifier=SOURCE, inter_file_dependencies=False, workspace_diagnostics=False)

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    def diagnostic(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None:
            return types.RelatedFullDocumentDiagnosticReport(items=[])
        state = f"{snapshot.version}.{server.facts.generation}"
        if params.previous_result_id == state:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=state)
        return types.RelatedFullDocumentDiagnosticReport(items=diagnostics(server, snapshot), result_id=state)

    server.at_refresh(lambda: server.workspace_diagnostic_refresh(None))
