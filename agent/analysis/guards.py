"""Under which conditions a place is reached, and whether one thread meets them."""

import operator as op
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from attrs import frozen
from tree_sitter import Node

from agent.analysis.syntax import LOOPS, ancestors, bare, contains, descendants, statements, text
from agent.analysis.values import Scope, difference, value
from agent.analysis.vectors import Names, vector

LEAPS = frozenset(("return_statement", "continue_statement", "break_statement", "goto_statement"))
COMPARISONS = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge, "==": op.eq, "!=": op.ne}


@frozen(eq=False)
class Guard:
    """``condition`` was ``taken`` (or not) on the way to a place. ``kind``: ``if`` (a statement, ``?:``, ``&&`` or
    ``||``), ``loop`` (the loop goes on), ``exit`` (an earlier statement would have left otherwise), ``switch``."""

    condition: Node
    taken: bool
    kind: str
    node: Node


def guards(place: Node, function: Node) -> Iterator[Guard]:
    """What must hold for a thread to reach ``place``, innermost first. What a loop does in other turns is left out."""
    child = place
    for parent in ancestors(place):
        yield from _of(parent, child)
        if parent == function:
            return
        child = parent


def _of(parent: Node, child: Node) -> Iterator[Guard]:
    condition = parent.child_by_field_name("condition")
    if parent.type in ("if_statement", "conditional_expression") and condition is not None:
        if not contains(condition, child):
            alternative = parent.child_by_field_name("alternative")
            yield Guard(condition, alternative is None or not contains(alternative, child), "if", parent)
    elif parent.type in LOOPS and condition is not None and not contains(condition, child):
        start = parent.child_by_field_name("initializer")
        if parent.type != "do_statement" and (start is None or not contains(start, child)):
            yield Guard(condition, True, "loop", parent)
    elif parent.type == "switch_statement" and condition is not None and not contains(condition, child):
        yield Guard(condition, True, "switch", parent)
    elif parent.type == "binary_expression" and text(parent.child_by_field_name("operator")) in ("&&", "||"):
        left = parent.child_by_field_name("left")
        if left is not None and not contains(left, child):
            yield Guard(left, text(parent.child_by_field_name("operator")) == "&&", "if", parent)
    elif parent.type == "compound_statement":
        yield from (exit_ for exit_ in _exits_of(parent) if exit_.node.start_byte < child.start_byte)


@lru_cache(maxsize=64)
def _exits_of(block: Node) -> tuple[Guard, ...]:
    """Those of a block's own statements: they are asked for at each access in it."""
    return tuple(found for statement in statements(block) for found in _exits(statement))


def _exits(statement: Node) -> Iterator[Guard]:
    """``if (c) return;`` lets through where c does not hold."""
    if statement.type != "if_statement":
        return
    condition = statement.child_by_field_name("condition")
    if condition is None:
        return
    inside = statements(statement.child_by_field_name("consequence"))
    if inside and inside[-1].type in LEAPS:
        yield Guard(condition, False, "exit", statement)


def exits_before(place: Node, function: Node) -> Iterator[tuple[Node, tuple[Guard, ...]]]:
    """The ``return`` statements before a place, each with the conditions that lead to it."""
    for leave in descendants(function, "return_statement"):
        if leave.start_byte < place.start_byte and not _inside_lambda(leave, function):
            yield leave, tuple(guards(leave, function))


def _inside_lambda(node: Node, function: Node) -> bool:
    return any(parent.type == "lambda_expression" and contains(function, parent) for parent in ancestors(node))


Decision = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
"""For each thread: surely so, surely not so. Neither where it is not known."""

UNDECIDED: Decision = (np.asarray(False), np.asarray(False))


def decide(condition: Node | None, scope: Scope, names: Names) -> Decision:
    """For which threads a condition holds, and for which it does not, where the names have these values."""
    condition = bare(condition)
    if condition is None:
        return UNDECIDED
    operator = text(condition.child_by_field_name("operator"))
    if condition.type == "binary_expression":
        if operator in ("&&", "||"):
            one = decide(condition.child_by_field_name("left"), scope, names)
            two = decide(condition.child_by_field_name("right"), scope, names)
            if operator == "&&":
                return one[0] & two[0], one[1] | two[1]
            return one[0] | two[0], one[1] & two[1]
        if operator in COMPARISONS:
            apart = vector(difference(condition, scope), names)
            return UNDECIDED if apart is None else _both(COMPARISONS[operator](apart, 0))
    if condition.type == "unary_expression" and operator == "!":
        yes, no = decide(condition.child_by_field_name("argument"), scope, names)
        return no, yes
    number = vector(value(condition, scope), names)
    return UNDECIDED if number is None else _both(number != 0)


def _both(answer: npt.NDArray[np.bool_]) -> Decision:
    return np.asarray(answer), np.logical_not(answer)


def decided(decision: Decision) -> bool:
    """Whether the answer is known for every thread."""
    return bool(np.all(decision[0] | decision[1]))


def stopped(found: Iterable[Guard], scope: Scope, names: Names) -> npt.NDArray[np.bool_]:
    """The threads that some guard is known to keep away."""
    away = np.asarray(False)
    for guard in found:
        if guard.kind != "switch":
            yes, no = decide(guard.condition, scope, names)
            away = away | (no if guard.taken else yes)
    return away
