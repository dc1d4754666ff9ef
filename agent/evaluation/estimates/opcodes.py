"""Instructions of PTX that a card carries out as several of its own.

For single precision: what the usual path of NVIDIA's code generator issues. A division takes the reciprocal, checks the
operands, multiplies and corrects twice by fused multiply-adds (Markstein's scheme); roots and reciprocals that round
correctly start from the approximation and correct it. For whole numbers: "up to 20 instructions", CUDA C++ Best
Practices Guide, on integer division; with 64 bits, where the guide gives none, no less than twice that. Where two
figures are defensible the smaller one stands here: what is taken out of a loop must not be made dearer than it is.
"""

import re
from collections.abc import Mapping
from math import prod
from typing import NamedTuple


class Steps(NamedTuple):
    """Instructions of the card for one of PTX, beyond the first: by the pipe that takes them."""

    fp32: int = 0
    fp64: int = 0
    integer: int = 0

    @property
    def total(self) -> int:
        return sum(self)


_EXACT = {
    ("div", "f32"): Steps(fp32=7),
    ("sqrt", "f32"): Steps(fp32=5, integer=2),
    ("rcp", "f32"): Steps(fp32=3, integer=2),
    ("div", "f64"): Steps(fp64=8, integer=2),
    ("sqrt", "f64"): Steps(fp64=7, integer=2),
    ("rcp", "f64"): Steps(fp64=6, integer=2),
}
_QUICK = frozenset(("approx", "full"))


def steps(opcode: str) -> Steps:
    """Of ``div.rn.f32`` and the like; none for what is one instruction, or is not known here."""
    base, *words = opcode.split(".")
    kind = words[-1] if words else ""
    if kind[:1] in ("s", "u"):
        return Steps(integer={"16": 19, "32": 19, "64": 39}.get(kind[1:], 0)) if base in ("div", "rem") else Steps()
    if _QUICK & set(words):
        return Steps(fp32=1) if base in ("div", "sqrt") and kind == "f32" else Steps()
    return _EXACT.get((base, kind), Steps())


def further(compound: Mapping[str, int]) -> Steps:
    """What all counted instructions of that kind come to, in warp-instructions beyond their own."""
    found = [(steps(opcode), count) for opcode, count in compound.items()]
    return Steps(*(sum(one[place] * count for one, count in found) for place in range(3)))


_MATRICES = re.compile(r"w?mma\..*?\bm(\d+)n(\d+)k(\d+)\.(.+)")
_NO_TYPES = frozenset(("row", "col", "satfinite"))
_HALVES = {"tf32": 2.0, "f64": 16.0, "s8": 0.5, "u8": 0.5, "e4m3": 0.5, "e5m2": 0.5}
"""How many products of halves a tensor core makes in the time of one of another type: by the rates in NVIDIA's A100 and
H100 whitepapers."""


def products(compound: Mapping[str, int]) -> float:
    """What tensor cores multiply in these warp-instructions, in products of halves; types whose rate is not known count
    as halves."""
    total = 0.0
    for opcode, count in compound.items():
        if (found := _MATRICES.fullmatch(opcode)) is not None:
            *extents, types = found.groups()
            kinds = [one for one in types.split(".") if one not in _NO_TYPES]
            factor = kinds[1] if len(kinds) == 4 else "f16"  # result, factors, sum; of halves the two ends alone
            total += count * prod(map(int, extents)) * _HALVES.get(factor, 1.0)
    return total
