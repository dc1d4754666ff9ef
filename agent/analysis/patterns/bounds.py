"""What conditions say about integers: polynomials that are not negative at a place."""

from collections.abc import Iterable

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Poly, number
from agent.analysis.facts import Facts
from agent.analysis.patterns.lane_bounds import parts
from agent.analysis.syntax import text
from agent.analysis.values import difference


@frozen(eq=False)
class Known:
    """``least`` are polynomials that are zero or more."""

    least: tuple[Poly, ...]

    def holds(self, poly: Poly) -> bool:
        """Whether a polynomial is shown to be zero or more: it is one of those known plus a number."""
        return any((apart := (poly - one).constant) is not None and apart >= 0 for one in self.least)


def known(conditions: Iterable[tuple[Node, bool]], start: Iterable[Poly], facts: Facts) -> Known:
    """What follows from conditions (each with whether it holds) and from ``start``: comparisons as they stand, and an
    inequality where the other side is known to be no smaller."""
    least, apart = [*start], []
    for condition, holds in conditions:
        for test, so in parts(condition, holds):
            if test.type != "binary_expression":
                continue
            operator = text(test.child_by_field_name("operator"))
            rest = difference(test, facts.scope)
            more, less = _signs(operator, so, rest)
            least += more
            apart += less
    for _ in range(2):  # `i != 0` narrows what `i != n - 1` can use, but not the other way round
        for poly in apart:
            for signed in (poly, -poly):
                if Known(tuple(least)).holds(signed):
                    least.append(signed - number(1))
    return Known(tuple(least))


def _signs(operator: str, holds: bool, rest: Poly) -> tuple[list[Poly], list[Poly]]:
    """(zero or more, not zero) for ``rest operator 0``."""
    if not holds:
        operator = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}.get(operator, "")
    if operator in ("<", "<="):
        return [-rest - number(1 if operator == "<" else 0)], []
    if operator in (">", ">="):
        return [rest - number(1 if operator == ">" else 0)], []
    if operator == "==":
        return [rest, -rest], []
    return [], [rest] if operator == "!=" else []
