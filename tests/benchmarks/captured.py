"""Is what static inference is sure of what the programs really do? Compared with captured launches, on a card.

Run ``CUDA_LSP_INFERENCE=HeCBench/src python -m tests.benchmarks captured`` over a checkout of
https://github.com/zjin-lcf/HeCBench, on a machine with a card, nvcc and make. The list is fixed: that of the benchmark
``inference`` (programs in alphabetical order, of each at most five kernels that one of its files launches), without
those programs that cannot run there (they do not build, or end without a launch for want of a file), 100 kernels in
all. Nothing in the checkout is changed: the programs are copied, built there with their own Makefiles and run with the
lines of their target ``run``, several programs at a time, under the recorder, until their kernels have been seen; of
several lines the next one is run when nothing new was launched for some seconds. Of each kernel the first launch is
compared: grid, block, shared bytes, scalars, sizes of allocations, offsets into them, and contents where inference
stated bounds.

``CUDA_LSP_CAPTURED_ARCH`` (sm_90), ``_RUN`` (60, seconds for each program; a launch that comes later is not seen),
``_JOBS`` (the cores; programs at a time), ``_LIST`` (130, kernels that are looked at so that 100 are left). It resumes:
``CUDA_LSP_SHARDS`` and ``CUDA_LSP_SECONDS`` are told in ``tests/gpu/shards.py``.
"""

import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import takewhile
from pathlib import Path

import numpy as np
from attrs import asdict, frozen

from agent.inference.capture import naming
from agent.inference.capture.building import recorder
from agent.inference.capture.cupti import find_cupti
from agent.inference.capture.driver import find_driver
from agent.inference.capture.errors import CaptureError
from agent.inference.capture.launches import Argument, Capture, Launch, Memory
from agent.inference.capture.stating import state
from agent.source.document import Document, read
from agent.source.kernel import Kernel
from agent.workload import dtypes
from agent.workload.bind import bind
from agent.workload.binding import Argument as Planned
from agent.workload.binding import Bound, BoundBuffer, BoundLaunch, PointerArgument, RecordArgument, ValueArgument
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.static import infer
from agent.workload.workload import Access
from tests.benchmarks.inference import listed
from tests.gpu.programs import NOT_LAUNCHED, TIME_OVER, Recorder, captured, copied
from tests.gpu.shards import Shard, opened

_CODE = ("agent/source", "agent/workload", "agent/inference", "tests/benchmarks")


@frozen
class Row:
    """One kernel. ``static`` is ``sure`` or ``asks``; ``captured`` whether its first launch was recorded, ``lacking``
    why it was not; ``unstated`` why no directive can state it. ``compared`` counts values, ``wrong`` tells those that
    differ."""

    program: str
    file: str
    kernel: str
    static: str
    questions: int
    captured: bool
    lacking: str = ""
    unstated: str = ""
    compared: int = 0
    wrong: tuple[str, ...] = ()


def main() -> None:
    root = os.environ.get("CUDA_LSP_INFERENCE", "")
    if not root:
        print("captured: set CUDA_LSP_INFERENCE to the src folder of a HeCBench checkout")
        return
    try:
        driver = find_driver()
        cupti = find_cupti(driver.version)
        library = recorder(cupti)
    except CaptureError as error:
        print(f"captured: {error}")
        return
    programs = chosen(Path(root), int(os.environ.get("CUDA_LSP_CAPTURED_LIST", "130")))
    shard = opened("captured", _CODE)
    with tempfile.TemporaryDirectory(prefix="cuda-lsp-captured-") as name:
        place = copied(Path(root), tuple(programs), Path(name))
        left = {program: kernels for program, kernels in programs.items() if program not in shard.rows}
        _fill(shard, place, programs, left, Recorder(library, cupti))
    print("\n".join(summary(_rows(shard, programs))))


Programs = dict[str, list[tuple[str, str]]]


def _fill(shard: Shard, place: Path, programs: Programs, left: Programs, recorder: Recorder) -> None:
    """Several programs at a time, each in a process of its own, until 100 kernels are there or the time is over."""
    jobs = int(os.environ.get("CUDA_LSP_CAPTURED_JOBS") or os.cpu_count() or 1)
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(_program, place, name, left[name], recorder): name for name in left}
        for done in as_completed(waiting):
            if done.cancelled():
                continue
            name, (rows, seconds) = waiting[done], done.result()
            shard.add(name, {"rows": [asdict(one) for one in rows], "seconds": seconds})
            print("\n".join(map(_line, rows)), flush=True)
            if shard.over or len(suitable(_ahead(shard, programs))) >= WANTED:
                for other in waiting:
                    other.cancel()
    if not set(programs) <= set(shard.rows):
        print("the rest is left to the next run" if shard.over else "that is the list")


