"""Races on global memory within a launch: two threads touch the same bytes, one writes, and nothing orders the two.

What orders accesses of different threads: within a block, what orders them on shared memory (``races.order``: barriers
of the block, ``bar.warp.sync``; no shuffle); between blocks of a cluster, its barrier and what arrives at an
``mbarrier``; between any blocks, fences and flags (``races.clocks``), which grid barriers are made of; the end of the
launch. Atomics, and loads and stores marked relaxed, acquire or release, do not race among each other, nor with
volatile ones, unless one of them is of block scope and the other of another block.

Of what is left these are classes of their own, no faults by themselves:

- *equal values* (the same kind, marked benign): a write that leaves what was there, so that nobody can tell whether it
  came first;
- ``POLLED``: a volatile or strong load that decides when a loop ends, against a write that should be volatile too;
- ``TESTED``: a load whose value only decides branches, against any write: "has nobody been here yet?", as in a search
  by levels or a flag that something changed. The answer may be old; whether that is harmless this does not know.
  ``OUTDATED`` is the same against an atomic ("is it worth an atomic maximum?");
- ``KEPT``: a load that says that its memory is only read while the kernel runs (``ld.global.nc``, ``__ldg``), of what
  the launch has written: the cache that it goes through need not hear of that;
- ``UNFENCED``: what a lock guards, where whoever took it by a compare-and-swap passed no fence: a value that is cached
  may be old.

For each cell (1, 2 or 4 bytes, as the kernel's narrowest access asks) there are records of the last write that changed
something, the last that did not, the last read, and a read before it by a thread as far off as any: of another block
rather than of another warp. A record is a stamp ``time | thread`` and a mark ``site | strength``. Only buffers that the
kernel may write have records, so what is only read costs nothing.
"""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field, frozen

from agent.execution.emulator.addresses import Array, tag_of
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.memory_use import changes_global, synchronises
from agent.execution.emulator.races.clocks import Clocks
from agent.execution.emulator.races.order import Clock, Order
from agent.execution.emulator.races.records import STRONG, strength_of
from agent.execution.emulator.races.report import Access, report
from agent.execution.emulator.races.sites import SiteFacts, is_near
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

KEPT = "read-only load of a written value"

_THREAD = np.uint64(0xFFFF_FFFF)
_TIME = np.uint64(32)
_SITE = 8
_STRENGTH = np.uint32(3)
_NARROW = 4
"""Strong for the threads of its own block alone."""


@define(eq=False)
class Table:
    """The newest of some kind of access to each cell: 0 is none."""

    stamps: Array
    marks: Array

    @classmethod
    def of(cls, cells: int) -> "Table":
        return cls(np.zeros(cells, np.uint64), np.zeros(cells, np.uint32))

    def put(self, cells: Array, stamps: Array, marks: "Array | np.uint32") -> None:
        self.stamps[cells] = stamps
        self.marks[cells] = marks


