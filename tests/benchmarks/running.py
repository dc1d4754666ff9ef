"""How many public kernels that compile run in the emulator with no word from the user.

Run ``CUDA_LSP_RUNNING=checkouts CUDA_LSP_RUNNING_ROWS=rows.jsonl python -m tests.benchmarks running`` over the folders
of checkouts that ``reading`` read, and the rows that it wrote. Of the kernels that it found to compile, those with the
lowest hash of their file and name are taken (the same ones each time, whatever becomes of them).

A kernel *runs* where a launch of two blocks or more ends without a fault (races are counted apart), reaches 80 % of its
basic blocks, and what it writes varies; of a launch that takes too long the first and the last block are run. The
launch is the one that its program states, at small sizes, as far as it can be read; else one that is made up. A launch
that is read and does not do is not replaced by one that is made up.

``CUDA_LSP_RUNNING_COUNT`` (300), ``_SECONDS`` (20, for one kernel), ``_OUT`` (a folder for ``running.jsonl``, which a
second run goes on from), ``_ONLY`` (a part of the paths).
"""

import json
import math
import multiprocessing
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agent.evaluation import runs
from agent.evaluation.contracts.contract import serious
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import bases, bound_at
from agent.execution.compiler import Build, Options, build
from agent.execution.device import Answer, Fault
from agent.execution.emulator import Emulator
from agent.execution.emulator.reached import blocks_reached, writes_vary
from agent.execution.targets import find_target
from agent.inference.making import make_up
from agent.inference.probing import Limits, Stopped
from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.workload.binding import Bound, BoundLaunch
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.find import find_workload
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.workload import Access, Workload
from tests.benchmarks.agreement import hash_of
from tests.benchmarks.reading import LIBRARIES

REACHED = 0.8
SEED = 0xA9_4EE
_ONE_RUN = 10.0
_GRACE = 30.0
Row = dict[str, Any]


def main() -> None:
    roots = [Path(root) for root in os.environ.get("CUDA_LSP_RUNNING", "").split(os.pathsep) if root]
    rows_of = os.environ.get("CUDA_LSP_RUNNING_ROWS", "")
    if not roots or not rows_of:
        print("running: set CUDA_LSP_RUNNING to the checkouts and CUDA_LSP_RUNNING_ROWS to the rows that reading wrote")
        return
    out = Path(os.environ.get("CUDA_LSP_RUNNING_OUT") or tempfile.mkdtemp(prefix="cuda-lsp-running-"))
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "running.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(row["file"], row["kernel"]) for row in rows}
    chosen = sample(Path(rows_of), int(os.environ.get("CUDA_LSP_RUNNING_COUNT", "300")))
    with kept.open("a", encoding="utf-8") as file:
        for row in _rows(roots, [one for one in chosen if one not in done]):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"  {row['file']}:{row['kernel']}  {row['way']}  {row['ended']}  {row['seconds']}", flush=True)
    wanted = set(chosen)
    text = "\n".join(tables([row for row in rows if (row["file"], row["kernel"]) in wanted])) + "\n"
    (out / "tables.md").write_text(text)
    print(text)


def sample(path: Path, count: int) -> list[tuple[str, str]]:
    """(file, kernel) of those that compile, by hash."""
    part = os.environ.get("CUDA_LSP_RUNNING_ONLY", "")
    read_rows = [json.loads(line) for line in path.read_text().splitlines()]
    found = {
        (row["file"], kernel["name"])
        for row in read_rows
        for kernel in row["kernels"]
        if kernel["ended"] == "compiled" and part in row["file"]
    }
    return sorted(found, key=lambda one: hash_of("\n".join(one)))[:count]


# Running ------------------------------------------------------------------------------------------------------------


