"""Arithmetic rounded towards zero, down or up: the result to nearest, stepped where it lies on the wrong side.

float32 works through float64. For float64 the sign of what rounding lost is needed: from error terms where exponents
are moderate, from rational numbers elsewhere.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from agent.execution.emulator.semantics.arrays import Array
from agent.execution.emulator.semantics.formats import stepped, two_sum
from agent.execution.emulator.semantics.fused import fma64
from agent.execution.emulator.semantics.table import Function, give


def directed(base: str, kind: str, mode: str) -> Function:
    """``base`` is add, sub, mul, fma, div, sqrt or rcp; the function takes and gives float arrays of type ``kind``."""

    def function(*sources: Array, out: Array | None = None) -> Any:
        if base == "sub":
            sources = (sources[0], -sources[1])
        if base == "rcp":
            sources = (np.ones_like(sources[0]), sources[0])
        operands = [np.ravel(source) for source in np.broadcast_arrays(*sources)]
        operation = {"sub": "add", "rcp": "div"}.get(base, base)
        result = (_single if kind == "f32" else _double)(operation, operands, mode)
        return give(result.reshape(np.broadcast_shapes(*(source.shape for source in sources))), out)

    return function


def _nearest(operation: str, x: list[Array]) -> Array:
    """The float64 nearest to the true result of float64 operands."""
    if operation == "fma":
        fused: Array = fma64(*x)
        return fused
    if operation == "sqrt":
        return np.sqrt(x[0])
    ufunc: Function = {"add": np.add, "mul": np.multiply, "div": np.divide}[operation]
    found: Array = ufunc(x[0], x[1])
    return found


def _single(operation: str, operands: list[Array], mode: str) -> Array:
    x = [operand.astype(np.float64) for operand in operands]
    if operation == "fma":
        # the product is exact in float64, so that the sum is all that rounds
        x = [x[0] * x[1], x[2]]
        operation = "add"
    value = _nearest(operation, x)
    result = value.astype(np.float32)
    held = result.astype(np.float64)
    step_down = mode == "rm" or mode == "rz"
    wrong = np.abs(held) > np.abs(value) if mode == "rz" else held > value if step_down else held < value
    open_ = held == value
    if open_.any():
        # what rounding to float64 lost decides where the float64 is a float32 itself
        some = value[open_]
        lost = _error_of_short(operation, [operand[open_] for operand in x], some)
        if mode == "rz":
            lost = np.where(some < 0, -lost, lost)
        wrong[open_] = lost < 0 if step_down else lost > 0
    bits = result.view(np.int32)
    if mode == "rz":
        bits = bits - wrong
    else:
        # one step down is one bit less for positive numbers, one more for negative ones
        sign = bits >> np.int32(31)
        bits = bits + ((-1 - 2 * sign) if mode == "rm" else (1 + 2 * sign)) * wrong
    return _signed_zero(bits.view(np.float32), value, operation, x, mode)


def _error_of_short(operation: str, x: list[Array], value: Array) -> Array:
    """The sign of truth minus ``value`` where ``value`` is a float32: then products with it are exact in float64."""
    if operation == "add":
        return two_sum(x[0], x[1])[1]
    if operation == "div":
        rest: Array = (x[0] - value * x[1]) * np.sign(x[1])
        return rest
    if operation == "sqrt":
        left: Array = x[0] - value * value
        return left
    return np.zeros(value.shape)


def _double(operation: str, x: list[Array], mode: str) -> Array:
    value = _nearest(operation, x)
    lost = _error(operation, x, value)
    extreme = ~_moderate(operation, x, value)
    for index in np.flatnonzero(extreme):
        lost[index] = _exact_sign(operation, [float(operand[index]) for operand in x], float(value[index]))
    bits = stepped(value.view(np.uint64), lost < 0, lost > 0, mode)
    terms = [x[0] * x[1], x[2]] if operation == "fma" else x
    return _signed_zero(
        bits.view(np.float64), np.where(lost == 0, value, 1.0), "add" if operation == "fma" else operation, terms, mode
    )


def _error(operation: str, x: list[Array], value: Array) -> Array:
    """Truth minus ``value``, right in its sign where ``_moderate`` holds."""
    if operation == "add":
        return two_sum(x[0], x[1])[1]
    if operation == "mul":
        return np.asarray(fma64(x[0], x[1], -value))
    if operation == "div":
        return np.asarray(fma64(-value, x[1], x[0])) * np.sign(x[1])
    if operation == "sqrt":
        return np.asarray(fma64(-value, value, x[0]))
    # Boldo and Muller (2011), the error of a fused multiply-add
    product = x[0] * x[1]
    high, low = two_sum(x[2], np.asarray(fma64(x[0], x[1], -product)))
    total, rest = two_sum(product, high)
    return np.asarray(((total - value) + rest) + low)


def _moderate(operation: str, x: list[Array], value: Array) -> Array:
    fine = np.ones(value.shape, np.bool_)
    terms = [*x, value, x[0] * x[1]] if operation == "fma" else [*x, value]
    for term in terms:
        size = np.abs(term)
        fine &= ((size > 1e-120) & (size < 1e120)) | (size == 0)
    return fine


def _exact_sign(operation: str, x: list[float], value: float) -> float:
    """The sign of truth minus ``value``, with rational numbers. 0 where an operand is no finite number."""
    if not all(np.isfinite(operand) for operand in x) or np.isnan(value):
        return 0.0
    a, b, c = ([Fraction(operand) for operand in x] + [Fraction(0)] * 2)[:3]
    if operation == "sqrt":
        difference = a - Fraction(value) ** 2
        return float((difference > 0) - (difference < 0))
    if operation == "div":
        if b == 0:
            return 0.0
        truth = a / b
    else:
        truth = a + b if operation == "add" else a * b + c
    if np.isinf(value):
        return -1.0 if value > 0 else 1.0
    return float((truth > Fraction(value)) - (truth < Fraction(value)))


def _signed_zero(result: Array, value: Array, operation: str, x: list[Array], mode: str) -> Array:
    """Rounding down, a sum whose ``value`` is exactly zero is minus zero, unless both terms are plus zero."""
    if mode != "rm" or operation != "add":
        return result
    zero = value == 0
    if not zero.any():
        return result
    negative = np.signbit(x[0]) | np.signbit(x[1])
    return np.where(zero, np.where(negative, result.dtype.type(-0.0), result.dtype.type(0.0)), result)
