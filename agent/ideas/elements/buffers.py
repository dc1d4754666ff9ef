"""Which of a kernel's pointers share no buffer, as far as its launches and its signature say."""

from agent.analysis.symbols import Symbol
from agent.ideas.buffers import may_be_one
from agent.ideas.view import View


def apart(view: View, one: Symbol, other: Symbol) -> bool:
    """Whether two pointer parameters are handed different buffers in every launch of the plan, or are promised to be
    apart by ``__restrict__``. Swaps exchange buffers, and keep different names different."""
    return one is not other and ((one.restrict and other.restrict) or not may_be_one(view, one, other))


def written_apart(view: View, symbol: Symbol) -> bool:
    """Whether nothing that the kernel writes may share a buffer with this pointer, itself apart."""
    for access in view.facts.accesses:
        if not access.writes or access.space in ("shared", "local"):
            continue
        if access.root is None or (access.root is not symbol and not apart(view, access.root, symbol)):
            return False
    return True
