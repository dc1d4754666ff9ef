"""A language client of one thread over a server's standard streams, for measuring: no queue, nothing of its own in the
times."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAUSE = 0.2
CALM = 0.01
_ZERO = {"line": 0, "character": 0}


def resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


class StdioClient:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._process = process
        self._number = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu(self) -> float:
        """Seconds of processor time that the server's own threads used until now, of this machine's clock; 0 where the
        system does not tell."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def resident(self) -> int:
        """Bytes of memory that the server holds; 0 where the system does not tell."""
        return resident(self._process.pid)

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._in.flush()

    def note(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self._until(lambda message: message.get("id") == self._number and "method" not in message)

    def diagnostics(self, uri: str, version: int) -> None:
        def fresh(message: dict[str, Any]) -> bool:
            params = message.get("params") or {}
            return message.get("method") == "textDocument/publishDiagnostics" and params.get("version") == version

        self._until(fresh)

    def quiet(self) -> None:
        """Wait until what was begun when the file was opened is done: answers come at once ten times in a row."""
        calm = 0
        while calm < 10:
            began = time.perf_counter()
            self.request("textDocument/hover", {"textDocument": {"uri": "file:///"}, "position": _ZERO})
            calm = calm + 1 if time.perf_counter() - began < CALM else 0
            time.sleep(PAUSE)

    def _until(self, wanted: Any) -> Any:
        while True:
            message = self._receive()
            if "id" in message and "method" in message:
                self.send({"id": message["id"], "result": None})
            elif wanted(message):
                return message

    def _receive(self) -> dict[str, Any]:
        length = 0
        while line := self._out.readline().strip():
            if line.lower().startswith(b"content-length"):
                length = int(line.split(b":")[1])
        if not length:
            raise EOFError("the server ended")
        message: dict[str, Any] = json.loads(self._out.read(length))
        return message


@contextlib.contextmanager
def started(command: list[str], folder: Path) -> Iterator[StdioClient]:
    """A server in a process of its own, killed at the end."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder
    )
    try:
        yield StdioClient(process)
    finally:
        process.kill()
        process.wait()
