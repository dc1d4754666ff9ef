"""How an opcode is written: what is a type, what is a modifier, and how many operands it writes."""

from functools import lru_cache

TYPES = frozenset(
    """
    pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 u16x2 s16x2 u8x4 s8x4 u4 s4 b1 u4x8 s4x8 b4x16 b6x16 b8x16
    f16 f16x2 bf16 bf16x2 f32 f32x2 f64 tf32 e4m3 e5m2 e2m3 e3m2 e2m1 ue8m0 ue4m3
    e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 ue8m0x2 e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4 b4x16_p64 b6x16_p32
    texref samplerref surfref
    """.split()  # noqa: SIM905
)

_NONE = frozenset(
    """
    st bra brx bar barrier membar fence ret exit trap red prefetch prefetchu nanosleep cp brkpt pmevent discard
    applypriority setmaxnreg griddepcontrol stmatrix sust sured clusterlaunchcontrol tensormap stackrestore call
    """.split()  # noqa: SIM905
)


@lru_cache(maxsize=4096)
def split_opcode(opcode: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """``ld.global.nc.v4.f32`` -> ``("ld", ("global", "nc", "v4"), ("f32",))``."""
    base, *rest = opcode.split(".")
    return base, tuple(part for part in rest if part not in TYPES), tuple(part for part in rest if part in TYPES)


def destination_count(base: str, modifiers: tuple[str, ...], first: str) -> int:
    """How many leading operands the instruction writes. ``first`` is the text of its first operand."""
    if base in ("bar", "barrier"):
        return int("red" in modifiers)
    if base in ("wmma", "mma", "wgmma", "tcgen05", "multimem"):
        return (
            0
            if first[:1] in ("[", "") or "store" in modifiers or "red" in modifiers or "wait_group" in modifiers
            else 1
        )
    if base in ("mbarrier", "griddepcontrol"):
        return 0 if first[:1] in ("[", "") else 1
    return 0 if base in _NONE or not first else 1
