"""An HTTP server on loopback that speaks OpenAI's protocol from a script: one turn for each request."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import define, field

Turn = Callable[["Handler"], None]


@define(eq=False)
class Endpoint:
    """``turns`` are taken in order; the last one answers all that follows. ``dropped`` is set when a client went away
    in the middle of an answer."""

    turns: list[Turn]
    url: str = ""
    requests: list[dict[str, Any]] = field(factory=list)
    headers: list[dict[str, str]] = field(factory=list)
    dropped: threading.Event = field(factory=threading.Event)
    lock: threading.Lock = field(factory=threading.Lock)

    def next_turn(self) -> Turn:
        with self.lock:
            return self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]

    def said(self, number: int = -1) -> str:
        """All that one request told the model."""
        return "\n".join(message["content"] for message in self.requests[number]["messages"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.endpoint.requests.append(json.loads(body))
        self.endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
        try:
            self.endpoint.next_turn()(self)
        except (BrokenPipeError, ConnectionResetError):
            self.endpoint.dropped.set()
            self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def whole(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def event(self, data: object) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.raw(f"data: {text}\n\n".encode())

    def raw(self, piece: bytes) -> None:
        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.flush()

    def end_stream(self) -> None:
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


def chunk(finish: str | None = None, **delta: str) -> dict[str, Any]:
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip


def answer(text: str, finish: str = "stop", usage: tuple[int, int] | None = (100, 50)) -> Turn:
    """A whole answer, streamed in pieces of a few characters."""

    def turn(handler: Handler) -> None:
        handler.begin_stream()
        step = max(1, len(text) // 7)
        for at in range(0, len(text), step):
            handler.event(chunk(content=text[at : at + step]))
        handler.event(chunk(finish))
        if usage is not None and handler.endpoint.requests[-1].get("stream_options"):
            counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
            handler.event({**chunk(), "choices": [], "usage": counted})
        handler.end_stream()

    return turn


def refused(text: str) -> Turn:
    def turn(handler: Handler) -> None:
        handler.begin_stream()
        handler.event(chunk(refusal=text))
        handler.event(chunk("stop"))
        handler.end_stream()

    return turn


def error(status: int, message: str = "", code: str | None = None, **headers: str) -> Turn:
    body = json.dumps({"error": {"message": message, "type": "t", "code": code}}).encode()
    return lambda handler: handler.whole(status, body, **headers)


def unstreamed(text: str) -> Turn:
    """What an endpoint sends that ignores ``stream``."""
    told = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3}}  # fmt: skip
    return lambda handler: handler.whole(200, json.dumps(told).encode())


def cut(text: str) -> Turn:
    """A stream whose connection breaks in the middle."""

    def turn(handler: Handler) -> None:
        handler.begin_stream()
        handler.event(chunk(content=text))
        handler.wfile.flush()
        handler.close_connection = True
        handler.connection.close()

    return turn


def silent(seconds: float = 100.0) -> Turn:
    """Takes the question and says nothing."""

    def turn(handler: Handler) -> None:
        wait_until_dropped(handler, seconds)
        handler.close_connection = True

    return turn


def endless(pause: float = 0.02, seconds: float = 100.0) -> Turn:
    """Words without end."""

    def turn(handler: Handler) -> None:
        handler.begin_stream()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            handler.event(chunk(content="word "))
            time.sleep(pause)
        handler.end_stream()

    return turn


def wait_until_dropped(handler: Handler, seconds: float) -> None:
    handler.connection.settimeout(seconds)
    try:
        gone = handler.connection.recv(1) == b""
    except OSError:
        gone = False
    if gone:
        handler.endpoint.dropped.set()


@contextmanager
def serving(*turns: Turn) -> Iterator[Endpoint]:
    endpoint = Endpoint(list(turns))
    handler = type("Scripted", (Handler,), {"endpoint": endpoint})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
