"""Named cards, for estimates where there is no such card at hand. Published figures, each with its source.

Clock rates are boost clocks, bandwidths theoretical peaks. Level-2 bandwidths are seldom published: where
``l2_assumed`` is set they are an assumption (32 bytes per SM and clock, between the T4's measured 20 and the A100's
published 47). Tensor cores: dense rates of half with sums in float, as their whitepapers and datasheets have them
(TFLOPS = SMs x clock x 2 x products a clock; the H100's 989 at its 1830 MHz for them).
"""

import difflib
import re

from attrs import field, frozen

from agent.execution.architectures import Architecture, architecture

_ASSUMED_L2_BYTES_PER_CLOCK = 32
MB = 1 << 20


@frozen
class Target:
    """A card. ``dram_bytes`` is its memory; bandwidths are bytes a second. ``tensor`` is how many products of halves
    the tensor cores of one SM add up in a clock. The rest of its SM is in :attr:`sm`."""

    name: str
    arch: str
    sms: int
    clock_hz: float
    dram_bytes: int
    dram_bytes_per_s: float
    l2_bytes: int
    l2_bytes_per_s: float
    l2_assumed: bool
    tensor: int
    aliases: tuple[str, ...] = field(default=(), repr=False)

    @property
    def sm(self) -> Architecture:
        return architecture(self.arch)

    @property
    def fp32_lanes(self) -> int:
        return self.sm.fp32

    @property
    def fp64_lanes(self) -> int:
        return self.sm.fp64

    @property
    def int_lanes(self) -> int:
        return self.sm.int32

    @property
    def sfu_lanes(self) -> int:
        return self.sm.sfu

    @property
    def load_store_lanes(self) -> int:
        return self.sm.load_store

    @property
    def shared_bytes_per_s(self) -> float:
        """Shared-memory bandwidth of the whole card."""
        return self.sms * self.clock_hz * self.sm.shared_bytes_per_clock

    @property
    def fp32_per_s(self) -> float:
        """Single-precision results a second; a fused multiply-add is one."""
        return self.sms * self.clock_hz * self.sm.fp32


def _card(
    name: str, arch: str, sms: int, mhz: int, gigabytes: int, gb_per_s: float, l2: int, tensor: int,
    l2_gb_per_s: float | None = None, aliases: tuple[str, ...] = (),
) -> Target:  # fmt: skip
    assumed = sms * mhz * 1e6 * _ASSUMED_L2_BYTES_PER_CLOCK
    return Target(
        name, arch, sms, mhz * 1e6, gigabytes * 10**9, gb_per_s * 1e9, l2,
        assumed if l2_gb_per_s is None else l2_gb_per_s * 1e9, l2_gb_per_s is None, tensor, aliases,
    )  # fmt: skip


TARGETS: tuple[Target, ...] = (
    # NVIDIA T4 datasheet (320 GB/s, 65 tensor TFLOPS); TU104: 40 SMs, 1590 MHz, 4 MB of L2. L2 measured by Jia,
    # Maggioni, Smith and Scarpazza, "Dissecting the NVidia Turing T4 GPU via Microbenchmarking" (2019): 1270 GB/s.
    _card("T4", "sm_75", 40, 1590, 16, 320, 4 * MB, 512, 1270, ("Tesla T4",)),
    # NVIDIA A100 Tensor Core GPU Architecture whitepaper (108 SMs, 1410 MHz, 40 MB, 5120 bytes per clock of L2,
    # 312 tensor TFLOPS); A100 80GB SXM datasheet (2039 GB/s), A100 40GB (1555 GB/s).
    _card("A100", "sm_80", 108, 1410, 80, 2039, 40 * MB, 1024, 5120 * 1.410, ("A100 80GB", "A100-SXM4-80GB")),
    _card("A100 40GB", "sm_80", 108, 1410, 40, 1555, 40 * MB, 1024, 5120 * 1.410, ("A100-SXM4-40GB",)),
    # NVIDIA Ampere GA102 GPU Architecture whitepaper: 82 SMs, 1695 MHz, 936 GB/s, 6 MB, 71 tensor TFLOPS.
    _card("RTX 3090", "sm_86", 82, 1695, 24, 936, 6 * MB, 256, None, ("GeForce RTX 3090",)),
    # NVIDIA Ada GPU Architecture whitepaper: 128 SMs, 2520 MHz, 1008 GB/s, 72 MB, 165 tensor TFLOPS.
    _card("RTX 4090", "sm_89", 128, 2520, 24, 1008, 72 * MB, 256, None, ("GeForce RTX 4090",)),
    # NVIDIA L40S datasheet: 864 GB/s, 91.6 TFLOPS of FP32 = 142 SMs x 128 lanes x 2 x 2520 MHz, 362 on tensor
    # cores; AD102 with 96 MB.
    _card("L40S", "sm_89", 142, 2520, 48, 864, 96 * MB, 512),
    # NVIDIA H100 Tensor Core GPU Architecture whitepaper and SXM datasheet: 132 SMs, 50 MB, 3.35 TB/s, 67 TFLOPS of
    # FP32 = 132 x 128 x 2 x 1980 MHz.
    _card("H100", "sm_90", 132, 1980, 80, 3350, 50 * MB, 2048, None, ("H100 SXM", "H100 80GB HBM3")),
    # NVIDIA H200 datasheet: 4.8 TB/s, 67 TFLOPS of FP32, the H100's SMs. The driver reports 60 MB of L2.
    _card("H200", "sm_90", 132, 1980, 141, 4800, 60 * MB, 2048, None, ("H200 SXM",)),
    # NVIDIA HGX/DGX B200 datasheet: 8 TB/s, 2250 tensor TFLOPS. 148 SMs, 1965 MHz and 126 MB of L2 as the driver
    # reports them (Chips and Cheese, "Nvidia's B200: Keeping the CUDA Juggernaut Rolling", 2025).
    _card("B200", "sm_100", 148, 1965, 180, 8000, 126 * MB, 4096),
)


class UnknownTarget(ValueError):
    """No card of that name; the message names those that are known."""


def find_target(name: str) -> Target:
    """A card by name, in any case, with or without ``NVIDIA``; an architecture (``sm_90``) picks the first that has it.

    Raises UnknownTarget.
    """
    wanted = _plain(name)
    for target in TARGETS:
        if wanted in map(_plain, (target.name, *target.aliases)):
            return target
    for target in TARGETS:
        if wanted in (_plain(target.arch), _plain(target.arch) + "a"):
            return target
    known = [target.name for target in TARGETS]
    near = difflib.get_close_matches(name.upper(), known, 1)
    hint = f"; did you mean {near[0]}" if near else ""
    raise UnknownTarget(f"no figures for a card named {name!r}{hint}. Known are {', '.join(known)}")


def _plain(name: str) -> str:
    return re.sub(r"nvidia|[\s_-]", "", name.lower())
