"""``ldmatrix``, ``stmatrix``, ``movmatrix``: tiles of 8 x 8 halves between shared memory and the lanes of a warp.

Lane 8 * i + r gives the address of row r of tile i, sixteen bytes; what a lane then holds is two neighbours of one row
(or of one column, with ``.trans``) of each tile. A row is read, or written, by the lane that gives its address: that is
whom checks name.
"""

from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import WINDOWS, Array
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.ptx.instruction import Operand
from agent.execution.emulator.semantics import flatten
from agent.execution.emulator.values import Lowering, Step, Values, lowers
from agent.execution.emulator.whole_warps import Whole, whole_warps

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_KNOWN = frozenset(("sync", "aligned", "m8n8", "trans", "shared", *_COUNTS))
_ROWS = 8


def _transposed(tiles: Array) -> Array:
    """Words ``(warps, 32)`` of tiles, each tile turned over."""
    halves = np.ascontiguousarray(tiles).view(np.uint16).reshape(-1, _ROWS, _ROWS)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).view(np.uint32).reshape(-1, WARP)


def form_of(lowering: Lowering) -> tuple[int, bool]:
    """How many tiles, and whether they are turned over. Raises Refused."""
    instruction = lowering.instruction
    words = [word.removesuffix("::cta") for word in instruction.modifiers]
    counts = [_COUNTS[word] for word in words if word in _COUNTS]
    if not set(words) <= _KNOWN or "m8n8" not in words or instruction.types != ("b16",) or len(counts) != 1:
        raise lowering.refuse()
    return counts[0], "trans" in words


def address_of(lowering: Lowering, operand: Operand) -> tuple[int, int]:
    """Entry and shift of an address as an offset into shared memory."""
    base, shift, owner = lowering.address(operand)
    generic = not owner and not {"shared", "shared::cta"} & set(lowering.instruction.modifiers)
    return base, shift - (WINDOWS["shared"] if generic else 0)


def _row_lanes(whole: Whole, count: int, addresses: Array) -> tuple[Lanes, Array]:
    """The lanes whose addresses count, and these."""
    lanes, addresses = whole.lanes, whole.take(addresses)
    if count * _ROWS == WARP:
        return lanes, addresses
    chosen = lanes.thread % WARP < count * _ROWS
    return lanes.select(chosen), addresses if addresses.shape[1] == 1 else addresses[:, chosen[0]]


@lowers("ldmatrix")
def load(lowering: Lowering) -> Step:
    (count, turned), site = form_of(lowering), lowering.site
    outs = [lowering.destination(part) for part in flatten(lowering.instruction.destinations) if part is not None]
    if len(outs) != count:
        raise lowering.refuse("registers")
    base, shift = address_of(lowering, lowering.instruction.sources[0])

    def run(values: Values, batch: "Batch") -> None:
        whole = whole_warps(batch, site)
        if not whole.lanes.count:
            found = np.zeros((0, count, WARP), np.uint32)
        else:
            lanes, addresses = _row_lanes(whole, count, values[base])
            rows = batch.shared.load(batch, lanes, site, addresses, shift, 8, 2)
            wide = np.stack([np.broadcast_to(row, lanes.shape).reshape(-1) for row in rows], axis=1)
            found = wide.view(np.uint32).reshape(-1, count, WARP)
        for index, out in enumerate(outs):
            tile = found[:, index]
            values[out] = whole.back(_transposed(tile) if turned else tile)

    return Step(run, (base,), tuple(outs))


@lowers("stmatrix")
def store(lowering: Lowering) -> Step:
    (count, turned), site = form_of(lowering), lowering.site
    target, source = lowering.instruction.sources
    base, shift = address_of(lowering, target)
    entries = [lowering.source(part, "b32") for part in flatten((source,))]
    if len(entries) != count:
        raise lowering.refuse("registers")

    def run(values: Values, batch: "Batch") -> None:
        whole = whole_warps(batch, site)
        if not whole.lanes.count:
            return
        lanes, addresses = _row_lanes(whole, count, values[base])
        full = [np.broadcast_to(values[entry], batch.lanes.shape) for entry in entries]
        tiles = [_transposed(tile) if turned else tile for tile in whole.tables(full)]
        words = np.ascontiguousarray(np.stack(tiles, axis=1)).view(np.uint64).reshape(*lanes.shape, 2)
        batch.shared.store(batch, lanes, site, addresses, shift, 8, [words[..., 0], words[..., 1]])

    return Step(run, (base, *entries), ())


@lowers("movmatrix")
def move(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    if instruction.modifiers != ("sync", "aligned", "m8n8", "trans") or instruction.types != ("b16",):
        raise lowering.refuse()
    out, site = lowering.destination(instruction.destinations[0]), lowering.site
    source = lowering.source(instruction.sources[0], "b32")

    def run(values: Values, batch: "Batch") -> None:
        whole = whole_warps(batch, site)
        (table,) = whole.tables([values[source]])
        values[out] = whole.back(_transposed(table))

    return Step(run, (source,), (out,))
