"""Integers of C's widths: conversions and unsigned arithmetic wrap, signed arithmetic that overflows has no value.

What wraps is told by the numbers that the program has; where it does, the expression says so, and holds at any size.
"""

import operator
import re
from collections.abc import Callable, Mapping
from functools import reduce

from attrs import evolve

from agent.workload import dtypes
from agent.workload.arithmetic import FUNCTIONS, INT, truncated_division
from agent.workload.expression import Expression, ExpressionError, build, kind, number
from agent.workload.static.state import Facts
from agent.workload.static.values import Scalar, Unknown, Value

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "&&", "||"})
_SHIFTS = frozenset({"<<", ">>"})
# Of operands that fit their type, only these may give what does not.
_LEAVING: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "<<": operator.lshift,
    "/": lambda left, right: truncated_division(left, right) if right else 0,
}  # fmt: skip
_NODES_OF_A_STEP = 64


def integer(dtype: str | None) -> str | None:
    """``dtype`` where it is a scalar integer type."""
    return dtype if dtype in dtypes.SCALARS and dtype not in dtypes.FLOATS else None


def literal_type(text: str, value: int) -> str | None:
    """The type of an integer literal: the first of C's list that holds it."""
    found = re.search(r"[ul]*$", text.lower())
    suffix = found[0] if found is not None else ""
    for dtype in ("i64", "u64") if "l" in suffix else ("i32", "u32", "i64", "u64"):
        signed = dtype[0] == "i"
        if signed if "u" in suffix else not signed and not text.startswith("0"):
            continue
        if value <= dtypes.integer_range(dtype)[1]:
            return dtype
    return None


def promoted(dtype: str) -> str:
    """The type that an operand of ``dtype`` is computed in: ``int`` for all that is smaller."""
    return "i32" if dtypes.size_of(dtype) < 4 else dtype


def common(left: str | None, right: str | None) -> str | None:
    """The type that C's usual arithmetic conversions give two integer operands; None where one has no known type."""
    if left is None or right is None:
        return None
    both = promoted(left), promoted(right)
    size = max(map(dtypes.size_of, both))
    return ("u" if f"u{8 * size}" in both else "i") + str(8 * size)


def known(expression: Expression, facts: Facts) -> int | None:
    """The integer that an expression is when the program is run as it is; None for what is open or no integer."""
    if expression.op == "number":
        return expression.constant if isinstance(expression.constant, int) else None
    facts.spend(expression.nodes // _NODES_OF_A_STEP)
    told = {name: facts.roots[name].value for name in expression.names if name in facts.roots}
    try:
        found = expression.evaluate({name: value for name, value in told.items() if value is not None})
    except ExpressionError:
        return None
    return found if isinstance(found, int) else None


def narrowed(value: Scalar, dtype: str, facts: Facts) -> Scalar:
    """An integer converted to an integer type: unsigned modulo 2**N, signed as two's complement, bool as not zero."""
    told = known(value.expression, facts)
    if dtype == "bool":
        fits = told in (0, 1, None)
        return Scalar(value.expression if fits else build("!=", (value.expression, number(0))), dtype)
    if told is None or _fits(told, dtype):
        return evolve(value, dtype=dtype)
    return _wrapped(value.expression, told, dtype)


def arithmetic(op: str, left: Scalar, right: Scalar, facts: Facts) -> Scalar | Unknown:
    """``left op right`` in the type that C computes it in; Unknown where C leaves it undefined."""
    dtype = common(left.dtype, left.dtype if op in _SHIFTS else right.dtype)
    if dtype is None or op in ("&&", "||"):
        return Scalar(build(op, (left.expression, right.expression)), "i32" if op in _COMPARISONS else None)
    left = narrowed(left, dtype, facts)
    right = right if op in _SHIFTS else narrowed(right, dtype, facts)
    if op in _COMPARISONS:
        return Scalar(build(op, (left.expression, right.expression)), "i32")
    first, second = known(left.expression, facts), known(right.expression, facts)
    bits = 8 * dtypes.size_of(dtype)
    if op in _SHIFTS and second is not None and not 0 <= second < bits:
        return Unknown(f"a shift of {bits} bits by {second} is undefined")
    made = build(op, (left.expression, right.expression))
    if first is None or second is None or op not in _LEAVING:
        return Scalar(made, dtype)
    return _result(made, _LEAVING[op](first, second), dtype, facts)


def unary(op: str, value: Scalar, facts: Facts) -> Scalar | Unknown:
    """``neg``, ``not`` or ``~`` of a number, in the type that C computes it in."""
    made = build(op, (value.expression,))
    if op == "not" or value.dtype is None:
        return Scalar(made, "i32" if op == "not" else None)
    dtype = promoted(value.dtype)
    told = known(value.expression, facts)
    return Scalar(made, dtype) if told is None else _result(made, -told if op == "neg" else ~told, dtype, facts)


def math_call(name: str, values: list[Value], facts: Facts) -> Value | None:
    """A call of a known mathematical function; None when ``name`` is none or its arguments are no numbers."""
    if name not in FUNCTIONS:
        return None
    bad = next((value for value in values if isinstance(value, Unknown)), None)
    if bad is not None:
        return bad
    numbers = [value for value in values if isinstance(value, Scalar)]
    if len(numbers) < len(values):
        return None
    dtype = reduce(common, [value.dtype for value in numbers]) if numbers else None
    given = numbers if dtype is None else [narrowed(value, dtype, facts) for value in numbers]
    made = build("call", tuple(value.expression for value in given), name)
    return Scalar(made, dtype if kind(made) == INT else None)


def _fits(value: int, dtype: str) -> bool:
    low, high = dtypes.integer_range(dtype)
    return low <= value <= high


def _result(expression: Expression, exact: int, dtype: str, facts: Facts) -> Scalar | Unknown:
    if _fits(exact, dtype):
        return Scalar(expression, dtype)
    if dtype.startswith("i"):
        text = str(expression)
        shown = text if len(text) <= 60 else text[:57] + "..."
        return Unknown(f"`{shown}` is {exact}, which `{dtypes.c_name(dtype)}` does not hold")
    if abs(exact) >= 2**64:  # more than an expression can hold on its way: the program's own number, and tied to it
        facts.pinned |= expression.names
        return Scalar(number(exact % 2**64), dtype)
    return _wrapped(expression, exact, dtype)


def _wrapped(expression: Expression, exact: int, dtype: str) -> Scalar:
    """``expression``, whose value is ``exact``, brought into the range of ``dtype``."""
    bits = 8 * dtypes.size_of(dtype)
    half = 0 if dtype.startswith("u") else 2 ** (bits - 1)
    if not expression.names:
        return Scalar(number((exact + half) % 2**bits - half), dtype)
    inside = build("cast", (expression,), f"u{bits}")
    return Scalar(build("-", (build("^", (inside, number(half))), number(half))) if half else inside, dtype)
