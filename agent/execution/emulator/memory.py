"""Global memory, and generic addresses: which buffer an address is in, whether the access is allowed, and its bytes.

The common case is tested with as few passes over the addresses as possible: one buffer for all lanes, all in range, all
aligned. Only where that fails are the lanes taken apart, faults recorded, and the sound lanes served.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import LOCAL, NULL, PARAM, SHARED, TAG_BITS, Array, tag_of, tags_of
from agent.execution.emulator.buffers import MARK, UNSIGNED, Buffer
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.sites import Site
from agent.workload.textures import View

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

MASK = 0xFFFF_FFFF_FFFF_FFFF
NEAR_NULL = np.uint64(1 << 24)
"""Below are the addresses that an index or a member of nothing leads to; above, those that somebody made up."""
SHIFT = {1: np.uint64(0), 2: np.uint64(1), 4: np.uint64(2), 8: np.uint64(3)}


@define(eq=False)
class Memory:
    """All buffers of a run by tag, and texture and surface objects by their handles. ``check_initialised``: reads of
    poisoned bytes that nothing wrote are faults."""

    buffers: dict[int, Buffer] = field(factory=dict)
    views: dict[int, tuple[Buffer, View]] = field(factory=dict)
    check_initialised: bool = False


def reach(buffer: Buffer, addresses: Array, shift: int, span: int) -> Array | None:
    """Offsets from the buffer's base of accesses of ``span`` bytes, or None where not all lanes are sound in it."""
    offsets: Array = addresses - np.uint64((buffer.base - shift) & MASK)
    together = int(np.bitwise_or.reduce(offsets, axis=None))
    last = buffer.stop - span
    if together & (span - 1):
        return None
    if (together > last and int(offsets.max()) > last) or (buffer.start and int(offsets.min()) < buffer.start):
        return None
    return offsets


def find(batch: "Batch", site: Site, addresses: Array, shift: int, span: int) -> tuple[Buffer, Array] | None:
    """The one buffer that all lanes access soundly, with their offsets."""
    buffers = batch.memory.buffers
    buffer = buffers.get(site.tag)
    if buffer is not None and (offsets := reach(buffer, addresses, shift, span)) is not None:
        return buffer, offsets
    tag = tag_of(int(addresses[0, 0]) + shift)
    if tag != site.tag and (buffer := buffers.get(tag)) is not None:
        site.tag = tag
        if (offsets := reach(buffer, addresses, shift, span)) is not None:
            return buffer, offsets
    return None


def load(batch: "Batch", site: Site, addresses: Array, shift: int, width: int, count: int) -> list[Array]:
    """``count`` neighbouring values of ``width`` bytes for each lane, as unsigned arrays."""
    found = find(batch, site, addresses, shift, width * count)
    if found is None:
        return _load_apart(batch, site, addresses, shift, width, count)
    buffer, offsets = found
    return _read(batch, batch.lanes, site, buffer, offsets, width, count)


def store(batch: "Batch", site: Site, addresses: Array, shift: int, width: int, values: list[Array]) -> None:
    """Store ``values`` (unsigned arrays of ``width`` bytes) side by side; of lanes that collide the last one stays."""
    found = find(batch, site, addresses, shift, width * len(values))
    if found is None or not found[0].writable:
        _store_apart(batch, site, addresses, shift, width, values)
        return
    buffer, offsets = found
    _write(batch, batch.lanes, site, buffer, offsets, width, values)


def _read(
    batch: "Batch", lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, width: int, count: int
) -> list[Array]:
    buffer.ensure(offsets)
    index = (offsets >> SHIFT[width]).view(np.int64)
    if batch.watch is not None:
        batch.watch.global_access(lanes, site, buffer, offsets, width * count, False)
    if batch.reach is not None:
        batch.reach.on_global(batch, lanes, site, buffer, offsets, width * count, True, False)
    if batch.traffic is not None:
        batch.traffic.read(batch, lanes, site, buffer, offsets, width * count)
    if buffer.poisoned and batch.memory.check_initialised:
        _check_initialised(batch, lanes, site, buffer, index, width, count)
    view = buffer.views[width]
    return [view.take(index + k if k else index) for k in range(count)]


