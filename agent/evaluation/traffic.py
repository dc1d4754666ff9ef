"""From counters to seconds on a card that is not here: a roofline over counted work, with a small cache model.

For one launch, counts of the blocks that ran are scaled to the whole grid. Then (all in 32-byte sectors):

    T   distinct sectors of each block, summed           F   what lines ask for, each line at most T
    S   distinct sectors of all blocks that ran, scaled  R   all sectors asked for
    C   distinct sectors, at most all of each buffer: what must cross DRAM once (compulsory)

    hit rates, 1 while the working set fits, 0 from twice the cache on:
      near  L1 against resident warps x sectors of their requests in flight   one line's own neighbours (strided walks)
      l1    L1 - shared memory against resident blocks x T per block         a block reads again what another line read
      l2    L2 against min(C, resident blocks on the card x T per block)

    L2 sectors    T + (F - T)(1 - l1) + (R - F)(1 - near), plus all stores (L1 writes through)
    DRAM sectors  C + (S - C)(1 - l2) + (F - T)(1 - l1)(1 - l2)

Time is the largest of: DRAM, L2, L1 (one pass of 128 bytes a clock; a request of s sectors takes max(1, s / 4)), shared
memory passes, instruction issue, each arithmetic pipe, and latency (the longest chain of one block times the waves of
blocks); plus a fixed cost for each launch. Two kernels closer than MODEL_ERROR are not told apart.
"""

from collections.abc import Mapping
from math import ceil

from attrs import frozen

from agent.execution.compiler.result import Resources
from agent.execution.device import LaunchCounters
from agent.execution.occupancy import occupancy
from agent.execution.targets import Target

SECTOR = 32
MODEL_ERROR = 0.25
"""Relative: what such a roofline may well miss by, as caches and latency are only sketched. Not measured yet."""

LAUNCH_SECONDS = 2.0e-6
"""Device-side gap between dependent launches in one stream; 1 to 3 microseconds are usual on cards since Volta."""

DRAM_CLOCKS, L2_CLOCKS, L1_CLOCKS = 600, 270, 35
SHARED_CLOCKS = 30
ISSUE_CLOCKS = 3
"""Latencies in clocks: a load served by each level, a shared access or barrier, a dependent instruction (4 to 6
clocks, of which unrolling hides some). Rounded from the microbenchmarks of Jia et al. (Volta, Turing) and Luo et al.
(Hopper)."""

IN_FLIGHT = 4
"""Loads that a warp has outstanding at once: compilers unroll simple loops by four."""


@frozen
class Load:
    """One launch's work on the whole grid. ``seconds`` by term; counts are of the whole grid too."""

    terms: Mapping[str, float]
    dram_bytes: float
    compulsory_bytes: float
    counts: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return max(self.terms.values()) + LAUNCH_SECONDS

    @property
    def limit(self) -> str:
        longest = max(self.terms, key=lambda name: self.terms[name])
        return longest if self.terms[longest] > LAUNCH_SECONDS else "launch overhead"


def load(
    counted: LaunchCounters, blocks: int, buffers: Mapping[str, int], resources: Resources, shared: int, target: Target
) -> Load:
    """Scale ``counted`` to ``blocks`` and put it on ``target``. ``buffers`` gives each buffer's size in bytes."""
    scale = blocks / max(1, counted.blocks_run)
    threads = counted.block[0] * counted.block[1] * counted.block[2]
    held = occupancy(target.arch, resources, threads, shared)
    resident = max(1, held.blocks_per_sm)
    here = min(blocks, resident * target.sms)
    sectors = _sectors(counted, scale, buffers, resident, here, shared + resources.static_shared, target)
    clocks = _clocks(counted, scale, blocks, target)
    clocks["latency"] = _chain(counted, threads, _wait(sectors)) * ceil(blocks / (resident * target.sms))
    terms = {
        "DRAM bandwidth": sectors["dram"] * SECTOR / target.dram_bytes_per_s,
        "L2 bandwidth": sectors["l2"] * SECTOR / target.l2_bytes_per_s,
        **{name: value / target.clock_hz for name, value in clocks.items()},
    }
    counts = {
        "sectors": counted.total("sectors") * scale,
        "requests": counted.total("requests") * scale,
        "shared passes": counted.total("wavefronts") * scale,
        "instructions": counted.total("instructions") * scale,
        "barriers": counted.total("barriers") * scale,
    }
    return Load(terms, sectors["dram"] * SECTOR, sectors["compulsory"] * SECTOR, counts)


