"""How long a keystroke takes in a file of 10,000 lines: through a real client, over standard input and output.

Run ``python -m tests.benchmarks latency``. The figures are wall-clock times as a client sees them, so other work on the
machine is in them. clangd is timed on the same edits where it is installed; it says other things about the file.
"""

import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.server.wire import SERVER

LINES = 10_000
PAUSE = 0.2
"""Between two keystrokes, in seconds: a quick typist."""
CALM = 0.01
TYPED = (
    "    float extra = x[row * cols + t] + 1.0f;",
    "    if (t < 4) { s[t] += 2.0f; }",
    "    // a remark on what follows",
    "    for (int j = 0; j < 4; j++) s[j] = s[j + 1];",
)
CAPABILITIES: dict[str, Any] = {
    "textDocument": {
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["refactor"]}}},
        "publishDiagnostics": {"versionSupport": True},
    },
}

UNIT = """
__device__ float scale{n}(float x, float a) {{
    return x * a + {n}.0f;
}}

// kernel number {n}: rows of a matrix
__global__ void __launch_bounds__(256) kernel{n}(const float* x, float* y, int rows, int cols) {{
    __shared__ float s[256];
    int row = blockIdx.x;
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = t; i < cols; i += blockDim.x) {{
        sum += scale{n}(x[row * cols + i], 2.0f);
    }}
    s[t] = sum;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {{
        if (t < k) {{
            s[t] += s[t + k];
        }}
        __syncthreads();
    }}
    #pragma unroll 4
    for (int i = t; i < cols; i += blockDim.x) {{
        y[row * cols + i] = x[row * cols + i] / s[0];
    }}
}}

void run{n}(const float* x, float* y, int rows, int cols) {{
    dim3 grid(rows), block(256);
    kernel{n}<<<grid, block>>>(x, y, rows, cols);
    cudaDeviceSynchronize();
}}
"""
HELPERS = """
__host__ __device__ inline int round_up{n}(int value, int unit) {{
    int rest = value % unit;
    if (rest == 0) {{
        return value;
    }}
    return value + unit - rest;
}}

struct Shape{n} {{
    int rows;
    int cols;
    int pitch;
}};

static bool same{n}(const Shape{n}& a, const Shape{n}& b) {{
    return a.rows == b.rows && a.cols == b.cols && a.pitch == b.pitch;
}}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clangd = shutil.which("clangd")
        for host in (0, 3):
            path = Path(folder) / f"large{host}.cu"
            text = generated(host)
            path.write_text(text, encoding="utf-8")
            print(f"{len(text.splitlines())} lines, {text.count('__global__ void')} kernels")
            _measure("cuda-lsp", [*SERVER], path, text, actions=True)
            if clangd:
                _measure("clangd", [clangd, "--log=error"], path, text, actions=False)
        if not clangd:
            print("clangd is not installed here: nothing to print beside it")


def generated(host: int) -> str:
    """A file with kernels, each with ``host`` stretches of other code before it."""
    parts, count, number = ["#include <cuda_runtime.h>\n"], 1, 0
    while count < LINES:
        rest = "".join(HELPERS.format(n=f"{number}_{other}") for other in range(host))
        parts.append(rest + UNIT.format(n=number))
        count += parts[-1].count("\n")
        number += 1
    return "".join(parts)


def _measure(name: str, command: list[str], path: Path, text: str, actions: bool) -> None:
    began = time.perf_counter()
    with _client(command) as client:
        client.request("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES})
        start = time.perf_counter() - began
        client.note("initialized", {})
        uri = path.as_uri()
        document = {"uri": uri, "languageId": "cuda-cpp" if actions else "cuda", "version": 1, "text": text}
        client.note("textDocument/didOpen", {"textDocument": document})
        client.diagnostics(uri, 1)
        client.quiet()
        print(f"  {name:<9} start to first response {start * 1e3:.0f} ms (wanted: under 1000)")
        hints, menus = _type(client, uri, text, actions)
    print(f"  {name:<9} didChange to fresh diagnostics {_summary(hints)} (wanted: p95 under 20)")
    if actions:
        print(f"  {name:<9} code action menu               {_summary(menus)} (wanted: p95 under 10)")


def _type(client: "_Client", uri: str, text: str, actions: bool) -> tuple[list[float], list[float]]:
    hints: list[float] = []
    menus: list[float] = []
    version = 1
    lines = text.split("\n")
    places = [number for number, line in enumerate(lines) if line == "    s[t] = sum;"]
    for turn, typed in enumerate(TYPED):
        line = places[(turn * 2 + 1) * len(places) // (2 * len(TYPED))]
        for column, character in enumerate(typed):
            version += 1
            place = {"line": line, "character": column}
            change = {"range": {"start": place, "end": place}, "text": character}
            began = time.perf_counter()
            client.note(
                "textDocument/didChange",
                {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]},
            )
            client.diagnostics(uri, version)
            hints.append(time.perf_counter() - began)
            if actions:
                began = time.perf_counter()
                where = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
                client.request("textDocument/codeAction", {"textDocument": {"uri": uri}, **where})
                menus.append(time.perf_counter() - began)
            time.sleep(PAUSE)
    return hints, menus


def _summary(times: list[float]) -> str:
    ordered = sorted(times)
    chosen = {"median": len(ordered) // 2, "p95": int(len(ordered) * 0.95), "max": len(ordered) - 1}
    return ", ".join(f"{name} {ordered[place] * 1e3:.1f} ms" for name, place in chosen.items())


class _Client:
    """One thread, no queue: nothing of the client's own is in the times."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._number = 0

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


_ZERO = {"line": 0, "character": 0}


@contextlib.contextmanager
def _client(command: list[str]) -> Iterator[_Client]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield _Client(process)
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
