"""Which buffers a kernel's pointers may share, as far as its launches say."""

from agent.analysis.symbols import Symbol
from agent.ideas.view import View


def apart(view: View, one: Symbol, other: Symbol) -> bool:
    """Whether two pointer parameters are handed different buffers in every launch of the plan, or are promised to be
    apart by ``__restrict__``. Swaps exchange buffers, and keep different names different."""
    if one is other:
        return False
    if one.restrict and other.restrict:
        return True
    return all(
        (first := _buffers(view, place, one)) and (second := _buffers(view, place, other)) and not first & second
        for place in range(len(view.launches))
    )


def _buffers(view: View, place: int, symbol: Symbol) -> frozenset[str]:
    """The buffers that a launch hands to a pointer parameter; empty where that is not known."""
    names = [parameter.name for parameter in view.kernel.parameters]
    launch = view.launches[place]
    if symbol.name not in names or len(launch.arguments) != len(names):
        return frozenset()
    buffers = {buffer.name for buffer in view.request.workload.buffers}
    buffers |= {scratch.name for scratch in view.request.plan.scratch}
    return frozenset(launch.arguments[names.index(symbol.name)].names & buffers)


def written_apart(view: View, symbol: Symbol) -> bool:
    """Whether nothing that the kernel writes may share a buffer with this pointer, itself apart."""
    for access in view.facts.accesses:
        if not access.writes or access.space in ("shared", "local"):
            continue
        if access.root is None or (access.root is not symbol and not apart(view, access.root, symbol)):
            return False
    return True
