"""Which elements of a matrix each lane of a warp holds, and in which register. PTX ISA 9.7.14, the figures of ``mma``.

One rule covers every shape of ``mma.sync`` but ``.m8n8k4`` of halves: with *group* = lane / 4 and *place* = lane % 4, a
register holds neighbours along K (of the accumulator: two along N), and registers go on by 8 rows first, then along K.
PTX leaves the layouts of ``wmma`` open; here they are those of ``mma``, tiles side by side, which is what cards from
sm_80 on do. Where ``wmma`` names more registers than there are elements the rest repeats them.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from attrs import frozen

from agent.execution.emulator.semantics.arrays import Array

WARP = 32
#: Bits of one element.
BITS = {
    "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8,
    "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
Shape = tuple[int, int, int]
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@frozen(eq=False)
class Fragment:
    """``rows`` and ``columns`` are ``(32, elements)``: where in the matrix of ``size`` each lane's elements are, in the
    order of its registers, ``packed`` to each."""

    kind: str
    size: tuple[int, int]
    rows: Array
    columns: Array
    packed: int

    @property
    def registers(self) -> int:
        """How many registers hold every element once."""
        return int(self.rows.shape[1]) // self.packed

    @property
    def file(self) -> str:
        return "b64" if self.kind == "f64" else "b32"


def shape_of(words: Iterable[str]) -> Shape | None:
    """The shape that the modifiers of an instruction name (M, N, K)."""
    found = next((match for word in words if (match := _SHAPE.fullmatch(word))), None)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


@lru_cache(maxsize=256)
def fragment(role: str, shape: Shape, kind: str) -> Fragment:
    """The layout of matrix ``a`` (M x K), ``b`` (K x N) or ``c`` (M x N, and the result); elements of type ``kind``."""
    m, n, k = shape
    packed = max(32 // BITS[kind], 1)
    tall = min(m, 16)
    lane = np.arange(WARP)
    group, place = lane // 4, lane % 4
    rows, columns = [], []
    if role == "c":
        for down in range(0, m, tall):
            for right in range(0, n, 8):
                for index in range(tall // 4):
                    rows.append(down + group + 8 * (index // 2))
                    columns.append(right + 2 * place + index % 2)
        return Fragment(kind, (m, n), np.stack(rows, axis=1), np.stack(columns, axis=1), packed)
    along = [(element // packed * 4 + place) * packed + element % packed for element in range(k // 4)]
    if role == "b":
        for right in range(0, n, 8):
            rows += along
            columns += [right + group] * len(along)
        return Fragment(kind, (k, n), np.stack(rows, axis=1), np.stack(columns, axis=1), packed)
    for down in range(0, m, tall):
        for first in range(0, len(along), packed):
            for half in range(tall // 8):
                rows += [down + group + 8 * half] * packed
                columns += along[first : first + packed]
    return Fragment(kind, (m, k), np.stack(rows, axis=1), np.stack(columns, axis=1), packed)
