"""How much of its code a run came to, and whether anything came of it."""

import numpy as np

from agent.execution.compiler.result import Build
from agent.execution.device import Answer, LaunchCounters
from agent.execution.emulator.program import load
from agent.workload import dtypes


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


def writes_vary(answer: Answer, name: str, dtype: str) -> bool:
    """Whether the elements of a buffer that were written whole are not all the same; of a single one, whether its bytes
    are not."""
    assert answer.written is not None
    size = dtypes.size_of(dtypes.base(dtype)[0])
    end = len(answer.outputs[name]) // size * size
    whole = answer.written[name][:end].reshape(-1, size).all(axis=1)
    elements = answer.outputs[name][:end].reshape(-1, size)[whole]
    return len(np.unique(elements if len(elements) > 1 else elements.reshape(-1, 1), axis=0)) > 1
