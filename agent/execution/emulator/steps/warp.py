"""Instructions by which the lanes of a warp talk: shuffles, votes, matches, reductions, and the warp's own barrier.

Lanes are laid out as a table with a row for each warp that takes part. A value that is the same for all lanes stays a
single number. The engine has brought the members of a warp together before such a step runs (see ``converge``).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.ptx.instruction import Immediate, Instruction, Operand, Vector
from agent.execution.emulator.sites import Site
from agent.execution.emulator.values import FILE_TYPES, Lowering, Step, Values, file_of, lowers
from agent.execution.emulator.whole_warps import COLLECTIVE

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_LANE = np.arange(WARP)[None, :]
EVERYBODY = Immediate(0xFFFF_FFFF, "int")
_BIT = (np.uint32(1) << np.arange(WARP, dtype=np.uint32))[None, :]


class Warps:
    """``tables`` are the operands as ``(warps, 32)`` or ``(1, 1)``; ``active`` marks the lanes that are there."""

    def __init__(self, lanes: Lanes, *operands: Array) -> None:
        self.lanes = lanes
        self.rows = 0
        if lanes.whole_warps and lanes.threads % WARP == 0:
            self.rows = max(operand.shape[0] for operand in operands)
            shape = (self.rows, lanes.threads)
            self.tables = [_unless_single(a, lambda a: np.broadcast_to(a, shape).reshape(-1, WARP)) for a in operands]
            self.count = self.rows * lanes.threads // WARP
            self.active: Array = np.ones((1, 1), bool)
        else:
            self.slot, self.count = lanes.warp_slot
            self.tables = [_unless_single(operand, self._table) for operand in operands]
            self.active = np.zeros((self.count, WARP), bool)
            self.active.reshape(-1)[self.slot] = True

    def _table(self, value: Array) -> Array:
        table = np.zeros((self.count, WARP), value.dtype)
        table.reshape(-1)[self.slot] = np.broadcast_to(value, self.lanes.shape).reshape(-1)
        return table

    def back(self, table: Array) -> Array:
        """A ``(warps, 32)`` or ``(warps, 1)`` table as a value of the lanes."""
        wide = np.broadcast_to(table, (self.count, WARP))
        if self.rows:
            return wide.reshape(self.rows, self.lanes.threads)
        return wide.reshape(-1)[self.slot].reshape(self.lanes.shape)

    def members(self, mask: Array) -> Array:
        """Lanes that are active and named by their mask."""
        named: Array = self.active & ((mask & _BIT) != 0)
        return named


def _unless_single(value: Array, change: Callable[[Array], Array]) -> Array:
    result: Array = value if value.size == 1 else change(value)
    return result


def ballot(chosen: Array, count: int) -> Array:
    """Bits of the lanes where ``chosen`` holds: ``(count, 1)``."""
    bits = np.packbits(np.broadcast_to(chosen, (count, WARP)), axis=1, bitorder="little")
    return np.ascontiguousarray(bits).view(np.uint32).reshape(count, 1)


def _pair(lowering: Lowering) -> tuple[int | None, int | None]:
    """Entries of ``d|p`` (None for a sink or where there is none)."""
    found: list[int | None] = []
    for operand in lowering.instruction.destinations:
        sink = isinstance(operand, Vector) and operand.elements == (None,)
        found.append(None if sink else lowering.destination(operand))
    return found[0] if found else None, found[1] if len(found) > 1 else None


def _some(*entries: int | None) -> tuple[int, ...]:
    return tuple(entry for entry in entries if entry is not None)


def mask_operand(instruction: Instruction) -> Operand | None:
    """The member mask of an instruction for which a warp's lanes must come together; None where there is none."""
    if instruction.base in COLLECTIVE:
        return EVERYBODY
    if instruction.base in ("shfl", "vote", "match", "redux", "elect") and "sync" in instruction.modifiers:
        return instruction.sources[-1]
    if instruction.base in ("bar", "barrier") and "warp" in instruction.modifiers:
        return instruction.sources[0]
    return None


