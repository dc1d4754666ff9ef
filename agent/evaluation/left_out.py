"""What sampled blocks prove of a plan: a later launch may find what an earlier one left out, or leave alone what it
should have changed, and each plan its own."""

import re
from math import prod

from agent.evaluation.contracts.contract import serious
from agent.evaluation.declared import OWN
from agent.execution.compiler.result import Build
from agent.execution.device import Answer
from agent.workload.binding import Bound, BoundFill, BoundLaunch
from agent.workload.workload import Access

_AWAITS = re.compile(
    r"^\s*(?:@\S+\s+)?(?:(?:ld\.(?:volatile|relaxed|acquire|mmio)|atom)(?!\S*\.shared)|membar|fence)\b", re.MULTILINE
)
"""Code that can wait for another block: only so does it see in a loop what that one writes."""


def certain(answer: Answer, bound: Bound, build: Build) -> bool:
    """Whether a fault on sampled blocks is one of the whole plan too: what comes first reads nothing that is left
    out, and does not wait for a block that is."""
    bad = serious(answer.faults)
    if bad and bad[0].kind in OWN and _AWAITS.search(build.ptx):
        return False
    names = [step.kernel.partition("<")[0] for step in _launches(bound)]
    first = bool(bad) and bad[0].kind not in OWN and bad[0].kernel == names[0] and names.count(names[0]) == 1
    return len(bound.steps) == 1 or first


def comparable(original: Bound, candidate: Bound, blocks: int) -> bool:
    """Whether lanes that differ on ``blocks`` blocks differ in whole runs: they do where both plans leave out the same,
    and where each leaves blocks of one launch out, and what these should have written is poison to all others."""
    shapes = [[(step.grid, step.block) for step in _launches(bound)] for bound in (original, candidate)]
    return shapes[0] == shapes[1] or all(_once(bound, blocks) for bound in (original, candidate))


def _once(bound: Bound, blocks: int) -> bool:
    launches = _launches(bound)
    cut = sum(prod(step.grid) > blocks for step in launches)
    filled = any(isinstance(step, BoundFill) for step in bound.steps)
    poisoned = all(
        item.access is Access.IN or (item.access is Access.OUT and not item.zeroed) for item in bound.buffers
    )
    return len(launches) == 1 or (cut <= 1 and poisoned and not filled)


def _launches(bound: Bound) -> list[BoundLaunch]:
    return [step for step in bound.steps if isinstance(step, BoundLaunch)]
