"""Polynomials with rational coefficients over names, solved for exactly, and written as C writes them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

from agent.workload.expression import Expression, build, number
from agent.workload.expression import name as name_of

Monomial = tuple[str, ...]
"""Names in order, each as often as its power: ``("m", "n", "n")`` is m * n * n."""
Polynomial = Mapping[Monomial, Fraction]
Names = Mapping[str, int]


def monomials(names: Sequence[str], degree: int, power: int) -> list[Monomial]:
    """All up to a total degree in which no name stands more often than ``power``; the constant first."""
    found: list[Monomial] = []
    for total in range(degree + 1):
        for chosen in combinations_with_replacement(sorted(names), total):
            if all(chosen.count(one) <= power for one in chosen):
                found.append(chosen)
    return found


def value_of(monomial: Monomial, values: Names) -> int:
    return math.prod(values[one] for one in monomial)


def evaluate(polynomial: Polynomial, values: Names) -> Fraction:
    return sum((factor * value_of(monomial, values) for monomial, factor in polynomial.items()), Fraction(0))


def solve(basis: Sequence[Monomial], samples: Sequence[Names], wanted: Sequence[int]) -> Polynomial | None:
    """The polynomial over ``basis`` that gives ``wanted`` at all ``samples``; None where there is none, or several."""
    rows = [
        [Fraction(value_of(one, sample)) for one in basis] + [Fraction(value)]
        for sample, value in zip(samples, wanted, strict=True)
    ]
    for column in range(len(basis)):
        pivot = next((index for index in range(column, len(rows)) if rows[index][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = [entry / rows[column][column] for entry in rows[column]]
        rows[column] = head
        for index, row in enumerate(rows):
            if index != column and (factor := row[column]):
                rows[index] = [entry - factor * other for entry, other in zip(row, head, strict=True)]
    if any(row[-1] for row in rows[len(basis) :]):
        return None
    return {one: rows[index][-1] for index, one in enumerate(basis) if rows[index][-1]}


def substitute(polynomial: Polynomial, name: str, other: str, divisor: int) -> Polynomial:
    """The polynomial with ``other / divisor`` (an exact division) in the place of ``name``."""
    found: dict[Monomial, Fraction] = {}
    for monomial, factor in polynomial.items():
        power = monomial.count(name)
        key = tuple(sorted([*(one for one in monomial if one != name), *[other] * power]))
        found[key] = found.get(key, Fraction(0)) + factor / divisor**power
    return {key: factor for key, factor in found.items() if factor}


def is_whole(polynomial: Polynomial) -> bool:
    return all(factor.denominator == 1 for factor in polynomial.values())


def names_of(polynomial: Polynomial) -> frozenset[str]:
    return frozenset(one for monomial in polynomial for one in monomial)


def written(polynomial: Polynomial, order: Sequence[str] = ()) -> Expression:
    """As a product where it is one (``(h + 2) * (w + 2)``), else as a sum; a common divisor comes last. Names stand in
    the ``order`` given."""
    if not polynomial:
        return number(0)
    divisor = math.lcm(*(factor.denominator for factor in polynomial.values()))
    place = {name: index for index, name in enumerate(order)}
    whole = {
        tuple(sorted(monomial, key=lambda name: (place.get(name, len(place)), name))): int(factor * divisor)
        for monomial, factor in polynomial.items()
    }
    shown = _product(whole) or _sum(whole)
    if divisor == 1:
        return shown
    parts = (shown, number(divisor))
    # a part of one product is seen at whole parts only: rounded up it is enough between them too
    return build("call", parts, "ceil_div") if len(whole) == 1 else build("/", parts)


def _product(whole: Mapping[Monomial, int]) -> Expression | None:
    """``c * (a + i) * (b + j)``, if it is that."""
    top = max(whole, key=len)
    if len(set(top)) != len(top):
        return None
    lead = whole[top]
    shifts = [Fraction(whole.get(tuple(one for one in top if one != other), 0), lead) for other in top]
    if any(shift.denominator != 1 for shift in shifts):
        return None
    expanded: dict[Monomial, int] = {(): lead}
    for one, shift in zip(top, shifts, strict=True):
        more: dict[Monomial, int] = {}
        for monomial, factor in expanded.items():
            longer = (*monomial, one)
            more[longer] = more.get(longer, 0) + factor
            more[monomial] = more.get(monomial, 0) + factor * int(shift)
        expanded = more
    if {monomial: factor for monomial, factor in expanded.items() if factor} != dict(whole):
        return None
    factors = [_shifted(one, int(shift)) for one, shift in zip(top, shifts, strict=True)]
    if not factors:
        return number(lead)
    return _multiplied([*factors, number(lead)] if abs(lead) != 1 else factors, lead == -1)


def _shifted(one: str, shift: int) -> Expression:
    if shift == 0:
        return name_of(one)
    return build("+" if shift > 0 else "-", (name_of(one), number(abs(shift))))


def _multiplied(factors: Sequence[Expression], negative: bool = False) -> Expression:
    shown = factors[0]
    for factor in factors[1:]:
        shown = build("*", (shown, factor))
    return build("neg", (shown,)) if negative else shown


def _sum(whole: Mapping[Monomial, int]) -> Expression:
    """Positive terms first, so that none begins with a sign where there is another way."""
    terms = sorted(whole.items(), key=lambda term: (term[1] < 0, -len(term[0])))
    shown: Expression | None = None
    for monomial, factor in terms:
        part = _multiplied([*map(name_of, monomial), *_coefficient(monomial, factor)])
        if shown is None:
            shown = build("neg", (part,)) if factor < 0 else part
        else:
            shown = build("-" if factor < 0 else "+", (shown, part))
    assert shown is not None
    return shown


def _coefficient(monomial: Monomial, factor: int) -> Iterator[Expression]:
    if abs(factor) != 1 or not monomial:
        yield number(abs(factor))
