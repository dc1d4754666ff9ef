"""How much of public CUDA code is read, and how much of it compiles as device slices, with no word from the user.

Run ``CUDA_LSP_READING=checkouts python -m tests.benchmarks reading`` over a folder that holds one checkout for
each repository, named ``OWNER+NAME`` (several such folders: separated as in ``PATH``). Nothing in a checkout is changed
and nothing of it is run.

Each ``.cu`` and ``.cuh`` file is read as the editor reads it, without any flag or directive. The kernels in it are cut
out as one device slice, for every instance that a launch names, and compiled to a cubin; where that fails, each by
itself. A kernel is *clean*
when no parse error is in it, and *compiled* when NVRTC takes its slice. A file *compiles* when all its kernels do.
Files of the same bytes count once; HIP twins (``*-hip``) are left out.

``CUDA_LSP_READING_OUT`` (a folder for ``rows.jsonl``, which a second run goes on from, and ``tables.md``),
``_COUNT`` (files, drawn at random by ``_SEED``, 1; all by default), ``_SECONDS`` (25, for one file; what is left of its
kernels then counts as not compiled), ``_ARCH`` (sm_90), ``_ONLY`` (a part of the paths).
"""

import hashlib
import json
import multiprocessing
import os
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agent.execution.compiler import Build, CompileFailure, Options
from agent.execution.compiler.kernels import compile_kernels
from agent.source.document import Document, SourceError, read
from agent.source.errors import SliceError, UnknownKernel
from agent.source.kernel import Kernel
from agent.source.slicing import Slice, kernel_instances

LIBRARIES = frozenset(
    {"flash-attention", "flashinfer", "ggml", "tiny-cuda-nn", "apex", "cutlass", "cccl", "whisper.cpp"}
)
STAND_INS = ("float", "__half", "1")
_GRACE = 60.0
_KERNEL_SECONDS = 12.0
Row = dict[str, Any]


def main() -> None:
    roots = [Path(root) for root in os.environ.get("CUDA_LSP_READING", "").split(os.pathsep) if root]
    if not roots:
        print("reading: set CUDA_LSP_READING to a folder of checkouts named OWNER+NAME")
        return
    out = Path(os.environ.get("CUDA_LSP_READING_OUT") or tempfile.mkdtemp(prefix="cuda-lsp-reading-"))
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "rows.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {row["file"] for row in rows}
    chosen = [(name, path) for name, path in _chosen(roots) if name not in done]
    print(f"{len(done)} files are known, {len(chosen)} are to be read; {out}", flush=True)
    with kept.open("a") as file:
        for row in _read_all(chosen):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
    text = "\n".join(tables(rows)) + "\n"
    (out / "tables.md").write_text(text)
    print(text)


