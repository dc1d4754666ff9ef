"""What one multiprocessor of each compute capability holds, and how fast it computes."""

import re

from attrs import frozen

KB = 1024


@frozen
class Architecture:
    """Limits and rates of one multiprocessor (SM).

    ``shared_per_sm`` and ``shared_per_block`` (with the opt-in above 48 KB) are bytes, ``shared_reserved`` what the
    driver takes of each block's share. ``barriers`` is how many hardware barriers all resident blocks share, where
    that limits occupancy (None where it does not). Rates are lanes, that is results per clock.
    ``shared_bytes_per_clock`` is the bandwidth of shared memory and L1.
    """

    threads_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_per_block: int
    shared_reserved: int
    shared_granularity: int
    barriers: int | None
    fp32: int
    fp64: int
    int32: int
    sfu: int
    load_store: int
    shared_bytes_per_clock: int
    registers_per_sm: int = 64 * KB
    registers_per_block: int = 64 * KB
    registers_per_thread: int = 255
    register_granularity: int = 256  # per warp
    threads_per_block: int = 1024
    schedulers: int = 4
    warp: int = 32


def _ampere_on(
    threads: int, blocks: int, shared: int, barriers: int | None, rates: tuple[int, int, int, int]
) -> Architecture:
    """From compute capability 8.0 on, a block's shared memory comes in pieces of 128 bytes and costs 1 KB more."""
    fp32, fp64, int32, load_store = rates
    return Architecture(
        threads, blocks, shared * KB, (shared - 1) * KB, KB, 128, barriers, fp32, fp64, int32, 16, load_store, 128
    )


# Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the same figures stand in
# CCCL's cuda/__device/arch_traits.h. Allocation rules and barrier counts: cuda_occupancy.h of the CUDA toolkit.
# Rates (fp32, fp64, int32 add/compare, then load/store): the guide's "Throughput of Native Arithmetic Instructions";
# load/store units and shared-memory bandwidth from the whitepapers of TU102, GA100, GA102, AD102 and GH100. The guide
# gives no row of its own for 8.7, 8.8, 10.3, 10.7, 11.0 and 12.1 in every edition: those have their family's rates.
_TABLE = {
    75: Architecture(1024, 16, 64 * KB, 64 * KB, 0, 256, None, 64, 2, 64, 16, 16, 64),
    80: _ampere_on(2048, 32, 164, None, (64, 32, 64, 32)),
    86: _ampere_on(1536, 16, 100, None, (128, 2, 64, 16)),
    87: _ampere_on(1536, 16, 164, None, (128, 2, 64, 16)),
    88: _ampere_on(1536, 16, 100, None, (128, 2, 64, 16)),
    89: _ampere_on(1536, 24, 100, None, (128, 2, 64, 16)),
    90: _ampere_on(2048, 32, 228, 64, (128, 64, 64, 32)),
    100: _ampere_on(2048, 32, 228, 64, (128, 64, 64, 32)),
    103: _ampere_on(2048, 32, 228, 32, (128, 2, 64, 32)),
    107: _ampere_on(1024, 16, 228, 16, (128, 64, 64, 32)),
    110: _ampere_on(1536, 24, 228, 24, (128, 2, 64, 32)),
    120: _ampere_on(1536, 24, 100, 24, (128, 2, 64, 16)),
    121: _ampere_on(1536, 24, 100, 24, (128, 2, 64, 16)),
}

KNOWN = tuple(f"sm_{number}" for number in _TABLE)


class UnknownArchitecture(ValueError):
    """No figures for this architecture; the message names those that there are."""


def architecture(arch: str) -> Architecture:
    """The SM of ``arch`` (``sm_90``, ``sm_90a``). Raises UnknownArchitecture."""
    matched = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if matched is None or int(matched[1]) not in _TABLE:
        raise UnknownArchitecture(f"nothing is known of the architecture {arch!r}; known are {', '.join(KNOWN)}")
    return _TABLE[int(matched[1])]
