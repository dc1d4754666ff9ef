"""A client over standard input and output, with the capabilities of real editors, and an editor behind it."""

import ast
import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from attrs import define, field
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.protocol import default_converter

from tests.server.editor import LAX, STRICT, Editor, position_of
from tests.server.wire import CLIENTS

ROOT = Path(__file__).parents[2]
SCRIPTED = (
    "from cuda_lsp.server import CudaServer; from cuda_lsp.jobs.pool import Pool; "
    "CudaServer(workers=Pool('tests.server.scripted_worker')).serve()"
)
REAL = "from cuda_lsp.server import CudaServer; CudaServer().serve()"

CAPABILITIES = {
    name: default_converter().structure(announced, types.ClientCapabilities) for name, announced in CLIENTS.items()
}
CAPABILITIES["minimal"] = types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(apply_edit=True))
MANNERS = {"vscode": STRICT, "neovim": LAX, "minimal": LAX}


@define(eq=False)
class Connected:
    """What the server sent is kept in order of arrival."""

    client: LanguageClient
    progress: list[tuple[str | int, Any]] = field(factory=list)
    messages: list[str] = field(factory=list)
    asked: list[types.ShowMessageRequestParams] = field(factory=list)
    shown: list[str] = field(factory=list)
    reviews: list[Any] = field(factory=list)
    answer: str = ""
    """The button that the user presses; ``...`` where none is."""
    text: str | None = None
    """What the user types when asked for a text."""
    settings: Any = None
    published: dict[str, list[types.Diagnostic]] = field(factory=dict)
    server: types.ServerCapabilities = field(factory=types.ServerCapabilities)
    editor: Editor = field(init=False)

    # --- an editor's session: what it does is sent -------------------------------------------------------------------

    def open(self, item: types.TextDocumentItem) -> None:
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, uri: str, version: int, changes: list[types.TextDocumentContentChangeEvent]) -> None:
        identifier = types.VersionedTextDocumentIdentifier(version, uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, changes))

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    # --- what a user does --------------------------------------------------------------------------------------------

    async def command(self, name: str, *arguments: Any, token: str | None = None) -> Any:
        params = types.ExecuteCommandParams(f"cuda-lsp.{name}", list(arguments), token)
        return await self.client.workspace_execute_command_async(params)

    async def diagnostics(self) -> list[types.Diagnostic]:
        """What is wrong, as this client gets to know it."""
        if self.server.diagnostic_provider is None:
            return self.published.get(self.editor.uri, [])
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(self.editor.uri))
        report = await self.client.text_document_diagnostic_async(params)
        return list(report.items) if isinstance(report, types.RelatedFullDocumentDiagnosticReport) else []

    async def inlay_hints(self) -> list[types.InlayHint]:
        whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(self.editor.uri), whole)
        return list(await self.client.text_document_inlay_hint_async(params) or ())

    async def actions(self, piece: str, only: list[str] | None = None) -> list[Any]:
        """The menu at the first ``piece`` of the text."""
        at = position_of(self.editor.text, self.editor.text.index(piece), self.editor.encoding)
        context = types.CodeActionContext([], only)  # type: ignore[arg-type]
        params = types.CodeActionParams(types.TextDocumentIdentifier(self.editor.uri), types.Range(at, at), context)
        return [_action(one) for one in await self.client.text_document_code_action_async(params) or ()]

    async def take(self, action: types.CodeAction | types.Command) -> Any:
        """What an editor does when an entry is chosen: resolve it, apply its edit, run its command."""
        if isinstance(action, types.CodeAction):
            if action.edit is None and action.command is None:
                action = await self.client.code_action_resolve_async(action)
            if action.edit is not None:
                return await self.editor.apply(types.ApplyWorkspaceEditParams(action.edit))
            assert action.command is not None
            action = action.command
        params = types.ExecuteCommandParams(action.command, list(action.arguments or ()))
        return await self.client.workspace_execute_command_async(params)

    async def eventually(self, found: Callable[[], Awaitable[Any]], seconds: float = 60.0) -> Any:
        """The first true answer."""
        deadline = time.monotonic() + seconds
        while not (value := await found()):
            assert time.monotonic() < deadline, f"it did not happen: {self.messages}"
            await asyncio.sleep(0.05)
        return value

    async def lenses(self) -> list[types.CodeLens]:
        identifier = types.TextDocumentIdentifier(self.editor.uri)
        return list(await self.client.text_document_code_lens_async(types.CodeLensParams(identifier)) or ())

    async def titles(self) -> list[str]:
        return [lens.command.title for lens in await self.lenses() if lens.command]

    async def shows(self, title: str, seconds: float = 60.0) -> bool:
        """Whether a lens says so, now or when the text has been read with care."""
        deadline = time.monotonic() + seconds
        while not (found := title in await self.titles()) and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        return found

    async def kernel(self, name: str) -> Any:
        """The kernel as a lens refers to it."""
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            for lens in await self.lenses():
                assert lens.command is not None and lens.command.arguments
                if lens.command.arguments[0]["kernel"] == name:
                    return lens.command.arguments[0]
            await asyncio.sleep(0.05)
        raise AssertionError(f"no lens over {name}")

    async def until(self, holds: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"it did not happen: {self.messages} {self.progress}"
            await asyncio.sleep(0.01)

    def kinds(self, token: str | int) -> list[str]:
        return [value["kind"] for known, value in self.progress if known == token]

    @property
    def pid(self) -> int:
        assert self.client._server is not None
        return self.client._server.pid

    def workers(self) -> list[int]:
        return descendants(self.pid)


def _action(told: Any) -> types.CodeAction | types.Command:
    """pygls takes an action with a command for a bare command whose name is that command, written out."""
    if isinstance(told, types.Command) and told.command.startswith("{"):
        return types.CodeAction(told.title, command=types.Command(**ast.literal_eval(told.command)))
    return told  # type: ignore[no-any-return]


def descendants(pid: int) -> list[int]:
    """Every process below one, by the kernel's own account."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


@contextlib.asynccontextmanager
async def connect(
    file: Path,
    text: str,
    state: Path,
    capabilities: str = "vscode",
    server: str = SCRIPTED,
    uri: str = "",
    manner: str = "",
    **environment: str,
) -> AsyncIterator[Connected]:
    """A server with one document open. ``state`` is the user's state folder."""
    client = LanguageClient("test", "1")
    connected = Connected(client)
    _listen(client, connected)
    known = {**os.environ, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT), **environment}
    await client.start_io(sys.executable, "-c", server, env=known, cwd=str(ROOT))
    try:
        root = file.parent.as_uri()
        params = types.InitializeParams(CAPABILITIES[capabilities], process_id=os.getpid(), root_uri=root)
        answer = await client.initialize_async(params)
        connected.server = answer.capabilities
        client.initialized(types.InitializedParams())
        encoding = answer.capabilities.position_encoding or types.PositionEncodingKind.Utf16
        connected.editor = Editor(
            connected,  # type: ignore[arg-type]
            uri or file.as_uri(),
            text,
            manner or MANNERS[capabilities],
            encoding=getattr(encoding, "value", encoding),
        )
        connected.editor.open()
        yield connected
    finally:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(client.shutdown_async(None), 5)
        with contextlib.suppress(Exception):
            client.exit(None)
            await asyncio.wait_for(client.stop(), 10)


