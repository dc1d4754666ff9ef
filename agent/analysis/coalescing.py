"""What one warp's access costs: 32-byte sectors in global memory, passes over the banks in shared memory.

Counted by evaluating the index for each lane, not by rules about strides: a sector is 32 bytes; shared memory has 32
banks of 4 bytes, and lanes that want different words of one bank wait for each other (CUDA C++ Programming Guide,
"Shared Memory" of compute capability 5.x and later).
"""

from collections.abc import Mapping, Sequence

from agent.analysis.affine import Atom, Poly, unknown
from agent.analysis.loops import Loop
from agent.analysis.values import leaves, replaced

WARP = 32
SECTOR = 32
BANKS = 32
WORD = 4


def sectors(index: Poly, lanes: Sequence[Mapping[str, int]], element_bytes: int) -> int | None:
    """Distinct sectors that the lanes touch; None where the index has no value. The array starts on a
    sector's edge, and what is the same for all lanes and has no value counts as 0."""
    found: set[int] = set()
    for lane in lanes:
        element = index.relative(lane)
        if element is None:
            return None
        first = element * element_bytes
        found.update(range(first // SECTOR, (first + element_bytes - 1) // SECTOR + 1))
    return len(found)


def wavefronts(index: Poly, lanes: Sequence[Mapping[str, int]], element_bytes: int) -> int | None:
    """Passes over shared memory: the most distinct words that any bank is asked for. Elements up to 4 bytes wide; wider
    ones are counted by their first word."""
    banks: dict[int, set[int]] = {}
    for lane in lanes:
        element = index.relative(lane)
        if element is None:
            return None
        word = element * element_bytes // WORD
        banks.setdefault(word % BANKS, set()).add(word)
    return max((len(words) for words in banks.values()), default=0)


def unrolled(index: Poly, loops: Sequence[Loop]) -> Poly:
    """The index with every loop variable written as start + turn * step, so that what depends on the thread shows.
    ``turn@...`` counts a loop's turns. Loops that do not step by addition stay as they are."""
    for loop in reversed(loops):
        if loop.step_kind == "+" and loop.atom in leaves(index):
            index = replaced(index, {loop.atom.name: loop.start + loop.step * unknown(turn(loop))})
    return index


def turn(loop: Loop) -> Atom:
    return Atom(f"turn@{loop.node.start_byte}")


def block_lanes(block: tuple[int, int, int], exchanged: bool = False) -> list[tuple[int, int, int]]:
    """threadIdx of each lane of a block's first warp. ``exchanged``: the roles of x and y exchanged, that is, y runs
    fastest."""
    x, y, z = block
    count = min(WARP, x * y * z)
    if exchanged:
        return [(lane // y % x, lane % y, lane // (x * y)) for lane in range(count)]
    return [(lane % x, lane // x % y, lane // (x * y)) for lane in range(count)]