def _rows(roots: list[Path], chosen: list[tuple[str, str]]) -> Iterator[Row]:
    """One for each kernel, from a process that is ended when one takes too long in it."""
    seconds = float(os.environ.get("CUDA_LSP_RUNNING_SECONDS", "20"))
    context = multiprocessing.get_context("spawn")
    process, here = None, None
    for file, name in chosen:
        path = next((root / file for root in roots if (root / file).is_file()), None)
        if process is None:
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there,))
            process.start()
            there.close()
        assert here is not None
        row: Row | None = None
        try:
            here.send((file, str(path), name, seconds))
            row = here.recv() if here.poll(2 * seconds + _GRACE) else None
        except (EOFError, OSError):
            row = None
        if row is None:
            process.kill()
            process = None
            row = _ended(file, name, "", "took too long or ended the process", 2 * seconds + _GRACE)
        yield row
    if process is not None:
        process.kill()


def _serve(connection: Connection) -> None:
    while True:
        try:
            file, path, name, seconds = connection.recv()
        except EOFError:
            return
        began = time.monotonic()
        try:
            row = _row(file, path, name, seconds)
        except (SourceError, OSError, RecursionError) as error:
            row = _ended(file, name, "", f"cannot be read: {error}", 0.0)
        connection.send(row | {"seconds": round(time.monotonic() - began, 2)})


def _ended(file: str, name: str, way: str, ended: str, seconds: float, **more: Any) -> Row:
    return {"file": file, "kernel": name, "way": way, "ended": ended, "seconds": seconds, **more}


def _row(file: str, path: str, name: str, seconds: float) -> Row:
    document = read(path)
    kernel = document.kernel(name)
    try:
        workload = find_workload(document, kernel)
    except NoWorkload as error:
        row = _on_made_up(file, document, kernel, seconds)
        return row | {"asked": str(error)[:200]}
    except WorkloadError as error:
        return _ended(file, name, "", f"a wrong directive: {error}", 0.0)
    return _on_stated(file, document, kernel, workload, seconds)


def _on_made_up(file: str, document: Document, kernel: Kernel, seconds: float) -> Row:
    try:
        made = make_up(document, kernel, Options(), Limits(seconds))
    except Stopped as stopped:
        return _ended(file, kernel.qualified_name, "made up", stopped.reason, 0.0)
    ended = judged(made.blocks, made.reached, made.varies)
    return _ended(
        file, kernel.qualified_name, "made up", ended, 0.0, reached=round(made.reached, 3), blocks=made.blocks,
        races=_races(made.faults), tried=made.tried,
    )  # fmt: skip


def _on_stated(file: str, document: Document, kernel: Kernel, workload: Workload, seconds: float) -> Row:
    """At the first of some small sizes at which it runs, or as it ended at the last that was tried."""
    name, ends = kernel.qualified_name, time.monotonic() + seconds
    program = Program(document, workload.plan, "original")
    built = build(program, Options(flags=workload.flags), lenient=True)
    if not isinstance(built, Build):
        return _ended(file, name, "stated", f"does not compile with what it is launched with: {built.message}", 0.0)
    row = _ended(file, name, "stated", "runs with one block alone", 0.0)
    setting = Setting(device=Emulator(), target=find_target("H200"), options=Options())
    for sizes in bases(workload, program):
        try:
            bound = bound_at(workload, program, sizes)
            if _blocks(bound) < 2:
                continue
            before = runs.contents(bound, runs.case(sizes, families(workload)[0], SEED))
        except (WorkloadError, MemoryError) as error:
            row |= {"ended": f"cannot be bound: {error}"}
            continue
        answer = runs.run(setting, built, before, checks=runs.ALL_CHECKS, count=True, seconds=_ONE_RUN)
        if answer.status == "timeout":
            answer = runs.run(
                setting, built, before, checks=runs.BOUNDS, count=True, seconds=_ONE_RUN, blocks=_first_and_last
            )
        reached = blocks_reached(built, answer.counters) if answer.counters else 0.0
        ended = _of_answer(answer) or judged(_blocks(bound), reached, _varies(answer, bound))
        row |= {"ended": ended, "reached": round(reached, 3), "blocks": _blocks(bound), "races": _races(answer.faults)}
        if ended == "runs" or time.monotonic() > ends:
            break
    return row


