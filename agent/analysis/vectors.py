"""Index polynomials evaluated for many threads at once: a name stands for a number, or for one number for each
thread."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from agent.analysis.affine import Atom, Poly

Column = npt.NDArray[np.int64]
Names = Mapping[str, "int | Column"]


def vector(poly: Poly, names: Names, offsets: bool = False) -> Column | None:
    """Its value for each thread; None where ``names`` lacks something. ``offsets``: what lacks a value and is the same
    for all threads of a block counts as 0 (see ``Poly.relative``). A single number where nothing differs."""
    try:
        found = _poly(poly, names, offsets)
    except OverflowError:
        return None
    return None if found is None else np.asarray(found, dtype=np.int64)


def _poly(poly: Poly, names: Names, offsets: bool) -> "int | Column | None":
    total: int | Column = 0
    for product, factor in poly.terms:
        term: int | Column = factor
        for atom in product:
            found = _atom(atom, names, offsets)
            if found is None:
                if offsets and all(other.same_for_all for other in product):
                    term = 0
                    break
                return None
            term = term * found
        total = total + term
    return total


def _atom(atom: Atom, names: Names, offsets: bool) -> "int | Column | None":
    if atom.name in names:
        return names[atom.name]
    if atom.formula is None:
        return None
    operation, operands = atom.formula
    left, right = (_poly(operand, names, offsets) for operand in operands)
    if left is None or right is None:
        return None
    return _apply(operation, np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64))


def _apply(operation: str, left: Column, right: Column) -> Column | None:
    if operation in ("min", "max"):
        return np.minimum(left, right) if operation == "min" else np.maximum(left, right)
    if operation in ("/", "%"):
        if np.any(right == 0):
            return None
        # as C rounds: towards zero
        quotient: Column = np.abs(left) // np.abs(right) * np.sign(left) * np.sign(right)
        return quotient if operation == "/" else left - quotient * right
    if operation == ">>":
        return left >> right if np.all((right >= 0) & (right < 64)) else None
    return {"&": left & right, "|": left | right, "^": left ^ right}[operation]
