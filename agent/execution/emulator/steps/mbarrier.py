"""``mbarrier``: barriers in shared memory that count arrivals and bytes, phase by phase, and ``cp.async``'s arrival.

Lanes arrive one after the other. A wait does not wait: it answers whether the phase is over, and programs ask again.
What hangs on time (``suspendTimeHint``) hangs on nothing here.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import by_block
from agent.execution.emulator.mbarrier import MOST_ARRIVALS, State, arrive, initialised, parity, pending, read, transfer
from agent.execution.emulator.memory import Place
from agent.execution.emulator.ptx.instruction import Operand, Vector
from agent.execution.emulator.sites import Site
from agent.execution.emulator.values import Lowering, Step, Values, lowers

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_KINDS = frozenset(("init", "inval", "arrive", "arrive_drop", "test_wait", "try_wait", "expect_tx", "complete_tx",
                    "pending_count"))  # fmt: skip
_IGNORED = frozenset(("shared", "shared::cluster", "release", "acquire", "relaxed", "cta", "cluster"))
_FURTHER = frozenset(("expect_tx", "noComplete", "parity"))
_MISUSED = "invalid mbarrier"


@lowers("mbarrier")
def mbarrier(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    words = [word.removesuffix("::cta") for word in instruction.modifiers]
    kind, further = words[0] if words else "", [word for word in words[1:] if word not in _IGNORED]
    if kind not in _KINDS or not set(further) <= _FURTHER or instruction.types[-1:] != ("b64",):
        raise lowering.refuse()
    if kind == "pending_count":
        return _pending(lowering)
    at = Barrier.of(lowering, instruction.sources[0])
    if kind in ("init", "inval"):
        return _begin(lowering, at, kind == "init")
    if kind in ("test_wait", "try_wait"):
        return _wait(lowering, at, "parity" in further)
    if kind in ("expect_tx", "complete_tx"):
        return _bytes(lowering, at, 1 if kind == "expect_tx" else -1)
    return _arrive(lowering, at, further, kind == "arrive_drop")


@frozen
class Barrier:
    """Where an instruction finds its barrier: entry and shift of the address, in ``shared`` or ``generic`` terms.
    ``site`` is that of what happens to the barrier, ``copy`` that of a copy which it counts."""

    entry: int
    shift: int
    space: str
    site: Site
    copy: Site

    @classmethod
    def of(cls, lowering: Lowering, operand: Operand) -> "Barrier":
        """Raises Refused for a barrier that is not in shared memory."""
        entry, shift, owner = lowering.address(operand)
        if owner not in ("", "shared"):
            raise lowering.refuse(f"a barrier in {owner} memory")
        named = {"shared", "shared::cta", "shared::cluster"} & set(lowering.instruction.modifiers)
        site = copy = lowering.site
        if "bulk" in site.instruction.modifiers:
            # the copy's own accesses are of another strength than the count of its bytes
            counting = evolve(site.instruction, base="mbarrier", modifiers=("complete_tx",))
            site = Site(site.index, counting, site.kernel, site.file, site.line)
        return cls(entry, shift, "shared" if named or owner else "generic", site, copy)

    def places(self, values: Values, batch: "Batch") -> list[Place]:
        return memory.places(batch, self.site, values[self.entry], self.shift, 8, self.space)

    def look(self, batch: "Batch", place: Place) -> None:
        """Somebody looks whether the phases of these barriers are over: bulk copies that they count are done."""
        if batch.shared.shadow is not None:
            batch.shared.shadow.blocks_part()
        if batch.bulk.inward:
            for key in np.unique(place.index).tolist():
                batch.bulk.look(batch, key)

    def each(self, values: Values, batch: "Batch", act: "Act") -> None:
        """Let ``act`` give each barrier its new state; what it has no room for is reported."""
        for place in self.places(values, batch):
            if batch.shared.shadow is not None:
                batch.shared.shadow.blocks_part()
            order = np.argsort(place.index, kind="stable")
            keys, starts = np.unique(place.index[order], return_index=True)
            for key, at in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
                state, lanes = read(int(place.view[key])), place.places[at]
                if state is None:
                    self.misused(batch, lanes, "no mbarrier was initialised there")
                    continue
                after, taken = act(state, key, lanes)
                if place.view[key] != after.word:
                    place.view[key] = after.word
                    batch.stuck.moved()
                self.misused(batch, lanes[taken:], "more arrivals than the phase expects")
            place.done()

    def misused(self, batch: "Batch", positions: Array, why: str) -> None:
        """Report the lanes at those positions in lane order."""
        chosen = np.zeros(batch.lanes.count, bool)
        chosen[positions] = True
        batch.fault(_MISUSED, batch.lanes, self.site, chosen, lambda lane: why)


#: A barrier's state, its number, the positions of its lanes: the state after, and how many lanes it took.
Act = Callable[[State, int, Array], tuple[State, int]]


def _pending(lowering: Lowering) -> Step:
    out = lowering.destination(lowering.instruction.destinations[0])
    token = lowering.source(lowering.instruction.sources[0], "b64")

    def run(values: Values, batch: "Batch") -> None:
        values[out] = pending(values[token])

    return Step(run, (token,), (out,))


def _begin(lowering: Lowering, at: Barrier, starts: bool) -> Step:
    count = lowering.source(lowering.instruction.sources[1], "b32") if starts else None

    def run(values: Values, batch: "Batch") -> None:
        words = np.zeros(batch.lanes.count, np.uint64)
        if count is not None:
            counts = _flat(batch, values[count])
            bad = (counts < 1) | (counts > MOST_ARRIVALS)
            batch.fault(_MISUSED, batch.lanes, at.site, bad, lambda lane: f"expects {counts[lane]} arrivals")
            wide = counts.astype(np.uint64)
            words = wide | wide << np.uint64(20) | np.uint64(State(0, 0).word)
        for place in at.places(values, batch):
            place.view[place.index] = words[place.places]
            batch.stuck.moved()
            place.done()
            if batch.order is not None:
                batch.order.phases.begin(np.unique(place.index).tolist())

    return Step(run, (at.entry,) if count is None else (at.entry, count), ())


def _arrive(lowering: Lowering, at: Barrier, further: list[str], drops: bool) -> Step:
    instruction = lowering.instruction
    counts, bytes_entry = lowering.entries.literal(1, "b32"), None
    if "expect_tx" in further:
        bytes_entry = lowering.source(instruction.sources[1], "b32")
    elif len(instruction.sources) > 1:
        counts = lowering.source(instruction.sources[1], "b32")
    outs = [one for one in instruction.destinations if not isinstance(one, Vector)]
    out, stays = lowering.destination(outs[0]) if outs else None, "noComplete" in further

    def run(values: Values, batch: "Batch") -> None:
        arriving = _flat(batch, values[counts]).astype(np.int64)
        nbytes = None if bytes_entry is None else _flat(batch, values[bytes_entry]).astype(np.int64)
        tokens = np.zeros(batch.lanes.count, np.uint64)

        def act(state: State, key: int, lanes: Array) -> tuple[State, int]:
            more = None if nbytes is None else nbytes[lanes]
            found = arrive(state, arriving[lanes], more, drops, stays)
            tokens[lanes] = found.tokens
            note_arrivals(batch, key, lanes[: found.taken], found.ends, state.parity)
            return found.state, found.taken

        at.each(values, batch, act)
        if out is not None:
            values[out] = tokens.reshape(batch.lanes.shape)

    reads = (at.entry, counts) if bytes_entry is None else (at.entry, counts, bytes_entry)
    return Step(run, reads, () if out is None else (out,))


def note_arrivals(batch: "Batch", key: int, lanes: Array, ends: Sequence[int], parity: int) -> None:
    """Lanes (positions in lane order) arrive at a barrier; ``ends``: after how many of them a phase is complete."""
    if batch.order is None:
        return
    start = 0
    for stop in (*ends, len(lanes)):
        if stop > start:
            for row, threads in by_block(batch.lanes.flat[lanes[start:stop]], batch.lanes.threads):
                batch.order.phases.arrive(batch.order, key, row, threads)
        start = stop
        if stop in ends:
            batch.order.phases.end(key, parity)
            parity = 1 - parity


def _bytes(lowering: Lowering, at: Barrier, sign: int) -> Step:
    amount = lowering.source(lowering.instruction.sources[1], "b32")

    def run(values: Values, batch: "Batch") -> None:
        complete_bytes(batch, values, at, sign * _flat(batch, values[amount]).astype(np.int64))

    return Step(run, (at.entry, amount), ())


def complete_bytes(batch: "Batch", values: Values, at: Barrier, nbytes: Array) -> None:
    """``nbytes`` more to come at each lane's barrier, in lane order; fewer where negative."""

    def act(state: State, key: int, lanes: Array) -> tuple[State, int]:
        for lane in lanes.tolist():
            odd = state.parity
            state, over = transfer(state, int(nbytes[lane]))
            note_arrivals(batch, key, np.array([lane]), (1,) if over else (), odd)
        return state, len(lanes)

    at.each(values, batch, act)


