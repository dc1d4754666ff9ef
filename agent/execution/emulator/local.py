"""Local memory of a batch: each thread's own bytes, word by word so that the same word of all lanes lies together."""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import UNSIGNED
from agent.execution.emulator.copying import only_copied
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.memory import report_uninitialised
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch


@define(eq=False)
class Local:
    """``words[k]`` is the k-th 32-bit word of every lane; ``known`` (if asked for) marks its bytes that were
    written.
    """

    lanes: int
    nbytes: int
    track: bool
    words: Array = field(init=False)
    known: Array | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        rows = -(-max(self.nbytes, 8) // 8) * 2
        self.words = np.zeros((rows, self.lanes), np.uint32)
        if self.track:
            self.known = np.zeros((rows, self.lanes), np.uint32)

    def load(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, count: int
    ) -> list[Array]:
        offsets = self._reach(addresses, shift, width * count)
        if offsets is None:
            return self._load_apart(batch, lanes, site, addresses, shift, width, count)
        if batch.watch is not None:
            batch.watch.local_access(lanes, site, offsets, width * count)
        if self.known is not None:
            # padding is copied with the struct it is in: what is partly known, or only passed on, does not count
            marks = [_get(self.known, lanes, offsets + k * width, width) for k in range(count)]
            bad = np.logical_and.reduce([mark == 0 for mark in marks])
            if bad.any() and not only_copied(batch.kernel, site):
                report_uninitialised(batch, lanes, site, np.broadcast_to(bad, lanes.shape), lambda: "local memory")
        return [_get(self.words, lanes, offsets + k * width, width) for k in range(count)]

    def store(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, values: list[Array]
    ) -> None:
        offsets = self._reach(addresses, shift, width * len(values))
        if offsets is None:
            part, offsets, kept = self._sound(batch, lanes, site, addresses, shift, width * len(values), True)
            if len(kept):
                parts = [np.broadcast_to(value, lanes.shape).reshape(-1)[kept][None, :] for value in values]
                self.store(batch, part, site, offsets, 0, width, parts)
            return
        if batch.watch is not None:
            batch.watch.local_access(lanes, site, offsets, width * len(values))
        for k, value in enumerate(values):
            _put(self.words, lanes, offsets + k * width, width, value)
            if self.known is not None:
                full = np.full((1, 1), (1 << 8 * width) - 1, UNSIGNED[width])
                _put(self.known, lanes, offsets + k * width, width, full)

    def _reach(self, addresses: Array, shift: int, span: int) -> Array | None:
        offsets: Array = addresses.astype(np.int64) + shift
        together = int(np.bitwise_or.reduce(offsets, axis=None))
        if together < 0 or together & (span - 1):
            return None
        if together > self.nbytes - span and int(offsets.max()) > self.nbytes - span:
            return None
        return offsets

    def _sound(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, span: int, writes: bool
    ) -> tuple[Lanes, Array, Array]:
        offsets = np.broadcast_to(addresses.astype(np.int64) + shift, lanes.shape).reshape(-1)
        inside = (offsets >= 0) & (offsets <= self.nbytes - span)
        verb, kind = ("writes", "out-of-bounds write") if writes else ("reads", "out-of-bounds read")
        if not inside.all():
            batch.fault(
                kind,
                lanes,
                site,
                ~inside,
                lambda lane: f"{verb} {span} bytes at {int(offsets[lane])} of {self.nbytes} bytes of local memory",
            )
        aligned = (offsets & (span - 1)) == 0
        if not (aligned | ~inside).all():
            batch.fault(
                "misaligned access",
                lanes,
                site,
                inside & ~aligned,
                lambda lane: f"accesses {span} bytes of local memory at {int(offsets[lane])}, not a multiple of {span}",
            )
        kept = np.flatnonzero(inside & aligned)
        return Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[kept]), offsets[kept][None, :], kept

    def _load_apart(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, count: int
    ) -> list[Array]:
        results = [np.zeros(lanes.shape, UNSIGNED[width]) for _ in range(count)]
        part, offsets, kept = self._sound(batch, lanes, site, addresses, shift, width * count, False)
        if len(kept):
            for result, value in zip(results, self.load(batch, part, site, offsets, 0, width, count), strict=True):
                result.reshape(-1)[kept] = value.reshape(-1)
        return results


def _get(words: Array, lanes: Lanes, offsets: Array, width: int) -> Array:
    if width == 8:
        low, high = (_get(words, lanes, offsets + step, 4).astype(np.uint64) for step in (0, 4))
        whole: Array = low | (high << np.uint64(32))
        return whole
    value = _word(words, lanes, offsets >> 2)
    if width == 4:
        return value
    moved: Array = (value >> ((offsets & 3) << 3).astype(np.uint32)).astype(UNSIGNED[width])
    return moved


def _word(words: Array, lanes: Lanes, index: Array) -> Array:
    if index.size > 1:
        flat = np.broadcast_to(index, lanes.shape).reshape(-1) * words.shape[1] + lanes.flat
        found = words.reshape(-1).take(flat)
    else:
        row: Array = words[int(index[0, 0])]
        found = row.copy() if lanes.whole else row.take(lanes.flat)
    word: Array = found.reshape(lanes.shape)
    return word


def _put(words: Array, lanes: Lanes, offsets: Array, width: int, value: Array) -> None:
    if width == 8:
        _put(words, lanes, offsets, 4, value.astype(np.uint32))
        _put(words, lanes, offsets + 4, 4, (value >> np.uint64(32)).astype(np.uint32))
        return
    index = offsets >> 2
    if width < 4:
        shift = ((offsets & 3) << 3).astype(np.uint32)
        mask = np.uint32((1 << 8 * width) - 1) << shift
        value = (_word(words, lanes, index) & ~mask) | (value.astype(np.uint32) << shift)
    if index.size == 1:
        row = words[int(index[0, 0])]
        if lanes.whole:
            row.reshape(lanes.blocks, lanes.threads)[:] = value
        else:
            row[lanes.flat] = np.broadcast_to(value, lanes.shape).reshape(-1)
        return
    flat = np.broadcast_to(index, lanes.shape).reshape(-1) * words.shape[1] + lanes.flat
    words.reshape(-1)[flat] = np.broadcast_to(value, lanes.shape).reshape(-1)