def _listen(client: LanguageClient, connected: Connected) -> None:
    @client.feature(types.PROGRESS)
    def progress(params: types.ProgressParams) -> None:
        connected.progress.append((params.token, params.value))

    @client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
    def create(params: types.WorkDoneProgressCreateParams) -> None:
        return None

    @client.feature(types.WINDOW_SHOW_MESSAGE)
    def message(params: types.ShowMessageParams) -> None:
        connected.messages.append(params.message)

    @client.feature(types.WINDOW_LOG_MESSAGE)
    def log(params: types.LogMessageParams) -> None:
        return None

    @client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
    async def ask(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        connected.asked.append(params)
        while connected.answer == "...":
            await asyncio.sleep(0.01)
        return next((item for item in params.actions or () if item.title == connected.answer), None)

    @client.feature(types.WINDOW_SHOW_DOCUMENT)
    def show(params: types.ShowDocumentParams) -> types.ShowDocumentResult:
        connected.shown.append(params.uri)
        return types.ShowDocumentResult(True)

    @client.feature(types.WORKSPACE_APPLY_EDIT)
    async def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        return await connected.editor.apply(params)

    @client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
    def refresh(*_: Any) -> None:
        return None

    @client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
    def refresh_hints(*_: Any) -> None:
        return None

    @client.feature(types.WORKSPACE_DIAGNOSTIC_REFRESH)
    def refresh_diagnostics(*_: Any) -> None:
        return None

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def registered(params: types.RegistrationParams) -> None:
        return None

    @client.feature(types.WORKSPACE_CONFIGURATION)
    def configuration(params: types.ConfigurationParams) -> list[Any]:
        return [connected.settings for _ in params.items]

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def diagnostics(params: types.PublishDiagnosticsParams) -> None:
        connected.published[params.uri] = list(params.diagnostics)

    @client.feature("cuda-lsp/askText")
    def ask_text(params: Any) -> Any:
        return None if connected.text is None else {"text": connected.text}

    @client.feature("cuda-lsp/review")
    def review(params: Any) -> None:
        connected.reviews.append(params)
