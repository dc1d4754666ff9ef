"""How long it takes until a workspace is known, from nothing and from what was kept; what that holds in memory; and
what a key costs meanwhile.

Run ``python -m tests.benchmarks indexing``; ``CUDA_LSP_WORKSPACE`` names the folder, which is the fixtures otherwise.
The first server finds an empty cache, the second what the first has kept. While somebody types into a file of 10,000
lines, each is asked again and again for a symbol of the file that is read last. Every question comes after keys: the
whole text is read anew for it, and the time until all is known is told in steps of that. Then the process that holds
the index is started alone, as a server starts it, from what was kept.
"""

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuda_lsp.indexing.client import Indexer
from tests.benchmarks.latency import CAPABILITIES, Keys
from tests.server.connected import ROOT, descendants
from tests.server.large_file import generated
from tests.server.stdio_client import PAUSE, StdioClient, resident, started
from tests.server.wire import SERVER

FOLDER = Path(os.environ.get("CUDA_LSP_WORKSPACE", str(ROOT / "fixtures")))
MARK = "z_last_of_all"
"""A kernel in the file that is read last: once it is known, all is."""
MIB = 1 << 20
LINE = "    float extra = x[row * cols + t] + 1.0f; // and more"
PLACE = "    s[t] = sum;"
URI = "untitled:typed.cu"
KEYS = 10
ALONE = 3
PATIENCE = 600.0
QUERIES = ("reduce", "kernel", "")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, _cache(Path(scratch)):
        work = Path(scratch) / "work"
        shutil.copytree(FOLDER, work / "a", symlinks=True, ignore_dangling_symlinks=True)
        (work / "z").mkdir()
        (work / "z" / "last.cu").write_text(f"__global__ void {MARK}() {{}}\n")
        _age(work)
        files = [path for path in work.rglob("*") if path.suffix in (".cu", ".cuh", ".h", ".hpp", ".inl")]
        size = sum(path.stat().st_size for path in files)
        print(f"{FOLDER}: {len(files)} sources and headers, {size / MIB:.0f} MiB", flush=True)
        for name in ("cold", "warm"):
            _build(name, work)
        for _ in range(ALONE):
            _alone(work)


@contextmanager
def _cache(scratch: Path) -> Iterator[None]:
    """For the servers that are started meanwhile."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    try:
        yield
    finally:
        del os.environ["XDG_CACHE_HOME"]
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


def _age(folder: Path) -> None:
    """What has just been written is not kept."""
    then = time.time() - 3600
    for path in folder.rglob("*"):
        os.utime(path, (then, then), follow_symlinks=False)


def _alone(work: Path) -> None:
    ended = threading.Event()
    indexer = Indexer(lambda progress: ended.set() if progress.ended else None)
    began = time.perf_counter()
    indexer.look((str(work),))
    ended.wait(PATIENCE)
    took = time.perf_counter() - began
    assert indexer.pid is not None
    print(f"alone: {took:.2f} s until all is known, {_cpu(indexer.pid):.2f} s of processor time", flush=True)
    indexer.end()


def _build(name: str, work: Path) -> None:
    text = generated(0)
    with started([*SERVER], work) as client:
        client.request("initialize", {"processId": None, "rootUri": work.as_uri(), "capabilities": CAPABILITIES})
        client.note("initialized", {})
        document = {"uri": URI, "languageId": "cuda-cpp", "version": 1, "text": text}
        client.note("textDocument/didOpen", {"textDocument": document})
        began = time.perf_counter()
        client.diagnostics(URI, 1)
        pressed, asked = _type_until_known(client, text.split("\n").index(PLACE))
        child = _child(client)
        print(f"{name}: {time.perf_counter() - began:.2f} s until all is known, {_cpu(child):.2f} s of processor time")
        print(
            f"  memory: {resident(child) / MIB:.0f} MiB of the index, {client.resident() / MIB:.0f} MiB of the server"
        )
        print(f"  keys meanwhile: {_words(pressed)} ({len(pressed)} of them)")
        print(f"  questions meanwhile: {_words(asked)}")
        for query in QUERIES:
            print(f"  symbols like {query!r}: {_words([_asked(client, query) for _ in range(9)])}", flush=True)


def _type_until_known(client: StdioClient, line: int) -> tuple[list[float], list[float]]:
    """Seconds of each key, and of a question after every :data:`KEYS`."""
    keys = Keys(client, URI)
    pressed: list[float] = []
    asked: list[float] = []
    known = False
    while not known:
        column = len(pressed)
        began = time.perf_counter()
        keys.press({"line": line, "character": column}, LINE[column % len(LINE)])
        pressed.append(time.perf_counter() - began)
        time.sleep(PAUSE)
        if len(pressed) % KEYS == 0:
            began = time.perf_counter()
            known = bool(_symbols(client, MARK))
            asked.append(time.perf_counter() - began)
    return pressed, asked


def _asked(client: StdioClient, query: str) -> float:
    began = time.perf_counter()
    _symbols(client, query)
    return time.perf_counter() - began


def _symbols(client: StdioClient, query: str) -> Any:
    return client.request("workspace/symbol", {"query": query})["result"]


def _child(client: StdioClient) -> int:
    """The process that holds the index."""
    below = descendants(client.pid)
    return next(pid for pid in below if b"cuda_lsp.indexing" in Path(f"/proc/{pid}/cmdline").read_bytes())


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _words(samples: list[float]) -> str:
    """Median, 95th percentile and largest."""
    ordered = sorted(samples)
    late = ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]
    return f"{statistics.median(ordered) * 1e3:.1f}, {late * 1e3:.1f}, {ordered[-1] * 1e3:.1f} ms"


if __name__ == "__main__":
    main()