def _first_and_last(total: int) -> tuple[int, ...]:
    return (0, total - 1) if total > 1 else (0,)


def _of_answer(answer: Answer) -> str:
    if answer.status not in ("ok", "fault"):
        return answer.message if answer.status == "refused" else "takes too long"
    found = [fault for fault in serious(answer.faults) if "race" not in fault.kind]
    return f"a fault: {found[0].kind}: {found[0].message}" if found else ""


def judged(blocks: int, reached: float, varies: bool) -> str:
    """``runs``, or what is missing for that."""
    if blocks < 2:
        return "runs with one block alone"
    if not varies:
        return "what it writes does not vary"
    return "runs" if reached >= REACHED else "leaves basic blocks unreached"


def _races(faults: tuple[Fault, ...]) -> bool:
    return any("race" in fault.kind for fault in serious(faults))


def _blocks(bound: Bound) -> int:
    """Of the launch with the fewest."""
    return min((math.prod(step.grid) for step in bound.steps if isinstance(step, BoundLaunch)), default=0)


def _varies(answer: Answer, bound: Bound) -> bool:
    written = [buffer for buffer in bound.buffers if buffer.access is not Access.IN and not buffer.scratch]
    return any(writes_vary(answer, buffer.name, buffer.dtype) for buffer in written)


# Tables -------------------------------------------------------------------------------------------------------------

_CAUSES = (
    ("it takes a struct, an object or a function by value", "by value"),
    ("it takes a pointer to pointers", "pointer to pointers"),
    ("it points to a type that its file does not tell", "is not known in this file"),
    ("it does not compile alone", "cannot be compiled"),
    ("no launch that was made up runs without a fault", "without a fault|no block was found|traps|goes beyond|a fault"),
    ("it takes a texture or surface object", "texture object|surface object"),
    ("of two kernels of its name the other one is found", "arguments, the launch passes"),
    ("a parse error in it", "it cannot be read"),
    ("an instruction or a feature that the emulator refuses", "not supported|emulat|no texture|refuse|unknown"),
    ("it takes too long or does not end", "too long|did not end|does not end|used up|more than"),
)


def tables(rows: list[Row]) -> Iterator[str]:
    """By repository, and by cause, as Markdown."""
    yield "| repository | kernels | run | of these stated | made up | with a race |"
    yield "|---|---|---|---|---|---|"
    for repository in sorted({_repository(row) for row in rows}, key=str.lower):
        yield _line(repository.replace("+", "/", 1), [row for row in rows if _repository(row) == repository])
    library = [row for row in rows if _repository(row).rpartition("+")[2] in LIBRARIES]
    yield _line("all applications and samples", [row for row in rows if row not in library])
    yield _line("all libraries", library)
    yield _line("all", rows)
    yield ""
    yield "| does not run | kernels | stated | made up |"
    yield "|---|---|---|---|"
    failed = [(cause(row), row["way"]) for row in rows if row["ended"] != "runs"]
    for name, count in Counter(name for name, _ in failed).most_common():
        yield f"| {name} | {count} | {failed.count((name, 'stated'))} | {failed.count((name, 'made up'))} |"


def _line(name: str, rows: list[Row]) -> str:
    run = [row for row in rows if row["ended"] == "runs"]
    stated = sum(row["way"] == "stated" for row in run)
    share = f"{len(run)} ({1000 * len(run) // len(rows) / 10:.1f} %)" if rows else "-"
    races = sum(bool(row.get("races")) for row in run)
    return f"| {name} | {len(rows)} | {share} | {stated} | {len(run) - stated} | {races} |"


def _repository(row: Row) -> str:
    return str(row["file"]).partition("/")[0]


def cause(row: Row) -> str:
    """In few words."""
    return next((name for name, words in _CAUSES if re.search(words, row["ended"])), row["ended"][:80])


if __name__ == "__main__":
    main()
