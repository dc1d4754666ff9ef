"""Loops in a canonical form: which variable runs, from where, how far, and by what step."""

import operator as op

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Atom, Poly, number
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import (
    LOOPS,
    bare,
    contains,
    descendants,
    expression_of,
    previous_statement,
    same,
    statements,
    text,
)
from agent.analysis.values import Scope, loop_atom, value

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "==": "=="}


@frozen(eq=False)
class Loop:
    """``for (variable = start; variable relation bound; variable step_kind step)``, in this spelling or as a
    ``while`` loop whose variable is set just before it and stepped by its last statement.

    ``step_kind``: ``+`` (``step`` may be negative), ``*`` or ``/``; ``step`` of the last two is a number. ``atom``
    stands for the variable in the values of expressions inside. ``setup`` is the statement before a ``while`` (None
    for a ``for`` that sets its own variable), ``update`` the node that steps. ``leaves_early``: a break, return or
    goto inside."""

    node: Node
    variable: Symbol
    atom: Atom
    start: Poly
    relation: str
    bound: Poly
    bound_node: Node
    step_kind: str
    step: Poly
    body: Node
    setup: Node | None
    update: Node
    leaves_early: bool


def loop_of(node: Node, scope: Scope) -> Loop | None:
    """The canonical form of a loop statement, or None where it has none."""
    if node.type not in ("for_statement", "while_statement"):
        return None
    body = node.child_by_field_name("body")
    condition = bare(node.child_by_field_name("condition"))
    if body is None or condition is None:
        return None
    update = node.child_by_field_name("update") if node.type == "for_statement" else _last(body)
    for test in _tests(condition):
        symbol = scope.symbols.resolve(test[0])
        step = None if symbol is None else _step(update, symbol, scope)
        if symbol is not None and update is not None and step is not None:
            return _loop(node, body, condition, test, symbol, update, step, scope)
    return None


def _loop(
    node: Node,
    body: Node,
    condition: Node,
    test: tuple[Node, str, Node | None],
    symbol: Symbol,
    update: Node,
    step: tuple[str, Poly],
    scope: Scope,
) -> Loop | None:
    if symbol.is_memory or symbol.escapes:
        return None
    inside = [write for write in symbol.writes if contains(node, write)]
    initial, setup = _initial(node, symbol, scope)
    others = [
        write
        for write in inside
        if not contains(update, write) and not (initial is not None and contains(write, initial))
    ]
    if initial is None or others:
        return None
    return Loop(
        node=node,
        variable=symbol,
        atom=loop_atom(symbol, node, scope),
        start=value(initial, scope),
        relation=test[1],
        bound=number(0) if test[2] is None else value(test[2], scope),
        bound_node=condition if test[2] is None else test[2],
        step_kind=step[0],
        step=step[1],
        body=body,
        setup=setup,
        update=update,
        leaves_early=_leaves(node, body),
    )


def trip_values(loop: Loop, count: int) -> list[int] | None:
    """The first ``count`` values of the variable where start and step are numbers; fewer if the loop ends before."""
    start, step, bound = loop.start.constant, loop.step.constant, loop.bound.constant
    if start is None or step is None:
        return None
    found: list[int] = []
    while len(found) < count and (bound is None or _holds(start, loop.relation, bound)):
        found.append(start)
        start = start + step if loop.step_kind == "+" else start * step if loop.step_kind == "*" else start // step
    return found


def _holds(left: int, relation: str, right: int) -> bool:
    compare = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge, "!=": op.ne, "==": op.eq}[relation]
    return bool(compare(left, right))


def _tests(condition: Node) -> list[tuple[Node, str, Node | None]]:
    """(variable, relation, bound) of a loop's condition, either name of two being the variable; a bare variable is a
    comparison with zero."""
    if condition.type == "identifier":
        return [(condition, "!=", None)]
    if condition.type != "binary_expression":
        return []
    operator = text(condition.child_by_field_name("operator"))
    left, right = bare(condition.child_by_field_name("left")), bare(condition.child_by_field_name("right"))
    if operator not in MIRRORED or left is None or right is None:
        return []
    found: list[tuple[Node, str, Node | None]] = [(left, operator, right), (right, MIRRORED[operator], left)]
    return [test for test in found if test[0].type == "identifier"]


def _last(body: Node) -> Node | None:
    inside = statements(body)
    return expression_of(inside[-1]) if inside else None


def _initial(node: Node, symbol: Symbol, scope: Scope) -> tuple[Node | None, Node | None]:
    """The expression that the variable starts from, and the statement before the loop that sets it (if not the
    header)."""
    header = node.child_by_field_name("initializer") if node.type == "for_statement" else None
    if header is not None and contains(header, symbol.declarator):
        return symbol.init, None
    if header is not None:
        assigned = _assigned(header, symbol, scope)
        if assigned is not None:
            return assigned, None
    before = previous_statement(node)
    while before is not None:
        if contains(before, symbol.declarator):
            return symbol.init, before
        if any(contains(before, write) for write in symbol.writes):
            expression = expression_of(before)
            return (None if expression is None else _assigned(expression, symbol, scope)), before
        before = previous_statement(before)
    return None, None


def _assigned(node: Node, symbol: Symbol, scope: Scope) -> Node | None:
    if node.type != "assignment_expression" or text(node.child_by_field_name("operator")) != "=":
        return None
    left = bare(node.child_by_field_name("left"))
    return node.child_by_field_name("right") if left is not None and scope.symbols.resolve(left) is symbol else None


def _step(update: Node | None, symbol: Symbol, scope: Scope) -> tuple[str, Poly] | None:
    update = bare(update)
    if update is None:
        return None
    if update.type == "update_expression":
        target = bare(update.child_by_field_name("argument"))
        if target is None or scope.symbols.resolve(target) is not symbol:
            return None
        return "+", number(1 if text(update.child_by_field_name("operator")) == "++" else -1)
    if update.type != "assignment_expression":
        return None
    left, right = bare(update.child_by_field_name("left")), bare(update.child_by_field_name("right"))
    operator = text(update.child_by_field_name("operator"))
    if left is None or right is None or scope.symbols.resolve(left) is not symbol:
        return None
    if operator == "=" and right.type == "binary_expression":  # i = i + step
        operator = text(right.child_by_field_name("operator")) + "="
        one, two = bare(right.child_by_field_name("left")), right.child_by_field_name("right")
        if not same(one, left) and operator in ("+=", "*=") and same(two, left):
            one, two = two, right.child_by_field_name("left")
        if not same(one, left) or two is None:
            return None
        right = two
    amount = value(right, scope)
    if operator in ("+=", "-="):
        return "+", amount if operator == "+=" else -amount
    factor = amount.constant
    if factor is None:
        return None
    if operator in ("<<=", ">>="):
        return ("*" if operator == "<<=" else "/"), number(1 << factor)
    return (operator[0], amount) if operator in ("*=", "/=") and factor > 1 else None


def _leaves(loop: Node, body: Node) -> bool:
    for node in descendants(body, "break_statement", "return_statement", "goto_statement"):
        if node.type != "break_statement":
            return True
        nearest = node.parent
        while nearest is not None and nearest.type not in (*LOOPS, "switch_statement"):
            nearest = nearest.parent
        if nearest == loop:
            return True
    return False
