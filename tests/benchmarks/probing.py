"""How far probing gets over public CUDA code, and whether an extent that it gives is ever too small.

Run ``CUDA_LSP_PUBLIC=HeCBench/src python -m tests.benchmarks probing`` over a checkout of
https://github.com/zjin-lcf/HeCBench (or any folder of folders with ``.cu`` files); folders ``*-cuda`` where there are
any. Nothing in the checkout is changed.

Two tables. Kernels whose workload reading the file leaves open: for how many probing finds one, and what stops the
rest. Kernels whose workload reading finds: they are probed as if it were not known, then launched as the host code does
at small sizes, and what that launch touches is compared with the probed extent at the same numbers. *Too small* is an
extent that the launch goes beyond; *said* are those where probing had told that data decides a branch, or that it
assumed how many blocks there are.

``CUDA_LSP_PROBING_SECONDS`` (20, for each kernel), ``_OUT`` (a folder for ``rows.jsonl``, which a second run goes on
from; a temporary one by default), ``_ONLY`` (a part of the folders' names), ``_COUNT`` (kernels of one file, 6).
"""

import json
import multiprocessing
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agent.evaluation import runs
from agent.evaluation.sizes import bases
from agent.execution.compiler import Build, Options, build, shutdown
from agent.execution.device import Request
from agent.execution.emulator import Emulator
from agent.inference.probing import Limits, Probed, Stopped, probe
from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.workload import dtypes
from agent.workload.bind import bind
from agent.workload.binding import BoundLaunch, PointerArgument
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError
from agent.workload.find import find_workload
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.types import split_name
from agent.workload.workload import Workload

_SECONDS = float(os.environ.get("CUDA_LSP_PROBING_SECONDS", "20"))
_COUNT = int(os.environ.get("CUDA_LSP_PROBING_COUNT", "6"))
_BLOCKS = {"blocks": 0, "blocks_y": 1, "blocks_z": 2}


def main() -> None:
    root = os.environ.get("CUDA_LSP_PUBLIC", "")
    if not root:
        print("probing: nothing to do; CUDA_LSP_PUBLIC names no folder (see tests/benchmarks/probing.py)")
        return
    out = Path(os.environ.get("CUDA_LSP_PROBING_OUT") or tempfile.mkdtemp(prefix="cuda-lsp-probing-"))
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "rows.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {row["program"] for row in rows}
    with kept.open("a", encoding="utf-8") as file:
        for folder in _folders(Path(root)):
            if folder.name not in done:
                for row in _apart(folder):
                    rows.append(row)
                    file.write(json.dumps(row) + "\n")
                    file.flush()
    print(table(rows))
    print(f"\nrows: {kept}")


def _folders(root: Path) -> list[Path]:
    found = sorted(folder for folder in root.iterdir() if folder.is_dir())
    cuda = [folder for folder in found if folder.name.endswith("-cuda")] or found
    return [folder for folder in cuda if os.environ.get("CUDA_LSP_PROBING_ONLY", "") in folder.name]


