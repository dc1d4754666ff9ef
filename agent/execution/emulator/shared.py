"""Shared memory of a batch: one row of bytes for each block.

Variables lie apart with a gap between them, so that running off one array does not silently land in the next; the gap
is a multiple of 128 bytes, which leaves every bank as it would be. In a cluster an address may lead to the row of
another block (``cluster_shape``): such accesses are taken apart from the common ones, whose addresses are all plain.
"""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import UNSIGNED
from agent.execution.emulator.cluster_shape import parted
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.memory import Place, report_uninitialised
from agent.execution.emulator.patterns import Pattern, Patterns
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch
    from agent.execution.emulator.races.clusters import ClusterShadow
    from agent.execution.emulator.races.shared_memory import Shadow


@define(eq=False)
class Region:
    """One variable: ``start <= offset < stop``."""

    name: str
    start: int
    stop: int


@define(eq=False)
class Shared:
    """``ends[offset]`` is where the variable that holds the byte ends (0 in a gap); None where there is one
    variable.
    """

    blocks: int
    regions: tuple[Region, ...]
    shadow: "Shadow | ClusterShadow | None"
    size: int = field(init=False)
    views: dict[int, Array] = field(init=False)
    ends: Array | None = field(init=False, default=None)
    patterns: Patterns = field(factory=Patterns)

    def __attrs_post_init__(self) -> None:
        self.size = max((region.stop for region in self.regions), default=0)
        row = -(-max(self.size, 1) // 128) * 128
        data = np.zeros((self.blocks, row), np.uint8)
        self.views = {width: data.view(kind) for width, kind in UNSIGNED.items()}
        regions = [region for region in self.regions if region.stop > region.start]
        if len(regions) > 1 or (regions and regions[0].start):
            self.ends = np.zeros(row, np.int64)
            for region in regions:
                self.ends[region.start : region.stop] = region.stop

    def load(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, count: int
    ) -> list[Array]:
        pattern = self._pattern(lanes, site, addresses, shift, width * count)
        if pattern is None:
            return self._load_apart(batch, lanes, site, addresses, shift, width, count)
        return self._load(batch, pattern, width, count)

    def _load(self, batch: "Batch", pattern: Pattern, width: int, count: int) -> list[Array]:
        if self.shadow is not None:
            bad = self.shadow.read(batch, pattern)
            if bad is not None:
                report_uninitialised(batch, pattern.lanes, pattern.site, bad, lambda: "shared memory")
        if batch.watch is not None:
            batch.watch.shared_access(pattern)
        if batch.reach is not None:
            batch.reach.on_shared(pattern)
        return self.peek(pattern, width, count)

    def store(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, values: list[Array]
    ) -> None:
        pattern = self._pattern(lanes, site, addresses, shift, width * len(values))
        if pattern is None:
            self._store_apart(batch, lanes, site, addresses, shift, width, values)
        else:
            self._store(batch, pattern, width, values)

    def _store(self, batch: "Batch", pattern: Pattern, width: int, values: list[Array]) -> None:
        if self.shadow is not None:
            self.shadow.write(batch, pattern, width, values)
        if batch.watch is not None:
            batch.watch.shared_access(pattern)
        if batch.reach is not None:
            batch.reach.on_shared(pattern)
        index = np.broadcast_to(pattern.elements(width, self.views[width].shape[1]), pattern.lanes.shape)
        view = self.views[width].reshape(-1)
        for k, value in enumerate(values):
            view[index + k if k else index] = value

    def announce(
        self,
        batch: "Batch",
        lanes: Lanes,
        site: Site,
        addresses: Array,
        width: int,
        count: int,
        values: list[Array] | None = None,
    ) -> bool:
        """An access that is under way: a write of ``values``, else a read. It meets the accesses of others now as well
        as when it is made. Whether any lane's is sound."""
        pattern: Pattern | None = self._pattern(lanes, site, addresses, 0, width * count)
        if pattern is None:
            pattern, kept = self._sound(batch, lanes, site, addresses, 0, width * count, values is not None)
            if not len(kept):
                return False
        if self.shadow is not None and values is None:
            self.shadow.read(batch, pattern)
        elif self.shadow is not None and values is not None:
            self.shadow.meet_write(batch, pattern, width, values)
        return True

    def places(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, where: Array
    ) -> list[Place]:
        """Where atomics act (see ``memory.places``)."""
        pattern = self._pattern(lanes, site, addresses, shift, width)
        if pattern is None:
            pattern, kept = self._sound(batch, lanes, site, addresses, shift, width, True)
            if not len(kept):
                return []
            lanes, where = pattern.lanes, where[kept]
        if self.shadow is not None:
            self.shadow.atomic(batch, pattern)
        if batch.watch is not None:
            batch.watch.shared_access(pattern, atomic=True)
        if batch.reach is not None:
            batch.reach.on_shared(pattern)
        index = np.broadcast_to(pattern.elements(width, self.views[width].shape[1]), lanes.shape).reshape(-1)
        return [Place(lanes, self.views[width].reshape(-1), index, where, lambda: None)]

    def _pattern(self, lanes: Lanes, site: Site, addresses: Array, shift: int, span: int) -> Pattern | None:
        """The access as a pattern; None where some lane is outside or misaligned."""
        found = self.patterns.find(site, lanes, addresses)
        if found is None:
            signed = addresses.view(np.int64) if addresses.dtype == np.uint64 else addresses.astype(np.int64)
            offsets = signed + shift if shift else signed
            if not self._within(offsets, span):
                return None
            found = Pattern(site, lanes, offsets, span)
            self.patterns.keep(addresses, found)
        return found

    def _within(self, offsets: Array, span: int) -> bool:
        together = int(np.bitwise_or.reduce(offsets, axis=None))
        if together < 0 or together & (span - 1):
            return False
        if together > self.size - span and int(offsets.max()) > self.size - span:
            return False
        return self.ends is None or bool((self.ends.take(offsets) >= offsets + span).all())

    def peek(self, pattern: Pattern, width: int, count: int) -> list[Array]:
        """What memory holds there, unwatched."""
        view = self.views[width]
        if pattern.alike:
            columns = pattern.columns(width)
            return [view.take(columns + k if k else columns, axis=1) for k in range(count)]
        index = pattern.elements(width, view.shape[1])
        return [view.reshape(-1).take(index + k if k else index) for k in range(count)]

    def _sound(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, span: int, writes: bool
    ) -> tuple[Pattern, Array]:
        """The accesses of lanes that are in range and aligned, and these lanes' places in lane order."""
        signed = addresses.astype(np.int64) + shift
        offsets = np.broadcast_to(signed, lanes.shape).reshape(-1)
        rows, offsets = _rows(batch, lanes, offsets)
        inside = (offsets >= 0) & (offsets <= self.size - span)
        if self.ends is not None:
            inside &= self.ends.take(np.where(inside, offsets, 0)) >= offsets + span
        if not inside.all():
            verb, kind = ("writes", "out-of-bounds write") if writes else ("reads", "out-of-bounds read")
            batch.fault(
                kind,
                lanes,
                site,
                ~inside,
                lambda lane: f"{verb} {span} bytes {self._describe(int(offsets[lane]), span)}",
            )
        aligned = (offsets & (span - 1)) == 0
        if not (aligned | ~inside).all():
            batch.fault(
                "misaligned access",
                lanes,
                site,
                inside & ~aligned,
                lambda lane: (
                    f"accesses {span} bytes of shared memory at {int(offsets[lane])}, not a multiple of {span}"
                ),
            )
        kept = np.flatnonzero(inside & aligned)
        if rows is not None and batch.team is not None and len(kept):
            part = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[kept])
            kept = kept[batch.team.use(batch, part, rows[kept], site)]
        part = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[kept])
        return Pattern(site, part, offsets[kept][None, :], span, None if rows is None else rows[kept][None, :]), kept

    def _describe(self, offset: int, span: int) -> str:
        if not self.regions:
            return f"at offset {offset} of shared memory, of which the launch has none"
        region = min(self.regions, key=lambda one: max(one.start - offset, offset + span - one.stop))
        return (
            f"at offset {offset - region.start} of shared variable '{region.name}', "
            f"which has {region.stop - region.start} bytes"
        )

    def _load_apart(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, count: int
    ) -> list[Array]:
        results = [np.zeros(lanes.shape, UNSIGNED[width]) for _ in range(count)]
        pattern, kept = self._sound(batch, lanes, site, addresses, shift, width * count, False)
        if len(kept):
            values = self._load(batch, pattern, width, count)
            for result, value in zip(results, values, strict=True):
                result.reshape(-1)[kept] = value.reshape(-1)
        return results

    def _store_apart(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, values: list[Array]
    ) -> None:
        pattern, kept = self._sound(batch, lanes, site, addresses, shift, width * len(values), True)
        if len(kept):
            parts = [np.broadcast_to(value, lanes.shape).reshape(-1)[kept][None, :] for value in values]
            self._store(batch, pattern, width, parts)


def _rows(batch: "Batch", lanes: Lanes, addresses: Array) -> tuple[Array | None, Array]:
    """The blocks of the batch in whose rows the lanes' addresses are (None: each in its own), and their offsets there.
    Ranks that the cluster does not have stay part of the offset, which is out of every bound."""
    if batch.team is None:
        return None, addresses
    owner, offsets = parted(addresses)
    far = (owner > 0) & (owner <= batch.team.size)
    if not far.any():
        return None, addresses
    own = lanes.flat // lanes.threads
    rows = np.where(far, own // batch.team.size * batch.team.size + owner - 1, own)
    return rows, np.where(far, offsets, addresses)
