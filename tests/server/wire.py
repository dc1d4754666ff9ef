"""A client that speaks bytes: it starts a real server process and can also say what no client should."""

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

SERVER = [sys.executable, "-c", "from cuda_lsp.terminal.main import main; main()", "serve"]

VSCODE: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceFolders": True,
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}},
        "codeLens": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "synchronization": {"didSave": True, "dynamicRegistration": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "refactor"]}},
            "disabledSupport": True,
            "isPreferredSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit", "command"]},
        },
        "codeLens": {"dynamicRegistration": True},
        "inlayHint": {"dynamicRegistration": True, "resolveSupport": {"properties": ["tooltip", "label.tooltip"]}},
        "diagnostic": {"dynamicRegistration": True, "relatedInformation": True, "codeDescriptionSupport": True},
        "publishDiagnostics": {"relatedInformation": True, "versionSupport": True, "codeDescriptionSupport": True},
    },
    "window": {
        "workDoneProgress": True,
        "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        "showDocument": {"support": True},
    },
    "experimental": {"cudaLsp": {"review": True, "askText": True}},
}
"""What the VS Code language client 10 announces, as far as this server looks at it."""

NEOVIM: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": False},
        "workspaceFolders": True,
        "workspaceEdit": {"documentChanges": True},
        "codeLens": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "refactor"]}},
            "disabledSupport": True,
            "isPreferredSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit", "command"]},
        },
        "inlayHint": {"dynamicRegistration": True, "resolveSupport": {"properties": ["textEdits", "tooltip"]}},
        "diagnostic": {"dynamicRegistration": True},
        "publishDiagnostics": {"relatedInformation": True},
    },
    "window": {
        "workDoneProgress": True,
        "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        "showDocument": {"support": True},
    },
}
"""What Neovim 0.12 announces, as far as this server looks at it."""

MINIMAL: dict[str, Any] = {}

CLIENTS = {"vscode": VSCODE, "neovim": NEOVIM, "minimal": MINIMAL}


class ServerError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class Wire:
    """Requests of the server are answered with null, but for those in ``answers``. All that comes is kept."""

    def __init__(self, *arguments: str, start: Sequence[str] = SERVER) -> None:
        self.process = subprocess.Popen(
            [*start, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.received: list[dict[str, Any]] = []
        self.errors = b""
        self._responses: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._drain, daemon=True).start()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *about: object) -> None:
        self.process.kill()
        self.process.wait()

    # --- speaking --------------------------------------------------------------------------------------------------

    def raw(self, body: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(body)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def note(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any, seconds: float = 60.0) -> Any:
        """The result. Raises ServerError for an error, queue.Empty where no answer comes."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            answer = self._responses.get(timeout=seconds)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise ServerError(answer["error"])
                return answer["result"]

    def response(self, seconds: float = 20.0) -> dict[str, Any]:
        """The next response, whatever it answers."""
        return self._responses.get(timeout=seconds)

    # --- the usual -------------------------------------------------------------------------------------------------

    def initialize(self, capabilities: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        params = {"processId": None, "rootUri": None, "capabilities": capabilities or {}, **more}
        result = self.request("initialize", params)
        self.note("initialized", {})
        return result["capabilities"]

    def open(self, uri: str, text: str, language: str = "cuda-cpp") -> None:
        self.note(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": language, "version": 1, "text": text}},
        )

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        document = {"uri": uri, "version": version}
        self.note("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})

    def about(self, method: str, uri: str, **more: Any) -> Any:
        return self.request(method, {"textDocument": {"uri": uri}, **more})

    def lenses(self, uri: str) -> list[str]:
        return [lens["command"]["title"] for lens in self.about("textDocument/codeLens", uri) or []]

    def diagnostics(self, uri: str, pulled: bool) -> list[dict[str, Any]]:
        """As the client has them now."""
        if pulled:
            return self.about("textDocument/diagnostic", uri)["items"]
        published = [m["params"] for m in self.received if m.get("method") == "textDocument/publishDiagnostics"]
        return next((one["diagnostics"] for one in reversed(published) if one["uri"] == uri), [])

    def messages(self, method: str) -> list[Any]:
        return [message.get("params") for message in self.received if message.get("method") == method]

    def end(self) -> int:
        self.request("shutdown", None)
        self.note("exit", None)
        return self.process.wait(60)

    # --- hearing ---------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        while header := stream.readline():
            length = int(header.split(b":")[1]) if header.lower().startswith(b"content-length") else 0
            while (line := stream.readline()).strip():
                length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
            self._hear(json.loads(stream.read(length)))

    def _hear(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._responses.put(message)
            return
        self.received.append(message)
        if "id" in message:
            answer = self.answers.get(message["method"], lambda params: None)(message.get("params"))
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})

    def _drain(self) -> None:
        assert self.process.stderr is not None
        while piece := self.process.stderr.read1():  # type: ignore[attr-defined]
            self.errors += piece


def until(what: Callable[[], Any], seconds: float = 30.0) -> Any:
    """The first true value of ``what``; fails when none comes."""
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return value


def at(text: str, piece: str, encoding: str = "utf-16") -> dict[str, int]:
    """The position of the first ``piece`` in ``text``."""
    before = text[: text.index(piece)]
    column = before[before.rfind("\n") + 1 :]
    size = {"utf-8": len(column.encode()), "utf-16": len(column.encode("utf-16-le")) // 2, "utf-32": len(column)}
    return {"line": before.count("\n"), "character": size[encoding]}


def insert(position: dict[str, int], text: str) -> dict[str, Any]:
    return {"range": {"start": position, "end": position}, "text": text}