def _write(
    batch: "Batch", lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, width: int, values: list[Array]
) -> None:
    buffer.ensure(offsets)
    index = (offsets >> SHIFT[width]).view(np.int64)
    if batch.watch is not None:
        batch.watch.global_access(lanes, site, buffer, offsets, width * len(values), True)
    if batch.reach is not None:
        batch.reach.on_global(batch, lanes, site, buffer, offsets, width * len(values), False, True)
    if batch.traffic is not None:
        batch.traffic.write(batch, lanes, site, buffer, offsets, width, values)
    view = buffer.views[width]
    for k, value in enumerate(values):
        place = index + k if k else index
        if value.shape[0] > place.shape[0] or value.shape[1] > place.shape[1]:
            # several lanes store to the same place: the last one's value stays
            view[np.broadcast_to(place, lanes.shape)] = value
        else:
            view[place] = value
        if buffer.written is not None:
            buffer.marks[width][place] = MARK[width]


def _check_initialised(
    batch: "Batch", lanes: Lanes, site: Site, buffer: Buffer, index: Array, width: int, count: int
) -> None:
    marks = buffer.marks[width]
    bad = marks.take(index) != MARK[width]
    for k in range(1, count):
        bad |= marks.take(index + k) != MARK[width]
    if bad.any():
        report_uninitialised(batch, lanes, site, bad, lambda: f"buffer '{buffer.name}'")


def report_uninitialised(batch: "Batch", lanes: Lanes, site: Site, bad: Array, what: Callable[[], str]) -> None:
    batch.fault(
        "uninitialised read", lanes, site, bad, lambda lane: f"reads bytes of {what()} that nothing has written"
    )


def _saying(message: str) -> Callable[[int], str]:
    return lambda lane: message


# Lanes apart --------------------------------------------------------------------------------------------------------


def _apart(
    batch: "Batch", site: Site, addresses: Array, shift: int, span: int, writes: bool
) -> list[tuple[Lanes, int, Array, Array]]:
    """The lanes that may go on, by tag: (lanes, tag, addresses ``(1, count)``, their places in ``lanes.shape`` order).

    The others are recorded as faults.
    """
    lanes = batch.lanes
    flat = np.broadcast_to(addresses + np.uint64(shift & MASK), lanes.shape).reshape(-1)
    tags = tags_of(flat)
    parts = []
    for tag in np.unique(tags).tolist():
        here = tags == tag
        buffer = batch.memory.buffers.get(tag)
        if buffer is not None:
            offsets = flat - np.uint64(buffer.base)
            # what begins inside is misaligned before it reaches past the end
            begins = here & (offsets < buffer.stop) & (offsets >= buffer.start)
            sound = here & ~_report_misaligned(batch, lanes, site, begins, flat, span)
            outside = sound & ((offsets > buffer.stop - span) | (offsets < buffer.start))
            _report_outside(batch, lanes, site, outside, offsets, buffer, span, writes)
            sound &= ~outside
            if writes and not buffer.writable and sound.any():
                kind = "write to read-only memory"
                message = f"writes to '{buffer.name}', which is constant"
                batch.fault(kind, lanes, site, sound, _saying(message))
                continue
        elif tag in (SHARED, LOCAL, PARAM):
            sound = here
        else:
            _report_wild(batch, lanes, site, here, flat, span, writes, tag)
            continue
        places = np.flatnonzero(sound)
        if len(places):
            part = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[places])
            parts.append((part, tag, flat[places][None, :], places))
    return parts


