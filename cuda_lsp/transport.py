"""The JSON-RPC layer: pygls' own, with its documents replaced by our session's and with bad messages answered."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import frozen
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcParseError, JsonRpcServerNotInitialized
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

if TYPE_CHECKING:
    from cuda_lsp.server import CudaServer

Tracer = Callable[[str, Any], None]
Handler = TypeVar("Handler", bound=Callable[..., Any])

_AT_ONCE = "cuda_lsp_at_once"

log = logging.getLogger(__name__)


@frozen
class Malformed:
    """A message that could not be read as what it says it is."""

    raw: dict[str, Any]
    error: JsonRpcException


@frozen
class Written:
    """A result that is written as JSON already."""

    text: str


def begun_at_once(handler: Handler) -> Handler:
    """For a handler that returns a future. Unlike a coroutine, which begins when the messages that came with its own
    were handled too, it sees the documents as they were when the request came."""
    setattr(handler, _AT_ONCE, True)
    return handler


class Transport(LanguageServerProtocol):
    """Notification handlers are plain functions: they are done before the next message is looked at, and pygls keeps
    a future for ever for each that is not."""

    _server: CudaServer
    tracer: Tracer | None = None
    initialized = False
    work_done_token: str | int | None = None
    """What the command that is being handled was sent with: handlers of commands are told their arguments only."""

    # --- documents -------------------------------------------------------------------------------------------------

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self._server.session.open(params.text_document)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        self._server.session.change(document.uri, document.version, params.content_changes)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._server.session.close(params.text_document.uri)

    # --- commands --------------------------------------------------------------------------------------------------

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:
        self.work_done_token = params.work_done_token
        try:
            return (yield from super().lsp_workspace__execute_command(params))
        finally:
            self.work_done_token = None

    # --- life ------------------------------------------------------------------------------------------------------

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Any:
        self._server.begin(params)
        self.initialized = True
        return (yield from super().lsp_initialize(params))

    @lsp_method(types.INITIALIZED)
    def lsp_initialized(self, *arguments: Any) -> None:
        self._server.start()

    def handle_message(self, message: Any) -> None:
        """Every message comes through here, whatever it is."""
        if isinstance(message, Malformed):
            self._refuse_malformed(message)
            return
        if not hasattr(message, "jsonrpc"):
            self._send_error(None, JsonRpcInvalidRequest('a message must be an object with "jsonrpc": "2.0"'))
            return
        method, identifier = getattr(message, "method", None), getattr(message, "id", None)
        refusal = self._out_of_order(method) if method is not None else None
        if refusal is None:
            super().handle_message(message)
        elif identifier is not None:
            self._send_error(identifier, refusal)
        else:
            log.warning("ignored %s: %s", method, refusal)

    def _out_of_order(self, method: str) -> JsonRpcException | None:
        if method == types.EXIT:
            return None
        if self._shutdown:
            return JsonRpcInvalidRequest("the server was shut down; only exit can follow")
        if method == types.INITIALIZE:
            return JsonRpcInvalidRequest("initialize was sent before") if self.initialized else None
        return None if self.initialized else JsonRpcServerNotInitialized("the first request must be initialize")

    @property
    def ended_well(self) -> bool:
        """Whether the client asked for the end, as the protocol has it, before it left."""
        return bool(self._shutdown)

    # --- bad messages ----------------------------------------------------------------------------------------------

    def structure_message(self, data: dict[str, Any]) -> Any:
        if "jsonrpc" not in data:
            return data
        if self.tracer:
            self.tracer("in", data)
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            return Malformed(data, error)

    def _refuse_malformed(self, message: Malformed) -> None:
        method, identifier = message.raw.get("method"), message.raw.get("id")
        if method is None:
            log.warning("an answer of the client is not what the protocol says")
            self._handle_response(str(identifier), error=message.error.to_response_error())
            return
        said = f"the parameters of {method!r} are not what the protocol says"
        log.warning("%s", said)
        if identifier is not None:
            self._send_error(identifier, JsonRpcException(said, message.error.CODE))
        elif method == types.TEXT_DOCUMENT_DID_CHANGE:
            self._server.lose(message.raw)

    def refuse_unreadable(self, error: Exception) -> None:
        """Answer what was no JSON at all."""
        self._send_error(None, JsonRpcParseError(f"a message is no JSON: {error}"))

    def _send_error(self, identifier: str | int | None, error: JsonRpcException) -> None:
        self._send_data(types.ResponseErrorMessage(id=identifier, error=error.to_response_error(), jsonrpc="2.0"))

    # --- pygls' bookkeeping ----------------------------------------------------------------------------------------

    def _execute_handler(
        self,
        msg_id: str | int,
        handler: Callable[..., Any],
        callback: Callable[[Future[Any]], None],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """As pygls does, and forget the future once it is done: pygls keeps that of every notification."""

        def done(future: Future[Any]) -> None:
            self._request_futures.pop(msg_id, None)
            callback(future)

        if getattr(handler, _AT_ONCE, False):
            begun: asyncio.Future[Any] = handler(*(args or ()), **(kwargs or {}))
            self._request_futures[msg_id] = begun  # type: ignore[assignment]
            begun.add_done_callback(done)  # type: ignore[arg-type]
        else:
            super()._execute_handler(msg_id, handler, done, args, kwargs)

    def _handle_response(self, msg_id: str | int, result: Any = None, error: types.ResponseError | None = None) -> None:
        """As pygls does, but nothing happens where nobody waits any more."""
        self._result_types.pop(msg_id, None)
        future = self._request_futures.get(msg_id)
        if future is not None and future.done():
            self._request_futures.pop(msg_id, None)
            return
        super()._handle_response(msg_id, result, error)

    def written(self, value: Any) -> str:
        """A value of the protocol as JSON."""
        return json.dumps(value, default=self._serialize_message)

    def notify_written(self, method: str, params: str) -> None:
        """Send a notification whose parameters are written already."""
        self._send_written(f'{{"jsonrpc": "2.0", "method": "{method}", "params": {params}}}')

    def _send_response(self, msg_id: str | int, result: Any = None, error: types.ResponseError | None = None) -> None:
        if error is None and isinstance(result, Written):
            self._result_types.pop(msg_id, None)
            self._send_written(f'{{"jsonrpc": "2.0", "id": {json.dumps(msg_id)}, "result": {result.text}}}')
        else:
            super()._send_response(msg_id, result, error)

    def _send_written(self, body: str) -> None:
        if self.tracer:
            self.tracer("out", json.loads(body))
        if self.writer is not None:
            self.writer.write(f"Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def _send_data(self, data: Any) -> None:
        if self.tracer and data:
            self.tracer("out", json.loads(json.dumps(data, default=self._serialize_message)))
        super()._send_data(data)
