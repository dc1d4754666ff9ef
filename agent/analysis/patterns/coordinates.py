"""The place in the grid that a thread works at, as the kernel names it: ``row``, ``col``, ``image``.

Where every use of ``threadIdx`` and ``blockIdx`` stands in the definition of such a name, the kernel is a function of
these numbers alone, and any other way to hand them to threads does the same work.
"""

from collections.abc import Iterable

from attrs import frozen

from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.dependence import BUILT_IN
from agent.analysis.facts import Facts
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import contains, descendants, enclosing, text
from agent.analysis.values import value

AXES = ("x", "y", "z")


@frozen(eq=False)
class Coordinate:
    """``symbol`` is ``place / low % extent``, where the place along ``axis`` counts threads of the grid (``threads``)
    or its blocks. ``extent`` None: no remainder is taken. ``atom`` stands for it in index polynomials."""

    symbol: Symbol
    axis: str
    threads: bool
    low: Poly
    extent: Poly | None
    atom: str

    @property
    def name(self) -> str:
        return self.symbol.name

    @property
    def whole(self) -> bool:
        """Whether it is the place along its axis itself."""
        return self.low == number(1) and self.extent is None


@frozen(eq=False)
class Coordinates:
    """``digits`` are independent of each other and make up the whole place along each axis, the fastest digit of an
    axis first. ``places`` are names of whole places that have digits too (``index`` beside ``row = index / n``).
    ``declared`` are the symbols whose definitions a new way to hand out work replaces."""

    digits: tuple[Coordinate, ...]
    places: tuple[Coordinate, ...]
    declared: frozenset[Symbol]

    def of(self, symbol: Symbol) -> tuple[Coordinate, ...]:
        """The digits that a coordinate's symbol is made of; none for any other symbol."""
        if (own := next((one for one in self.digits if one.symbol is symbol), None)) is not None:
            return (own,)
        place = next((one for one in self.places if one.symbol is symbol), None)
        return () if place is None else tuple(one for one in self.digits if one.axis == place.axis)


def coordinates(facts: Facts) -> Coordinates | str:
    """The coordinates of a kernel, or why it is no function of such numbers."""
    declared = _index_symbols(facts)
    if isinstance(declared, str):
        return declared
    found = [one for symbol in declared if (one := _coordinate(symbol, facts)) is not None]
    known = {one.symbol for one in found}
    for symbol in declared:
        if symbol not in known and _used_outside(symbol, declared, facts):
            return f"`{symbol.name}` is no place in the grid that can be handed to another thread"
    used = [one for one in found if _used_outside(one.symbol, declared, facts)]
    return _ordered(used, frozenset(declared))


def _index_symbols(facts: Facts) -> list[Symbol] | str:
    """The locals whose definitions spell out the thread's or the block's index, and those made of such locals alone
    by ``/`` and ``%``."""
    found: list[Symbol] = []
    symbols = [symbol for symbol in facts.symbols.all() if symbol.space == "local" and symbol.init is not None]
    for node in descendants(facts.body, "identifier"):
        if text(node) not in BUILT_IN or facts.symbols.resolve(node) is not None:
            continue
        owner = next((symbol for symbol in symbols if symbol.init is not None and contains(symbol.init, node)), None)
        line = facts.document.line(node.start_byte)
        if owner is None or not owner.fixed or owner.is_memory or not _at_top(owner, facts):
            return f"line {line} uses {text(node.parent)} outside the definition of an index"
        if owner not in found:
            found.append(owner)
    grew = True
    while grew:
        more = [one for one in symbols if one not in found and _made_of(one, found, facts)]
        found += more
        grew = bool(more)
    return sorted(found, key=lambda symbol: symbol.declarator.start_byte)


def _at_top(symbol: Symbol, facts: Facts) -> bool:
    declaration = enclosing(symbol.declarator, "declaration")
    return declaration is not None and declaration.parent == facts.body


def _made_of(symbol: Symbol, found: list[Symbol], facts: Facts) -> bool:
    """A digit of an index that is found already: ``col = index % n``."""
    if not symbol.fixed or symbol.is_memory or symbol.init is None or not _at_top(symbol, facts):
        return False
    used = any(facts.symbols.resolve(node) in found for node in descendants(symbol.init, "identifier"))
    return used and _coordinate(symbol, facts) is not None