def _report_outside(
    batch: "Batch", lanes: Lanes, site: Site, bad: Array, offsets: Array, buffer: Buffer, span: int, writes: bool
) -> None:
    if bad.any():
        verb, kind = ("writes", "out-of-bounds write") if writes else ("reads", "out-of-bounds read")

        def message(lane: int) -> str:
            offset = int(offsets[lane].astype(np.int64)) - buffer.start
            side = "before the start" if offset < 0 else "past the end"
            return (
                f"{verb} {span} bytes at offset {offset} of buffer '{buffer.name}', which has {buffer.nbytes} bytes "
                f"({_distance(offset, span, buffer.nbytes)} {side})"
            )

        batch.fault(kind, lanes, site, bad, message)


def _distance(offset: int, span: int, nbytes: int) -> str:
    beyond = -offset if offset < 0 else offset + span - nbytes
    return f"{beyond} byte{'s' if beyond != 1 else ''}"


def _report_misaligned(batch: "Batch", lanes: Lanes, site: Site, sound: Array, flat: Array, span: int) -> Array:
    bad: Array = sound & ((flat & np.uint64(span - 1)) != 0)
    if bad.any():
        batch.fault(
            "misaligned access",
            lanes,
            site,
            bad,
            lambda lane: f"accesses {span} bytes at address {int(flat[lane]):#x}, which is not a multiple of {span}",
        )
    return bad


def _report_wild(
    batch: "Batch", lanes: Lanes, site: Site, bad: Array, flat: Array, span: int, writes: bool, tag: int
) -> None:
    verb = "writes" if writes else "reads"
    if tag == NULL:
        near = bad & (flat < NEAR_NULL)
        batch.fault(
            "null pointer", lanes, site, near, lambda lane: f"{verb} {span} bytes at address {int(flat[lane]):#x}"
        )
        bad = bad & ~near
    kind = "out-of-bounds write" if writes else "out-of-bounds read"
    batch.fault(
        kind,
        lanes,
        site,
        bad,
        lambda lane: f"{verb} {span} bytes at address {int(flat[lane]):#x}, which is in no buffer",
    )


def _load_apart(batch: "Batch", site: Site, addresses: Array, shift: int, width: int, count: int) -> list[Array]:
    shape = batch.lanes.shape
    results = [np.zeros(shape, UNSIGNED[width]) for _ in range(count)]
    for lanes, tag, flat, places in _apart(batch, site, addresses, shift, width * count, False):
        buffer = batch.memory.buffers.get(tag)
        if buffer is not None:
            values = _read(batch, lanes, site, buffer, flat - np.uint64(buffer.base), width, count)
        else:
            values = batch.chip(tag).load(batch, lanes, site, flat - np.uint64(tag << TAG_BITS), 0, width, count)
        for result, value in zip(results, values, strict=True):
            result.reshape(-1)[places] = value.reshape(-1)
    return results


def _store_apart(batch: "Batch", site: Site, addresses: Array, shift: int, width: int, values: list[Array]) -> None:
    shape = batch.lanes.shape
    wide = [np.broadcast_to(value, shape).reshape(-1) for value in values]
    for lanes, tag, flat, places in _apart(batch, site, addresses, shift, width * len(values), True):
        parts = [value[places][None, :] for value in wide]
        buffer = batch.memory.buffers.get(tag)
        if buffer is not None:
            _write(batch, lanes, site, buffer, flat - np.uint64(buffer.base), width, parts)
        else:
            batch.chip(tag).store(batch, lanes, site, flat - np.uint64(tag << TAG_BITS), 0, width, parts)


# Generic addresses --------------------------------------------------------------------------------------------------


def _window(addresses: Array, shift: int) -> int:
    """SHARED, LOCAL or PARAM where every address is in that window, else 0."""
    tag = tag_of(int(addresses[0, 0]) + shift)
    if tag not in (SHARED, LOCAL, PARAM):
        return 0
    return tag if bool((tags_of(addresses + np.uint64(shift & MASK)) == tag).all()) else 0


def load_generic(batch: "Batch", site: Site, addresses: Array, shift: int, width: int, count: int) -> list[Array]:
    tag = _window(addresses, shift)
    if tag:
        offsets = addresses - np.uint64(tag << TAG_BITS)
        return batch.chip(tag).load(batch, batch.lanes, site, offsets, shift, width, count)
    return load(batch, site, addresses, shift, width, count)


