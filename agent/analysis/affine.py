"""Integer polynomials over named unknowns: what an index expression is made of.

An index such as ``(blockIdx.y * blockDim.y + threadIdx.y) * n + k`` is kept as a sum of products, so that the
coefficient of ``threadIdx.x`` can be read off even where it is a symbol (``n``) and not a number.
"""

from collections.abc import Mapping

from attrs import field, frozen


@frozen(order=True)
class Atom:
    """An unknown. ``name`` tells it apart; ``depends`` holds what its value depends on, as far as is known:
    ``threadIdx.x``, ``blockIdx.y``, ``memory`` (loaded), ``unknown``. Parameters and launch dimensions depend on
    nothing. ``formula`` is an operation that is no polynomial (``/``, ``%``, ``min``, ...) and its operands, if any."""

    name: str
    depends: frozenset[str] = field(default=frozenset(), eq=False, order=False)
    formula: "tuple[str, tuple[Poly, ...]] | None" = field(default=None, eq=False, order=False, repr=False)

    @property
    def same_for_all(self) -> bool:
        """Whether all threads of a block see the same value."""
        return not any(source == "unknown" or source.startswith("threadIdx") for source in self.depends)


Product = tuple[Atom, ...]


@frozen
class Poly:
    """A sum of ``factor * atom * atom ...``, in a canonical order; equal polynomials compare equal."""

    terms: tuple[tuple[Product, int], ...] = ()

    def __add__(self, other: "Poly") -> "Poly":
        sums = dict(self.terms)
        for product, factor in other.terms:
            sums[product] = sums.get(product, 0) + factor
        return _poly(sums)

    def __neg__(self) -> "Poly":
        return _poly({product: -factor for product, factor in self.terms})

    def __sub__(self, other: "Poly") -> "Poly":
        return self + -other

    def __mul__(self, other: "Poly") -> "Poly":
        sums: dict[Product, int] = {}
        for left, one in self.terms:
            for right, two in other.terms:
                product = tuple(sorted((*left, *right))) if left and right else left or right
                sums[product] = sums.get(product, 0) + one * two
        return _poly(sums)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        return " + ".join(
            "*".join([*([str(f)] if f != 1 or not p else []), *(a.name for a in p)]) for p, f in self.terms
        )

    @property
    def constant(self) -> int | None:
        """The number that it is, or None where it is not a number."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def atoms(self) -> frozenset[Atom]:
        return frozenset(atom for product, _ in self.terms for atom in product)

    @property
    def depends(self) -> frozenset[str]:
        return frozenset().union(*(atom.depends for atom in self.atoms))

    def coefficient(self, name: str) -> "Poly | None":
        """What ``name`` is multiplied with. None where it is not linear in it, or hidden inside another unknown."""
        found: dict[Product, int] = {}
        for product, factor in self.terms:
            times = sum(1 for atom in product if atom.name == name)
            if times > 1 or any(name in atom.depends and atom.name != name for atom in product):
                return None
            if times:
                found[tuple(atom for atom in product if atom.name != name)] = factor
        return _poly(found)

    def without(self, name: str) -> "Poly":
        """The terms in which ``name`` is no factor."""
        return Poly(tuple(term for term in self.terms if all(atom.name != name for atom in term[0])))

    def substitute(self, name: str, value: "Poly") -> "Poly":
        total = Poly()
        for product, factor in self.terms:
            term = number(factor)
            for atom in product:
                term = term * (value if atom.name == name else unknown(atom))
            total = total + term
        return total

    def evaluate(self, values: Mapping[str, int]) -> int | None:
        """Its value, or None where ``values`` lacks a name."""
        return self._evaluate(values, offsets=False)

    def relative(self, values: Mapping[str, int]) -> int | None:
        """Its value up to a summand that is the same for all threads of a block: terms without a value and without a
        thread index count as 0. For comparing what lanes of one warp touch; only alignment can be off."""
        return self._evaluate(values, offsets=True)

    def _evaluate(self, values: Mapping[str, int], offsets: bool) -> int | None:
        total = 0
        for product, factor in self.terms:
            for atom in product:
                value = _atom_value(atom, values, offsets)
                if value is None:
                    if offsets and all(other.same_for_all for other in product):
                        factor = 0
                        break
                    return None
                factor *= value
            total += factor
        return total


def _atom_value(atom: Atom, values: Mapping[str, int], offsets: bool) -> int | None:
    if atom.name in values:
        return values[atom.name]
    if atom.formula is None:
        return None
    operation, operands = atom.formula
    found = [operand._evaluate(values, offsets) for operand in operands]
    known = [value for value in found if value is not None]
    return None if len(known) < len(found) else _apply(operation, known)


def _apply(operation: str, values: list[int]) -> int | None:
    if operation in ("min", "max"):
        return min(values) if operation == "min" else max(values)
    left, right = values
    if operation in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)  # as C rounds: towards zero
        return quotient if operation == "/" else left - quotient * right
    if operation == ">>":
        return left >> right if 0 <= right < 64 else None
    return {"&": left & right, "|": left | right, "^": left ^ right}[operation]


def number(value: int) -> Poly:
    return _poly({(): value})


def unknown(atom: Atom) -> Poly:
    return _poly({(atom,): 1})


def _poly(sums: Mapping[Product, int]) -> Poly:
    kept = [(product, factor) for product, factor in sums.items() if factor]
    if len(kept) > 1:
        kept.sort(key=lambda term: (len(term[0]), term[0], term[1]))
    return Poly(tuple(kept))
