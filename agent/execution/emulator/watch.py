"""Counting what the lanes of a launch do: per site while it runs, per source line when it is over."""

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, evolve, field

from agent.execution.device import InstructionCounters, LaunchCounters, LineCounters
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.contention import Contention, operations
from agent.execution.emulator.kernel import Block, Kernel
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.patterns import Pattern
from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.sectors import SECTOR_BITS, filled, local_sectors, one_sector, sectors, wavefronts
from agent.execution.emulator.sites import Site
from agent.execution.emulator.steps.warp import Warps
from agent.execution.emulator.values import width_of
from agent.execution.emulator.waits import waits

MOST_MARKS = 1 << 24  # bytes of marks for the sectors of one buffer by block; beyond that, sorted lists
MOST_PENDING = 1 << 20

_COUNTS = (
    "requests", "sectors", "ideal_sectors", "load_sectors", "store_sectors", "shared_requests", "wavefronts",
    "branches", "divergent", "barriers", "atomics", "local_requests", "cache_lines", "partial_sectors",
    "partial_lines", "branch_lanes", "atomic_rounds", "local_sectors",
)  # fmt: skip


@define(eq=False)
class Totals:
    """Counts of one launch. ``sites`` has an array per count, indexed by site; ``warps``/``lanes`` count per block of
    code.
    """

    kernel: Kernel
    sites: dict[str, Array] = field(init=False)
    warps: Array = field(init=False)
    lanes: Array = field(init=False)
    touched: dict[tuple[str, bool], Array] = field(factory=dict)
    block_touched: dict[str, int] = field(factory=dict)
    contention: Contention = field(factory=Contention)

    def __attrs_post_init__(self) -> None:
        self.sites = {name: np.zeros(len(self.kernel.sites), np.int64) for name in _COUNTS}
        self.warps, self.lanes = (np.zeros(len(self.kernel.blocks), np.int64) for _ in range(2))