def store_generic(batch: "Batch", site: Site, addresses: Array, shift: int, width: int, values: list[Array]) -> None:
    tag = _window(addresses, shift)
    if tag:
        offsets = addresses - np.uint64(tag << TAG_BITS)
        batch.chip(tag).store(batch, batch.lanes, site, offsets, shift, width, values)
    else:
        store(batch, site, addresses, shift, width, values)


# By state space -----------------------------------------------------------------------------------------------------


def read(batch: "Batch", space: str, site: Site, addresses: Array, width: int) -> Array:
    """One value for each lane from ``global``, ``shared`` or ``generic`` addresses."""
    if space == "shared":
        return batch.shared.load(batch, batch.lanes, site, addresses, 0, width, 1)[0]
    return (load_generic if space == "generic" else load)(batch, site, addresses, 0, width, 1)[0]


def write(batch: "Batch", space: str, site: Site, addresses: Array, width: int, value: Array) -> None:
    """The same for stores."""
    if space == "shared":
        batch.shared.store(batch, batch.lanes, site, addresses, 0, width, [value])
    else:
        (store_generic if space == "generic" else store)(batch, site, addresses, 0, width, [value])


# Places for read-modify-write ---------------------------------------------------------------------------------------


@define(eq=False)
class Place:
    """Where an atomic acts: elements ``index`` (in lane order) of ``view``; ``places`` are those lanes' positions in
    the order of ``lanes.shape``. ``done`` is told when the elements have been written."""

    lanes: Lanes
    view: Array
    index: Array
    places: Array
    done: Callable[[], None]


def places(batch: "Batch", site: Site, addresses: Array, shift: int, width: int, space: str) -> list[Place]:
    """One Place for each buffer or window that the lanes' atomics go to; unsound lanes are recorded and left out."""
    lanes = batch.lanes
    everywhere = np.arange(lanes.count)
    if space == "shared" or (space == "generic" and (tag := _window(addresses, shift)) == SHARED):
        offsets = addresses if space == "shared" else addresses - np.uint64(tag << TAG_BITS)
        return batch.shared.places(batch, lanes, site, offsets, shift, width, everywhere)
    found = find(batch, site, addresses, shift, width)
    if found is not None and found[0].writable:
        buffer, offsets = found
        wide = np.broadcast_to(offsets, lanes.shape).reshape(1, -1)
        return [_place(batch, lanes, site, buffer, offsets, wide, width, everywhere)]
    result = []
    for part, tag, flat, where in _apart(batch, site, addresses, shift, width, True):
        target = batch.memory.buffers.get(tag)
        if target is not None:
            offsets = flat - np.uint64(target.base)
            result.append(_place(batch, part, site, target, offsets, offsets, width, where))
        elif tag == SHARED:
            offsets = flat - np.uint64(tag << TAG_BITS)
            result += batch.shared.places(batch, part, site, offsets, 0, width, where)
        else:
            batch.fault(
                "out-of-bounds write", part, site, np.ones(part.shape, bool), lambda lane: "atomic on local memory"
            )
    return result


def _place(
    batch: "Batch", lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, wide: Array, width: int, where: Array
) -> Place:
    buffer.ensure(offsets)
    if batch.watch is not None:
        batch.watch.global_access(lanes, site, buffer, offsets, width, True, atomic=True)
    if batch.reach is not None:
        batch.reach.on_global(batch, lanes, site, buffer, offsets, width, True, True)
    if batch.traffic is not None:
        batch.traffic.atomic(batch, lanes, site, buffer, offsets, width)
    index = (wide >> SHIFT[width]).view(np.int64).reshape(-1)
    if buffer.poisoned and batch.memory.check_initialised:
        _check_initialised(batch, lanes, site, buffer, index.reshape(lanes.shape), width, 1)

    def done() -> None:
        if buffer.written is not None:
            buffer.marks[width][index] = MARK[width]

    return Place(lanes, buffer.views[width], index, where, done)
