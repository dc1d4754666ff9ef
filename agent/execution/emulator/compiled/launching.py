"""One launch by compiled code, or the word that it has to be run in the other way.

Blocks are dealt out to the processor's cores: as long as no thread meets another's writes, their order makes no
difference, and whether one does is watched (see ``records``). All that the launch changes can be taken back.
"""

import ctypes
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.compiled import observed
from agent.execution.emulator.compiled.copies import uses_copies
from agent.execution.emulator.compiled.layout import ALL_ATOMIC, COPY_HEAD, COPY_WORDS, DONE, MOST_COPIES, Row, Word
from agent.execution.emulator.compiled.loops import NotLowered
from agent.execution.emulator.compiled.program import Program, compile_kernel
from agent.execution.emulator.compiled.spaces import local_stride, one_region
from agent.execution.emulator.compiled.threads import reach_of
from agent.execution.emulator.grid import ADDRESS
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.lanes import WARP
from agent.execution.emulator.shared import Shared
from agent.execution.emulator.values import Initial

if TYPE_CHECKING:
    from agent.execution.emulator.launch import Setting

RESERVED = "reserved_smem_offset_1"
MOST_WORKERS = 8
MOST_BYTES = 1 << 30  # records, copies and local memory of a launch
LOOK = 0.02  # seconds between looks at the clock
_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)


class TakenBack(Exception):
    """Something happened that the other back end has to tell about. What the launch had changed is as it was."""


def attempt(setting: "Setting", numbers: Array, threads: int) -> bool:
    """Run the launch, if that can be done. Raises Cancelled, TimeLimit."""
    from agent.execution.emulator.launch import shared_regions

    kernel, tracked = setting.kernel, "initialised" in setting.checks
    shared = Shared(1, shared_regions(kernel, setting.launch.shared), None)
    if not _suits(setting, shared):
        return False
    if tracked not in kernel.compiled:
        began = time.monotonic()
        kernel.compiled[tracked] = _compiled(kernel, tracked)
        setting.meter.deadline += time.monotonic() - began  # no time of the program's
    program = kernel.compiled[tracked]
    if not isinstance(program, Program) or not _fits(setting, program, threads):
        return False
    try:
        setting.meter.steps += run(setting, program, numbers, threads, shared)
    except TakenBack:
        # what went wrong once goes wrong again
        kernel.compiled[tracked] = "taken back"
        return False
    return True


def _suits(setting: "Setting", shared: Shared) -> bool:
    """Whether this is a launch such as compiled code can run: nobody watches, nothing is kept for all blocks (the
    barrier of a grid), all buffers are there as a whole."""
    kernel = setting.kernel
    return (
        not observed(setting)
        and not any(initial.name in (*ADDRESS, RESERVED) for initial in kernel.entries)
        and (shared.ends is None or not one_region(kernel.code))
    )


def _compiled(kernel: Kernel, tracked: bool) -> "Program | str":
    """The program, or why there is none."""
    try:
        return compile_kernel(kernel, tracked)
    except NotLowered as reason:
        return str(reason)
    except Exception:
        # a fault of this back end is no reason not to run the kernel
        return "a fault of the back end itself"


@define(eq=False)
class Worker:
    """What one core works with. ``kept`` are the arrays that the context points to."""

    context: Array
    table: Array
    written: dict[int, Array] = field(factory=dict)
    read: dict[int, Array] = field(factory=dict)
    kept: list[Array] = field(factory=list)

    def keep(self, array: Array) -> int:
        self.kept.append(array)
        return int(array.ctypes.data)


def run(setting: "Setting", program: Program, numbers: Array, threads: int, shared: Shared) -> int:
    """Run the blocks ``numbers``; gives the thread-instructions done. Raises TakenBack, Cancelled, TimeLimit."""
    buffers = _written_buffers(setting)
    limit = np.array([max(setting.meter.step_cap - setting.meter.steps, 0)], np.uint64)
    entries, filled = _entries(setting, program, numbers, threads)
    copies = [(one, one.data.copy(), None if one.written is None else one.written.copy()) for one in buffers]
    workers = [
        _worker(setting, program, threads, shared, buffers, limit, entries) for _ in range(min(_cores(), len(numbers)))
    ]
    workers[0].kept += filled
    try:
        steps = _work(setting, program, workers, limit, len(numbers))
        if any(_meet(workers, buffer.tag) for buffer in buffers):
            raise TakenBack
    except BaseException:
        for buffer, data, written in copies:
            buffer.data[:] = data
            if written is not None and buffer.written is not None:
                buffer.written[:] = written
        raise
    return steps


