"""What an integer can be at most and at least, as far as it is proved."""

import re

from agent.analysis.affine import Atom, Poly
from agent.analysis.loops import Loop

MOST_THREADS = 1024
NATURAL = re.compile(r"(?:threadIdx|blockIdx|blockDim|gridDim)\.[xyz]|warpSize|turn@\d+")


def never_negative(poly: Poly, loops: tuple[Loop, ...] = ()) -> bool:
    """Whether an integer is 0 or more, overflow left out: a sum of products of what is. ``loops`` are those around."""
    return all(factor > 0 and all(_natural(atom, loops) for atom in product) for product, factor in poly.terms)


def _natural(atom: Atom, loops: tuple[Loop, ...]) -> bool:
    if NATURAL.fullmatch(atom.name):
        return True
    if atom.formula is not None:
        operation, (left, right) = atom.formula
        sides = [never_negative(side, loops) for side in (left, right)]
        return any(sides) if operation in ("&", "max") else all(sides)
    loop = next((one for one in loops if one.atom == atom), None)
    if loop is None or not never_negative(loop.start, loops[: loops.index(loop)]):
        return False
    return loop.step_kind != "+" or never_negative(loop.step, loops[: loops.index(loop)])


def most(poly: Poly) -> int | None:
    """The largest value that an integer is proved to have: of a number itself, of ``x & 63`` and ``x % 64`` 63, of
    ``blockDim.x / 32`` 32."""
    if poly.constant is not None:
        return poly.constant
    total = 0
    for product, factor in poly.terms:
        if factor < 0:
            return None
        for atom in product:
            bound = _most_of(atom)
            if bound is None:
                return None
            factor *= bound
        total += factor
    return total


def _most_of(atom: Atom) -> int | None:
    if atom.name.startswith(("threadIdx.", "blockDim.")):
        return MOST_THREADS - atom.name.startswith("threadIdx.")
    if atom.formula is None:
        return None
    operation, (left, right) = atom.formula
    known = [side for side in (most(left), most(right)) if side is not None and side >= 0]
    if operation in ("/", ">>") and right.constant and right.constant > 0 and known:
        bound = most(left)
        by = right.constant if operation == "/" else 1 << min(right.constant, 63)
        return None if bound is None else bound // by
    if operation == "%" and right.constant:
        return abs(right.constant) - 1
    if operation == "&":
        return min((side.constant for side in (left, right) if side.constant is not None and side.constant >= 0),
                   default=None)  # fmt: skip
    return min(known) if operation == "min" and known else None
