"""The language server: its life, and where its parts find each other. What it can do is in ``features/``."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import os
import pkgutil
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, BinaryIO

from attrs import frozen
from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer

import cuda_lsp
from agent.source.kernel import Kernel
from cuda_lsp import features, streams
from cuda_lsp.agreeing import Agreements
from cuda_lsp.applying import Applier
from cuda_lsp.client import client_of
from cuda_lsp.facts.counts import CountStore
from cuda_lsp.facts.store import FactStore
from cuda_lsp.hints import HintStore
from cuda_lsp.indexing.building import Building
from cuda_lsp.jobs import Jobs
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.parent import watch
from cuda_lsp.proposals.book import Proposals
from cuda_lsp.proposals.store import Store, default_folder
from cuda_lsp.session import Session, Snapshot
from cuda_lsp.transport import Tracer, Transport

# several things change at once: a client is asked to look again once for all of them
REFRESH_AFTER = 0.05
# seconds without a key after which there is time to look for garbage, and so many new values that there must be
_TIDY_AFTER = 1.5
_MOST_UNTIDY = 500_000

log = logging.getLogger(__name__)


@frozen
class Offer:
    """What a lens says and does: a command, and its arguments after the kernel."""

    title: str
    command: str
    arguments: tuple[Any, ...] = ()


LensSource = Callable[[Snapshot, Kernel], Iterable[Offer]]
Obstacle = Callable[[Snapshot, Kernel, str], str | None]
"""``(snapshot, kernel, command)`` to a reason in words."""


class CudaServer(LanguageServer):
    """One connection with one client. Everything here happens on the event loop; other threads use :meth:`later`."""

    protocol: Transport

    def __init__(self, tracer: Tracer | None = None, workers: Pool | None = None) -> None:
        super().__init__(
            "cuda-lsp",
            cuda_lsp.__version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=Transport,
            # only the reader of standard input uses pygls' pool; our work has processes and threads of its own
            max_workers=1,
        )
        self.protocol.tracer = tracer
        self._endings: list[Callable[[], None]] = []
        self._starts: list[Callable[[], None]] = []
        self._refreshes: list[Callable[[], object]] = []
        self._refreshing: asyncio.TimerHandle | None = None
        self._tidying: asyncio.TimerHandle | None = None
        self.session = Session()
        self.session.subscribe(self._opened)
        self._complained: set[str] = set()
        self.hints = HintStore(self.session)
        self.facts = FactStore(self.session, self.hints, self.later, lambda uri: self.refresh())
        self.at_end(self.facts.end)
        self.jobs = Jobs(self.later, workers)
        self.at_end(self.jobs.close)
        self.agreements = Agreements(self)
        self.counts = CountStore(
            self.session, self.facts, self.jobs.aside, self.later, self.refresh, lambda: self.jobs.busy
        )
        self.at_end(self.counts.end)
        self.at_refresh(self.counts.look)
        self.index = Building(self)
        self.at_end(self.index.end)
        self.applier = Applier(self.session, self.workspace_apply_edit_async)
        self.proposals = Proposals(self.session, self.applier, Store(default_folder()), self.say)
        self.jobs.subscribe(self.proposals.heard)
        self.lens_sources: list[LensSource] = []
        """What features put over a kernel, after its figures and hints."""
        self.obstacles: list[Obstacle] = []
        """What features know to speak against a command on a kernel now."""
        self.cancels: dict[str | int, Callable[[], None]] = {}
        """By token: what is called where the user cancels what the client shows as progress."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, params: types.InitializeParams) -> None:
        """On ``initialize``: learn what the client can do, then let every feature register what fits it."""
        self._loop = asyncio.get_running_loop()
        encoding = ServerCapabilitiesBuilder.choose_position_encoding(params.capabilities)
        self.session.client = client_of(params, types.PositionEncodingKind(encoding).value)
        self.session.told_at_start = params.initialization_options
        self.session.folders = _folders(params)
        watch(params.process_id, self.abandon)
        for module in pkgutil.iter_modules(features.__path__):
            importlib.import_module(f"{features.__name__}.{module.name}").register(self)

    def start(self) -> None:
        """On ``initialized``: the client takes requests from here on."""
        for work in self._starts:
            work()

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

    async def ask_text(self, title: str, prompt: str) -> str:
        """What the user types; empty where they do not. Only for clients that announced that they can ask."""
        from cuda_lsp import protocol

        answer = await self.protocol.send_request_async(protocol.ASK_TEXT_REQUEST, {"title": title, "prompt": prompt})
        text = answer.get("text") if isinstance(answer, dict) else getattr(answer, "text", None)
        return text if isinstance(text, str) else ""

    def at_start(self, work: Callable[[], None]) -> None:
        """``work`` is called once the client is ready for requests of ours."""
        self._starts.append(work)

    def at_refresh(self, work: Callable[[], object]) -> None:
        """``work`` is called when something that is shown changed without an edit of the user's."""
        self._refreshes.append(work)

    def refresh(self) -> None:
        """Something that is shown changed: facts, settings, a job, a proposal. Cheap to call often."""
        if self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().call_later(REFRESH_AFTER, self._refresh)

    def _refresh(self) -> None:
        self._refreshing = None
        for work in self._refreshes:
            work()

    def offers(self, command: str) -> bool:
        """Whether a command is there: lenses and actions carry no others."""
        return command in self.protocol.fm.commands

    def at_end(self, work: Callable[[], None]) -> None:
        """``work`` is called when the server ends, however it ends: it stops processes and must not wait for long."""
        self._endings.append(work)

    def look_again(self) -> None:
        """Something outside the documents changed (a header, a setting): find anew what is said about them."""
        self.learn_rules(self.session.snapshots())
        self.facts.again()
        self.counts.again()

    def learn_rules(self, snapshots: tuple[Snapshot, ...]) -> None:
        """What their projects say about the rules; what is wrong there is said once."""
        from cuda_lsp.project_rules import learn

        news, complaints = learn(self.session, snapshots)
        for complaint in complaints:
            if complaint not in self._complained:
                self._complained.add(complaint)
                self.say(complaint)
        if news:
            self.hints.again()

    def _opened(self, old: Snapshot | None, new: Snapshot | None) -> None:
        if old is None and new is not None:
            self.learn_rules((new,))
        elif new is None and old is not None:
            self.session.rules.pop(old.uri, None)

    # --- life ------------------------------------------------------------------------------------------------------

    def serve(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None, port: int | None = None) -> bool:
        """Serve one client over the streams, or over TCP on this machine's own address. Returns when it is gone, and
        whether it said good-bye."""
        # To look for garbage takes longer than a keystroke may, and finds little: our values refer to each other one
        # way. So it is done in a pause, and otherwise only once far more has come together than between two pauses.
        gc.freeze()
        self.session.subscribe(lambda old, new: self._tidy_later())
        gc.set_threshold(_MOST_UNTIDY, 10, 1000)
        gc.enable()
        try:
            if port is None:
                self._stop_event = threading.Event()
                streams.serve(self, stdin or sys.stdin.buffer, stdout or sys.stdout.buffer, self._stop_event)
                self.shutdown()  # type: ignore[no-untyped-call]
            else:
                self.start_tcp("127.0.0.1", port)
        finally:
            self.end()
        return self.protocol.ended_well

    def _tidy_later(self) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        self._tidying = asyncio.get_running_loop().call_later(_TIDY_AFTER, gc.collect, 1)

    def end(self) -> None:
        """Stop whatever was started. Safe to call twice."""
        endings, self._endings = self._endings, []
        for work in reversed(endings):
            try:
                work()
            except Exception:
                log.exception("could not end")

    def abandon(self) -> None:
        """The editor is gone without a word: leave no process behind. Called from any thread."""
        log.warning("the editor's process is gone; ending")
        self.end()
        logging.shutdown()
        os._exit(1)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors outside any request. A failing request is answered with its error; nobody needs to hear it twice."""
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            self.protocol.refuse_unreadable(error)
        else:
            # what was refused is in the answer; what failed was raised elsewhere, and pygls hands on where
            failed = isinstance(error, JsonRpcInternalError) or not isinstance(error, JsonRpcException)
            details = "".join((getattr(error, "data", None) or {}).get("traceback", ())) if failed else ""
            log.log(logging.ERROR if failed else logging.INFO, "%s: %s\n%s", source.__name__, error, details)


def _folders(params: types.InitializeParams) -> dict[str, str]:
    """The workspace's folders by URI. Older clients name one root."""
    if params.workspace_folders:
        return {folder.uri: folder.name for folder in params.workspace_folders}
    return {params.root_uri: ""} if params.root_uri else {}