def _apart(folder: Path) -> list[dict[str, Any]]:
    """The rows of one program, from a process of its own: what hangs or dies costs that program alone."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_child, args=(folder, there))
    child.start()
    there.close()
    rows: list[dict[str, Any]] = []
    try:
        while here.poll(6 * _SECONDS):
            rows.append(here.recv())
    except EOFError:
        pass
    if child.is_alive():
        child.kill()
    child.join()
    return [*rows, {"program": folder.name, "state": "seen"}]


def _child(folder: Path, pipe: Connection) -> None:
    for path in sorted(folder.rglob("*.cu")):
        try:
            document = read(str(path))
            for kernel in [one for one in document.kernels if not one.damage][:_COUNT]:
                pipe.send({"program": folder.name, "file": path.name, "kernel": kernel.name, **_row(document, kernel)})
        except (SourceError, OSError):
            continue
    shutdown()
    pipe.close()


def _row(document: Document, kernel: Kernel) -> dict[str, Any]:
    try:
        known: Workload | None = find_workload(document, kernel)
    except WorkloadError:
        known = None
    row: dict[str, Any] = {"asked": known is None}
    try:
        found = probe(document, kernel, Options(), Limits(_SECONDS))
    except Stopped as stopped:
        return {**row, "state": "stopped", "reasons": [stopped.reason]}
    row |= {"state": "complete" if found.workload else "open", "reasons": [stop.text for stop in found.stops]}
    row |= {"runs": found.runs, "seconds": round(found.seconds, 2), "draft": found.draft}
    return row if known is None else {**row, "pointers": list(_compared(document, kernel, known, found))}


def _compared(document: Document, kernel: Kernel, known: Workload, found: Probed) -> Iterator[dict[str, Any]]:
    """Each pointer of the first launch of the kernel: elements probed, reached by that launch, and allocated."""
    program = Program(document, known.plan, "original")
    built = build(program, Options(flags=known.flags))
    if not isinstance(built, Build):
        return
    for sizes in bases(known, program):
        try:
            bound = bind(known, known.plan, dict(sizes), document)
        except WorkloadError:
            continue
        steps = [step for step in bound.steps if isinstance(step, BoundLaunch)]
        if any(split_name(step.kernel)[0] != kernel.qualified_name for step in steps):
            return
        images = runs.images(runs.contents(bound, runs.case(sizes, families(known)[0], 1)), 0)
        names = tuple(image.name for image in images)
        answer = Emulator().run(Request(built, (steps[0],), images, names, seconds=_SECONDS, reach=True))
        if answer.status != "ok":
            continue
        high: dict[str, int] = {}
        for one in answer.reached:
            high[one.buffer] = max(high.get(one.buffer, 0), one.high)
        allocated = {buffer.name: buffer.nbytes for buffer in bound.buffers}
        numbers = _numbers(kernel, steps[0])
        extents = {one.name: one for one in found.found}
        for parameter, argument in zip(kernel.parameters, steps[0].arguments, strict=True):
            if isinstance(argument, PointerArgument) and parameter.name in extents:
                told = extents[parameter.name]
                size = dtypes.size_of(told.dtype)
                reached = -(-max(high.get(argument.buffer, 0) - argument.offset, 0) // size)
                yield {
                    "name": parameter.name,
                    "extent": told.extent,
                    "probed": _at(told.extent, told.offset, numbers),
                    "reached": reached,
                    "allocated": (allocated[argument.buffer] - argument.offset) // size,
                    "said": any("decide a branch" in note or "bounds its blocks" in note for note in found.notes),
                }
        return


def _numbers(kernel: Kernel, launch: BoundLaunch) -> dict[str, int | float]:
    values: dict[str, int | float] = {name: launch.grid[axis] for name, axis in _BLOCKS.items()}
    for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True):
        if not isinstance(argument, PointerArgument):
            values[parameter.name] = argument.value
    return values


def _at(extent: str | None, before: str, numbers: dict[str, int | float]) -> int | None:
    """Elements from the pointer on."""
    if extent is None:
        return None
    try:
        return Expression.parse(f"({extent}) - ({before})").integer(numbers)
    except ExpressionError:
        return None


# Tables -------------------------------------------------------------------------------------------------------------

_KINDS = (
    ("where it is (read|written) depends on values", "an address depends on loaded data"),
    ("how far it is", "a loop or branch that data decides leads to an address"),
    ("indices of shared memory", "values index shared memory"),
    ("structs of", "contents of structs"),
    ("follows no form|follow no form", "no form fits"),
    ("by value", "a struct or functor by value"),
    ("pointer to pointers", "a pointer to pointers"),
    ("points to", "an element type from elsewhere"),
    ("cannot be compiled", "does not compile alone"),
    ("does not end|did not end", "does not end at small sizes"),
    ("time for probing", "time is up"),
    ("no block was found", "no block fits"),
    ("not known to this emulator|surface|texture", "an instruction that is not emulated"),
)


def kind(reason: str) -> str:
    """What sort of reason it is."""
    return next((name for pattern, name in _KINDS if re.search(pattern, reason)), "other")


def table(rows: list[dict[str, Any]]) -> str:
    """Both tables, as text."""
    kernels = [row for row in rows if row["state"] != "seen"]
    asked = [row for row in kernels if row["asked"]]
    lines = [f"left open by reading: {len(asked)} kernels"]
    lines += [f"  {count:5}  {state}" for state, count in Counter(row["state"] for row in asked).most_common()]
    why = Counter(kind(row["reasons"][0]) for row in asked if row["state"] != "complete" and row["reasons"])
    lines += ["  first reason of those not complete:"]
    lines += [f"  {count:5}  {name}" for name, count in why.most_common()]
    known = [row for row in kernels if not row["asked"]]
    pointers = [one for row in known for one in row.get("pointers", ())]
    probed = [one for one in pointers if one["probed"] is not None]
    small = [one for one in probed if one["probed"] < one["reached"]]
    lines += [
        f"found by reading: {len(known)} kernels; {len(pointers)} pointers compared, {len(probed)} with an extent",
        f"  {sum(one['probed'] == one['allocated'] for one in probed):5}  as allocated",
        f"  {sum(one['reached'] <= one['probed'] < one['allocated'] for one in probed):5}  less than allocated",
        f"  {sum(one['probed'] > one['allocated'] for one in probed):5}  more than allocated",
        f"  {len(small):5}  too small, {sum(bool(one['said']) for one in small)} of them said",
    ]
    return "\n".join(lines)
