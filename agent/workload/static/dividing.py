"""Bytes to elements, with the element's size taken out where it stands as a factor."""

from agent.workload.arithmetic import INT
from agent.workload.expression import Expression, build, kind, number


def divided(nbytes: Expression, size: int) -> Expression:
    """``nbytes / size`` with the factor taken out where it stands as one."""
    found = _without_factor(nbytes, size)
    return found if found is not None else build("/", (nbytes, number(size)))


def _without_factor(expression: Expression, size: int) -> Expression | None:
    if size == 1:
        return expression
    return _exact(expression, size) or _divided_constant(expression, size)


def _exact(expression: Expression, size: int) -> Expression | None:
    """Without the factor ``size`` where it is written as such: ``4 * n`` gives ``n``."""
    if expression.op == "*":
        left, right = expression.operands
        if left.constant == size:
            return right
        if right.constant == size:
            return left
        inner = _exact(left, size)
        if inner is not None:
            return build("*", (inner, right))
        inner = _exact(right, size)
        return build("*", (left, inner)) if inner is not None else None
    return None


def _divided_constant(expression: Expression, size: int) -> Expression | None:
    constant = expression.constant
    if isinstance(constant, int):
        return number(constant // size) if constant % size == 0 else None
    if expression.op == "*":
        left, right = expression.operands
        inner = _divided_constant(right, size)
        if inner is not None:
            return build("*", (left, inner))
        inner = _divided_constant(left, size)
        return build("*", (inner, right)) if inner is not None else None
    if expression.op in ("+", "-") and len(expression.operands) == 2:
        parts = [_without_factor(part, size) for part in expression.operands]
        return build(expression.op, [part for part in parts if part is not None]) if None not in parts else None
    if expression.op == "cast" and expression.value in ("u64", "i64", "u32", "i32") and not _wraps(expression):
        return _without_factor(expression.operands[0], size)
    return None


def _wraps(cast: Expression) -> bool:
    """Whether a conversion is there since an integer does not fit, rather than for a fraction."""
    return kind(cast.operands[0]) == INT
