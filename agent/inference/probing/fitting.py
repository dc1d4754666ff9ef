"""From numbers that were seen at some sizes to an expression over these sizes, checked on sizes that it was not made
from.

Tried, simplest first: polynomials (a constant, ``n``, ``m * k``, ``(h + 2) * (w + 2)``, ``n * (n + 1) / 2``), then
quotients rounded up (``ceil_div(n, 256)``, ``ceil_div(rows * cols, 128)``, ``rows * ceil_div(cols, 32) + 1``). What is
no such form is not fitted: a near miss is none.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from attrs import frozen

from agent.inference.probing.polynomials import Monomial, Names, Polynomial, evaluate, monomials, solve, written
from agent.workload.expression import Expression, build, number
from agent.workload.expression import name as name_of

HELD_OUT = 4
"""Samples, the last ones, that a form is checked on and not made from."""
_SPARE = 2  # samples more than a polynomial has terms: fewer would fit anything
_MOST_TERMS = 40
_SHAPES = ((1, 1), (2, 1), (3, 1), (2, 2), (4, 1), (3, 2))  # total degree and power of one name
_SHIFTS = (4, 3, 2, 1, -1, -2, -3, -4)  # where several fit, the one that gives more
_MOST_LONG = 2**62


@frozen
class Form:
    """An expression, and the polynomial that it is, where it is one; ``parts`` are those that it is the largest of."""

    expression: Expression
    polynomial: Polynomial | None = None
    parts: tuple["Form", ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return self.expression.names

    @property
    def polynomials(self) -> tuple[Polynomial, ...]:
        """Its own, or those of its parts."""
        own = (self.polynomial,) if self.polynomial else ()
        return (*own, *(one for part in self.parts for one in part.polynomials))

    def at(self, values: Names) -> int:
        return self.expression.integer(values)


def largest(forms: Sequence[Form]) -> Form:
    """The largest of them; that which stands there twice counts once."""
    alone = list({str(form.expression): form for form in forms}.values())
    if len(alone) == 1:
        return alone[0]
    shown = alone[0].expression
    for form in alone[1:]:
        shown = build("call", (shown, form.expression), "max")
    return Form(shown, parts=tuple(alone))


def fit(
    samples: Sequence[Names],
    seen: Sequence[int],
    divisors: Sequence[int] = (),
    counts: Sequence[Polynomial] = (),
) -> Form | None:
    """The form of ``seen`` over ``samples``, or None.

    ``divisors`` are what may stand below in a quotient, ``counts`` what may stand above beside the names and their
    products (how many elements another buffer has).
    """
    if not samples[0]:
        return Form(number(seen[0]), {(): Fraction(seen[0])} if seen[0] else {}) if len(set(seen)) == 1 else None
    relevant = _relevant(samples, seen)
    for degree, power in _SHAPES:
        basis = monomials(relevant, degree, power)
        if len(basis) > _MOST_TERMS or len(basis) + _SPARE > len(samples) - HELD_OUT:
            continue
        found = solve(basis, samples[:-HELD_OUT], seen[:-HELD_OUT])
        if found is not None:
            # more terms would fit what is held out too, and mean nothing
            holds = all(
                evaluate(found, values) == value for values, value in zip(samples, seen, strict=True)
            )  # fmt: skip
            return Form(written(found, list(samples[0])), found) if holds else None
        if not relevant:
            break
    return _quotient(samples, seen, relevant, divisors, counts)


def _relevant(samples: Sequence[Names], seen: Sequence[int]) -> list[str]:
    """Names on which the numbers hang: a change of that name alone changes them somewhere."""
    groups: dict[tuple[str, tuple[int, ...]], set[int]] = {}
    names = sorted(samples[0])
    for values, value in zip(samples, seen, strict=True):
        for one in names:
            key = (one, tuple(values[other] for other in names if other != one))
            groups.setdefault(key, set()).add(value)
    return sorted({one for (one, _), found in groups.items() if len(found) > 1})


# Quotients ----------------------------------------------------------------------------------------------------------


def _quotient(
    samples: Sequence[Names], seen: Sequence[int], relevant: Sequence[str], divisors: Sequence[int],
    counts: Sequence[Polynomial],
) -> Form | None:  # fmt: skip
    """``factor * ceil_div(count + shift, divisor) * a + b`` for the first that gives every number."""
    target = np.array(seen, np.int64)
    for count in _counts(relevant, counts):
        above = [evaluate(count, values) for values in samples]
        if any(one.denominator != 1 or abs(one) > _MOST_LONG for one in above):
            continue
        tops = np.array([int(one) for one in above], np.int64)
        for factor in _factors(relevant):
            weights = np.array([int(evaluate({factor: Fraction(1)}, values)) for values in samples], np.int64)
            for divisor in dict.fromkeys(divisors):
                lines = {
                    shift: found
                    for shift in (0, 1 - divisor, *_SHIFTS)
                    if (found := _line(weights * -(-(tops + shift) // divisor), target)) is not None
                }
                # the same numbers come of a shift by a whole divisor, and one less
                for shift in sorted(lines, key=lambda shift: lines[shift][1] != 0):
                    return Form(_shown(count, shift, divisor, factor, lines[shift], list(samples[0])))
    return None


def _counts(relevant: Sequence[str], counts: Sequence[Polynomial]) -> Iterator[Polynomial]:
    for chosen in monomials(relevant, min(len(relevant), 4), 1)[1:]:
        yield {chosen: Fraction(1)}
    yield from (count for count in counts if count and {one for key in count for one in key} <= set(relevant))


def _factors(relevant: Sequence[str]) -> list[Monomial]:
    return monomials(relevant, 2, 1)


def _line(basis: npt.NDArray[np.int64], target: npt.NDArray[np.int64]) -> tuple[int, int] | None:
    """Whole ``a`` (not 0) and ``b`` with a * basis + b == target everywhere; seen at four values of the basis."""
    first, last = int(basis.argmin()), int(basis.argmax())
    run = int(basis[last] - basis[first])
    rise = int(target[last] - target[first])
    if run == 0 or rise == 0 or rise % run or len(np.unique(basis)) < 4:
        return None
    slope = rise // run
    start = int(target[first]) - slope * int(basis[first])
    return (slope, start) if bool((slope * basis + start == target).all()) else None


def _shown(
    count: Polynomial, shift: int, divisor: int, factor: Monomial, line: tuple[int, int], order: Sequence[str]
) -> Expression:  # fmt: skip
    slope, start = line
    if shift == 1 - divisor:
        shown = build("/", (written(count, order), number(divisor)))
    else:
        above = {**count, (): count.get((), Fraction(0)) + shift}
        above = {monomial: held for monomial, held in above.items() if held}
        shown = build("call", (written(above, order), number(divisor)), "ceil_div")
    for one in factor:
        shown = build("*", (name_of(one), shown))
    shown = build("*", (shown, number(slope)))
    return build("-" if start < 0 else "+", (shown, number(abs(start))))