@lowers("shfl")
def shuffle(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    mode = next((word for word in instruction.modifiers if word in ("up", "down", "bfly", "idx")), "")
    if not mode or "sync" not in instruction.modifiers or instruction.types != ("b32",):
        raise lowering.refuse()
    out, valid = _pair(lowering)
    reads = tuple(lowering.source(operand, "b32") for operand in instruction.sources)
    if len(reads) != 4:
        raise lowering.refuse()
    value, place, clamp, mask = reads
    site = lowering.site

    def run(values: Values, batch: "Batch") -> None:
        lanes = batch.lanes
        warps = Warps(lanes, values[value], values[place], values[clamp], values[mask])
        table, b, c, members = warps.tables
        source, inside = source_lane(mode, b.astype(np.int64), c.astype(np.int64))
        present = warps.members(members)
        _check_members(batch, site, warps, present, source)
        if out is not None:
            values[out] = warps.back(pick(table, source, present, warps.count))
        if valid is not None:
            values[valid] = warps.back(np.broadcast_to(inside, (warps.count, WARP)))

    return Step(run, reads, _some(out, valid))


def source_lane(mode: str, b: Array, c: Array, lane: Array = _LANE) -> tuple[Array, Array]:
    """The lane that each ``lane`` reads and whether it is in range (PTX ISA, shfl.sync)."""
    segment, b, bound = c >> 8 & 31, b & 31, c & 31
    low = lane & segment
    high = low | (bound & ~segment)
    if mode == "up":
        source = lane - b
        inside = source >= high
    else:
        source = {"down": lane + b, "bfly": lane ^ b, "idx": low | (b & ~segment)}[mode]
        inside = source <= high
    return np.where(inside, source, lane), inside


def pick(table: Array, source: Array, present: Array, count: int) -> Array:
    """The value of the source lane; a lane's own where the source takes no part (PTX leaves that undefined)."""
    if table.size == 1:
        return np.broadcast_to(table, (count, WARP))
    if source.shape[0] == 1:
        picked = table.take(source[0], axis=1)
        there = present if present.shape[1] == 1 else present.take(source[0], axis=1)
    else:
        picked = np.take_along_axis(table, source, axis=1)
        there = (
            present
            if present.size == 1
            else np.take_along_axis(np.broadcast_to(present, (count, WARP)), source, axis=1)
        )
    return picked if there.all() else np.where(there, picked, table)


def _check_members(batch: "Batch", site: Site, warps: Warps, present: Array, source: Array | None) -> None:
    """Each active lane must be in its own mask, and read only from lanes that take part."""
    if present.all():
        return
    if "barriers" not in batch.checks:
        return
    outside = np.broadcast_to(warps.active & ~present, (warps.count, WARP))
    if outside.any():
        bad = warps.back(outside)
        batch.fault(
            "invalid shuffle mask", batch.lanes, site, bad, lambda lane: "the lane is not in its own member mask"
        )
    if source is not None:
        wide = np.broadcast_to(present, (warps.count, WARP))
        there = np.take_along_axis(wide, np.broadcast_to(source, wide.shape), axis=1)
        absent = wide & ~there
        if absent.any():
            chosen = warps.back(np.broadcast_to(source, wide.shape))
            batch.fault(
                "invalid shuffle mask",
                batch.lanes,
                site,
                warps.back(absent),
                lambda lane: f"reads the value of lane {_at(chosen, batch.lanes, lane)}, which takes no part",
            )


def _at(value: Array, lanes: Lanes, position: int) -> int:
    return int(np.broadcast_to(value, lanes.shape).reshape(-1)[position])


@lowers("vote")
def vote(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    mode = next((word for word in instruction.modifiers if word in ("all", "any", "uni", "ballot")), "")
    if not mode or "sync" not in instruction.modifiers or len(instruction.sources) != 2:
        raise lowering.refuse()
    out = lowering.destination(instruction.destinations[0])
    chosen, mask = lowering.source(instruction.sources[0], "pred"), lowering.source(instruction.sources[1], "b32")
    flip, site = 0 in instruction.negated, lowering.site

    def run(values: Values, batch: "Batch") -> None:
        warps = Warps(batch.lanes, values[chosen], values[mask])
        table, members = warps.tables
        present = warps.members(members)
        _check_members(batch, site, warps, present, None)
        yes = (~table if flip else table) & present
        present = np.broadcast_to(present, (warps.count, WARP))
        if mode == "ballot":
            result = ballot(yes, warps.count)
        elif mode == "any":
            result = np.asarray(np.broadcast_to(yes, present.shape).any(axis=1, keepdims=True))
        else:
            result = np.asarray((yes | ~present).all(axis=1, keepdims=True))
            if mode == "uni":
                result = result | ~np.broadcast_to(yes, present.shape).any(axis=1, keepdims=True)
        values[out] = warps.back(result)

    return Step(run, (chosen, mask), (out,))


@lowers("match")
def match(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    everyone = "all" in instruction.modifiers
    out, agreed = _pair(lowering)
    value = lowering.source(instruction.sources[0], file_of(instruction.types[0]))
    mask, site = lowering.source(instruction.sources[1], "b32"), lowering.site

    def run(values: Values, batch: "Batch") -> None:
        warps = Warps(batch.lanes, values[value], values[mask])
        table, members = warps.tables
        present = np.broadcast_to(warps.members(members), (warps.count, WARP))
        _check_members(batch, site, warps, present, None)
        table = np.broadcast_to(table, present.shape)
        same = (table[:, :, None] == table[:, None, :]) & present[:, None, :]
        bits = (same * _BIT[None]).sum(axis=2, dtype=np.uint32)
        everybody = ballot(present, warps.count)
        if everyone:
            equal = bits == everybody
            bits = np.where(equal, bits, np.uint32(0))
            if agreed is not None:
                values[agreed] = warps.back(equal)
        if out is not None:
            values[out] = warps.back(bits)

    return Step(run, (value, mask), _some(out, agreed))


_REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@lowers("redux")
def reduce(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    name = next((word for word in instruction.modifiers if word in _REDUCTIONS), "")
    if not name or instruction.types not in (("s32",), ("u32",), ("b32",)) or len(instruction.modifiers) != 2:
        raise lowering.refuse()
    dtype = np.int32 if instruction.types == ("s32",) else np.uint32
    neutral: Any = {"and": dtype(-1) if dtype is np.int32 else np.uint32(0xFFFF_FFFF)}.get(name, dtype(0))
    if name in ("min", "max"):
        neutral = dtype(np.iinfo(dtype).max if name == "min" else np.iinfo(dtype).min)
    operation = _REDUCTIONS[name]
    out = lowering.destination(instruction.destinations[0])
    value, mask = (lowering.source(operand, "b32") for operand in instruction.sources)
    site = lowering.site

    def run(values: Values, batch: "Batch") -> None:
        warps = Warps(batch.lanes, values[value], values[mask])
        table, members = warps.tables
        present = np.broadcast_to(warps.members(members), (warps.count, WARP))
        _check_members(batch, site, warps, present, None)
        kept = np.where(present, np.broadcast_to(table, present.shape).view(dtype), neutral)
        values[out] = warps.back(operation.reduce(kept, axis=1, keepdims=True, dtype=dtype).view(np.uint32))

    return Step(run, (value, mask), (out,))


@lowers("activemask")
def active_mask(lowering: Lowering) -> Step:
    out = lowering.destination(lowering.instruction.destinations[0])

    def run(values: Values, batch: "Batch") -> None:
        warps = Warps(batch.lanes, np.zeros((1, 1), np.uint32))
        values[out] = warps.back(ballot(warps.active, warps.count))

    return Step(run, (), (out,))


@lowers("elect")
def elect(lowering: Lowering) -> Step:
    out, leads = _pair(lowering)
    mask = lowering.source(lowering.instruction.sources[-1], "b32")

    def run(values: Values, batch: "Batch") -> None:
        warps = Warps(batch.lanes, values[mask])
        present = np.broadcast_to(warps.members(warps.tables[0]), (warps.count, WARP))
        leader = present.argmax(axis=1)[:, None]
        if out is not None:
            values[out] = warps.back(leader.astype(FILE_TYPES["b32"]))
        if leads is not None:
            values[leads] = warps.back(leader == _LANE)

    return Step(run, (mask,), _some(out, leads))


def _arrive_in_cluster(lowering: Lowering) -> Step:
    """Of a cluster of one block the wait alone is where threads meet."""
    site, relaxed = lowering.site, "relaxed" in lowering.instruction.modifiers

    def run(values: Values, batch: "Batch") -> None:
        if batch.team is not None:
            batch.team.arrive(batch, batch.lanes, site, relaxed)

    return Step(run, (), ())


@lowers("bar", "barrier")
def warp_barrier(lowering: Lowering) -> Step:
    if {"cluster", "arrive"} <= set(lowering.instruction.modifiers):
        return _arrive_in_cluster(lowering)
    if "warp" not in lowering.instruction.modifiers:
        raise lowering.refuse()
    mask, site = lowering.source(lowering.instruction.sources[0], "b32"), lowering.site

    def run(values: Values, batch: "Batch") -> None:
        if batch.order is not None or "barriers" in batch.checks:
            warps = Warps(batch.lanes, values[mask])
            present = warps.members(warps.tables[0])
            _check_members(batch, site, warps, present, None)
            batch.meet(batch.lanes, warps, present)

    return Step(run, (mask,), ())
