"""A client that decides itself when it looks at what the server sent: everything waits in order until then."""

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.server.stdio_client import resident

Json = dict[str, Any]
PATIENCE = 120.0


class Refused(Exception):
    """A request was answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class Talk:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout
        self._came: queue.Queue[Json | None] = queue.Queue()
        self._number = 0
        self.inbox: deque[Json] = deque()
        """Requests of the server that wait for an answer."""
        self.answers: dict[int, Json] = {}
        """Responses to what was asked without waiting."""
        self.said: deque[str] = deque(maxlen=50)
        threading.Thread(target=self._read, daemon=True).start()

    # --- speaking --------------------------------------------------------------------------------------------------

    def send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._in.flush()

    def note(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, params: Any) -> int:
        """Ask without waiting: the response will be among the ``answers``."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self._number

    def request(self, method: str, params: Any) -> Any:
        """Ask and wait. Raises Refused."""
        return self.wait(self.ask(method, params))

    def wait(self, number: int) -> Any:
        """The result of what was asked. Raises Refused."""
        while number not in self.answers:
            self._hear(self._next())
        return result(self.answers.pop(number))

    def command(self, name: str, *arguments: Any) -> Any:
        return self.wait(self.ask_command(name, *arguments))

    def ask_command(self, name: str, *arguments: Any) -> int:
        return self.ask("workspace/executeCommand", {"command": name, "arguments": list(arguments)})

    def answer(self, request: Json, value: Any) -> None:
        self.send({"id": request["id"], "result": value})

    def fail(self, request: Json, message: str) -> None:
        self.send({"id": request["id"], "error": {"code": -32603, "message": message}})

    # --- hearing ---------------------------------------------------------------------------------------------------

    def look(self, seconds: float = 0.0) -> None:
        """Take in what has come, after waiting for something so long."""
        with contextlib.suppress(queue.Empty):
            message = self._came.get(timeout=seconds) if seconds else self._came.get_nowait()
            while True:
                self._hear(message)
                message = self._came.get_nowait()

    def resident(self) -> int:
        """Bytes of memory that the server holds."""
        return resident(self._process.pid)

    def _next(self) -> Json | None:
        try:
            return self._came.get(timeout=PATIENCE)
        except queue.Empty:
            raise EOFError(f"the server said nothing for {PATIENCE:g} s") from None

    def _hear(self, message: Json | None) -> None:
        if message is None:
            raise EOFError("the server ended")
        if "method" not in message:
            self.answers[message["id"]] = message
        elif "id" in message:
            self.inbox.append(message)
        elif message["method"] == "window/showMessage":
            self.said.append(message["params"]["message"])

    def _read(self) -> None:
        while header := self._out.readline():
            length = 0
            while header.strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                header = self._out.readline()
            body = self._out.read(length)
            self._came.put(json.loads(body))
        self._came.put(None)


def result(response: Json) -> Any:
    """Of a response. Raises Refused."""
    if "error" in response:
        raise Refused(response["error"])
    return response["result"]


@contextlib.contextmanager
def talking(command: Sequence[str], folder: Path) -> Iterator[Talk]:
    """With a server of its own, whose user's files all lie in ``folder``; what it says about itself is in ``log``
    there. Killed at the end."""
    known = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache")}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder, env=known
        )
        try:
            yield Talk(process)
        finally:
            process.kill()
            process.wait()