def _coordinate(symbol: Symbol, facts: Facts) -> Coordinate | None:
    poly = value(symbol.init, facts.scope)
    read = _digit(poly, facts)
    if read is None:
        return None
    axis, threads, low, extent = read
    own = next(iter(poly.atoms)).name if len(poly.terms) == 1 else f"threadIdx.{axis}"
    return Coordinate(symbol, axis, threads, low, extent, own)


def _digit(poly: Poly, facts: Facts) -> tuple[str, bool, Poly, Poly | None] | None:
    """(axis, counts threads, low, extent) of a value that is a digit of a place."""
    for axis in AXES:
        block, thread = (unknown(Atom(f"{name}.{axis}")) for name in ("blockIdx", "threadIdx"))
        known = facts.scope.known.get(f"blockDim.{axis}")
        width = unknown(Atom(f"blockDim.{axis}")) if known is None else number(known)
        if poly == block * width + thread:
            return axis, True, number(1), None
        if poly == block:
            return axis, False, number(1), None
    if len(poly.terms) == 1 and len(poly.terms[0][0]) == 1 and poly.terms[0][1] == 1:
        formula = poly.terms[0][0][0].formula
        return None if formula is None else _divided(formula[0], formula[1], facts)
    for atom in poly.atoms:  # index - row * n, where row = index / n
        if atom.formula is not None and atom.formula[0] == "/":
            whole, by = atom.formula[1]
            if poly == whole - by * unknown(atom):
                return _divided("%", (whole, by), facts)
    return None


def _divided(operation: str, operands: tuple[Poly, ...], facts: Facts) -> tuple[str, bool, Poly, Poly | None] | None:
    if operation not in ("/", "%") or operands[1].depends:
        return None
    inner = _digit(operands[0], facts)
    if inner is None:
        return None
    axis, threads, low, extent = inner
    if operation == "%":
        rest = None if extent is None else quotient(extent, operands[1])
        return (axis, threads, low, operands[1]) if extent is None or rest is not None else None
    rest = None if extent is None else quotient(extent, operands[1])
    return (axis, threads, low * operands[1], rest) if extent is None or rest is not None else None


def quotient(whole: Poly, by: Poly) -> Poly | None:
    """``whole / by`` where it comes out even as polynomials, ``by`` being one product; else None."""
    if len(by.terms) != 1:
        return number(1) if whole == by else None
    atoms, factor = by.terms[0]
    total = number(0)
    for product, times in whole.terms:
        left = list(product)
        for atom in atoms:
            if atom not in left:
                return None
            left.remove(atom)
        if times % factor:
            return None
        term = number(times // factor)
        for atom in left:
            term = term * unknown(atom)
        total = total + term
    return total


def _used_outside(symbol: Symbol, declared: Iterable[Symbol], facts: Facts) -> bool:
    inside = [one.init for one in declared if one.init is not None]
    return any(
        facts.symbols.resolve(node) is symbol and not any(contains(init, node) for init in inside)
        for node in descendants(facts.body, "identifier")
        if node != symbol.declarator
    )


def _ordered(used: list[Coordinate], declared: frozenset[Symbol]) -> Coordinates | str:
    """Check that the digits of each axis make up the whole place."""
    digits: list[Coordinate] = []
    places: list[Coordinate] = []
    for axis in AXES:
        own = [one for one in used if one.axis == axis]
        whole = [one for one in own if one.whole]
        parts = [one for one in own if not one.whole]
        if len({one.threads for one in own}) > 1:
            return f"both the block's index and the thread's place along {axis} are used by themselves"
        if len(whole) > 1 or not parts:
            if len(whole) > 1:
                return f"{whole[0].name} and {whole[1].name} are the same index"
            digits += whole
            continue
        chain = _chain(parts)
        if chain is None:
            return "an index is split by / and % in a way that does not make up the whole of it"
        digits += chain
        places += whole
    return Coordinates(tuple(digits), tuple(places), declared)


def _chain(parts: list[Coordinate]) -> list[Coordinate] | None:
    """The digits in order: each begins where the one before ends."""
    chain: list[Coordinate] = []
    low: Poly | None = number(1)
    while low is not None:
        following = [one for one in parts if one.low == low and one not in chain]
        if len(following) != 1:
            return None
        chain.append(following[0])
        low = None if following[0].extent is None else low * following[0].extent
        if low is not None and not any(one.low == low for one in parts):
            return None  # the highest digit is never used, so two threads would do the same work
    return chain if len(chain) == len(parts) else None
