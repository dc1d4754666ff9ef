"""One launch by compiled code, or the word that it has to be run in the other way.

Blocks are dealt out to the processor's cores: as long as no thread meets another's writes, their order makes no
difference, and whether one does is watched (see ``records``). All that the launch changes can be taken back.
"""

import ctypes
import os
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.compiled.layout import ALL_ATOMIC, DONE, Row, Word
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

#: Thread-instructions from which compiling pays, and from which code that is there already does: less takes NumPy less
#: time. They are estimated from the code alone, a loop counting as ``ROUNDS`` turns, nested ones up to ``MOST_DEPTH``.
WORTH, WORTH_AGAIN, ROUNDS, MOST_DEPTH = 30_000_000, 1_000_000, 16, 3
RESERVED = "reserved_smem_offset_1"
MOST_WORKERS = 8
MOST_BYTES = 1 << 30  # records, copies and local memory of a launch
LOOK = 0.02  # seconds between looks at the clock
_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)


class Declined(Exception):
    """The other back end has to run this launch. Nothing has changed."""


def attempt(setting: "Setting", numbers: Array, threads: int, always: bool) -> bool:
    """Run the launch, if that pays (or ``always``) and can be done. Raises Cancelled, TimeLimit."""
    from agent.execution.emulator.launch import shared_regions

    kernel, tracked = setting.kernel, "initialised" in setting.checks
    watched = (setting.totals, setting.reach, setting.twins)
    if any(one is not None for one in watched) or not _plain(kernel):
        return False
    known = kernel.compiled.get(tracked)
    if known is None and not always and estimate(kernel) * threads * len(numbers) < WORTH:
        return False
    if known is not None and not always and estimate(kernel) * threads * len(numbers) < WORTH_AGAIN:
        return False
    shared = Shared(1, shared_regions(kernel, setting.launch.shared), None)
    try:
        if known is None:
            known = kernel.compiled[tracked] = _compiled(kernel, tracked)
        if not isinstance(known, Program) or (shared.ends is not None and one_region(kernel.code)):
            return False
        setting.meter.steps += run(setting, known, numbers, threads, shared)
    except Declined:
        # what went wrong once goes wrong again
        kernel.compiled[tracked] = "declined"
        return False
    return True


def _compiled(kernel: Kernel, tracked: bool) -> "Program | str":
    """The program, or why there is none."""
    try:
        return compile_kernel(kernel, tracked)
    except NotLowered as reason:
        return str(reason)
    except Exception as error:
        # a fault of this back end is no reason not to run the kernel
        return f"{type(error).__name__}: {error}"


def _plain(kernel: Kernel) -> bool:
    """Whether the launch gives the kernel nothing that is kept for all blocks (the barrier of a grid)."""
    return not any(initial.name in (*ADDRESS, RESERVED) for initial in kernel.entries)


def estimate(kernel: Kernel) -> int:
    """Thread-instructions of one thread, from the code alone: each loop counts as ``ROUNDS`` turns."""
    inner = [
        (target, block.number) for block in kernel.blocks for target in block.end.targets if target <= block.number
    ]
    heads: dict[int, int] = {}
    for head, tail in inner:
        heads[head] = max(tail, heads.get(head, 0))
    return sum(
        block.weight * ROUNDS ** min(sum(head <= block.number <= tail for head, tail in heads.items()), MOST_DEPTH)
        for block in kernel.blocks
    )


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
    """Run the blocks ``numbers``; gives the thread-instructions done. Raises Declined, Cancelled, TimeLimit."""
    buffers = _written_buffers(setting)
    workers = min(MOST_WORKERS, len(os.sched_getaffinity(0)), len(numbers))
    _check_size(setting, program, buffers, threads, workers)
    limit = np.array([max(setting.meter.step_cap - setting.meter.steps, 0)], np.uint64)
    entries, filled = _entries(setting, program, numbers, threads)
    copies = [
        (buffer, buffer.data.copy(), None if buffer.written is None else buffer.written.copy()) for buffer in buffers
    ]
    made = [_worker(setting, program, threads, shared, buffers, limit, entries) for _ in range(workers)]
    try:
        steps = _work(setting, program, made, limit, len(numbers))
        if any(_meet(made, buffer.tag) for buffer in buffers):
            raise Declined
    except BaseException:
        for buffer, data, written in copies:
            buffer.data[:] = data
            if written is not None and buffer.written is not None:
                buffer.written[:] = written
        raise
    del filled
    return steps


def _written_buffers(setting: "Setting") -> list[Buffer]:
    """Buffers that the launch may write to."""
    from agent.execution.emulator.global_races import ground_of

    ground = ground_of(setting.kernel, np.zeros(0, np.int64), 1, bytes(setting.parameters.data))
    found = [buffer for tag, buffer in setting.memory.buffers.items() if ground.tags is None or tag in ground.tags]
    return [buffer for buffer in found if buffer.writable]


def _check_size(setting: "Setting", program: Program, buffers: list[Buffer], threads: int, workers: int) -> None:
    grain = setting.kernel.facts.grain
    nbytes = sum(len(buffer.data) * (2 + 16 // grain * workers) for buffer in buffers)
    local = local_stride(setting.kernel.code.local_bytes) * 2 + 8 * program.saved + 8
    if nbytes + workers * threads * local > MOST_BYTES:
        raise Declined
    if any(buffer.present is not None for buffer in setting.memory.buffers.values()):
        raise Declined


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
        raise Declined
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
    states, warps = np.zeros(threads, np.int32), -(-threads // WARP)
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
        Word.EXCHANGE: worker.keep(np.zeros(2 * WARP * warps, np.uint64)),
        Word.GROUPS: worker.keep(np.zeros(2 * warps, np.uint64)),
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
    for worker, first, last in zip(workers, cuts[:-1], cuts[1:], strict=True):
        worker.context[Word.FIRST], worker.context[Word.LAST] = first, last
        tasks.append(_pool().submit(code, int(worker.context.ctypes.data)))
    try:
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
        raise Declined
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
