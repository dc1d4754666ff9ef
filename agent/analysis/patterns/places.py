"""Locals that say where in the grid a thread works: ``y = blockIdx.y * blockDim.y + threadIdx.y``."""

from attrs import frozen

from agent.analysis.affine import Atom, number, unknown
from agent.analysis.facts import Facts
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import enclosing
from agent.analysis.values import value

AXES = ("x", "y", "z")


@frozen(eq=False)
class Place:
    """``symbol`` is ``extent * blockIdx.block + threadIdx.thread``, the extent being that of the block along
    ``thread``."""

    symbol: Symbol
    extent: int
    block: str
    thread: str

    @property
    def lane(self) -> str:
        return f"threadIdx.{self.thread}"


def places(facts: Facts) -> tuple[Place, ...]:
    """Those declared at the top of the kernel's body and never changed, in source order. Needs the block's extents."""
    found: list[Place] = []
    for symbol in facts.symbols.all():
        declaration = enclosing(symbol.declarator, "declaration")
        if not symbol.fixed or symbol.is_memory or symbol.init is None or symbol.space != "local":
            continue
        if declaration is None or declaration.parent != facts.body:
            continue
        place = _place(symbol, facts)
        if place is not None:
            found.append(place)
    return tuple(sorted(found, key=lambda one: one.symbol.declarator.start_byte))


def _place(symbol: Symbol, facts: Facts) -> Place | None:
    poly = value(symbol.init, facts.scope)
    for thread in AXES:
        extent = facts.scope.known.get(f"blockDim.{thread}")
        for block in AXES if extent is not None and extent > 1 else ():
            assert extent is not None
            start = number(extent) * unknown(Atom(f"blockIdx.{block}"))
            if poly == start + unknown(Atom(f"threadIdx.{thread}")):
                return Place(symbol, extent, block, thread)
    return None
