"""Under which conditions a place is reached, and whether one thread meets them."""

from collections.abc import Iterator, Mapping

from attrs import frozen
from tree_sitter import Node

from agent.analysis.syntax import LOOPS, ancestors, bare, contains, descendants, statements, text
from agent.analysis.values import Scope, difference, value

LEAPS = frozenset(("return_statement", "continue_statement", "break_statement", "goto_statement"))
_COMPARISONS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "==", "!=": "!="}


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
        for before in statements(parent):
            if before.start_byte >= child.start_byte:
                break
            yield from _exits(before)


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


def holds(condition: Node | None, scope: Scope, values: Mapping[str, int]) -> bool | None:
    """Whether a condition holds where the names have these values; None where that is not known."""
    condition = bare(condition)
    if condition is None:
        return None
    if condition.type == "binary_expression":
        operator = text(condition.child_by_field_name("operator"))
        left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
        if operator in ("&&", "||"):
            one, two = holds(left, scope, values), holds(right, scope, values)
            decisive = operator == "||"
            if decisive in (one, two):
                return decisive
            return None if None in (one, two) else not decisive
        if operator in _COMPARISONS:
            apart = difference(condition, scope).evaluate(values)
            return None if apart is None else _compare(apart, operator)
    if condition.type == "unary_expression" and text(condition.child_by_field_name("operator")) == "!":
        inner = holds(condition.child_by_field_name("argument"), scope, values)
        return None if inner is None else not inner
    number = value(condition, scope).evaluate(values)
    return None if number is None else number != 0


def _compare(difference: int, operator: str) -> bool:
    return {
        "<": difference < 0,
        "<=": difference <= 0,
        ">": difference > 0,
        ">=": difference >= 0,
        "==": difference == 0,
        "!=": difference != 0,
    }[operator]


def reaches(found: tuple[Guard, ...], scope: Scope, values: Mapping[str, int]) -> bool | None:
    """Whether a thread with these values passes all the guards: False as soon as one is known to stop it, True only
    where all are known."""
    sure = True
    for guard in found:
        held = None if guard.kind == "switch" else holds(guard.condition, scope, values)
        if held is None:
            sure = False
        elif held != guard.taken:
            return False
    return True if sure else None
