"""``cp.async``: copies of 4, 8 or 16 bytes from global to shared memory, in groups that are waited for."""

from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import UNSIGNED
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.ptx.instruction import Immediate, Register
from agent.execution.emulator.sites import Site
from agent.execution.emulator.steps.bulk import bulk_copy, bulk_reduction
from agent.execution.emulator.steps.mbarrier import arrive_after_copies
from agent.execution.emulator.values import Lowering, Step, Values, lowers

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch


@lowers("cp")
def copy(lowering: Lowering) -> Step:
    words = [word for word in lowering.instruction.modifiers if not word.startswith("L2")]
    if words == ["async", "commit_group"]:
        return Step(lambda values, batch: batch.copies.commit(batch.lanes), (), ())
    if words in (["async", "wait_all"], ["async", "wait_group"]):
        return _wait(lowering, words[1] == "wait_all")
    if words[:2] == ["async", "bulk"]:
        return bulk_copy(lowering, words[2:])
    if words[:3] == ["reduce", "async", "bulk"]:
        return bulk_reduction(lowering, words[3:])
    if words[:3] == ["async", "mbarrier", "arrive"] and set(words[3:]) <= {"noinc", "shared", "shared::cta"}:
        return arrive_after_copies(lowering)
    if words[:1] != ["async"] or words[1:2] not in (["ca"], ["cg"]):
        raise lowering.refuse()
    if words[2:] not in (["shared", "global"], ["shared::cta", "global"]):
        raise lowering.refuse()
    return _copy(lowering)


def _wait(lowering: Lowering, everything: bool) -> Step:
    left: int | None = None
    if not everything:
        (operand,) = lowering.instruction.sources
        if not isinstance(operand, Immediate):
            raise lowering.refuse()
        left = operand.bits
    return Step(lambda values, batch: batch.copies.wait(batch, batch.lanes, left), (), ())


def _copy(lowering: Lowering) -> Step:
    operands, site = list(lowering.instruction.sources), lowering.site
    if "L2::cache_hint" in lowering.instruction.modifiers:
        operands.pop()
    size = operands[2] if len(operands) in (3, 4) else None
    if not isinstance(size, Immediate) or size.bits not in (4, 8, 16):
        raise lowering.refuse()
    target, target_shift, _ = lowering.address(operands[0])
    source, source_shift, _ = lowering.address(operands[1])
    ignores = len(operands) == 4 and isinstance(operands[3], Register) and operands[3].file == "pred"
    given = lowering.source(operands[3], "pred" if ignores else "b32") if len(operands) == 4 else None
    flip = 3 in lowering.instruction.negated
    nbytes, width = size.bits, min(size.bits, 8)
    count = nbytes // width

    def run(values: Values, batch: "Batch") -> None:
        addresses = values[source].astype(np.uint64) + np.uint64(source_shift & memory.MASK)
        if given is None:
            words = memory.load(batch, site, addresses, 0, width, count)
        else:
            # a predicate says that the source is to be ignored
            sizes = np.where(values[given] ^ flip, 0, nbytes) if ignores else np.minimum(values[given], nbytes)
            words = _cut_short(batch, site, addresses, sizes.astype(np.int64), (width, count))
        targets = values[target].astype(np.int64) + target_shift
        batch.copies.issue(batch.lanes, site, targets, width, words)

    return Step(run, (target, source, *(() if given is None else (given,))), ())


def _cut_short(batch: "Batch", site: Site, addresses: Array, sizes: Array, whole: tuple[int, int]) -> list[Array]:
    """Words (their width and number are ``whole``) of which only the first ``sizes`` bytes are read; the rest is 0."""
    lanes, (width, count) = batch.lanes, whole
    flat, sizes = (np.broadcast_to(value, lanes.shape).reshape(-1) for value in (addresses, sizes))
    held = np.zeros((lanes.count, width * count), np.uint8)
    for size in np.unique(sizes[sizes > 0]).tolist():
        chosen = np.flatnonzero(sizes == size)
        batch.lanes = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[chosen])
        step = width if size == width * count else min(size & -size, width)
        together = size // step if size == width * count else 1
        for first in range(0, size, step * together):
            for k, part in enumerate(memory.load(batch, site, flat[None, chosen], first, step, together)):
                at = first + k * step
                wide = np.ascontiguousarray(np.broadcast_to(part, (1, len(chosen)))).reshape(-1, 1)
                held[chosen, at : at + step] = wide.view(np.uint8)
    batch.lanes = lanes
    words = held.view(UNSIGNED[width])
    return [np.ascontiguousarray(words[:, k]).reshape(lanes.shape) for k in range(count)]