@define(eq=False)
class Watch:
    """The counting of one batch; ``close`` adds what it remembers by block to the totals."""

    totals: Totals
    blocks: int
    marks: dict[tuple[str, bool], Array] = field(factory=dict)
    pending: dict[tuple[str, bool], list[Array]] = field(factory=dict)
    sizes: dict[str, int] = field(factory=dict)
    queued: dict[str, list[Array]] = field(factory=dict)

    def executed(self, block: Block, lanes: Lanes) -> None:
        self.totals.warps[block.number] += lanes.warps
        self.totals.lanes[block.number] += lanes.count

    def branch(self, block: Block, lanes: Lanes, parts: Sequence[Lanes]) -> None:
        """Warps of which some lanes went to one of ``parts`` and some to another are divergent."""
        site = block.sites[-1].index
        self.totals.sites["branches"][site] += lanes.warps
        self.totals.sites["branch_lanes"][site] += lanes.count
        if len(parts) > 1:
            extra = sum(part.warps for part in parts) - lanes.warps
            self.totals.sites["divergent"][site] += min(extra, lanes.warps)

    def barrier(self, site: Site, lanes: Lanes) -> None:
        self.totals.sites["barriers"][site.index] += lanes.warps

    def local_access(self, lanes: Lanes, site: Site, offsets: Array, span: int) -> None:
        self.totals.sites["local_requests"][site.index] += lanes.warps
        if offsets.size == 1 and lanes.whole_warps and lanes.threads % WARP == 0:
            touched = lanes.warps * 4 * max(1, span // 4)
        else:
            table, active, times = _table(lanes, np.broadcast_to(offsets, lanes.shape))
            touched = times * local_sectors(table, active, span)
        self.totals.sites["local_sectors"][site.index] += touched

    def shared_access(self, pattern: Pattern, atomic: bool = False) -> None:
        counts, index, lanes = self.totals.sites, pattern.site.index, pattern.lanes
        counts["shared_requests"][index] += lanes.warps
        if atomic:
            counts["atomics"][index] += lanes.warps
        if pattern.passes is None:
            table, active, times = _table(lanes, pattern.offsets)
            pattern.passes = times * wavefronts(table, active, pattern.span, atomic)
        counts["wavefronts"][index] += pattern.passes
        if atomic:
            counts["atomic_rounds"][index] += pattern.passes

    def global_access(
        self, lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, span: int, writes: bool, atomic: bool = False
    ) -> None:
        if not buffer.writable:  # constant memory has a cache and a path of its own
            return
        counts, index = self.totals.sites, site.index
        counts["requests"][index] += lanes.warps
        if atomic:
            counts["atomics"][index] += lanes.warps
        signed = offsets.view(np.int64)
        if signed.size == 1:
            found = one_sector(signed.reshape(-1), span)
            blocks, times, touched = lanes.block.reshape(-1), lanes.warps, lanes.warps
        else:
            table, active, times = _table(lanes, signed)
            found = sectors(np.ascontiguousarray(filled(table, active)), span, writes)
            blocks, touched = _blocks(lanes, found.warp, times), times * len(found.sector)
        counts["sectors"][index] += touched
        counts["ideal_sectors"][index] += times * found.ideal
        counts["cache_lines"][index] += times * found.cache_lines
        if writes:
            counts["partial_sectors"][index] += times * found.partial
            counts["partial_lines"][index] += times * found.partial_lines
        counts["store_sectors" if writes else "load_sectors"][index] += touched
        self._touch(buffer, blocks, found.sector, writes)
        if atomic:
            self._touch(buffer, blocks, found.sector, False)
            self._queue(lanes, site, buffer, signed)

    def _queue(self, lanes: Lanes, site: Site, buffer: Buffer, offsets: Array) -> None:
        table, active, times = _table(lanes, np.broadcast_to(offsets, lanes.shape))
        warps, places, counts = operations(table, active, site.instruction)
        most = np.zeros(len(table), np.int64)
        np.maximum.at(most, warps, counts)
        self.totals.sites["atomic_rounds"][site.index] += times * int(most.sum())
        blocks = _blocks(lanes, warps, times)
        wide = np.broadcast_arrays(blocks, places, counts)
        self.queued.setdefault(buffer.name, []).append(np.stack([part.reshape(-1) for part in wide]))

    def _touch(self, buffer: Buffer, blocks: Array, numbers: Array, writes: bool) -> None:
        key = (buffer.name, writes)
        size = -(-buffer.stop >> SECTOR_BITS) + 1
        self.sizes[buffer.name] = size
        place = blocks * size + numbers
        if size * self.blocks <= MOST_MARKS:
            marks = self.marks.get(key)
            if marks is None:
                marks = self.marks[key] = np.zeros(size * self.blocks, bool)
            marks[place] = True
            return
        pending = self.pending.setdefault(key, [])
        pending.append(np.unique(place))
        if sum(len(part) for part in pending[1:]) > MOST_PENDING:
            self.pending[key] = [np.unique(np.concatenate(pending))]

    def close(self) -> None:
        """The batch is done."""
        for name, parts in self.queued.items():
            self.totals.contention.close(name, *np.concatenate(parts, axis=1))
        for name, size in self.sizes.items():
            by_block: list[Array] = []
            for writes in (False, True):
                key = (name, writes)
                places = np.flatnonzero(self.marks[key]) if key in self.marks else None
                if key in self.pending:
                    places = np.unique(np.concatenate(self.pending[key]))
                if places is None:
                    continue
                by_block.append(places)
                touched = self.totals.touched.setdefault(key, np.zeros(size, bool))
                touched[places % size] = True
            count = len(by_block[0]) if len(by_block) == 1 else len(np.union1d(*by_block))
            self.totals.block_touched[name] = self.totals.block_touched.get(name, 0) + count


def _table(lanes: Lanes, offsets: Array) -> tuple[Array, Array, int]:
    """Offsets by warp and lane, the lanes that take part, and how often the table stands for others just like it."""
    warps = Warps(lanes, offsets)
    (table,) = warps.tables
    if table.size == 1:
        table = np.broadcast_to(table, (warps.count, WARP))
    return table, warps.active, lanes.shape[0] // warps.rows if warps.rows else 1


def _blocks(lanes: Lanes, warps: Array, times: int) -> Array:
    """The rows of the batch that the warps of a table belong to: a column for each row where it stands for all."""
    per_block = -(-lanes.threads // WARP)
    if lanes.whole_warps and lanes.threads % WARP == 0:
        rows = lanes.block[:, 0]
        return rows[:, None] if times > 1 else rows[warps // per_block]
    found: Array = lanes.warp_ids[warps] // per_block
    return found


def launch_counters(
    totals: Totals, name: str, grid: tuple[int, int, int], block: tuple[int, int, int], blocks_run: int
) -> LaunchCounters:
    """The counts of a finished launch by source line and instruction class."""
    lines: dict[int, dict[str, int]] = {}
    mix: dict[str, int] = {}
    compound: dict[str, int] = {}
    columns = _columns(totals)
    for part in totals.kernel.blocks:
        warps, lanes = int(totals.warps[part.number]), int(totals.lanes[part.number])
        if not warps:
            continue
        for site, added in zip(part.sites, part.added, strict=True):
            counts = lines.setdefault(
                site.line, dict.fromkeys(("instructions", "thread_instructions", "waits", *_COUNTS), 0)
            )
            for count, column in columns.items():
                counts[count] += column[site.index]
            if not added:
                counts["instructions"] += warps
                counts["thread_instructions"] += lanes
                kind = class_of(site.instruction)
                mix[kind] = mix.get(kind, 0) + warps
                if site.instruction.base in _COMPOUND or kind == "tensor":
                    opcode = site.instruction.opcode
                    compound[opcode] = compound.get(opcode, 0) + warps
        for line in waits(part.sites):
            lines[line]["waits"] += warps
    touched = {
        writes: {key[0]: int(np.count_nonzero(marks)) for key, marks in totals.touched.items() if key[1] is writes}
        for writes in (False, True)
    }
    return LaunchCounters(
        kernel=name,
        grid=grid,
        block=block,
        blocks_run=blocks_run,
        lines={line: evolve(LineCounters(), **counts) for line, counts in sorted(lines.items())},
        mix=mix,
        touched_read=touched[False],
        touched_written=touched[True],
        block_touched=dict(totals.block_touched),
        queued=dict(totals.contention.operations),
        queued_at_one=totals.contention.common(blocks_run),
        compound=compound,
        instructions=tuple(_instructions(totals)),
    )


def _instructions(totals: Totals) -> Iterator[InstructionCounters]:
    """A guarded instruction has the counts of the branch around it as well."""
    table = _columns(totals)
    around: Site | None = None
    for part in totals.kernel.blocks:
        warps, lanes = int(totals.warps[part.number]), int(totals.lanes[part.number])
        for site, added in zip(part.sites, part.added, strict=True):
            if added:
                around = site
                continue
            counts = {name: column[site.index] for name, column in table.items()}
            if around is not None and around.instruction is site.instruction:
                for name, column in table.items():
                    counts[name] += column[around.index]
            one = site.instruction
            found = LineCounters(instructions=warps, thread_instructions=lanes, **counts)
            yield InstructionCounters(one.text, site.file, site.line, class_of(one), _width(one), found)


def _columns(totals: Totals) -> dict[str, list[int]]:
    """Each count by index of the site."""
    return {name: counts.tolist() for name, counts in totals.sites.items()}


def _width(instruction: Instruction) -> int:
    """Bytes that an access reads or writes for each lane."""
    if instruction.base not in ("ld", "ldu", "st", "atom", "red") or not instruction.types:
        return 0
    lanes = next((int(word[1:]) for word in instruction.modifiers if word in ("v2", "v4", "v8")), 1)
    return lanes * width_of(instruction.types[-1])


_COMPOUND = frozenset(("div", "rem", "sqrt", "rcp", "rsqrt"))
_MULTIPLIES = frozenset(("mul", "mad", "mul24", "mad24"))
_SPECIAL = frozenset("rcp sqrt rsqrt ex2 lg2 sin cos tanh".split())  # noqa: SIM905
_ON_CHIP = frozenset(("ldmatrix", "stmatrix", "mbarrier"))
_SHUFFLES = frozenset("shfl vote match redux activemask elect movmatrix".split())  # noqa: SIM905
_BRANCHES = frozenset("bra brx call ret exit trap".split())  # noqa: SIM905
_OTHER = frozenset("mov selp slct cvta isspacep membar fence nanosleep prefetch prefetchu".split())  # noqa: SIM905


def _matrix_class(words: tuple[str, ...]) -> str:
    if "load" in words or "store" in words:
        return "shared" if {"shared", "shared::cta"} & set(words) else "load" if "load" in words else "store"
    return "tensor"


def class_of(instruction: Instruction) -> str:
    """The instruction class that ``LaunchCounters.mix`` counts it under."""
    base, words = instruction.base, instruction.modifiers
    if base in ("ld", "ldu", "st"):
        if {"shared", "shared::cta", "shared::cluster"} & set(words):
            return "shared"
        if "param" in words:
            return "other"
        return "store" if base == "st" else "load"
    for kind, bases in (("shuffle", _SHUFFLES), ("branch", _BRANCHES), ("other", _OTHER)):
        if base in bases:
            return kind
    if base in ("tex", "tld4", "suld", "sust"):
        return "store" if base == "sust" else "load"
    if base in ("atom", "red"):
        return "atomic"
    if base in ("bar", "barrier"):
        return "shuffle" if "warp" in words else "barrier"
    kinds = instruction.types
    if base == "cvt":
        return "convert" if any(kind[0] in "fbe" for kind in kinds) else "other"
    if base in ("mma", "wmma"):
        return _matrix_class(words)
    if base in _ON_CHIP:
        return "shared"
    if base in _SPECIAL or (base == "div" and kinds and kinds[-1][0] == "f"):
        return "special"
    if any(kind == "f64" for kind in kinds):
        return "fp64"
    if any(kind.startswith(("f32", "f16", "bf16")) for kind in kinds):
        return "fp32"
    return "multiply" if base in _MULTIPLIES else "int"
