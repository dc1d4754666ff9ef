"""From times to a ratio with an interval, and from intervals to a word: faster, slower, the same.

A block holds four calls, original, candidate, candidate, original: a drift of the clocks falls out of its ratio.
The ratio of a measurement is the mean over its processes of each one's median over blocks (in logarithms). Its interval
is a bootstrap in two stages, processes and blocks within them (Davison and Hinkley, "Bootstrap Methods and their
Application", 1997, section 3.8), widened by what the clock itself cannot tell.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from agent.execution.timing import Block

EFFECT = 1.02
"""An effect of less than two per cent is not called faster or slower."""

RESOLUTION = 0.5e-6
"""Seconds between what CUDA events can tell apart (CUDA Runtime API, cudaEventElapsedTime)."""

CONFIDENCE = 0.95
_DRAWS = 2000

Floats = npt.NDArray[np.float64]


@frozen
class Interval:
    """Old time / new time with a 95 % interval."""

    ratio: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def interval(processes: Sequence[Sequence[Block]], sets: int = 1) -> Interval:
    """The ratio of the first side's time to the second's. ``sets`` calls lay between each pair of events.

    Raises ValueError where a process has no blocks.
    """
    if not processes or not all(processes):
        raise ValueError("no blocks were measured")
    logs = [np.log([(a + d) / (b + c) for a, d, b, c in blocks]) for blocks in processes]
    middle = float(np.mean([np.median(values) for values in logs]))
    draws = _bootstrap(logs)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws, (tail, 1 - tail))
    slack = blur(processes, sets)
    return Interval(math.exp(middle), math.exp(min(low, middle) - slack), math.exp(max(high, middle) + slack))


def _bootstrap(logs: Sequence[Floats]) -> Floats:
    """Means of medians over drawn processes of drawn blocks. The same samples always give the same interval."""
    generator = np.random.default_rng(0)
    count = len(logs)
    medians = np.stack(
        [np.median(values[generator.integers(0, len(values), (_DRAWS, count, len(values)))], axis=2) for values in logs]
    )
    chosen = generator.integers(0, count, (_DRAWS, count))
    drawn = medians[chosen, np.arange(_DRAWS)[:, None], np.arange(count)]
    return np.asarray(drawn.mean(axis=1))


def blur(processes: Sequence[Sequence[Block]], sets: int) -> float:
    """What the clock's resolution leaves open, as a part of the times: two calls of each side, both ends."""
    times = np.median(np.array([block for blocks in processes for block in blocks]), axis=0)
    sides = (float(times[0] + times[1]), float(times[2] + times[3]))
    return sum(RESOLUTION / sets / max(side, 1e-12) for side in sides)


def decide(found: Interval, control: Interval | None) -> str:
    """``faster``, ``slower`` or ``same``. A difference counts where it is beyond two per cent and beyond what the
    original shows against itself (``control``)."""
    noise = max(control.high, 1 / control.low) if control is not None else 1.0
    limit = max(EFFECT, noise)
    if found.low > limit:
        return "faster"
    return "slower" if found.high < 1 / limit else "same"


def overall(declared: str, others: Sequence[str]) -> str:
    """The verdict's state from the words at the declared size and at the others: faster at some sizes and slower at
    others is ``mixed``."""
    words = {declared, *others}
    if {"faster", "slower"} <= words:
        return "mixed"
    return "faster" if declared == "faster" else "not faster"


def seconds(processes: Sequence[Sequence[Block]], side: int) -> float:
    """Median time of one call of a side."""
    first = 2 * side
    times = np.array([block for blocks in processes for block in blocks])
    return float(np.median(times[:, first : first + 2]))
