"""How long one warp takes from start to end when nobody is in its way: what latency costs where few warps hide it."""

import re
from math import ceil

from agent.evaluation.estimates.caches import Moved
from agent.evaluation.estimates.opcodes import further
from agent.execution.device import LaunchCounters

DRAM_CLOCKS, L2_CLOCKS, L1_CLOCKS = 600, 270, 35
SHARED_CLOCKS = 30
ISSUE_CLOCKS = 3
"""Latencies in clocks: a load served by each level, a shared access or barrier, a dependent instruction (4 to 6
clocks, of which unrolling hides some). Rounded from the microbenchmarks of Jia et al. (Volta, Turing) and Luo et al.
(Hopper)."""

SHARED_IN_FLIGHT = 4
"""Accesses to shared memory that a warp has outstanding at once: compilers unroll simple loops by four."""

_TRIED = re.compile(r"(atom|red)(\.\w+)*\.shared(::cta)?(\.\w+)*\.f(32|64)\b")
"""Atomics of floats in shared memory, which has none in hardware: a loop reads, works it out and tries to swap, and of
the lanes that meet at one address one gets through in each turn (NVIDIA's code for them: ``ATOMS.CAST.SPIN``)."""


def chain(counted: LaunchCounters, sectors: Moved) -> float:
    """Clocks of one warp. Loads that can be under way together are waited for once (``LineCounters.waits``), for as
    long as the slowest of them takes."""
    threads = counted.block[0] * counted.block[1] * counted.block[2]
    warps = max(1, counted.blocks_run * ceil(threads / 32))
    shared = counted.total("shared_requests") / SHARED_IN_FLIGHT + counted.total("barriers")
    issued = counted.total("instructions") + further(counted.compound).total
    tried = sum(one.counts.wavefronts for one in counted.instructions if _TRIED.search(one.text))
    return (issued * ISSUE_CLOCKS + _waited(counted, sectors) + (shared + 2 * tried) * SHARED_CLOCKS) / warps


def _waited(counted: LaunchCounters, sectors: Moved) -> float:
    waits = counted.total("waits")
    if not waits:
        return 0.0
    asked = max(1.0, sectors.asked)
    beyond_l1 = min(1.0, sectors.loaded / asked)
    beyond_l2 = min(beyond_l1, sectors.dram_read / asked)
    together = max(1.0, counted.mix.get("load", 0) / waits)

    def any_of(part: float) -> float:
        """How likely it is that one of the loads goes there at least."""
        return float(1 - (1 - part) ** together)

    clocks = L1_CLOCKS + (L2_CLOCKS - L1_CLOCKS) * any_of(beyond_l1) + (DRAM_CLOCKS - L2_CLOCKS) * any_of(beyond_l2)
    return waits * clocks
