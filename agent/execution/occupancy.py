"""Theoretical occupancy: how many blocks of a kernel one multiprocessor holds, and what keeps it from holding more.

The rules are those of NVIDIA's occupancy calculator (``cuda_occupancy.h`` of the CUDA toolkit), with the shared-memory
carve-out at its largest, as the driver chooses it for a kernel that wants it.
"""

from collections.abc import Mapping

from attrs import frozen

from agent.execution.architectures import architecture
from agent.execution.compiler.result import Resources

_UNLIMITED = 1 << 30
# Ties: where warp slots are full, nothing else is worth a word; then what a rewrite can change.
_ORDER = ("threads", "registers", "shared memory", "blocks", "barriers")


@frozen
class Occupancy:
    """``ratio`` is resident warps / warp slots. ``limiter`` is ``threads`` (the warp slots), ``registers``,
    ``shared memory``, ``blocks`` or ``barriers``. Zero blocks: the launch fails, for want of the limiter's resource.
    ``limits`` says how many blocks each resource would allow."""

    blocks_per_sm: int
    warps_per_sm: int
    ratio: float
    limiter: str
    limits: Mapping[str, int]


def occupancy(arch: str, resources: Resources, threads_per_block: int, dynamic_shared: int = 0) -> Occupancy:
    """Occupancy of a kernel launched with ``threads_per_block`` threads and ``dynamic_shared`` bytes.

    Raises ValueError for a block without threads and UnknownArchitecture for an unknown ``arch``.
    """
    if threads_per_block < 1:
        raise ValueError(f"a block needs at least one thread, not {threads_per_block}")
    sm = architecture(arch)
    warps = -(-threads_per_block // sm.warp)
    slots = sm.threads_per_sm // sm.warp
    limits = {
        "threads": slots // warps if threads_per_block <= sm.threads_per_block else 0,
        "registers": _by_registers(arch, resources.registers, warps),
        "shared memory": _by_shared(arch, resources.static_shared + dynamic_shared),
        "blocks": sm.blocks_per_sm,
        "barriers": _UNLIMITED if sm.barriers is None or not resources.barriers else sm.barriers // resources.barriers,
    }
    blocks = min(limits.values())
    limiter = next(name for name in _ORDER if limits[name] == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / slots, limiter, limits)


def _by_registers(arch: str, registers: int, warps: int) -> int:
    """Registers are given to warps in units of 256, by each of the four partitions of the SM for itself."""
    sm = architecture(arch)
    if registers == 0:
        return _UNLIMITED
    if registers > sm.registers_per_thread:
        return 0
    per_warp = _round_up(registers * sm.warp, sm.register_granularity)
    # The launch check assumes that a block's warps fill all partitions evenly.
    if per_warp * _round_up(warps, sm.schedulers) > sm.registers_per_block:
        return 0
    return sm.registers_per_sm // sm.schedulers // per_warp * sm.schedulers // warps


def _by_shared(arch: str, nbytes: int) -> int:
    sm = architecture(arch)
    if nbytes > sm.shared_per_block:
        return 0
    used = _round_up(nbytes + sm.shared_reserved, sm.shared_granularity)
    return sm.shared_per_sm // used if used else _UNLIMITED


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
