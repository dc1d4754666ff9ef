"""C's arithmetic on numbers that know whether they are integer, ``float`` or ``double``.

Every ``float`` operation is done in double and rounded once to 32 bits, which gives the correctly rounded result for
``+ - * /`` and ``sqrt`` (double has more than twice the digits plus two: Figueroa, "When is double rounding
innocuous?", 1995).
"""

import math
import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent.workload import dtypes

INT, FLOAT, DOUBLE = 0, 1, 2
_LARGEST = 2**64


class Typed(NamedTuple):
    number: int | float
    kind: int


def typed(number: int | float, single: bool = False) -> Typed:
    if isinstance(number, float):
        return Typed(number, FLOAT if single else DOUBLE)
    return Typed(int(number), INT)


def single(value: float) -> float:
    """``value`` rounded to 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def convert(value: Typed, kind: int) -> Typed:
    """The same value in a wider (or equal) class."""
    if kind == INT or kind == value.kind:
        return value
    return Typed(single(float(value.number)) if kind == FLOAT else float(value.number), kind)


def _result(number: int | float, kind: int) -> Typed:
    if kind == INT:
        if abs(number) >= _LARGEST:
            raise ValueError("the value does not fit 64 bits")
        return Typed(int(number), INT)
    number = single(float(number)) if kind == FLOAT else float(number)
    if math.isnan(number):
        raise ValueError("the value is not a number")
    return Typed(number, kind)


def truncated_division(left: int, right: int) -> int:
    if right == 0:
        raise ValueError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divide(left: int | float, right: int | float) -> int | float:
    if isinstance(left, int) and isinstance(right, int):
        return truncated_division(left, right)
    if right == 0:
        raise ValueError("division by zero")
    return left / right


def _remainder(left: int | float, right: int | float) -> int:
    left, right = _integers(left, right)
    return left - right * truncated_division(left, right)


def _shift(left: int | float, right: int | float, rightwards: bool) -> int:
    left, right = _integers(left, right)
    if not 0 <= right < 64:
        raise ValueError(f"shift by {right}")
    return left >> right if rightwards else left << right


def _integers(left: int | float, right: int | float) -> tuple[int, int]:
    if not isinstance(left, int) or not isinstance(right, int):
        raise ValueError("an integer operator has a floating-point operand")
    return left, right


def _bits(operate: Callable[[int, int], int]) -> Callable[[int | float, int | float], int]:
    return lambda left, right: operate(*_integers(left, right))


_BINARY: Mapping[str, Callable[[int | float, int | float], int | float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "<<": lambda a, b: _shift(a, b, False),
    ">>": lambda a, b: _shift(a, b, True),
    "&": _bits(lambda a, b: a & b),
    "|": _bits(lambda a, b: a | b),
    "^": _bits(lambda a, b: a ^ b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
}

INTEGER_RESULT = frozenset(
    {"%", "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "not", "~", "sizeof"}
)


def binary(op: str, left: Typed, right: Typed) -> Typed:
    """``left op right`` after C's usual arithmetic conversions. Raises ValueError where C leaves it undefined."""
    kind = max(left.kind, right.kind)
    number = _BINARY[op](convert(left, kind).number, convert(right, kind).number)
    return _result(number, INT if op in INTEGER_RESULT else kind)


def unary(op: str, value: Typed) -> Typed:
    if op == "neg":
        return Typed(-value.number, value.kind)
    if op == "not":
        return Typed(int(not value.number), INT)
    if not isinstance(value.number, int):
        raise ValueError("`~` has a floating-point operand")
    return Typed(~value.number, INT)


def kind_of_type(dtype: str) -> int:
    scalar = dtypes.base(dtype)[0]
    if scalar not in dtypes.FLOATS:
        return INT
    return DOUBLE if scalar == "f64" else FLOAT


def cast(value: Typed, dtype: str) -> Typed:
    """Conversion to a scalar type: floats round, integers truncate, unsigned wraps, and a signed value must fit."""
    if dtype not in dtypes.SCALARS:
        raise ValueError(f"`{dtypes.c_name(dtype)}` is no number")
    kind = kind_of_type(dtype)
    if kind != INT:
        return Typed(round_float(float(value.number), dtype), kind)
    if isinstance(value.number, float) and not math.isfinite(value.number):
        raise ValueError("an infinite value has no integer")
    whole = math.trunc(value.number)
    if dtype == "bool":
        return Typed(int(value.number != 0), INT)
    low, high = dtypes.integer_range(dtype)
    if low <= whole <= high:
        return Typed(whole, INT)
    if dtype.startswith("u"):
        return Typed(whole % (high + 1), INT)
    raise ValueError(f"{whole} does not fit `{dtypes.c_name(dtype)}`")


