"""A kernel as a compiled function: the code of one thread, and around it the loops over threads, barriers, blocks.

Of a block, each thread runs up to the next barrier; when all that have not ended wait at the same one, each goes on
from there. Threads that wait at different places are for the other back end to judge.
"""

from typing import Any

from attrs import frozen
from llvmlite import ir

from agent.execution.emulator.compiled import atomics, copies, tiles
from agent.execution.emulator.compiled.counted import counted
from agent.execution.emulator.compiled.exchange import room
from agent.execution.emulator.compiled.instructions import instruction
from agent.execution.emulator.compiled.layout import (
    BLOCK_SHIFT,
    COPY_HEAD,
    DONE,
    LIMIT,
    MOST_PHASES,
    PHASE_SHIFT,
    SUSPECT,
    Word,
)
from agent.execution.emulator.compiled.loops import BIT, I8, I32, I64, NotLowered, intrinsic
from agent.execution.emulator.compiled.machine import Native, translate
from agent.execution.emulator.compiled.spaces import at, local_stride
from agent.execution.emulator.compiled.threads import ENDED, OF_WARP, STARTING, Thread
from agent.execution.emulator.compiled.warps import hand_in
from agent.execution.emulator.kernel import Block, Kernel
from agent.execution.emulator.values import Entries, Initial

_FAMILIES = (atomics, copies, tiles)  # imported for what they register

MOST_ITEMS = 6_000  # of a kernel: more take too long to compile
_BACK = 1 << 10


@frozen(eq=False)
class Program:
    """``entries`` are how each entry starts; ``saved`` how many words of a thread are kept where it waits, ``room`` how
    many it may hand the others of its warp."""

    native: Native
    entries: tuple[Initial, ...]
    saved: int
    room: int


def compile_kernel(kernel: Kernel, tracked: bool) -> Program:
    """``tracked``: reading shared or local memory that nobody wrote is looked for. Raises NotLowered."""
    if len(kernel.sites) > MOST_ITEMS:
        raise NotLowered(f"{len(kernel.sites)} instructions")
    module = ir.Module()
    entries = Entries(dict(kernel.numbers), list(kernel.entries))
    words = I64.as_pointer()
    step = ir.Function(module, ir.FunctionType(I32, [words, I64, I64, I64, words]), "step")
    step.linkage = "internal"
    step.attributes.add("alwaysinline")
    live = _saved(kernel)
    words_each = room(kernel)
    _write_step(step, kernel, entries, tracked, live, words_each)
    run = ir.Function(module, ir.FunctionType(I32, [words]), "run")
    _write_blocks(run, step, kernel, tracked)
    return Program(translate(module, "run"), tuple(entries.initial), len(live), words_each)


def _resumed(kernel: Kernel) -> dict[int, int]:
    """The states in which threads wait, and the blocks of code that they go on with."""
    after = [block.end.targets[0] for block in kernel.blocks if block.end.kind == "barrier"]
    met = [block.number for block in kernel.blocks if block.mask is not None]
    return {**{number + 1: number for number in after}, **{OF_WARP | number + 1: number for number in met}}


def _saved(kernel: Kernel) -> list[int]:
    """Entries that a thread needs after it has waited."""
    live: set[int] = set()
    for number in _resumed(kernel).values():
        live |= kernel.blocks[number].live
    return sorted(entry for entry in live if kernel.entries[entry].kind == "zero")


# One thread ---------------------------------------------------------------------------------------------------------


def _write_step(
    step: ir.Function, kernel: Kernel, entries: Entries, tracked: bool, live: list[int], words: int
) -> None:
    head, dispatch, stop = (step.append_basic_block(name) for name in ("head", "dispatch", "stop"))
    context, number, block, stamp, steps = step.args
    builder = ir.IRBuilder(dispatch)
    thread = Thread(
        kernel, tracked, entries, builder, step, context, number, block, stamp, stop, ir.IRBuilder(head), words
    )
    thread.code = thread.head.alloca(I32)
    count = thread.head.alloca(I64)
    thread.head.store(thread.head.load(steps), count)
    starts = [step.append_basic_block(f"block{one.number}") for one in kernel.blocks]
    resumed = _resumed(kernel)
    state = _state_of(thread, number) if resumed else None
    met: dict[int, ir.Block] = {}
    for one in kernel.blocks:
        builder.position_at_end(starts[one.number])
        if one.mask is not None:
            hand_in(thread, thread.lowering(one, 0))
            _wait(thread, OF_WARP | one.number + 1, one.number, state, live)
            met[one.number] = step.append_basic_block(f"met{one.number}")
            builder.position_at_end(met[one.number])
        builder.store(builder.add(builder.load(count), I64(one.weight)), count)
        for index, _ in enumerate(one.sites):
            lowering = thread.lowering(one, index)
            if lowering.item.kind == "step":
                instruction(thread, lowering)
        _write_end(thread, one, starts, count, state, live)
    builder.position_at_end(dispatch)
    if state is None:
        builder.branch(starts[0])
    else:
        switch = builder.switch(builder.load(state), starts[0])
        for value, target in resumed.items():
            again = step.append_basic_block()
            switch.add_case(I32(value), again)
            builder.position_at_end(again)
            _restore(thread, live, kernel.blocks[target].live)
            builder.branch(met[target] if value & OF_WARP else starts[target])
    builder.position_at_end(stop)
    builder.store(builder.load(count), steps)
    builder.ret(builder.load(thread.code))
    thread.head.branch(dispatch)


