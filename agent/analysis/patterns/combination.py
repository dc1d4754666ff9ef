"""Statements that fold one more operand into a value: ``s += x``, ``m = fmaxf(m, x)``, ``if (x > m) m = x``."""

from collections.abc import Callable

from attrs import frozen
from tree_sitter import Node

from agent.analysis.syntax import arguments, bare, callee, expression_of, same, statements, text

OPERATORS = {"+": "sum", "*": "product", "&": "and", "|": "or", "^": "xor"}
FUNCTIONS = {"fmaxf": "max", "fmax": "max", "max": "max", "fminf": "min", "fmin": "min", "min": "min"}
IDEMPOTENT = frozenset({"max", "min", "and", "or"})


@frozen(eq=False)
class Combination:
    """``target = target op operand``.

    ``op``: ``sum``, ``product``, ``max``, ``min``, ``and``, ``or``, ``xor``. ``function`` is the user's own spelling
    where it is a call (``fmaxf``), ``compare`` where it is a comparison, and the operator otherwise."""

    statement: Node
    op: str
    function: str
    target: Node
    operand: Node


def combination(statement: Node, is_target: Callable[[Node], bool]) -> Combination | None:
    """The combination that a statement is, if its target satisfies ``is_target``; None for everything else."""
    if statement.type == "if_statement":
        return _guarded(statement, is_target)
    assignment = expression_of(statement)
    if assignment is None or assignment.type != "assignment_expression":
        return None
    target, right = bare(assignment.child_by_field_name("left")), bare(assignment.child_by_field_name("right"))
    operator = text(assignment.child_by_field_name("operator"))
    if target is None or right is None or not is_target(target):
        return None
    if operator != "=":
        op = OPERATORS.get(operator[:-1])
        return None if op is None else Combination(statement, op, operator[:-1], target, right)
    return _assigned(statement, target, right)


def _assigned(statement: Node, target: Node, right: Node) -> Combination | None:
    if right.type == "binary_expression":
        operator = text(right.child_by_field_name("operator"))
        operand = _other(target, right.child_by_field_name("left"), right.child_by_field_name("right"))
        op = OPERATORS.get(operator)
        return None if op is None or operand is None else Combination(statement, op, operator, target, operand)
    if right.type == "call_expression":
        op, given = FUNCTIONS.get(callee(right)), arguments(right)
        operand = _other(target, given[0], given[1]) if op is not None and len(given) == 2 else None
        spelled = text(right.child_by_field_name("function"))
        return None if op is None or operand is None else Combination(statement, op, spelled, target, operand)
    if right.type == "conditional_expression":
        yes, no = bare(right.child_by_field_name("consequence")), bare(right.child_by_field_name("alternative"))
        test = bare(right.child_by_field_name("condition"))
        operand = _other(target, yes, no)
        if operand is None or test is None or yes is None:
            return None
        op = _picks(test, yes, target if same(no, target) else operand)
        return None if op is None else Combination(statement, op, "compare", target, operand)
    return None


def _guarded(statement: Node, is_target: Callable[[Node], bool]) -> Combination | None:
    """``if (x > m) m = x;``"""
    inside = statements(statement.child_by_field_name("consequence"))
    if statement.child_by_field_name("alternative") is not None or len(inside) != 1:
        return None
    assignment = expression_of(inside[0])
    if (
        assignment is None
        or assignment.type != "assignment_expression"
        or text(assignment.child_by_field_name("operator")) != "="
    ):
        return None
    target, operand = bare(assignment.child_by_field_name("left")), bare(assignment.child_by_field_name("right"))
    test = bare(statement.child_by_field_name("condition"))
    if target is None or operand is None or test is None or not is_target(target):
        return None
    op = _picks(test, operand, target)
    return None if op is None else Combination(statement, op, "compare", target, operand)


def _picks(test: Node, chosen: Node, left_out: Node) -> str | None:
    """``max`` or ``min``: what choosing ``chosen`` over ``left_out`` when ``test`` holds amounts to."""
    if test.type != "binary_expression":
        return None
    operator = text(test.child_by_field_name("operator"))
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if operator not in ("<", "<=", ">", ">="):
        return None
    if same(left, chosen) and same(right, left_out):
        return "max" if operator[0] == ">" else "min"
    if same(left, left_out) and same(right, chosen):
        return "min" if operator[0] == ">" else "max"
    return None


def _other(target: Node, one: Node | None, two: Node | None) -> Node | None:
    if same(one, target):
        return bare(two)
    return bare(one) if same(two, target) else None
