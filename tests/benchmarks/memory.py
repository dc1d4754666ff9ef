"""Whether the language server's memory stays flat while somebody types: 20,000 edits in a file of 10,000 lines.

Run ``python -m tests.benchmarks memory``; ``CUDA_LSP_EDITS`` is another number of edits. Keys come as fast as the
server answers. Each types a letter into a kernel or takes it out again, and after a while it is another kernel's turn;
a half-typed line is text with errors, so that those are among them.
"""

import os
import tempfile
from pathlib import Path

from tests.benchmarks.latency import CAPABILITIES
from tests.server.large_file import generated
from tests.server.stdio_client import StdioClient, started
from tests.server.wire import SERVER

EDITS = int(os.environ.get("CUDA_LSP_EDITS", "20000"))
TOLD = 10
LINE = "    float extra = x[row * cols + t] + 1.0f;"
MIB = 1 << 20


def main() -> None:
    text = generated(0)
    with tempfile.TemporaryDirectory() as folder, started([*SERVER], Path(folder)) as client:
        uri = (Path(folder) / "large.cu").as_uri()
        client.request("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES})
        client.note("initialized", {})
        document = {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text}
        client.note("textDocument/didOpen", {"textDocument": document})
        client.diagnostics(uri, 1)
        client.quiet()
        print(
            f"memory of the language server over {EDITS} edits, MiB: {client.resident() / MIB:.0f} at the start", end=""
        )
        for told in range(TOLD):
            _type(client, uri, text, EDITS // TOLD * told, EDITS // TOLD * (told + 1))
            print(f", {client.resident() / MIB:.0f}", end="", flush=True)
        print()


def _type(client: StdioClient, uri: str, text: str, first: int, last: int) -> None:
    places = [number for number, line in enumerate(text.split("\n")) if line == "    s[t] = sum;"]
    for number in range(first, last):
        turn, step = divmod(number, 2 * len(LINE))
        line, column = places[turn * 7 % len(places)], step if step < len(LINE) else 2 * len(LINE) - 1 - step
        start = {"line": line, "character": column}
        end = start if step < len(LINE) else {"line": line, "character": column + 1}
        change = {"range": {"start": start, "end": end}, "text": LINE[column] if step < len(LINE) else ""}
        version = number + 2
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}
        client.note("textDocument/didChange", params)
        client.diagnostics(uri, version)


if __name__ == "__main__":
    main()
