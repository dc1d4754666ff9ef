"""How much of a row a block can keep, and with how many threads."""

from math import prod

from attrs import frozen

from agent.analysis.facts import Facts
from agent.analysis.symbols import Symbol
from agent.analysis.values import value
from agent.execution.architectures import architecture
from agent.ideas.view import View, evaluate, fixed_names
from agent.workload.dtypes import from_c_type, size_of

SM = architecture("sm_90")
STEP = 2048
"""Kept elements are a multiple of this many bytes, so that a warp's turn is kept whole or not at all."""


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


@frozen(eq=False)
class Dynamic:
    """The kernel's own dynamic shared array (None: it has none) and the bytes that its launches give it, a fixed
    number. ``each``: one element a thread."""

    array: Symbol | None
    bytes: int
    each: bool

    def grown(self, threads: int, element: int) -> int:
        """Its bytes in a block of so many threads."""
        return threads * element if self.each else self.bytes


def dynamic(view: View, element: str) -> Dynamic | str:
    """What is there of dynamic shared memory, or why a row cannot lie behind it."""
    arrays = [symbol for symbol in view.facts.symbols.all() if symbol.space == "shared" and symbol.extern]
    fixed = fixed_names(view.request.workload, view.request.plan)
    given = {evaluate(launch.shared, fixed) for launch in view.launches}
    nbytes = next(iter(given)) if len(given) == 1 else None
    if not isinstance(nbytes, int):
        return "how much dynamic shared memory the kernel uses already hangs on the size"
    if not arrays:
        return Dynamic(None, 0, False) if nbytes == 0 else "the launch gives dynamic shared memory to nobody"
    dtype = from_c_type(element)
    if len(arrays) > 1 or arrays[0].type != element or dtype is None or nbytes % size_of(dtype):
        return "the kernel uses dynamic shared memory already, for something else than such elements"
    return Dynamic(arrays[0], nbytes, nbytes == (view.threads or 0) * size_of(dtype))


def capacity(view: View, row: int, element: int, threads: int, used: int, blocks: int = 1) -> int:
    """Elements of a row of ``row`` that a block keeps at most where ``blocks`` share an SM: the whole row where it
    fits, rounded up so that rows a little longer fit as well, else all the room that there is."""
    share = SM.shared_per_sm // blocks - SM.shared_reserved
    most = min(SM.shared_per_block, share) - static_shared(view.facts, threads) - used
    whole = -(-row * element // STEP) * STEP
    return min(whole, most // STEP * STEP) // element


def resident(view: View, kept: int, threads: int) -> int:
    """Blocks with ``kept`` bytes of dynamic shared memory that an SM holds at once."""
    used = kept + static_shared(view.facts, threads) + SM.shared_reserved
    return max(1, min(SM.shared_per_sm // used, SM.threads_per_sm // threads, SM.blocks_per_sm))
