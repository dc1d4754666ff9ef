"""``cp.async``: copies of 4, 8 or 16 bytes from global to shared memory, in groups that are waited for."""

from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import UNSIGNED
from agent.execution.emulator.instruction import Immediate
from agent.execution.emulator.steps_bulk import bulk_copy
from agent.execution.emulator.steps_mbarrier import arrive_after_copies
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
    operands, site = lowering.instruction.sources, lowering.site
    size = operands[2] if len(operands) in (3, 4) else None
    if not isinstance(size, Immediate) or size.bits not in (4, 8, 16):
        raise lowering.refuse()
    target, target_shift, _ = lowering.address(operands[0])
    source, source_shift, _ = lowering.address(operands[1])
    given = lowering.source(operands[3], "b32") if len(operands) == 4 else None
    nbytes, width = size.bits, min(size.bits, 8)
    count = nbytes // width

    def run(values: Values, batch: "Batch") -> None:
        lanes = batch.lanes
        words = memory.load(batch, site, values[source], source_shift, width, count)
        if given is not None:
            words = [_cut(word, values[given], k * width, width) for k, word in enumerate(words)]
        targets = values[target].astype(np.int64) + target_shift
        batch.copies.issue(lanes, site, targets, width, words)

    return Step(run, (target, source, *(() if given is None else (given,))), ())


def _cut(word: Array, given: Array, first: int, width: int) -> Array:
    """The word with the bytes at and beyond offset ``given`` of the copy zeroed."""
    kept = np.clip(given.astype(np.int64) - first, 0, width)
    masks = np.array([(1 << 8 * k) - 1 for k in range(width + 1)], UNSIGNED[width])
    cut: Array = word & masks[kept]
    return cut