def _state_of(thread: Thread, number: ir.Value) -> ir.Value:
    head = thread.head
    return head.gep(head.inttoptr(thread.word(Word.STATES), I32.as_pointer()), [number])


def _write_end(
    thread: Thread, block: Block, starts: list[ir.Block], count: ir.Value, state: Any, live: list[int]
) -> None:
    builder, end = thread.builder, block.end
    last = block.sites[-1].index if block.sites else 0

    def onward(target: int) -> ir.Block:
        """Where to go on; backwards only while the limit is not reached."""
        if target > block.number:
            return starts[target]
        check, over = thread.function.append_basic_block(), thread.function.append_basic_block()
        here = builder.block
        builder.position_at_end(check)
        within = builder.icmp_unsigned("<=", builder.load(count), _now(builder, thread.word(Word.LIMIT)))
        builder.cbranch(within, starts[target], over).set_weights([_BACK, 1])
        builder.position_at_end(over)
        thread.leave(LIMIT, last)
        builder.position_at_end(here)
        return check

    if end.kind in ("next", "jump"):
        builder.branch(onward(end.targets[0]))
    elif end.kind == "branch":
        holds = thread.get(end.entries[0])
        taken, rest = (onward(target) for target in end.targets)
        builder.cbranch(holds, *((rest, taken) if end.negated else (taken, rest)))
    elif end.kind == "table":
        index = thread.get(end.entries[0])
        switch = builder.switch(index, onward(end.targets[-1]))
        for number, target in enumerate(end.targets[:-1]):
            switch.add_case(index.type(number), onward(target))
    elif end.kind == "exit":
        if state is not None:
            builder.store(I32(ENDED), state)
        builder.store(I32(DONE), thread.code)
        builder.branch(thread.stop)
    elif end.kind == "barrier":
        which = thread.kernel.entries[end.entries[0]]
        if end.counted or end.arrives or end.output is not None or which.literal is None:
            raise NotLowered("a barrier of some threads")
        _wait(thread, end.targets[0] + 1, end.targets[0], state, live)
    else:
        thread.leave(SUSPECT, last)