def _cores() -> int:
    """How many this process may use, up to a number at which memory for records is still moderate."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_WORKERS, known)


def _written_buffers(setting: "Setting") -> list[Buffer]:
    """Buffers that the launch may write to."""
    from agent.execution.emulator.races.global_memory import ground_of

    ground = ground_of(setting.kernel, np.zeros(0, np.int64), 1, bytes(setting.parameters.data))
    found = [buffer for tag, buffer in setting.memory.buffers.items() if ground.tags is None or tag in ground.tags]
    return [buffer for buffer in found if buffer.writable]


def _fits(setting: "Setting", program: Program, threads: int) -> bool:
    """Whether records of who touched what, copies, and local memory stay moderate."""
    grain = setting.kernel.facts.grain
    nbytes = sum(len(buffer.data) * (2 + 16 // grain * _cores()) for buffer in _written_buffers(setting))
    local = local_stride(setting.kernel.code.local_bytes) * 2 + 8 * program.saved + 8
    return nbytes + _cores() * threads * local <= MOST_BYTES


# What the code reads ------------------------------------------------------------------------------------------------


def _entries(setting: "Setting", program: Program, numbers: Array, threads: int) -> tuple[Array, list[Array]]:
    """The addresses of the values that the launch fills, by entry, and those values."""
    from agent.execution.emulator.launch import initial_value

    filled: list[Array] = []
    addresses = np.zeros(len(program.entries), np.int64)
    for index, initial in enumerate(program.entries):
        if initial.kind in ("special", "parameter"):
            value = initial_value(setting, numbers, threads, initial)
            filled.append(np.ascontiguousarray(_spread(initial, value, len(numbers), threads)).astype(np.uint64))
            addresses[index] = filled[-1].ctypes.data
    return addresses, filled


def _spread(initial: Initial, value: Array, blocks: int, threads: int) -> Array:
    """One value for each thread or block, or one alone."""
    reach = reach_of(initial)
    height, width = value.shape
    if (height > 1 and reach != "block") or (width > 1 and reach != "thread"):
        raise TakenBack
    if reach == "launch":
        return value.reshape(-1)
    return np.broadcast_to(value.reshape(-1), (blocks if reach == "block" else threads,))


def _worker(
    setting: "Setting",
    program: Program,
    threads: int,
    regions: Shared,
    buffers: list[Buffer],
    limit: Array,
    entries: Array,
) -> Worker:
    kernel = setting.kernel
    worker = Worker(np.zeros(Word.COUNT, np.int64), _table(setting))
    grain = kernel.facts.grain
    for buffer in buffers:
        cells = -(-len(buffer.data) // grain)
        row = worker.table[buffer.tag]
        worker.written[buffer.tag], worker.read[buffer.tag] = np.zeros(cells, np.uint64), np.zeros(cells, np.uint64)
        row[Row.WRITTEN], row[Row.READ] = (table[buffer.tag].ctypes.data for table in (worker.written, worker.read))
    own = Shared(1, regions.regions, None)
    cells = -(-max(own.size, 1) // (1 if kernel.narrow_shared else 4))
    local = max(local_stride(kernel.code.local_bytes) * threads, 64)
    ends = own.ends if own.ends is not None else np.full(max(own.size, 1), own.size)
    parameters = np.concatenate((setting.parameters.data, np.zeros(64, np.uint8)))
    states, warps, copied = np.zeros(threads, np.int32), -(-threads // WARP), uses_copies(kernel)
    words = {
        Word.THREADS: threads,
        Word.LIMIT: worker.keep(limit),
        Word.SHARED: worker.keep(own.views[8]),
        Word.SHARED_SIZE: own.size,
        Word.SHARED_ENDS: worker.keep(ends.astype(np.int32)),
        Word.SHARED_WRITTEN: worker.keep(np.zeros(cells, np.uint64)),
        Word.SHARED_READ: worker.keep(np.zeros(cells, np.uint64)),
        Word.LOCAL: worker.keep(np.zeros(local // 8, np.uint64)),
        Word.LOCAL_KNOWN: worker.keep(np.zeros(local // 8, np.uint64)),
        Word.TABLE: worker.keep(worker.table),
        Word.TAGS: len(worker.table),
        Word.ENTRIES: worker.keep(entries),
        Word.PARAMETERS: worker.keep(parameters),
        Word.PARAMETERS_SIZE: len(setting.parameters.data),
        Word.FRAMES: worker.keep(np.zeros(max(program.saved * threads, 1), np.uint64)),
        Word.STATES: worker.keep(states),
        Word.WARPS: warps,
        Word.BARRIERS: "barriers" in setting.checks,
        Word.EXCHANGE: worker.keep(np.zeros(2 * WARP * warps * program.room, np.uint64)),
        Word.GROUPS: worker.keep(np.zeros(2 * warps, np.uint64)),
        Word.COPIES: worker.keep(np.zeros(threads * MOST_COPIES * COPY_WORDS if copied else 1, np.uint64)),
        Word.COPY_HEADS: worker.keep(np.zeros(threads * COPY_HEAD if copied else 1, np.uint64)),
        Word.TURNS: worker.keep(np.zeros(warps, np.uint64)),
    }
    for word, value in words.items():
        worker.context[word] = value
    return worker


def _table(setting: "Setting") -> Array:
    buffers = setting.memory.buffers
    table = np.zeros((max(buffers, default=0) + 1, Row.COUNT), np.int64)
    for tag, buffer in buffers.items():
        row = table[tag]
        row[Row.DATA], row[Row.START] = buffer.data.ctypes.data, buffer.start
        row[Row.FITS : Row.FITS + 6] = [max(buffer.nbytes - span + 1, 0) for span in (1, 2, 4, 8, 16, 32)]
        row[Row.MARKS] = 0 if buffer.written is None else buffer.written.ctypes.data
        row[Row.WRITABLE] = buffer.writable
        row[Row.CHECKED] = buffer.poisoned and setting.memory.check_initialised
    return table


# Running ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_WORKERS, thread_name_prefix="emulator")


def _work(setting: "Setting", program: Program, workers: list[Worker], limit: Array, blocks: int) -> int:
    """Deal the blocks out and look after the clock; whatever is raised, no code runs any more when it is."""
    code = _RUN(program.native.address)
    cuts = np.linspace(0, blocks, len(workers) + 1).astype(int)
    tasks: list[Future[Any]] = []
    try:
        for worker, first, last in zip(workers, cuts[:-1], cuts[1:], strict=True):
            worker.context[Word.FIRST], worker.context[Word.LAST] = first, last
            tasks.append(_pool().submit(code, int(worker.context.ctypes.data)))
        while wait(tasks, timeout=LOOK).not_done:
            setting.meter.look()
            if any(task.done() and task.result() != DONE for task in tasks):
                limit[0] = 0
    except BaseException:
        limit[0] = 0
        wait(tasks)
        raise
    answers = [task.result() for task in tasks]
    steps = int(sum(int(worker.context[Word.STEPS]) for worker in workers))
    if any(answer != DONE for answer in answers) or setting.meter.steps + steps > setting.meter.step_cap:
        raise TakenBack
    return steps


def _meet(workers: list[Worker], tag: int) -> bool:
    """Whether what one core wrote to a buffer another touched."""
    for index, one in enumerate(workers):
        wrote = one.written[tag] != 0
        if not wrote.any():
            continue
        for other_index, other in enumerate(workers):
            if other_index == index:
                continue
            both = wrote & (other.written[tag] != 0)
            both &= (one.written[tag] != ALL_ATOMIC) | (other.written[tag] != ALL_ATOMIC)
            if both.any() or (wrote & (other.read[tag] != 0)).any():
                return True
    return False
