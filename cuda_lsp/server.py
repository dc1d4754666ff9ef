"""The language server: its life, and where its parts find each other. What it can do is in ``features/``."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import pkgutil
from collections.abc import Callable, Coroutine
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.lsp.server import LanguageServer

import cuda_lsp
from cuda_lsp import features
from cuda_lsp.client import client_of
from cuda_lsp.session import Session
from cuda_lsp.transport import Tracer, Transport

log = logging.getLogger(__name__)


class CudaServer(LanguageServer):
    """One connection with one client. Everything here happens on the event loop; other threads use :meth:`later`."""

    protocol: Transport

    def __init__(self, tracer: Tracer | None = None) -> None:
        super().__init__(
            "cuda-lsp",
            cuda_lsp.__version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=Transport,
            # only the reader of standard input uses pygls' pool; our work has processes and threads of its own
            max_workers=1,
        )
        self.protocol.tracer = tracer
        self.session = Session()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._endings: list[Callable[[], None]] = []

    def begin(self, params: types.InitializeParams) -> None:
        """On ``initialize``: learn what the client can do, then let every feature register what fits it."""
        self._loop = asyncio.get_running_loop()
        encoding = ServerCapabilitiesBuilder.choose_position_encoding(params.capabilities)
        self.session.client = client_of(params, types.PositionEncodingKind(encoding).value)
        for module in pkgutil.iter_modules(features.__path__):
            importlib.import_module(f"{features.__name__}.{module.name}").register(self)

    def lose(self, message: dict[str, Any]) -> None:
        """A change could not be read: from here on the document's text is not known, and nothing is said about it."""
        document = (message.get("params") or {}).get("textDocument") or {}
        uri = document.get("uri") if isinstance(document, dict) else None
        if isinstance(uri, str) and self.session.snapshot(uri) is not None:
            self.session.close(uri)
            self.say(f"a change of {uri} could not be understood; close the file and open it again")

    # --- for features ----------------------------------------------------------------------------------------------

    def later(self, work: Callable[..., object], *arguments: object) -> None:
        """Run ``work`` on the event loop soon. From any thread, also when the loop has ended (then it is dropped)."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(work, *arguments)

    def task(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine of our own. What it raises is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task failed", exc_info=error)

    def say(self, text: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Show a message to the user."""
        self.window_show_message(types.ShowMessageParams(kind, f"cuda-lsp: {text}"))

    def offers(self, command: str) -> bool:
        """Whether a command is there: lenses and actions carry no others."""
        return command in self.protocol.fm.commands

    def at_end(self, work: Callable[[], None]) -> None:
        """``work`` is called when the server ends, however it ends: it stops processes and must not wait for long."""
        self._endings.append(work)

    # --- life ------------------------------------------------------------------------------------------------------

    def serve(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None, port: int | None = None) -> None:
        """Serve one client over the streams, or over TCP on this machine's own address. Returns when it is gone."""
        try:
            if port is None:
                self.start_io(stdin, stdout)
            else:
                self.start_tcp("127.0.0.1", port)
        finally:
            self.end()

    def end(self) -> None:
        """Stop whatever was started. Safe to call twice."""
        endings, self._endings = self._endings, []
        for work in reversed(endings):
            try:
                work()
            except Exception:
                log.exception("could not end")

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors outside any request. A failing request is answered with its error; nobody needs to hear it twice."""
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            self.protocol.refuse_unreadable(error)
        else:
            log.error("%s: %s", getattr(source, "__name__", source), error, exc_info=error)
