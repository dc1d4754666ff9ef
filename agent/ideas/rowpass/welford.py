"""Mean and variance of a row in one pass, by Welford's running update or by sums shifted by a first element.

B. P. Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 4 (1962); the
correction to another centre is the parallel axis theorem, as in T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for
computing the sample variance", The American Statistician 37 (1983).
"""

from tree_sitter import Node

from agent.analysis.facts import Facts
from agent.analysis.patterns.row_pass import RowPass, canonical, respelled, through_locals
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, callee, text
from agent.ideas.idea import Scope
from agent.ideas.registry import Match, Variant
from agent.ideas.rewriting import Rewrite, source_text
from agent.ideas.rowpass.pair import Pair, alike, between, difference, pair, same_elements, siblings
from agent.ideas.rowpass.writing import (
    body_edits,
    in_place_of_second,
    less_traffic,
    moved_start,
    new_name,
    number,
    passes_over_row,
    value_name,
)
from agent.ideas.view import View


def squares(first: RowPass, second: RowPass, facts: Facts, apart: frozenset[Symbol] = frozenset()) -> Pair | str | None:
    """A sum pass and a pass that adds up squared differences from one value; why they cannot be fused; or None."""
    if first.fold.op != "sum" or second.fold.op != "sum" or not siblings(first, second):
        return None
    if first.store is not None or second.store is not None:
        return None
    found = _squared(second, facts)
    if found is None:
        return None
    inner = difference(found, second, facts)
    if inner is None or not same_elements(first, second, inner[0], facts):
        return None
    if not alike(first, second):
        return "the two passes do not walk over the same elements in the same order"
    return pair(first, second, inner[0], inner[1], facts, apart)


def _squared(second: RowPass, facts: Facts) -> Node | None:
    """``d`` of ``d * d`` or ``powf(d, 2)``."""
    term = through_locals(second.fold.operand, second.loop, facts)
    if term is None:
        return None
    if term.type == "binary_expression" and text(term.child_by_field_name("operator")) == "*":
        left, right = term.child_by_field_name("left"), term.child_by_field_name("right")
        here = between(second, second)
        one = canonical(through_locals(left, second.loop, facts), second.loop, facts, here)
        two = canonical(through_locals(right, second.loop, facts), second.loop, facts, here)
        return left if one is not None and one == two else None
    if callee(term) in ("pow", "powf") and len(arguments(term)) == 2:
        base, power = arguments(term)
        return base if text(power).rstrip("f").rstrip("0").rstrip(".") == "2" else None
    return None


def squares_match(both: Pair, view: View) -> Match:
    passes = passes_over_row(both, view.facts)
    element = source_text(view.document, both.first.fold.operand)
    return Match(
        line=view.document.line(both.first.node.start_byte),
        title="fuse the mean and variance passes over a row (Welford)",
        why=(
            f"the sum and the squared differences both read `{element}`; squares about a running mean, corrected "
            "once to the row's mean, take one pass"
        ),
        expects=less_traffic(passes, 1),
        variants=(
            Variant(
                "Welford's update",
                "a running mean and the squares about it; one division an element, no cancellation",
                Scope.DROP_IN,
                lambda: _welford(both, view),
            ),
            Variant(
                "shifted sums",
                "squares about the thread's first element: no division, and precise unless that element is far from "
                "all others",
                Scope.DROP_IN,
                lambda: _shifted(both, view),
            ),
        ),
    )


def _welford(both: Pair, view: View) -> Rewrite:
    kind, total = both.type, both.second.accumulator.name
    count, mean, step = (new_name(view, name) for name in ("count", "running_mean", "step"))
    value, declaration = value_name(view, both.first)
    lines = declaration + "\n".join(
        (
            _fold(both, view, value),
            f"const {kind} {step} = {value} - {mean};",
            f"{mean} += {step} / ++{count};",
            f"{total} += {step} * ({value} - {mean});  // squares about the running mean",
        )
    )
    extra = f"int {count} = 0;\n{kind} {mean} = {number('0.0', kind)};"
    pivot = _pivot(both, view)
    end = (
        f"// About the row's mean instead of the thread's own (nothing to correct where it had no elements).\n"
        f"{total} += {count} * ({mean} - {pivot}) * ({mean} - {pivot});"
    )
    return Rewrite(
        (*moved_start(view, both, extra), body_edits(view, both.first, lines), in_place_of_second(view, both, end))
    )


def _shifted(both: Pair, view: View) -> Rewrite:
    kind, total = both.type, both.second.accumulator.name
    count, shift, moved, sums = (new_name(view, name) for name in ("count", "shift", "shifted", "shifted_sum"))
    value, declaration = value_name(view, both.first)
    lines = declaration + "\n".join(
        (
            _fold(both, view, value),
            f"const {kind} {moved} = {value} - {shift};",
            f"{sums} += {moved};",
            f"{total} += {moved} * {moved};",
            f"++{count};",
        )
    )
    pivot = _pivot(both, view)
    extra = "\n".join(
        (
            "// The thread's first element, so that the squares stay near the spread of the row.",
            f"const {kind} {shift} = {_first_element(both, view)};",
            f"int {count} = 0;",
            f"{kind} {sums} = {number('0.0', kind)};",
        )
    )
    two = number("2.0", kind)
    end = (
        f"// From squares about {shift} to squares about the row's mean.\n"
        f"{total} += ({pivot} - {shift}) * ({count} * ({pivot} - {shift}) - {two} * {sums});"
    )
    return Rewrite(
        (*moved_start(view, both, extra), body_edits(view, both.first, lines), in_place_of_second(view, both, end))
    )


def _first_element(both: Pair, view: View) -> str:
    """``start < bound ? x[start] : 0``: a thread may have no element at all."""
    loop = both.first.loop
    start = loop.node.child_by_field_name("initializer")
    declared = None if start is None else start.child_by_field_name("declarator")
    begin = None if declared is None else declared.child_by_field_name("value")
    begin = begin if begin is not None else (None if start is None else start.child_by_field_name("right"))
    assert begin is not None
    spelled = source_text(view.document, begin)
    simple = begin.type in ("identifier", "number_literal", "field_expression")
    name = spelled if simple else f"({spelled})"
    element = respelled(both.first.fold.operand, loop, view.facts, {loop.variable: name})
    bound = source_text(view.document, loop.bound_node)
    return f"{name} {loop.relation} {bound} ? {element} : {number('0.0', both.type)}"


def _fold(both: Pair, view: View, value: str) -> str:
    """The first pass's own statement, on the named element."""
    return f"{both.first.accumulator.name} += {value};"


def _pivot(both: Pair, view: View) -> str:
    spelled = source_text(view.document, both.pivot)
    simple = both.pivot.type in ("identifier", "subscript_expression", "field_expression", "number_literal")
    return spelled if simple else f"({spelled})"