def round_float(value: float, dtype: str) -> float:
    """``value`` rounded to nearest even in ``f16``, ``bf16``, ``f32`` or ``f64``."""
    if dtype == "f64" or not math.isfinite(value):
        return value
    if dtype == "f32":
        return single(value)
    if dtype == "f16":
        try:
            return float(struct.unpack("e", struct.pack("e", value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    mantissa, exponent = math.frexp(value)
    step = max(exponent - 8, -133)  # bf16: 8 significant bits, smallest denormal 2**-133
    rounded = math.ldexp(round(math.ldexp(mantissa, exponent - step)), step)
    return rounded if abs(rounded) < 2.0**128 else math.copysign(math.inf, value)


def size_of(dtype: str) -> Typed:
    return Typed(dtypes.size_of(dtype), INT)


def _ceil_div(left: int | float, right: int | float) -> int:
    left, right = _integers(left, right)
    if left < 0 or right <= 0:
        raise ValueError(f"ceil_div({left}, {right})")
    return -(-left // right)


# Name without its `f` suffix: the function, and how many arguments it takes.
_FUNCTIONS: Mapping[str, tuple[Callable[..., int | float], int]] = {
    "min": (min, 2),
    "max": (max, 2),
    "fmin": (min, 2),
    "fmax": (max, 2),
    "ceil_div": (_ceil_div, 2),
    "pow": (math.pow, 2),
    "ceil": (lambda v: v if math.isinf(v) else float(math.ceil(v)), 1),
    "floor": (lambda v: v if math.isinf(v) else float(math.floor(v)), 1),
    "round": (lambda v: v if math.isinf(v) else math.copysign(math.floor(abs(v) + 0.5), v), 1),
    "sqrt": (math.sqrt, 1),
    "log2": (math.log2, 1),
    "log": (math.log, 1),
    "exp": (math.exp, 1),
    "abs": (abs, 1),
    "fabs": (abs, 1),
}
_GENERIC = frozenset({"min", "max", "abs"})
_SUFFIXED = frozenset({"fmin", "fmax", "pow", "ceil", "floor", "round", "sqrt", "log2", "log", "exp", "fabs"})

FUNCTIONS = frozenset(_FUNCTIONS) | {f"{name}f" for name in _SUFFIXED}


def _unsuffixed(function: str) -> tuple[str, bool]:
    return (function[:-1], True) if function not in _FUNCTIONS else (function, False)


def parameters(function: str) -> int:
    """How many arguments ``function`` takes."""
    return _FUNCTIONS[_unsuffixed(function)[0]][1]


def result_kind(function: str, kinds: list[int]) -> int:
    """The class that C++ gives the result, from those of the arguments."""
    bare, suffixed = _unsuffixed(function)
    if suffixed:
        return FLOAT
    if bare == "ceil_div":
        return INT
    if bare in _GENERIC:
        return max(kinds)
    return FLOAT if max(kinds) == FLOAT else DOUBLE


def call(function: str, values: list[Typed]) -> Typed:
    """``function(values)`` as C++ overloads choose it. Raises ValueError outside the function's domain."""
    kind = result_kind(function, [value.kind for value in values])
    bare, _ = _unsuffixed(function)
    arguments = values if bare == "ceil_div" else [convert(value, kind) for value in values]
    if _unsuffixed(function)[1]:
        arguments = [Typed(single(float(value.number)), FLOAT) for value in values]
    try:
        return _result(_FUNCTIONS[bare][0](*(value.number for value in arguments)), kind)
    except OverflowError:
        raise ValueError("the value is too large") from None


def literal(value: int | float, is_single: bool) -> str:
    """The shortest C literal that reads back as exactly this value."""
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if not is_single:
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if single(float(text)) == value:
            break
    return (text if "." in text or "e" in text else f"{text}.0") + "f"