def _program(place: Path, program: str, kernels: list[tuple[str, str]], recorder: Recorder) -> tuple[list[Row], float]:
    """One program in a process of its own: what was captured, and what inference says beside it. An error of ours is
    the rows' reason, not the end of the benchmark."""
    begun = time.monotonic()
    into, state_home = place / f"{program}.capture", place / f"{program}.state"
    os.environ["XDG_STATE_HOME"] = str(state_home)
    try:
        capture, lacking = captured(place / program, into, kernels, recorder)
        rows = [row(place, program, file, kernel, capture, lacking) for file, kernel in kernels]
    except Exception as error:
        traceback.print_exc()
        lacking = f"the benchmark failed: {type(error).__name__}: {error}"
        rows = [Row(program, file, kernel, "asks", 0, False, lacking) for file, kernel in kernels]
    for used in (into, state_home):
        shutil.rmtree(used, ignore_errors=True)  # contents of a gigabyte, perhaps
    return rows, time.monotonic() - begun


WANTED = 100
"""Kernels of programs that run."""


def chosen(root: Path, count: int) -> Programs:
    """File and kernel of each entry of the list, by program."""
    found: Programs = {}
    for at, (program, file, _, kernel) in enumerate(listed(root)):
        if at == count:
            break
        found.setdefault(program, []).append((file, kernel.qualified_name))
    return found


def row(place: Path, program: str, file: str, name: str, capture: Capture, lacking: str) -> Row:
    """What inference says of one kernel beside what was captured."""
    document = read(str(place / program / file))
    kernel = document.kernel(name)
    bound, questions = _inferred(document, kernel)
    static = "sure" if bound is not None else "asks"
    launch = first(capture, document, kernel)
    if launch is None:
        return Row(program, file, name, static, questions, False, lacking)
    unstated = ""
    try:
        state(launch, kernel, document)
    except (WorkloadError, OSError) as error:
        unstated = str(error)
    compared, wrong = compare(bound, launch, kernel) if bound is not None else (0, ())
    return Row(program, file, name, static, questions, True, "", unstated, compared, wrong)


def _inferred(document: Document, kernel: Kernel) -> tuple[Bound | None, int]:
    """The workload at its declared sizes; None with the count of questions where something is open."""
    try:
        workload = infer(document, kernel)
        return bind(workload, workload.plan, None, document), 0
    except NoWorkload as error:
        return None, len(error.questions)
    except WorkloadError:
        return None, 0


def first(capture: Capture, document: Document, kernel: Kernel) -> Launch | None:
    """The first launch of a kernel in the first process that launched it."""
    return next(
        (one for one in capture.launches if one.number == 1 and naming.kernel_of(one, document) == kernel), None
    )


def compare(bound: Bound, launch: Launch, kernel: Kernel) -> tuple[int, tuple[str, ...]]:
    """How many values were compared, and which of them inference has wrong."""
    planned = next(
        (
            step
            for step in bound.steps
            if isinstance(step, BoundLaunch) and step.kernel.partition("<")[0].rpartition("::")[2] == kernel.name
        ),
        None,
    )
    if planned is None:
        return 1, ("the plan does not launch it",)
    found = [
        ("grid", planned.grid, launch.grid),
        ("block", planned.block, launch.block),
        ("shared bytes", planned.shared, launch.shared),
    ]
    if len(planned.arguments) == len(launch.arguments):
        buffers = {buffer.name: buffer for buffer in bound.buffers}
        for parameter, inferred, real in zip(kernel.parameters, planned.arguments, launch.arguments, strict=True):
            found += _values(parameter.name, inferred, real, buffers)
    else:
        found.append(("arguments", len(planned.arguments), len(launch.arguments)))
    return len(found), tuple(f"{what}: {one} inferred, {other} captured" for what, one, other in found if one != other)


Value = tuple[str, object, object]


def _values(name: str, inferred: Planned, real: Argument, buffers: dict[str, BoundBuffer]) -> list[Value]:
    """Of a struct its numbers: what its pointers point to is not recorded. Textures are not compared."""
    if isinstance(inferred, RecordArgument):
        size = (f"bytes of {name}", inferred.nbytes, len(real.data))
        numbers = [(one.offset, one.held) for one in inferred.members if isinstance(one.held, ValueArgument)]
        parts = [(at, one, real.data[at : at + dtypes.size_of(one.dtype)]) for at, one in numbers]
        return [size, *(_number(f"{name} + {at}", one, part) for at, one, part in parts if one.dtype != "bf16")]
    if isinstance(inferred, ValueArgument):
        return [] if inferred.dtype == "bf16" else [_number(name, inferred, real.data)]
    if not isinstance(inferred, PointerArgument):
        return []
    buffer = buffers[inferred.buffer]
    if real.memory is None:
        return [(name, f"a buffer of {buffer.nbytes} bytes", "no allocation")]
    return [
        (f"bytes of {name}", buffer.nbytes, real.memory.extent),
        (f"offset of {name}", inferred.offset, real.memory.offset),
        *_contents(name, buffer, real.memory),
    ]


