"""How much of its code a run came to."""

from agent.execution.compiler.result import Build
from agent.execution.device import LaunchCounters
from agent.execution.emulator.program import load


def blocks_reached(build: Build, counters: tuple[LaunchCounters, ...]) -> float:
    """The part of the basic blocks of all kernels that were launched which a warp came to."""
    seen: dict[tuple[str, int], bool] = {}
    for launched in counters:
        kernel = load(build).kernel(build.entries.get(launched.kernel, launched.kernel))
        numbers = [part.number for part in kernel.blocks for added in part.added if not added]
        for number, one in zip(numbers, launched.instructions, strict=True):
            key = (launched.kernel, number)
            seen[key] = seen.get(key, False) or one.counts.instructions > 0
    return sum(seen.values()) / max(1, len(seen))