@define(eq=False)
class Cells:
    """The records of one buffer: the last write that changed something, the last that did not (``equal``), and two
    reads. ``fresh``: nobody has written to it yet, ``changes``: no write has left what was there."""

    written: Table
    equal: Table
    last: Table
    other: Table
    fresh: bool = True
    changes: bool = True

    @classmethod
    def of(cls, buffer: Buffer, grain: int) -> "Cells":
        count = -(-len(buffer.data) // grain)
        return cls(Table.of(count), Table.of(count), Table.of(count), Table.of(count))


@define(eq=False)
class Ground:
    """What all batches of a launch share. ``numbers`` are the linear numbers of its blocks, in the order in which
    threads are numbered here; ``tags`` those of the buffers that the kernel may write (None: any). ``atomics`` says of
    each site whether it is one."""

    kernel: Kernel
    numbers: Array
    threads: int
    tags: frozenset[int] | None
    clock: Clock = field(factory=Clock)
    cells: dict[int, Cells] = field(factory=dict)
    facts: SiteFacts = field(init=False)
    atomics: Array = field(init=False)
    clocks: Clocks | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.facts = self.kernel.facts
        self.atomics = np.array([synchronises(site.instruction) for site in self.kernel.sites], bool)
        if self.facts.fences:
            self.clocks = Clocks(self.clock, len(self.numbers), self.threads, self.facts.narrow)

    def watched(self, buffer: Buffer, writes: bool) -> Cells | None:
        found = self.cells.get(buffer.tag)
        if found is None and (writes or self.tags is None or buffer.tag in self.tags):
            found = self.cells[buffer.tag] = Cells.of(buffer, self.facts.grain)
        return found


def ground_of(kernel: Kernel, numbers: Array, threads: int, parameters: bytes) -> Ground:
    """For a launch with those ``parameters``, as they lie in memory."""
    written = kernel.facts.written
    tags = None
    if written is not None:
        words = {
            place: int.from_bytes(parameters[place : place + 8], "little") for kind, place in written if kind == "param"
        }
        named = {place for kind, place in written if kind == "buffer"}
        tags = frozenset({tag_of(word) for word in words.values()} | named)
    return Ground(kernel, numbers, threads, tags)


@frozen(eq=False)
class _Moment:
    """Who accesses, and when: ``mine`` numbers of threads in the launch, ``stamps`` as they are recorded."""

    lanes: Lanes
    time: int
    mine: Array
    stamps: Array


@define(eq=False)
class Traffic:
    """The accesses of one batch, whose first block is number ``first`` of the launch."""

    ground: Ground
    order: Order
    first: int
    moment: _Moment | None = None

    # What orders ----------------------------------------------------------------------------------------------------

    def barrier(self, complete: Array) -> None:
        """The blocks where ``complete`` holds have passed a barrier."""
        if self.ground.clocks is not None:
            self.ground.clocks.barrier(np.flatnonzero(complete) + self.first)

    def meet(self, lanes: Lanes) -> None:
        if self.ground.clocks is not None:
            self.ground.clocks.meet(self._now(lanes).mine)

    def fence(self, lanes: Lanes, near: bool) -> None:
        """``near``: of block scope."""
        if self.ground.clocks is not None:
            self.ground.clocks.fence(self._now(lanes).mine, self.order, self.first, near)

    # Accesses -------------------------------------------------------------------------------------------------------

    def read(self, batch: "Batch", lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, span: int) -> None:
        cells = self.ground.watched(buffer, False)
        if cells is None:
            return
        strength = strength_of(site)
        if strength and self.ground.clocks is not None:
            self._observe(lanes, site, buffer, cells, offsets)
        for access in self._accesses(lanes, site, buffer, offsets, span, strength):
            if not cells.fresh:
                self._check_writes(batch, access, cells)
                self._check_kept(batch, access, cells)
            self._note_read(cells, access)

    def write(
        self, batch: "Batch", lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, width: int, values: list[Array]
    ) -> None:
        """Note a write of ``values`` side by side; memory still holds what was there before."""
        cells = self.ground.watched(buffer, True)
        assert cells is not None
        cells.fresh = False
        if self.ground.clocks is not None and "release" in site.instruction.modifiers:
            self.fence(lanes, is_near(site.instruction.modifiers))
        view, grain = buffer.views[width], self.ground.facts.grain
        flat = _flat(offsets, lanes) // width
        for k, access in enumerate(
            self._accesses(lanes, site, buffer, offsets, width * len(values), strength_of(site))
        ):
            value = np.broadcast_to(values[k * grain // width], lanes.shape).reshape(-1)
            access.equal = view.take(flat + k * grain // width) == value
            self._check_writes(batch, access, cells)
            self._check_reads(batch, access, cells)
            self._note_write(batch, cells, access, value)

    def atomic(self, batch: "Batch", lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, width: int) -> None:
        """Note a read-modify-write."""
        cells = self.ground.watched(buffer, True)
        assert cells is not None
        cells.fresh = False
        clocks, words = self.ground.clocks, site.instruction.modifiers
        if clocks is not None:
            near, ordering = is_near(words), bool({"release", "acquire", "acq_rel"} & set(words))
            if {"release", "acq_rel"} & set(words):
                self.fence(lanes, near)
            flat = _flat(offsets, lanes).astype(np.int64)
            places = flat + buffer.base
            clocks.find(places, self._stored(cells, flat), near)
            clocks.exchange(self._now(lanes).mine, places, near, "cas" in words and not ordering)
        for access in self._accesses(lanes, site, buffer, offsets, width, STRONG):
            self._check_writes(batch, access, cells)
            self._check_reads(batch, access, cells)
            cells.written.put(access.cells, access.stamps, access.mark)
            if is_near(words):
                self._check_strangers(batch, access)

    def _now(self, lanes: Lanes) -> _Moment:
        time, moment = self.ground.clock.now, self.moment
        if moment is None or moment.lanes is not lanes or moment.time != time:
            mine = lanes.flat.astype(np.int64) + self.first * self.ground.threads
            stamps = mine.astype(np.uint64) | np.uint64(time << 32)
            moment = self.moment = _Moment(lanes, time, mine, stamps)
        return moment

    def _accesses(
        self, lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, span: int, strength: int
    ) -> list[Access]:
        """Cell by cell."""
        moment, grain = self._now(lanes), self.ground.facts.grain
        first = _flat(offsets, lanes) // grain
        narrow = _NARROW if strength == STRONG and is_near(site.instruction.modifiers) else 0
        mark = np.uint32(site.index << _SITE | strength | narrow)
        return [
            Access(lanes, site, buffer, first + k, k * grain, moment.mine, moment.stamps, mark, strength)
            for k in range(max(span // grain, 1))
        ]

    def _observe(self, lanes: Lanes, site: Site, buffer: Buffer, cells: Cells, offsets: Array) -> None:
        """What a flag says to whom it is read by."""
        clocks = self.ground.clocks
        assert clocks is not None
        at_once = "acquire" in site.instruction.modifiers
        if at_once or self.ground.facts.steers(site.index):
            flat, mine = _flat(offsets, lanes).astype(np.int64), self._now(lanes).mine
            stamps = self._stored(cells, flat)
            stamps = np.where((stamps & _THREAD).astype(np.int64) == mine, np.uint64(0), stamps)
            clocks.observe(mine, flat + buffer.base, stamps, at_once, is_near(site.instruction.modifiers))

    def _stored(self, cells: Cells, flat: Array) -> Array:
        """The stamps of the last writes at the bytes ``flat`` of the buffer, 0 where the last was an atomic."""
        places = flat // self.ground.facts.grain
        atomic = self.ground.atomics[cells.written.marks.take(places) >> _SITE]
        stamps: Array = np.where(atomic, np.uint64(0), cells.written.stamps.take(places))
        return stamps

    # Checking -------------------------------------------------------------------------------------------------------

    def _check_writes(self, batch: "Batch", access: Access, cells: Cells) -> None:
        """Report what races with a write. Nobody can tell a write that changes nothing from its absence: not who reads,
        not who writes the same. Against an atomic it counts: that may have made of the place what it is."""
        reads = not changes_global(access.site.instruction)
        self._check(batch, access, cells.written, "wrote", False)
        if not cells.changes:
            self._check(batch, access, cells.equal, "wrote", reads)

    def _check_kept(self, batch: "Batch", access: Access, cells: Cells) -> None:
        """Report loads through the read-only path of what this launch has written: also the thread's own."""
        if "nc" in access.site.instruction.modifiers:
            bad = cells.written.stamps.take(access.cells) != 0
            words = f"loads as read-only what the same launch has written to buffer '{access.buffer.name}'"
            batch.fault(KEPT, access.lanes, access.site, bad, lambda lane: words, benign=True)

    def _check_reads(self, batch: "Batch", access: Access, cells: Cells) -> None:
        self._check(batch, access, cells.last, "read", False)
        self._check(batch, access, cells.other, "read", False)

    def _check(self, batch: "Batch", access: Access, table: Table, verb: str, harmless: bool) -> None:
        """Report what races with the records of ``table``: harmless races, or such as may be."""
        stamps = table.stamps.take(access.cells)
        foreign = (stamps ^ access.stamps) & _THREAD != 0
        foreign &= stamps != 0
        if not foreign.any():
            return
        bad = np.flatnonzero(foreign)
        stamps, marks = stamps[bad], table.marks[access.cells[bad]]
        racing = (marks & _STRENGTH) + np.uint32(access.strength) <= STRONG
        if self.ground.facts.narrow:
            racing |= ((marks | access.mark) & _NARROW != 0) & self._far(access.mine[bad], stamps)
        racing[racing] = ~self._ordered(access.mine[bad[racing]], stamps[racing])
        bad, stamps, marks = bad[racing], stamps[racing], marks[racing]
        if len(bad):
            equal = np.full(len(bad), harmless)
            if access.equal is not None:
                equal |= access.equal[bad] & ((marks & _STRENGTH < STRONG) | (verb == "read"))
            theirs, unfenced = (stamps & _THREAD).astype(np.int64), self._unfenced(access.mine[bad], stamps)
            report(batch, self.ground, access, bad, theirs, marks >> _SITE, verb, equal, unfenced)

    def _far(self, mine: Array, stamps: Array) -> Array:
        """Where they are of another block."""
        far: Array = (stamps & _THREAD).astype(np.int64) // self.ground.threads != mine // self.ground.threads
        return far

    def _unfenced(self, mine: Array, stamps: Array) -> Array:
        """Where all that is missing is a fence behind a lock."""
        clocks = self.ground.clocks
        if clocks is None:
            return np.zeros(len(mine), bool)
        return clocks.unfenced(mine, (stamps & _THREAD).astype(np.int64), stamps >> _TIME)

    def _ordered(self, mine: Array, stamps: Array) -> Array:
        """Where the accesses with ``stamps`` come before what ``mine`` do now."""
        threads, first = self.ground.threads, self.first * self.ground.threads
        theirs, times = (stamps & _THREAD).astype(np.int64), stamps >> _TIME
        team = threads * self.order.team
        near = np.flatnonzero((theirs - first) // team == (mine - first) // team)
        ordered = np.zeros(len(mine), bool)
        if len(near):
            ordered[near] = times[near] < self.order.since(mine[near] - first, theirs[near] - first)
        if self.ground.clocks is not None and not ordered.all():
            ordered |= self.ground.clocks.before(mine, theirs, times)
        return ordered

    # Noting ---------------------------------------------------------------------------------------------------------

    def _note_read(self, cells: Cells, access: Access) -> None:
        last, stamps = cells.last, access.stamps
        before = last.stamps.take(access.cells)
        foreign = (before ^ stamps) & _THREAD != 0
        foreign &= before != 0
        if foreign.any():
            lanes = np.flatnonzero(foreign)
            places = access.cells[lanes]
            self._note_other(cells, places, before[lanes], last.marks[places], stamps[lanes])
        last.put(access.cells, stamps, access.mark)
        kept = last.stamps.take(access.cells)
        lost = kept != stamps
        if lost.any():
            # several lanes read one cell in this instruction: the first of them is the farthest from the last
            lanes = np.flatnonzero(lost)[::-1]
            self._note_other(cells, access.cells[lanes], stamps[lanes], access.mark, kept[lanes])

    def _note_other(self, cells: Cells, places: Array, stamps: Array, marks: "Array | np.uint32", last: Array) -> None:
        """Keep these readers beside the ``last`` ones, unless who is kept already is farther from them."""
        held = cells.other.stamps[places]
        nearer = self._distance(held, last) <= self._distance(stamps, last)
        if not nearer.all():
            places, stamps = places[nearer], stamps[nearer]
            marks = marks[nearer] if isinstance(marks, np.ndarray) else marks
        cells.other.put(places, stamps, marks)

    def _distance(self, one: Array, other: Array) -> Array:
        """3 for threads of different blocks, 2 of different warps, 1 of one warp, 0 for one thread or none."""
        threads, warp = np.uint64(self.ground.threads), np.uint64(WARP)
        a, b = one & _THREAD, other & _THREAD
        block_a, block_b = a // threads, b // threads
        far = (a != b).astype(np.int8) + (block_a != block_b)
        far += (block_a != block_b) | ((a - block_a * threads) // warp != (b - block_b * threads) // warp)
        result: Array = np.where(one == 0, np.int8(0), far)
        return result

    def _note_write(self, batch: "Batch", cells: Cells, access: Access, value: Array) -> None:
        same = access.equal
        assert same is not None
        if same.any():
            cells.changes = False
            cells.equal.put(access.cells[same], access.stamps[same], access.mark)
            cells.written.put(access.cells[~same], access.stamps[~same], access.mark)
        else:
            cells.written.put(access.cells, access.stamps, access.mark)
        if access.strength < STRONG:
            self._check_collisions(batch, access, value)

    def _check_collisions(self, batch: "Batch", access: Access, value: Array) -> None:
        """Lanes of this very instruction that write one cell: harmless where each writes what stays."""
        lanes, partners = _pairs(access)
        if len(lanes):
            self._collide(batch, access, lanes, partners, value[lanes] == value[partners])

    def _check_strangers(self, batch: "Batch", access: Access) -> None:
        """Lanes of this very instruction, an atomic of block scope, that are of different blocks and meet in a cell."""
        lanes, partners = _pairs(access)
        blocks = access.mine // self.ground.threads
        apart = blocks[lanes] != blocks[partners]
        if apart.any():
            lanes, partners = lanes[apart], partners[apart]
            self._collide(batch, access, lanes, partners, np.zeros(len(lanes), bool))

    def _collide(self, batch: "Batch", access: Access, lanes: Array, partners: Array, equal: Array) -> None:
        marks = np.full(len(lanes), access.site.index)
        report(batch, self.ground, access, lanes, access.mine[partners], marks, "wrote", equal)


def _pairs(access: Access) -> tuple[Array, Array]:
    """Lanes, and for each another that accesses the same cell: the next one."""
    if bool((access.cells[1:] > access.cells[:-1]).all()):
        none = np.zeros(0, np.int64)
        return none, none
    order = np.argsort(access.cells, kind="stable")
    cells = access.cells[order]
    twice = np.flatnonzero(cells[1:] == cells[:-1])
    return order[twice], order[twice + 1]


def _flat(value: Array, lanes: Lanes) -> Array:
    """One for each lane, in lane order."""
    flat: Array = np.broadcast_to(value, lanes.shape).reshape(-1)
    return flat.view(np.int64) if flat.dtype == np.uint64 else flat