def _now(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """A word that others may change meanwhile."""
    return builder.load_atomic(builder.inttoptr(address, I64.as_pointer()), "monotonic", 8)


def _wait(thread: Thread, code: int, target: int, state: Any, live: list[int]) -> None:
    """Keep what block ``target`` needs, and leave in state ``code``."""
    builder, needed = thread.builder, thread.kernel.blocks[target].live
    for slot, entry in enumerate(live):
        if entry in needed:
            value = thread.get(entry)
            builder.store(value if value.type == I64 else builder.zext(value, I64), _slot(thread, live, slot))
    builder.store(I32(code), state)
    builder.store(I32(DONE), thread.code)
    builder.branch(thread.stop)


def _restore(thread: Thread, live: list[int], needed: frozenset[int]) -> None:
    builder = thread.builder
    for slot, entry in enumerate(live):
        if entry in needed:
            place = thread.register(entry)
            value, of = builder.load(_slot(thread, live, slot)), place.type.pointee
            builder.store(value if of == I64 else builder.trunc(value, of), place)


def _slot(thread: Thread, live: list[int], slot: int) -> ir.Value:
    base = thread.word(Word.FRAMES)

    def frame(head: ir.IRBuilder) -> ir.Value:
        return head.gep(head.inttoptr(base, I64.as_pointer()), [head.mul(thread.thread, I64(len(live)))])

    return thread.builder.gep(thread.once("frame", frame), [I32(slot)])


# All threads --------------------------------------------------------------------------------------------------------


class _Loops:
    """The function around the code of a thread."""

    def __init__(self, run: ir.Function) -> None:
        self.run = run
        (self.context,) = run.args
        self.builder = ir.IRBuilder(run.append_basic_block("entry"))
        self.stop = run.append_basic_block("stop")
        self.code = self.builder.alloca(I32)
        self.steps = self.builder.alloca(I64)
        self.builder.store(I64(0), self.steps)

    def word(self, which: Word) -> ir.Value:
        return self.builder.load(self.builder.gep(self.context, [I32(which)]))

    def leave(self, code: int) -> None:
        self.builder.store(I32(code), self.code)
        self.builder.branch(self.stop)

    def leave_if(self, holds: ir.Value, code: ir.Value | int) -> None:
        out, on = self.run.append_basic_block(), self.run.append_basic_block()
        self.builder.cbranch(holds, out, on)
        self.builder.position_at_end(out)
        self.builder.store(code if isinstance(code, ir.Value) else I32(code), self.code)
        self.builder.branch(self.stop)
        self.builder.position_at_end(on)

    def when(self, holds: ir.Value, do: Any) -> None:
        """``do()`` only where ``holds``."""
        inside, after = self.run.append_basic_block(), self.run.append_basic_block()
        self.builder.cbranch(holds, inside, after)
        self.builder.position_at_end(inside)
        do()
        self.builder.branch(after)
        self.builder.position_at_end(after)

    def each(self, first: ir.Value, last: ir.Value, body: Any) -> None:
        """``body(index)`` for ``first <= index < last``."""
        counted(self.builder, _alloca(self, I64), first, last, body)

    def clear(self, address: ir.Value, nbytes: ir.Value) -> None:
        builder = self.builder
        place = builder.inttoptr(address, I8.as_pointer())
        intrinsic(builder, "llvm.memset.p0.i64", ir.VoidType(), place, I8(0), nbytes, ir.IntType(1)(0))


def _alloca(loops: _Loops, of: ir.Type) -> ir.Value:
    with loops.builder.goto_entry_block():
        return loops.builder.alloca(of)


def _write_blocks(run: ir.Function, step: ir.Function, kernel: Kernel, tracked: bool) -> None:
    loops = _Loops(run)
    builder = loops.builder
    threads, limit = loops.word(Word.THREADS), loops.word(Word.LIMIT)
    local = local_stride(kernel.code.local_bytes)
    resumed, copied = _resumed(kernel), copies.uses_copies(kernel)

    def one_block(block: ir.Value) -> None:
        loops.leave_if(builder.icmp_unsigned(">", builder.load(loops.steps), _now(builder, limit)), LIMIT)
        loops.clear(loops.word(Word.SHARED), loops.word(Word.SHARED_SIZE))
        if local:
            loops.clear(loops.word(Word.LOCAL), builder.mul(threads, I64(local)))
            if tracked:
                loops.clear(loops.word(Word.LOCAL_KNOWN), builder.mul(threads, I64(local)))
        if copied:
            loops.clear(loops.word(Word.COPY_HEADS), builder.mul(threads, I64(8 * COPY_HEAD)))
        first = builder.shl(builder.add(block, I64(1)), I64(BLOCK_SHIFT))
        if resumed:
            phases = _Phases(loops, step, block, first, any(state & OF_WARP for state in resumed))
            phases.write(threads)
        else:
            loops.each(I64(0), threads, lambda thread: _one_thread(loops, step, block, thread, first))

    loops.each(loops.word(Word.FIRST), loops.word(Word.LAST), one_block)
    loops.leave(DONE)
    builder.position_at_end(loops.stop)
    builder.store(builder.load(loops.steps), builder.gep(loops.context, [I32(Word.STEPS)]))
    builder.ret(builder.load(loops.code))


def _one_thread(loops: _Loops, step: ir.Function, block: ir.Value, thread: ir.Value, stamp: ir.Value) -> None:
    builder = loops.builder
    answer = builder.call(step, [loops.context, thread, block, builder.or_(stamp, thread), loops.steps])
    loops.leave_if(builder.icmp_unsigned("!=", answer, I32(DONE)), answer)


class _Phases:
    """A block from barrier to barrier, until all its threads have ended; within a phase, each warp from where its lanes
    meet to where they meet again. ``place`` is where threads wait: they must all wait at the same."""

    def __init__(self, loops: _Loops, step: ir.Function, block: ir.Value, first: ir.Value, warps: bool) -> None:
        self.loops, self.step, self.block, self.first, self.warps = loops, step, block, first, warps
        self.phase, self.place, self.left, self.late = (_alloca(loops, of) for of in (I64, I32, BIT, BIT))
        self.states = loops.builder.inttoptr(loops.word(Word.STATES), I32.as_pointer())

    def write(self, threads: ir.Value) -> None:
        loops, builder = self.loops, self.loops.builder
        loops.clear(loops.word(Word.STATES), builder.shl(threads, I64(2)))
        if self.warps:
            loops.clear(loops.word(Word.TURNS), builder.shl(loops.word(Word.WARPS), I64(3)))
            loops.clear(loops.word(Word.GROUPS), builder.shl(loops.word(Word.WARPS), I64(4)))
        builder.store(I64(0), self.phase)
        builder.store(BIT(0), self.left)
        builder.store(BIT(0), self.late)
        again, after = loops.run.append_basic_block(), loops.run.append_basic_block()
        builder.branch(again)
        builder.position_at_end(again)
        builder.store(I32(ENDED), self.place)
        if self.warps:
            loops.each(I64(0), loops.word(Word.WARPS), lambda warp: self._warp(warp, threads))
        else:
            self._threads(I64(0), threads, self.place)
        following = builder.add(builder.load(self.phase), I64(1))
        builder.store(following, self.phase)
        loops.leave_if(builder.icmp_unsigned(">=", following, I64(MOST_PHASES)), SUSPECT)
        ended = builder.icmp_signed("==", builder.load(self.place), I32(ENDED))
        check = loops.run.append_basic_block()
        asked = builder.icmp_unsigned("!=", loops.word(Word.BARRIERS), I64(0))
        builder.cbranch(ended, after, check)
        builder.position_at_end(check)
        loops.when(builder.and_(asked, builder.load(self.left)), lambda: self._leavers(threads))
        builder.branch(again)
        builder.position_at_end(after)

    def _threads(self, first: ir.Value, last: ir.Value, place: ir.Value) -> None:
        """Each of these threads up to where it waits."""
        loops, builder, run = self.loops, self.loops.builder, self.loops.run

        def one_thread(thread: ir.Value) -> None:
            state = builder.gep(self.states, [thread])
            going, skip = run.append_basic_block(), run.append_basic_block()
            builder.cbranch(builder.icmp_signed("!=", builder.load(state), I32(ENDED)), going, skip)
            builder.position_at_end(going)
            stamp = builder.or_(self.first, builder.shl(builder.load(self.phase), I64(PHASE_SHIFT)))
            _one_thread(loops, self.step, self.block, thread, stamp)
            now = builder.load(state)
            self._waits(now, place)
            ended = builder.icmp_signed("==", now, I32(ENDED))
            late = builder.and_(ended, builder.icmp_unsigned("!=", builder.load(self.phase), I64(0)))
            builder.store(builder.or_(builder.load(self.left), ended), self.left)
            builder.store(builder.or_(builder.load(self.late), late), self.late)
            builder.branch(skip)
            builder.position_at_end(skip)

        loops.each(first, last, one_thread)

    def _leavers(self, threads: ir.Value) -> None:
        """Some have ended and others wait at a barrier: none may have come to one before and left then, and of a warp
        all or none may have left."""
        loops, builder = self.loops, self.loops.builder
        loops.leave_if(builder.load(self.late), SUSPECT)

        def alike(thread: ir.Value) -> None:
            first = builder.and_(thread, I64(-32))
            here, there = (builder.load(builder.gep(self.states, [one])) for one in (thread, first))
            ended = [builder.icmp_signed("==", one, I32(ENDED)) for one in (here, there)]
            loops.leave_if(builder.icmp_unsigned("!=", *ended), SUSPECT)

        loops.each(I64(0), threads, alike)

    def _waits(self, now: ir.Value, place: ir.Value) -> None:
        """One thread, or warp, waits in state ``now``: so must all others."""
        builder = self.loops.builder
        common = builder.load(place)
        ended, fresh = (builder.icmp_signed("==", one, I32(ENDED)) for one in (now, common))
        together = builder.or_(builder.or_(ended, fresh), builder.icmp_signed("==", now, common))
        self.loops.leave_if(builder.not_(together), SUSPECT)
        builder.store(builder.select(ended, common, now), place)

    def _warp(self, warp: ir.Value, threads: ir.Value) -> None:
        """The lanes of a warp, as often as they only wait for one another."""
        loops, builder = self.loops, self.loops.builder
        first = builder.shl(warp, I64(5))
        beyond = builder.add(first, I64(32))
        last = builder.select(builder.icmp_unsigned("<", beyond, threads), beyond, threads)
        place = _alloca(loops, I32)
        again, meet, after = (loops.run.append_basic_block() for _ in range(3))
        builder.branch(again)
        builder.position_at_end(again)
        builder.store(I32(ENDED), place)
        self._threads(first, last, place)
        now = builder.load(place)
        met = builder.icmp_signed(">=", now, I32(OF_WARP))
        builder.cbranch(met, meet, after)
        builder.position_at_end(meet)
        turns = at(builder, loops.word(Word.TURNS), warp)
        turn = builder.xor(builder.load(turns), I64(1))
        builder.store(turn, turns)
        group = builder.add(builder.mul(turn, loops.word(Word.WARPS)), warp)
        builder.store(I64(0), at(builder, loops.word(Word.GROUPS), group))
        builder.branch(again)
        builder.position_at_end(after)
        self._waits(now, self.place)


assert STARTING == 0  # states are cleared to it
