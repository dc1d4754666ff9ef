"""What the client said that it can do, as plain yes and no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from lsprotocol import types

from cuda_lsp.lines import UTF16


@frozen
class Client:
    """Nothing that a client did not announce is sent to it. ``encoding`` is the negotiated position encoding."""

    name: str = ""
    encoding: str = UTF16
    configuration: bool = False
    watches_configuration: bool = False
    watches_files: bool = False
    pulls_diagnostics: bool = False
    refreshes_lenses: bool = False
    inlay_hints: bool = False
    refreshes_inlay_hints: bool = False
    describes_codes: bool = False
    related: bool = False
    nests_symbols: bool = False
    literal_actions: bool = False
    disabled_actions: bool = False
    preferred_actions: bool = False
    resolves_edits: bool = False
    markdown: bool = False
    shows_documents: bool = False
    shows_content: bool = False
    """Whether it shows documents that are no files, with a text that it asks for."""
    applies_edits: bool = False
    versioned_edits: bool = False
    progress: bool = False
    asks: bool = False
    reviews: bool = False
    asks_text: bool = False
    """Whether it lets the user type a text when a request of ours asks for one (docs/protocol.md)."""


def client_of(params: types.InitializeParams, encoding: str) -> Client:
    """Read off an ``initialize`` request. Clients leave out whatever they like at every level."""
    given = params.capabilities

    def has(path: str) -> bool:
        return bool(_at(given, path))

    resolvable = _at(given, "text_document.code_action.resolve_support.properties") or ()
    formats = _at(given, "text_document.hover.content_format") or ()
    # without a refresh, what the compiler says after a pause would not be seen before the next keystroke
    pulls = has("text_document.diagnostic") and has("workspace.diagnostics.refresh_support")
    return Client(
        name=params.client_info.name if params.client_info else "",
        encoding=encoding,
        configuration=has("workspace.configuration"),
        watches_configuration=has("workspace.did_change_configuration.dynamic_registration"),
        watches_files=has("workspace.did_change_watched_files.dynamic_registration"),
        pulls_diagnostics=pulls,
        refreshes_lenses=has("workspace.code_lens.refresh_support"),
        inlay_hints=has("text_document.inlay_hint"),
        refreshes_inlay_hints=has("workspace.inlay_hint.refresh_support"),
        describes_codes=has("text_document.diagnostic.code_description_support")
        or has("text_document.publish_diagnostics.code_description_support"),
        related=has("text_document.diagnostic.related_information")
        or has("text_document.publish_diagnostics.related_information"),
        nests_symbols=has("text_document.document_symbol.hierarchical_document_symbol_support"),
        literal_actions=has("text_document.code_action.code_action_literal_support"),
        disabled_actions=has("text_document.code_action.disabled_support"),
        preferred_actions=has("text_document.code_action.is_preferred_support"),
        resolves_edits="edit" in resolvable and has("text_document.code_action.data_support"),
        markdown=types.MarkupKind.Markdown in formats,
        shows_documents=has("window.show_document.support"),
        shows_content=has("workspace.text_document_content.dynamic_registration"),
        applies_edits=has("workspace.apply_edit"),
        versioned_edits=has("workspace.workspace_edit.document_changes"),
        progress=has("window.work_done_progress"),
        asks=has("window.show_message"),
        reviews=has("experimental.cudaLsp.review"),
        asks_text=has("experimental.cudaLsp.askText"),
    )


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        # what lies under `experimental` comes as plain objects
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if value is None:
            return None
    return value