def _number(name: str, inferred: ValueArgument, data: bytes) -> Value:
    kind = np.dtype(dtypes.numpy_dtype(inferred.dtype))
    told = np.array([inferred.value]).astype(kind)
    seen = np.frombuffer(data, kind) if len(data) == kind.itemsize else None
    same = seen is not None and seen.tobytes() == told.tobytes()
    return (name, told[0], told[0] if same else seen if seen is None else seen[0])


def _contents(name: str, buffer: BoundBuffer, memory: Memory) -> Iterator[Value]:
    """Whether what was captured lies inside the domain that inference states."""
    domain = buffer.domain
    scalar = dtypes.base(buffer.dtype)[0]
    if buffer.access is Access.OUT or not domain.given or memory.file is None or scalar == "bf16":
        return
    if dtypes.is_raw(buffer.dtype) or memory.extent % np.dtype(dtypes.numpy_dtype(scalar)).itemsize:
        return
    held = np.fromfile(memory.file, dtypes.numpy_dtype(scalar)).astype(np.float64)
    held = held[np.isfinite(held)]
    exact = {"zeros": 0.0, "ones": 1.0}
    low, high = exact.get(domain.kind, buffer.low), exact.get(domain.kind, buffer.high)
    if not len(held) or (low is None and high is None):
        return
    whole = not dtypes.is_float(scalar) and domain.kind not in (*exact, "constant", "offsets")
    inside = (low is None or held.min() >= low) and (
        high is None or (held.max() < high if whole else held.max() <= high)
    )
    stated = f"{domain.kind}({buffer.low}, {buffer.high})"
    yield f"contents of {name}", stated, stated if inside else f"{held.min():g} to {held.max():g}"


def _rows(shard: Shard, programs: Iterable[str]) -> list[Row]:
    """In the order of the list."""
    told = [one for program in programs if program in shard.rows for one in shard.rows[program]["rows"]]
    return [Row(**{**one, "wrong": tuple(one["wrong"])}) for one in told]


def _ahead(shard: Shard, programs: Iterable[str]) -> list[Row]:
    """The rows that no program which is still running can come before."""
    return _rows(shard, takewhile(shard.rows.__contains__, programs))


def suitable(rows: Sequence[Row]) -> list[Row]:
    """Of programs that run here: one that neither builds nor launches anything, and is not stopped for its time, is
    none. The first 100 kernels in all."""
    late = NOT_LAUNCHED.format(code=TIME_OVER)
    runs = {one.program for one in rows if one.captured or one.lacking == late}
    return [one for one in rows if one.program in runs][:WANTED]


def _line(found: Row) -> str:
    name = f"  {found.program}/{found.file}:{found.kernel}"
    if not found.captured:
        return f"{name}  {found.static}; not captured: {found.lacking}"
    end = f"; no directive: {found.unstated}" if found.unstated else ""
    if found.static != "sure":
        return f"{name}  asks {found.questions}; captured{end}"
    verdict = f"WRONG: {'; '.join(found.wrong)}" if found.wrong else f"{found.compared} values right"
    return f"{name}  sure; {verdict}{end}"


def summary(rows: list[Row]) -> Iterator[str]:
    """Coverage of capture; right and wrong where inference was sure; what one answer would do."""
    left = sorted({one.program for one in rows} - {one.program for one in suitable(rows)})
    yield f"not on the list, as they do not run here or are beyond it: {', '.join(left) or 'none'}"
    rows = suitable(rows)
    seen = [one for one in rows if one.captured]
    sure = [one for one in rows if one.static == "sure"]
    both = [one for one in sure if one.captured]
    yield (
        f"{len(rows)} kernels of {len({one.program for one in rows})} programs: {len(seen)} captured, "
        f"{sum(not one.unstated for one in seen)} of these can be stated as directives"
    )
    asks = sum(one.static == "asks" and one.questions == 1 for one in rows)
    yield f"one answer is missing for {asks}"
    wrong = [one for one in both if one.wrong]
    compared, differ = sum(one.compared for one in both), sum(len(one.wrong) for one in both)
    yield (
        f"inference is sure of {len(sure)}: {len(both) - len(wrong)} right ({compared} values compared), "
        f"{len(wrong)} wrong ({differ} values), {len(sure) - len(both)} not captured"
    )


if __name__ == "__main__":
    main()
