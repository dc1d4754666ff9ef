"""Bytes to elements, with the element's size taken out where it stands as a factor."""

from agent.workload.expression import Expression, build, number


def divided(nbytes: Expression, size: int) -> Expression:
    """``nbytes / size`` with the factor taken out where it stands as one."""
    found = _without_factor(nbytes, size)
    return found if found is not None else build("/", (nbytes, number(size)))


def _without_factor(expression: Expression, size: int) -> Expression | None:
    constant = expression.constant
    if isinstance(constant, int):
        return number(constant // size) if constant % size == 0 else None
    if size == 1:
        return expression
    if expression.op == "*":
        left, right = expression.operands
        for first, second in ((right, left), (left, right)):
            rest = _without_factor(first, size)
            if rest is not None:
                return build("*", (second, rest) if first is right else (rest, second))
        return None
    if expression.op in ("+", "-"):
        parts = [_without_factor(part, size) for part in expression.operands]
        return build(expression.op, [part for part in parts if part is not None]) if None not in parts else None
    if expression.op == "cast" and expression.value in ("u64", "i64", "u32", "i32"):
        return _without_factor(expression.operands[0], size)
    return None
