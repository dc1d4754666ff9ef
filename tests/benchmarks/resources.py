"""Registers and occupancy of the kernel under the cursor after a pause in typing: edit, re-parse, slice, compile.

Each round changes a constant in the kernel's body, so that nothing comes from the cache.
"""

import statistics
import time

from agent.execution.compiler import Options, build, shutdown
from agent.execution.compiler.result import CompileFailure
from agent.execution.occupancy import occupancy
from agent.source.document import Document, parse, read
from agent.workload.find import find_workload
from agent.workload.program import Program
from tests.fixtures.cases import CASES
from tests.fixtures.running import FOLDER

ROUNDS = 7
WANTED_MS = 300.0


def main() -> None:
    print("registers and occupancy after an edit, milliseconds (median and worst of all fixtures)")
    times = [milliseconds for case in CASES for milliseconds in _rounds(case.file, case.kernel)]
    shutdown()
    median = statistics.median(times)
    print(f"  {median:.0f} median, {max(times):.0f} worst, {len(times)} edits", end="")
    print(f"   design figure {WANTED_MS:.0f}: {WANTED_MS / median:.2f}x")


def _rounds(file: str, kernel: str) -> list[float]:
    document = read(str(FOLDER / file))
    times = []
    for number in range(ROUNDS):
        text = _edited(document, kernel, f"unused_{time.time_ns()}_{number}")
        start = time.perf_counter()
        _ask(parse(text, document.path, document), kernel)
        times.append((time.perf_counter() - start) * 1000)
    # The first compilation starts the compiler's process.
    return times[1:]


def _edited(document: Document, kernel: str, name: str) -> bytes:
    at = document.kernel(kernel).body.start + 1
    line = f" const int {name} = 1; (void){name};"
    return document.text[:at] + line.encode() + document.text[at:]


def _ask(document: Document, kernel: str) -> None:
    workload = find_workload(document, document.kernel(kernel))
    built = build(Program(document, workload.plan, "edited"), Options(arch="sm_90"))
    if isinstance(built, CompileFailure):
        raise SystemExit(f"{document.path}: {built.message}")
    for resources in built.resources.values():
        occupancy("sm_90", resources, 256)


if __name__ == "__main__":
    main()