def _sectors(
    counted: LaunchCounters,
    scale: float,
    buffers: Mapping[str, int],
    resident: int,
    here: int,
    shared: int,
    target: Target,
) -> dict[str, float]:
    """``asked``, ``l2``, ``dram`` and ``compulsory`` sectors of the whole grid."""
    blocks = max(1, counted.blocks_run)
    own = float(sum(counted.block_touched.values()))
    distinct = _compulsory(counted.touched_read, scale, buffers) + _compulsory(counted.touched_written, scale, buffers)
    apart = (sum(counted.touched_read.values()) + sum(counted.touched_written.values())) * scale
    asked = float(counted.total("load_sectors") + counted.total("store_sectors"))
    stores = float(counted.total("store_sectors"))
    lines = float(sum(min(line.load_sectors + line.store_sectors, own) for line in counted.lines.values()))
    lines = max(own, min(lines, asked))
    near = _near(counted, resident, target)
    l1 = _fits(max(0, target.sm.shared_per_sm - resident * shared), resident * own / blocks * SECTOR)
    l2 = _fits(target.l2_bytes, min(distinct, here * own / blocks) * SECTOR)
    again, loose = (lines - own) * scale, (max(asked, lines) - lines) * scale
    return {
        "asked": asked * scale,
        "compulsory": distinct,
        "l2": max(own * scale + again * (1 - l1) + loose * (1 - near), stores * scale),
        "dram": distinct + max(0.0, apart - distinct) * (1 - l2) + again * (1 - l1) * (1 - l2),
    }


def _compulsory(touched: Mapping[str, int], scale: float, buffers: Mapping[str, int]) -> float:
    return sum(
        min(count * scale, ceil(buffers[name] / SECTOR)) if name in buffers else count * scale
        for name, count in touched.items()
    )


def _near(counted: LaunchCounters, resident: int, target: Target) -> float:
    """Whether the sectors that all resident warps have in use at once stay in L1 until their neighbours are read."""
    requests = max(1, counted.total("requests"))
    warps = ceil(counted.block[0] * counted.block[1] * counted.block[2] / 32)
    active = sum(1 for line in counted.lines.values() if line.load_sectors)
    in_use = resident * warps * (counted.total("sectors") / requests) * max(1, active)
    return _fits(target.sm.shared_per_sm, in_use * SECTOR)


def _fits(capacity: float, needed: float) -> float:
    """A hit rate: all while the working set fits, none from twice the capacity on (a walk in circles over more than an
    LRU cache holds never hits; real caches are not quite LRU), straight in between."""
    return min(1.0, max(0.0, 2 * capacity / needed - 1)) if needed > 0 else 1.0


def _clocks(counted: LaunchCounters, scale: float, blocks: int, target: Target) -> dict[str, float]:
    """Clocks of each resource that an SM has for itself, spread over all SMs that get a block."""
    sms = min(target.sms, blocks)
    sm = target.sm

    def each(count: float) -> float:
        return count * scale / sms

    def pipe(names: tuple[str, ...], lanes: int) -> float:
        return each(sum(counted.mix.get(name, 0) for name in names)) * 32 / lanes

    passes = sum(max(line.requests, (line.load_sectors + line.store_sectors) / 4) for line in counted.lines.values())
    return {
        "L1 throughput": each(passes),
        "shared memory": each(counted.total("wavefronts")) * 128 / sm.shared_bytes_per_clock,
        "instruction issue": each(counted.total("instructions")) / sm.schedulers,
        "fp32 throughput": pipe(("fp32",), sm.fp32),
        "fp64 throughput": pipe(("fp64",), sm.fp64),
        "integer throughput": pipe(("int",), sm.int32),
        "special functions": pipe(("special", "convert"), sm.sfu),
    }


def _wait(sectors: Mapping[str, float]) -> float:
    """Mean clocks of a load, by the level that serves its sectors."""
    asked = max(1.0, sectors["asked"])
    beyond_l1 = min(1.0, sectors["l2"] / asked)
    beyond_l2 = min(beyond_l1, sectors["dram"] / asked)
    return L1_CLOCKS * (1 - beyond_l1) + L2_CLOCKS * (beyond_l1 - beyond_l2) + DRAM_CLOCKS * beyond_l2


def _chain(counted: LaunchCounters, threads: int, wait: float) -> float:
    """Clocks that one warp needs from start to end when nobody is in its way."""
    warps = max(1, counted.blocks_run * ceil(threads / 32))
    loads = counted.mix.get("load", 0) + counted.mix.get("atomic", 0)
    return (
        counted.total("instructions") * ISSUE_CLOCKS
        + loads * wait / IN_FLIGHT
        + (counted.total("shared_requests") / IN_FLIGHT + counted.total("barriers")) * SHARED_CLOCKS
    ) / warps