def _chosen(roots: Iterable[Path]) -> list[tuple[str, Path]]:
    """(``OWNER+NAME/path``, file) for each file to read, without copies of one file."""
    part = os.environ.get("CUDA_LSP_READING_ONLY", "")
    seen: set[bytes] = set()
    found: list[tuple[str, Path]] = []
    for root in roots:
        for path in sorted(root.rglob("*.cu*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in (".cu", ".cuh") or not path.is_file() or "-hip/" in name or part not in name:
                continue
            digest = hashlib.sha256(path.read_bytes()).digest()
            if digest not in seen:
                seen.add(digest)
                found.append((name, path))
    count = int(os.environ.get("CUDA_LSP_READING_COUNT", "0")) or len(found)
    random.Random(int(os.environ.get("CUDA_LSP_READING_SEED", "1"))).shuffle(found)
    return found[:count]


def _read_all(chosen: list[tuple[str, Path]]) -> Iterator[Row]:
    """One row for each file, from a process that is ended when a file takes too long in it."""
    seconds = float(os.environ.get("CUDA_LSP_READING_SECONDS", "25"))
    reader: _Reader | None = None
    try:
        for name, path in chosen:
            reader = reader or _Reader()
            row = reader.row(name, path, seconds)
            if row is None:
                reader.end()
                reader = None
                row = {"file": name, "kernels": [], "problem": "reading it took too long or ended the process"}
            yield row
    finally:
        if reader:
            reader.end()


class _Reader:
    """A process that reads file after file."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,))
        self._process.start()
        there.close()

    def row(self, name: str, path: Path, seconds: float) -> Row | None:
        """The row, None where the process did not give one."""
        try:
            self._here.send((name, str(path), seconds))
            return self._here.recv() if self._here.poll(seconds + _GRACE) else None
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        self._here.close()
        self._process.join(5)
        self._process.kill()


def _serve(connection: Connection) -> None:
    while True:
        try:
            name, path, seconds = connection.recv()
        except EOFError:
            return
        connection.send(_row(name, path, time.monotonic() + seconds))


def _row(name: str, path: str, ends: float) -> Row:
    start = time.monotonic()
    try:
        document = read(path)
        kernels = list(document.kernels)
    except SourceError as error:
        return {"file": name, "kernels": [], "problem": str(error).removeprefix(path).strip()}
    found = _together(document, kernels, ends) or [_kernel(document, kernel, ends) for kernel in kernels]
    return {"file": name, "kernels": found, "broken": document.broken, "seconds": round(time.monotonic() - start, 3)}


def _together(document: Document, kernels: list[Kernel], ends: float) -> list[Row]:
    """All kernels of a file in one slice, which takes less time than one each; none where it does not compile."""
    names = [kernel.qualified_name for kernel in kernels]
    if len(kernels) < 2 or len(set(names)) < len(names):
        return []
    try:
        asked = [instance for name in names for instance in kernel_instances(document, name)]
        part, built = compile_kernels(document, asked, _options(), (), max(ends - time.monotonic(), 1.0), lenient=True)
    except (SliceError, UnknownKernel, RecursionError):
        return []
    if not isinstance(built, Build):
        return []
    notes = {"dropped": part.dropped, "assumed": part.assumed, "context": Path(part.context).name, "together": True}
    return [
        {
            "name": kernel.qualified_name,
            "line": kernel.line,
            "damage": kernel.damage,
            "ended": "compiled",
            "message": "",
        }
        | notes
        for kernel in kernels
    ]


def _options() -> Options:
    return Options(arch=os.environ.get("CUDA_LSP_READING_ARCH", "sm_90"))


def _kernel(document: Document, kernel: Kernel, ends: float) -> Row:
    row = {"name": kernel.qualified_name, "line": kernel.line, "damage": kernel.damage}
    left = ends - time.monotonic()
    if left <= 0:
        return row | {"ended": "not reached", "message": "the time for this file was over"}
    try:
        part, built, named = _compiled(document, kernel.qualified_name, min(left, _KERNEL_SECONDS))
    except (SliceError, UnknownKernel) as error:
        return row | {"ended": "no slice", "message": str(error)}
    except RecursionError:
        return row | {"ended": "no slice", "message": "nested too deeply"}
    notes = {
        "named": named,
        "names": part.names,
        "dropped": part.dropped,
        "assumed": part.assumed,
        "context": Path(part.context).name,
    }
    if isinstance(built, Build):
        return row | notes | {"ended": "compiled", "message": ""}
    return row | notes | {"ended": built.kind, "message": _said(built)}


def _compiled(document: Document, name: str, seconds: float) -> tuple[Slice, Build | CompileFailure, int]:
    """The first instance that is named, or one with something put in; and how many are named, where all compile."""
    options = _options()
    try:
        names = kernel_instances(document, name)
    except SliceError:
        return *compile_kernels(document, (name,), options, (), seconds, stand_ins=STAND_INS, lenient=True), 0
    names = names if len(names) > 1 else (name,)
    part, built = compile_kernels(document, names, options, (), seconds, lenient=True)
    if isinstance(built, Build) or len(names) == 1:
        return part, built, len(names)
    return *compile_kernels(document, names[:1], options, (), seconds, lenient=True), 0


def _said(failure: CompileFailure) -> str:
    first = next((one for one in failure.diagnostics if one.severity == "error"), None)
    return f"{Path(first.file).name}:{first.line}: {first.message}" if first else failure.message


def tables(rows: list[Row]) -> Iterator[str]:
    """By repository, and by cause, as Markdown."""
    yield "| repository | kind | files | with kernels | kernels | clean | compiled | files of which each compiles |"
    yield "|---|---|---|---|---|---|---|---|"
    for repository in sorted({_repository(row) for row in rows}, key=str.lower):
        own = [row for row in rows if _repository(row) == repository]
        yield _line(repository.replace("+", "/", 1), "library" if _is_library(own[0]) else "application", own)
    yield _line("all applications and samples", "", [row for row in rows if not _is_library(row)])
    yield _line("all libraries", "", [row for row in rows if _is_library(row)])
    yield _line("all", "", rows)
    yield ""
    kernels = [(row, kernel) for row in rows for kernel in row["kernels"]]
    yield from _causes("damage", [(row, _damage(kernel)) for row, kernel in kernels if kernel["damage"]])
    failed = [(row, cause(kernel)) for row, kernel in kernels if kernel["ended"] != "compiled"]
    yield from _causes("not compiled", failed)
    yield from _causes("not read", [(row, "took too long") for row in rows if row.get("problem")])


def _line(name: str, kind: str, rows: list[Row]) -> str:
    kernels = [kernel for row in rows for kernel in row["kernels"]]
    holding = [row for row in rows if row["kernels"]]
    whole = sum(all(kernel["ended"] == "compiled" for kernel in row["kernels"]) for row in holding)
    clean = sum(kernel["damage"] is None for kernel in kernels)
    compiled = sum(kernel["ended"] == "compiled" for kernel in kernels)
    return (
        f"| {name} | {kind} | {len(rows)} | {len(holding)} | {len(kernels)} | {_share(clean, len(kernels))} | "
        f"{_share(compiled, len(kernels))} | {_share(whole, len(holding))} |"
    )


def _share(part: int, whole: int) -> str:
    """Rounded down."""
    return f"{part} ({1000 * part // whole / 10:.1f} %)" if whole else "-"


def _causes(title: str, found: list[tuple[Row, str]]) -> Iterator[str]:
    yield f"| {title} | kernels | of applications | of libraries | repositories |"
    yield "|---|---|---|---|---|"
    for name, count in Counter(name for _, name in found).most_common():
        own = [row for row, cause in found if cause == name]
        libraries = sum(map(_is_library, own))
        yield f"| {name} | {count} | {count - libraries} | {libraries} | {len(set(map(_repository, own)))} |"
    yield ""


def _repository(row: Row) -> str:
    return str(row["file"]).partition("/")[0]


def _is_library(row: Row) -> bool:
    return _repository(row).rpartition("+")[2] in LIBRARIES


def _damage(kernel: Row) -> str:
    return re.sub(r"\d+", "N", re.sub(r"near '.*'", "near something", str(kernel["damage"])))


# (what NVRTC says, the cause that it stands for), the first that fits
_CAUSES = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"no launch in this file fixes them", "a template that no launch in sight fixes"),
        (r"cannot be compiled alone", "a parse error in the kernel"),
        (r"cannot open source file", "a header that is not there"),
        (r"the time for this file was over", "the time for this file was over"),
    )
)


def cause(kernel: Row) -> str:
    """Why a kernel does not compile, in few words: headers that were not found come before the error they lead to."""
    message = kernel["message"]
    for pattern, name in _CAUSES:
        if pattern.search(message):
            return name
    missing = [one for one in kernel.get("dropped", ()) if "not found" in one]
    if missing:
        return "a header that is not there"
    if any("which nothing here does" in one for one in kernel.get("dropped", ())):
        return "a macro that the build defines"
    return f"{kernel['ended']}: " + re.sub(r"^[^:]*:\d+: ", "", re.sub(r'"[^"]*"', '"..."', message))[:80]


if __name__ == "__main__":
    main()