def _wait(lowering: Lowering, at: Barrier, by_parity: bool) -> Step:
    instruction = lowering.instruction
    out = lowering.destination(instruction.destinations[0])
    phase = lowering.source(instruction.sources[1], "b32" if by_parity else "b64")

    def run(values: Values, batch: "Batch") -> None:
        asked = _flat(batch, values[phase])
        odd = asked & np.uint32(1) if by_parity else parity(asked)
        over = np.ones(batch.lanes.count, bool)
        missing: list[State] = []
        for place in at.places(values, batch):
            at.look(batch, place)
            words = place.view[place.index]
            valid = initialised(words)
            at.misused(batch, place.places[~valid], "no mbarrier was initialised there")
            over[place.places] = passed = ~valid | (odd[place.places] != parity(words))
            missing += [state for word in words[~passed][:1].tolist() if (state := read(word)) is not None]
            place.done()
            if batch.order is not None:
                for key in np.unique(place.index[passed & valid]).tolist():
                    mine = batch.lanes.flat[place.places[passed & (place.index == key)]]
                    for row, threads in by_block(mine, batch.lanes.threads):
                        batch.order.phases.acquire(key, 1 - int(parity(place.view[key])), row, threads)
        batch.stuck.polled(batch, at.site, over, missing)
        values[out] = over.reshape(batch.lanes.shape)

    return Step(run, (at.entry, phase), (out,))


def arrive_after_copies(lowering: Lowering) -> Step:
    """``cp.async.mbarrier.arrive``: the barrier hears of the copies that the thread has issued. They end here, at the
    latest moment at which a wait can see them. Without ``.noinc`` the arrival was added to those pending, and takes
    itself off again."""
    at, counts = Barrier.of(lowering, lowering.instruction.sources[0]), "noinc" in lowering.instruction.modifiers

    def run(values: Values, batch: "Batch") -> None:
        batch.copies.wait(batch, batch.lanes, None)

        def act(state: State, key: int, lanes: Array) -> tuple[State, int]:
            found = arrive(state, np.full(len(lanes), int(counts)))
            note_arrivals(batch, key, lanes[: found.taken], found.ends, state.parity)
            return found.state, found.taken

        at.each(values, batch, act)

    return Step(run, (at.entry,), ())


def _flat(batch: "Batch", value: Array) -> Array:
    flat: Array = np.broadcast_to(value, batch.lanes.shape).reshape(-1)
    return flat
