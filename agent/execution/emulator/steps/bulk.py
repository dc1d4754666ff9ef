"""``cp.async.bulk`` and ``cp.reduce.async.bulk``: copies of whole ranges that one thread asks for. When they are done:
:mod:`bulk`. Addresses and sizes are multiples of 16 bytes (PTX ISA 9.7.9.25.4); a copy that has others is reported and
left out.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import WINDOWS, Array
from agent.execution.emulator.bulk import Inward, Outward
from agent.execution.emulator.cluster_shape import RANK_BITS, parted
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.mbarrier import read as state_of
from agent.execution.emulator.mbarrier import transfer
from agent.execution.emulator.ptx.instruction import Immediate
from agent.execution.emulator.sites import Site
from agent.execution.emulator.steps.atomic import apply
from agent.execution.emulator.steps.mbarrier import Barrier, note_arrivals
from agent.execution.emulator.values import Lowering, Step, Values, width_of

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_UNIT, _MOST = 16, 32  # bytes of one access: no more than a sector; copies come in multiples of the unit
_SIGNALS = "mbarrier::complete_tx::bytes"
_SHARED = ("shared::cta", "shared::cluster", "shared")
_FOLDS = frozenset("add min max inc dec and or xor".split())  # noqa: SIM905
_FOLDED = frozenset("f16 bf16 f32 f64 u32 s32 u64 s64 b32 b64".split())  # noqa: SIM905


@frozen
class _Data:
    """What is copied, in steps of so many bytes, and how many bytes in all."""

    words: list[list[Array]]
    step: int
    size: int


def bulk_copy(lowering: Lowering, words: list[str]) -> Step:
    """``words`` are the modifiers behind ``async.bulk``, without hints. Raises Refused."""
    if words[:1] == ["tensor"] or words[1:2] == ["tensor"]:
        raise lowering.refuse("a copy by a tensor map, which only the host makes")
    if words[:1] == ["prefetch"]:
        return Step(lambda values, batch: None, (), ())
    if words == ["commit_group"]:
        return Step(lambda values, batch: batch.bulk.commit(batch.lanes), (), ())
    if words in (["wait_group"], ["wait_group", "read"]):
        return _wait(lowering)
    multicast = "multicast::cluster" in words
    form = [word for word in words if word != "multicast::cluster"]
    if len(form) == 3 and form[0] in _SHARED and form[2] == _SIGNALS and form[1] in ("global", *_SHARED[:1]):
        return _inward(lowering, form[1] == "global", multicast)
    if form == ["global", "shared::cta", "bulk_group"]:
        return _outward(lowering, "", "")
    raise lowering.refuse()


def bulk_reduction(lowering: Lowering, words: list[str]) -> Step:
    """The same behind ``reduce.async.bulk``."""
    names = [word for word in words if word in _FOLDS]
    form = [word for word in words if word not in (*_FOLDS, "noftz")]
    kind = lowering.instruction.types[-1] if lowering.instruction.types else ""
    if form != ["global", "shared::cta", "bulk_group"] or len(names) != 1 or kind not in _FOLDED:
        raise lowering.refuse("a copy by a tensor map, which only the host makes" if "tensor" in words else "")
    return _outward(lowering, names[0], kind)


def _wait(lowering: Lowering) -> Step:
    (operand,) = lowering.instruction.sources
    if not isinstance(operand, Immediate):
        raise lowering.refuse()
    left = operand.bits
    return Step(lambda values, batch: batch.bulk.wait(batch, batch.lanes, left), (), ())


class _Operands:
    """Target, source and size of a copy."""

    def __init__(self, lowering: Lowering) -> None:
        operands = lowering.instruction.sources
        self.site = lowering.site
        self.target, self.target_shift, _ = lowering.address(operands[0])
        self.source, self.source_shift, _ = lowering.address(operands[1])
        self.size = lowering.source(operands[2], "b32")
        self.reads = (self.target, self.source, self.size)

    def of(self, values: Values, batch: "Batch") -> tuple[Array, Array, Array, Array]:
        """Flat: targets, sources, sizes, and which copies may be made; the others are reported."""
        lanes = batch.lanes
        into, out_of, sizes = (
            np.broadcast_to(values[entry].astype(np.uint64) + np.uint64(shift & memory.MASK), lanes.shape).reshape(-1)
            for entry, shift in ((self.target, self.target_shift), (self.source, self.source_shift), (self.size, 0))
        )
        sound = np.ones(lanes.count, bool)
        for what, numbers in (("copies {} bytes", sizes), ("copies to address {:#x}", into),
                              ("copies from address {:#x}", out_of)):  # fmt: skip
            bad = sound & (numbers % np.uint64(_UNIT) != 0)
            sound &= ~bad
            if bad.any():
                words = [what.format(number) for number in numbers.tolist()]
                batch.fault(
                    "misaligned access", lanes, self.site, bad,
                    lambda lane, words=words: f"{words[lane]}, no multiple of {_UNIT}",  # type: ignore[misc]
                )  # fmt: skip
        return into, out_of, sizes.astype(np.int64), sound


def _step(*numbers: int) -> int:
    """The largest step, up to the most, that all of these are multiples of."""
    together = _MOST
    for number in numbers:
        together |= number
    return max(together & -together, _UNIT)


def _pieces(batch: "Batch", lane: int, start: int, size: int, step: int) -> Iterator[tuple[Lanes, Array]]:
    """The accesses of ``step`` bytes from address ``start`` on that a lane makes to ``size`` bytes: all at once, the
    lane standing there once for each, unless somebody counts what accesses of a warp have in common."""
    blocks, threads = batch.everyone.blocks, batch.everyone.threads
    addresses = np.uint64(start) + np.arange(0, size, step, dtype=np.uint64)
    for part in [addresses] if batch.watch is None else np.split(addresses, len(addresses)):
        if len(part):
            yield Lanes(blocks, threads, ragged=np.full(len(part), lane)), part[None, :]


# To shared memory ---------------------------------------------------------------------------------------------------


def _inward(lowering: Lowering, from_global: bool, multicast: bool) -> Step:
    operands, site = _Operands(lowering), lowering.site
    barrier = Barrier.of(lowering, lowering.instruction.sources[3])
    mask = lowering.source(lowering.instruction.sources[4], "b16") if multicast else None

    def run(values: Values, batch: "Batch") -> None:
        lanes = batch.lanes
        into, out_of, sizes, sound = operands.of(values, batch)
        window = WINDOWS["shared"] if barrier.space == "generic" else 0
        at = values[barrier.entry].astype(np.int64) + barrier.shift - window
        signals = np.broadcast_to(at, lanes.shape).reshape(-1)
        masks = None if mask is None else np.broadcast_to(values[mask], lanes.shape).reshape(-1)
        for place, lane in enumerate(lanes.flat.tolist()):
            size, source = int(sizes[place]), int(out_of[place])
            step = _step(int(into[place]), source, size)
            data = []
            for part, addresses in _pieces(batch, lane, source, size if sound[place] else 0, step):
                batch.lanes = part
                load = memory.load if from_global else _load_shared
                data.append(load(batch, site, addresses, 0, 8, step // 8))
            batch.lanes = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[place : place + 1])
            ranks = [None] if masks is None else [rank for rank in range(16) if int(masks[place]) >> rank & 1]
            for rank in ranks:
                _issue(batch, barrier, (int(into[place]), int(signals[place])), rank, _Data(data, step, size))
        batch.lanes = lanes

    reads = (*operands.reads, barrier.entry)
    return Step(run, reads if mask is None else (*reads, mask), ())


def _load_shared(batch: "Batch", site: Site, addresses: Array, shift: int, width: int, count: int) -> list[Array]:
    return batch.shared.load(batch, batch.lanes, site, addresses, shift, width, count)


def _issue(batch: "Batch", barrier: Barrier, at: tuple[int, int], rank: int | None, what: _Data) -> None:
    """A copy of the one lane at hand is under way: to ``at`` (target, barrier), or to there in block ``rank``."""
    lane, site, shared = batch.lanes, barrier.copy, batch.shared
    target, signal = (address if rank is None else _of_rank(batch, address, rank) for address in at)
    places = memory.places(batch, barrier.site, np.array([[signal]], np.uint64), 0, 8, "shared")
    if not places:
        return
    (key,), view = places[0].index.tolist(), places[0].view
    size, step = what.size, what.step
    targets = list(zip(_pieces(batch, int(lane.flat[0]), target, size, step), what.words, strict=False))
    sound = all(
        shared.announce(batch, lanes, site, to, 8, len(words), words) for (lanes, to), words in targets
    )  # fmt: skip

    def finish(batch: "Batch") -> None:
        for (lanes, to), words in targets if sound else ():
            shared.store(batch, lanes, site, to, 0, 8, words)
        state = state_of(int(view[key]))
        if state is None:
            barrier.misused(batch, np.zeros(1, np.int64), "no mbarrier was initialised there")
            return
        after, over = transfer(state, -size)
        note_arrivals(batch, key, np.zeros(1, np.int64), (1,) if over else (), state.parity)
        view[key] = after.word
        batch.stuck.moved()

    batch.bulk.issue(key, Inward(site, lane, key // shared.views[8].shape[1], finish))


def _of_rank(batch: "Batch", address: int, rank: int) -> int:
    _, offset = parted(np.array([address], np.int64))
    alone = batch.team is None and rank == 0
    return int(offset[0]) + (0 if alone else (rank + 1) << RANK_BITS)


# To global memory ---------------------------------------------------------------------------------------------------


def _outward(lowering: Lowering, fold: str, kind: str) -> Step:
    operands, site = _Operands(lowering), lowering.site
    width = width_of(kind) if fold else 0

    def run(values: Values, batch: "Batch") -> None:
        lanes = Lanes(batch.lanes.blocks, batch.lanes.threads, ragged=batch.lanes.flat)
        into, out_of, sizes, sound = operands.of(values, batch)
        steps = [width or _step(*three) for three in zip(into.tolist(), out_of.tolist(), sizes.tolist(), strict=True)]

        def pieces(place: int, addresses: Array) -> Iterator[tuple[Lanes, Array]]:
            return _pieces(batch, int(lanes.flat[place]), int(addresses[place]), int(sizes[place]), steps[place])

        for place in np.flatnonzero(sound).tolist():
            unit = min(steps[place], 8)
            for part, source in pieces(place, out_of):
                sound[place] &= batch.shared.announce(batch, part, site, source, unit, steps[place] // unit)

        def finish(batch: "Batch", chosen: Array) -> None:
            whole = batch.lanes
            for place in chosen.tolist():
                unit = min(steps[place], 8)
                ways = zip(pieces(place, into), pieces(place, out_of), strict=True)
                for (batch.lanes, to), (_, source) in ways:
                    words = batch.shared.load(batch, batch.lanes, site, source, 0, unit, steps[place] // unit)
                    if fold:
                        _fold(batch, site, to, words[0], (fold, kind))
                    else:
                        memory.store(batch, site, to, 0, unit, words)
            batch.lanes = whole

        copy = Outward(site, lanes, batch.bulk.committed[lanes.flat], finish)
        copy.left &= sound
        batch.bulk.outward.append(copy)

    return Step(run, operands.reads, ())


def _fold(batch: "Batch", site: Site, into: Array, elements: Array, how: tuple[str, str]) -> None:
    """Element by element, an atomic each."""
    (name, kind), held = how, np.broadcast_to(elements, batch.lanes.shape).reshape(-1)
    width = elements.dtype.itemsize
    for place in memory.places(batch, site, into, 0, width, "global"):
        apply(place.view, place.index, name, kind, (held[place.places],))
        place.done()
