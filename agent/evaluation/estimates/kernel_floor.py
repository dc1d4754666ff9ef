"""The least that one kernel can take on a card, by what it reads, writes and computes: each of its launches alone.

:func:`agent.evaluation.estimates.estimate.headroom_of` is about a whole plan, and takes what goes from one launch to
the next for avoidable. Here a launch has to read and write all that it touches, whoever made it: what fusing launches
may save is not in the figure.
"""

from collections.abc import Mapping, Sequence

from attrs import frozen

from agent.evaluation.estimates.caches import SECTOR
from agent.evaluation.estimates.estimate import ARITHMETIC_FLOOR, MEMORY_FLOOR
from agent.evaluation.estimates.traffic import LAUNCH_SECONDS
from agent.evaluation.lines.profile import ProfiledLaunch
from agent.execution.targets import Target

LAUNCH_FLOOR = "launch floor"
"""So little is done that the gaps between launches are the floor."""


@frozen
class KernelFloor:
    """Seconds, summed over the launches of a kernel, estimated: ``memory``, what is touched crosses DRAM once at each
    launch; ``arithmetic``, the busiest ``kind`` of what is computed; ``launching``, the fixed cost. ``seconds`` sums
    the largest of them at each launch, and ``name`` says which that is at most of the time."""

    memory: float
    arithmetic: float
    kind: str
    launching: float
    seconds: float
    name: str


def kernel_floor(launches: Sequence[ProfiledLaunch], target: Target) -> KernelFloor:
    """The floor of a kernel by all its launches, at the sizes that were counted."""
    by_name = {MEMORY_FLOOR: 0.0, ARITHMETIC_FLOOR: 0.0, LAUNCH_FLOOR: 0.0}
    reached = dict(by_name)
    kinds: dict[str, float] = {}
    for one in launches:
        alone = _alone(one, target)
        name = max(alone, key=lambda which: alone[which])
        reached[name] += alone[name] * one.times
        for which, seconds in alone.items():
            by_name[which] += seconds * one.times
        for kind, seconds in one.arithmetic.items():
            kinds[kind] = kinds.get(kind, 0.0) + seconds * one.times
    return KernelFloor(
        memory=by_name[MEMORY_FLOOR],
        arithmetic=by_name[ARITHMETIC_FLOOR],
        kind=max(kinds, key=lambda kind: kinds[kind], default=""),
        launching=by_name[LAUNCH_FLOOR],
        seconds=sum(reached.values()),
        name=max(reached, key=lambda which: reached[which]),
    )


def _alone(one: ProfiledLaunch, target: Target) -> Mapping[str, float]:
    return {
        MEMORY_FLOOR: one.moved.compulsory * SECTOR / target.dram_bytes_per_s,
        ARITHMETIC_FLOOR: max(one.arithmetic.values(), default=0.0),
        LAUNCH_FLOOR: LAUNCH_SECONDS,
    }
