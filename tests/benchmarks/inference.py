"""How many workloads of public kernels are found in the source alone, and what is asked for the others.

Run ``CUDA_LSP_INFERENCE=HeCBench/src python -m tests.benchmarks inference`` over a checkout of
https://github.com/zjin-lcf/HeCBench (or any folder of program folders). Only the source is read: no GPU, no compiler.

The list is fixed: folders whose name ends in ``-cuda`` (all, where none does) in alphabetical order; of each its files
in order, and of these the first kernels (five at most) that can be read and that one of the program's files launches;
100 kernels in all. Whether a workload is found plays no part in the choice.

``CUDA_LSP_INFERENCE_COUNT`` (100), ``_EACH`` (5, kernels of one program), ``_OUT`` (a file for the rows as JSON).
"""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from attrs import asdict, frozen

from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.workload.describe import arguments
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.static import infer

_DEVICE = (".cu", ".cuh", ".h", ".hpp", ".inc")
_HOST = (".cpp", ".cc", ".c")
_LAUNCH = re.compile(r"(\w+)\s*(?:<[^;{}]*?>)?\s*<<<")

CAUSES = (
    ("a struct, or pointers to pointers, as an argument", r"by value: |pointer to pointers"),
    ("the launch is not found or not reached", r"nothing in this file launches|is not reached|branch of `#if`"),
    ("the launch cannot run as read", r"cannot run"),
    ("read from a file or a stream", r"f?scanf|fread|getline|read from a stream|ifstream|sets it"),
    ("the command line, without a run in the Makefile", r"command line"),
    ("set in a loop or under a condition that is not known", r"changes in the loop|depends on a condition"),
    ("a member of a struct or an object", r"nothing that is followed sets|of an object is not followed"),
    ("an array or memory of the host", r"is read from memory|a vector that grows|is host memory|address of an element"),
    ("a parameter of a function that nothing calls", r"which nothing in this file calls"),
    ("a function or name that is not in the program", r"is not defined in this file"),
    ("an element type", r"element type|the size of `|type or extent"),
    ("the range of values that serve as indices", r"range of values|contents of"),
)


@frozen
class Row:
    """``ended`` is ``sure`` or ``asks``; ``told`` the workload in one line, or the message."""

    program: str
    file: str
    kernel: str
    ended: str
    questions: tuple[str, ...]
    told: str
    cause: str
    seconds: float


def main() -> None:
    root = os.environ.get("CUDA_LSP_INFERENCE", "")
    if not root:
        print("inference: set CUDA_LSP_INFERENCE to the src folder of a HeCBench checkout")
        return
    count = int(os.environ.get("CUDA_LSP_INFERENCE_COUNT", "100"))
    rows: list[Row] = []
    for program, file, document, kernel in listed(Path(root)):
        rows.append(row := _row(program, file, document, kernel))
        told = row.told if row.ended == "sure" else f"{len(row.questions)} questions: {row.told}"
        print(f"  {program}/{file}:{kernel.name}  {row.ended}  {told[:150]}", flush=True)
        if len(rows) == count:
            break
    out = os.environ.get("CUDA_LSP_INFERENCE_OUT")
    if out:
        Path(out).write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print("\n".join(summary(rows)))


def summary(rows: list[Row]) -> Iterator[str]:
    """The figures: sure, one answer, more, none that helps; then the causes."""
    sure = sum(row.ended == "sure" for row in rows)
    one, more = (sum(low <= len(row.questions) <= high for row in rows) for low, high in ((1, 1), (2, 10**9)))
    programs = len({row.program for row in rows})
    yield f"{len(rows)} kernels of {programs} programs: {sure} sure, {one} need one answer, {more} more, " + (
        f"{len(rows) - sure - one - more} no answer helps; {sum(row.seconds for row in rows):.0f} s in all"
    )
    causes = Counter(row.cause for row in rows if row.cause)
    yield from (f"  {number:3} {cause}" for cause, number in causes.most_common())


def listed(root: Path) -> Iterator[tuple[str, str, Document, Kernel]]:
    each = int(os.environ.get("CUDA_LSP_INFERENCE_EACH", "5"))
    folders = sorted(folder for folder in root.iterdir() if folder.is_dir())
    folders = [folder for folder in folders if folder.name.endswith("-cuda")] or folders
    for folder in folders:
        paths = sorted(path for path in folder.rglob("*") if path.suffix in _DEVICE + _HOST and path.is_file())
        launched = {name for path in paths for name in _LAUNCH.findall(path.read_text("utf-8", "replace"))}
        taken: set[str] = set()
        for path, document in ((path, _read(path)) for path in paths if path.suffix in _DEVICE):
            for kernel in document.kernels if document is not None else ():
                if len(taken) < each and kernel.name in launched - taken and not kernel.damage and document is not None:
                    taken.add(kernel.name)
                    yield folder.name, str(path.relative_to(folder)), document, kernel


def _read(path: Path) -> Document | None:
    try:
        return read(path)
    except SourceError:
        return None


def _row(program: str, file: str, document: Document, kernel: Kernel) -> Row:
    start = time.monotonic()
    questions: tuple[str, ...] = ()
    ended, cause = "asks", ""
    try:
        told = arguments(infer(document, kernel))
        ended = "sure"
    except NoWorkload as error:
        told, questions = error.message, error.questions
    except WorkloadError as error:
        told = error.message
    if ended == "asks":
        cause = next((name for name, pattern in CAUSES if re.search(pattern, told)), "other")
    return Row(program, file, kernel.name, ended, questions, told, cause, time.monotonic() - start)


if __name__ == "__main__":
    main()
