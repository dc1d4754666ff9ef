"""How much of a row a block can keep, and with how many threads."""

from math import prod

from attrs import frozen

from agent.analysis.facts import Facts
from agent.analysis.syntax import text
from agent.analysis.values import value
from agent.execution.architectures import architecture
from agent.ideas.view import View
from agent.workload.dtypes import from_c_type, size_of

SM = architecture("sm_90")
STEP = 2048
"""Kept elements are a multiple of this many bytes, so that a warp's turn is kept whole or not at all."""

ENOUGH_THREADS = 1024
"""Threads an SM needs for a steady stream of loads: with fewer it waits for memory."""


@frozen
class Room:
    """``capacity`` is in elements. ``resident`` blocks of ``threads`` share an SM."""

    capacity: int
    resident: int
    threads: int


def static_shared(facts: Facts, arrays_of: int | None = None) -> int:
    """Bytes of the kernel's own shared variables, as far as they can be told; arrays with one element a thread count
    as ``arrays_of`` elements where that is given."""
    total = 0
    for symbol in facts.symbols.all():
        dtype = from_c_type(symbol.type)
        if symbol.space != "shared" or symbol.extern or dtype is None:
            continue
        extents = [value(dim, facts.scope).constant or 0 for dim in symbol.dims]
        total += size_of(dtype) * max(prod(extents), arrays_of or 0)
    return total


def dynamic_array(facts: Facts) -> bool:
    return any(symbol.space == "shared" and symbol.extern for symbol in facts.symbols.all()) or "extern" in [
        text(node) for node in facts.body.children
    ]


def capacity(view: View, row: int, element: int, threads: int) -> int:
    """Elements of a row of ``row`` that a block keeps at most: the whole row where it fits, rounded up so that rows a
    little longer fit as well, else all the room that there is."""
    most = SM.shared_per_block - static_shared(view.facts, threads) - STEP
    whole = -(-row * element // STEP) * STEP
    return min(whole, most // STEP * STEP) // element


def resident(view: View, kept: int, element: int, threads: int) -> int:
    """Blocks that an SM holds at once."""
    used = kept * element + static_shared(view.facts, threads) + SM.shared_reserved
    return max(1, min(SM.shared_per_sm // used, SM.threads_per_sm // threads, SM.blocks_per_sm))
