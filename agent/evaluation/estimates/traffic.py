"""From counters to seconds on a card that is not here: a roofline over counted work, with a small cache model.

The time of a launch is the largest of these, for the whole grid, plus a fixed cost for each launch:

    DRAM, L2              sectors that cross (see ``caches``) at the card's bandwidth
    L1                    one 128-byte line a clock: a request for several is broken down into requests for one line
                          each (CUDA C Programming Guide, "Global Memory": "cache line requests that are issued
                          independently ... serviced at the throughput of L1")
    shared memory         passes, 128 bytes a clock
    instruction issue     one a clock and scheduler; what PTX has in one and cards in several counts as several
    arithmetic            lanes of each pipe; whole numbers are multiplied in the pipes of single precision, all else is
                          done to them in a pipe of its own (Nsight Compute documentation, "Pipelines": FMA and ALU)
    tensor cores          products, at the dense rate of the card's whitepaper, which ``mma`` reaches on cards up to
                          sm_89; on an H100 about 63 % of it (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper
                          GPU Architecture", 2024)
    barriers, shuffles    16 and 32 threads a clock (CUDA C++ Programming Guide, "Synchronization Instruction" and
                          "Throughput of Native Arithmetic Instructions", from compute capability 7 on)
    atomics               the operations in one sector, one a clock (NVIDIA's Kepler GK110 whitepaper: atomics on one
                          address of global memory, one a clock; a sector is in one slice of the cache)
    latency               the chain of one warp (see ``chain``) times the waves of blocks

Two kernels closer than MODEL_ERROR are not told apart.
"""

from collections.abc import Mapping
from math import ceil

from attrs import field, frozen

from agent.evaluation.estimates.caches import LINE, SECTOR, Moved, moved
from agent.evaluation.estimates.chain import chain
from agent.evaluation.estimates.opcodes import further, products
from agent.execution.compiler.result import Resources
from agent.execution.device import LaunchCounters
from agent.execution.occupancy import occupancy
from agent.execution.targets import Target

MODEL_ERROR = 0.25
"""Relative: what such a roofline may well miss by, as caches and latency are only sketched. Not measured yet."""

NOTHING_MOVED = Moved(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

LAUNCH_SECONDS = 2.0e-6
"""Device-side gap between dependent launches in one stream; 1 to 3 microseconds are usual on cards since Volta."""

ARITHMETIC = ("fp32 throughput", "fp64 throughput", "special functions")
"""Terms that no memory system and no better access pattern takes away."""

BARRIER_THREADS, SHUFFLE_LANES = 16, 32


@frozen
class Load:
    """One launch's work on the whole grid. ``seconds`` by term; counts are of the whole grid too."""

    terms: Mapping[str, float]
    dram_bytes: float
    compulsory_bytes: float
    counts: Mapping[str, float]
    arithmetic: Mapping[str, float] = field(factory=dict)
    """Seconds that what is computed takes by kind (ARITHMETIC), without addresses, on all of the card's SMs."""
    moved: Moved = field(default=NOTHING_MOVED)

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
    resident = max(1, min(held.blocks_per_sm, ceil(blocks / target.sms)))
    here = min(blocks, resident * target.sms)
    l1_bytes = max(0, target.sm.shared_per_sm - resident * (shared + resources.static_shared))
    sectors = moved(counted, scale, buffers, resident, here, l1_bytes, target.l2_bytes, resources.stack)
    clocks = _clocks(counted, scale, blocks, target)
    clocks["latency"] = chain(counted, sectors) * ceil(blocks / (resident * target.sms))
    clocks["atomics in one place"] = _queue(counted, scale, buffers)
    terms = {
        "DRAM bandwidth": sectors.dram * SECTOR / target.dram_bytes_per_s,
        "L2 bandwidth": sectors.l2_slots * SECTOR / target.l2_bytes_per_s,
        **{name: value / target.clock_hz for name, value in clocks.items()},
    }
    busy = min(1.0, blocks / target.sms)
    arithmetic = {name: terms[name] * busy for name in ARITHMETIC}
    multiplied = counted.mix.get("multiply", 0) * scale * 32 / target.sm.fp32 / target.sms / target.clock_hz
    arithmetic["fp32 throughput"] = max(0.0, arithmetic["fp32 throughput"] - multiplied)
    counts = {
        "sectors": counted.total("sectors") * scale,
        "ideal sectors": counted.total("ideal_sectors") * scale,
        "requests": counted.total("requests") * scale,
        "shared requests": counted.total("shared_requests") * scale,
        "shared passes": counted.total("wavefronts") * scale,
        "instructions": counted.total("instructions") * scale,
        "barriers": counted.total("barriers") * scale,
        "atomics": counted.total("atomics") * scale,
    }
    return Load(terms, sectors.dram * SECTOR, sectors.compulsory * SECTOR, counts, arithmetic, sectors)


def _clocks(counted: LaunchCounters, scale: float, blocks: int, target: Target) -> dict[str, float]:
    """Clocks of each resource that an SM has for itself, spread over all SMs that get a block."""
    sms = min(target.sms, blocks)
    sm = target.sm

    def each(count: float) -> float:
        return count * scale / sms

    def pipe(names: tuple[str, ...], lanes: int, extra: int = 0) -> float:
        return each(sum(counted.mix.get(name, 0) for name in names) + extra) * 32 / lanes

    more = further(counted.compound)
    return {
        "L1 throughput": each(_lines(counted)) * LINE / sm.shared_bytes_per_clock,
        "shared memory": each(counted.total("wavefronts")) * 128 / sm.shared_bytes_per_clock,
        "instruction issue": each(counted.total("instructions") + more.total) / sm.schedulers,
        "fp32 throughput": pipe(("fp32", "multiply"), sm.fp32, more.fp32),
        "fp64 throughput": pipe(("fp64",), sm.fp64, more.fp64),
        "integer throughput": max(pipe(("int",), sm.int32, more.integer), pipe(("multiply",), sm.int32)),
        "tensor cores": each(products(counted.compound)) / target.tensor,
        "special functions": pipe(("special", "convert"), sm.sfu),
        "barriers": pipe(("barrier",), BARRIER_THREADS),
        "warp shuffles": pipe(("shuffle",), SHUFFLE_LANES),
    }


def _lines(counted: LaunchCounters) -> float:
    """Lines of L1 that requests take; of local memory, whose words lie side by side by lane, sectors by the four."""
    return counted.total("cache_lines") + counted.total("local_sectors") * SECTOR / LINE


def _queue(counted: LaunchCounters, scale: float, buffers: Mapping[str, int]) -> float:
    """Operations in the most wanted sector at least: where all blocks go to one, what they do there; and what the
    sectors of a buffer get on average."""
    spread = (count * scale / ceil(buffers[name] / SECTOR) for name, count in counted.queued.items() if name in buffers)
    return max((*spread, *(count * scale for count in counted.queued_at_one.values())), default=0.0)
