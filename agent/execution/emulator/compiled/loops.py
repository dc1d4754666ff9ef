"""NumPy's element-wise functions as LLVM instructions, by the types that NumPy itself would choose for them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder as Builder

from agent.execution.emulator.compiled.library import address_of_loop

Types = Sequence[np.dtype[Any]]

BIT = ir.IntType(1)
I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_FLOATS = {4: ir.FloatType(), 8: ir.DoubleType()}


class NotLowered(Exception):
    """This has no compiled form: the NumPy back end runs it."""


def type_of(dtype: np.dtype[Any]) -> ir.Type:
    if dtype.kind == "b":
        return BIT
    if dtype.kind in "iu":
        return ir.IntType(8 * dtype.itemsize)
    if dtype.kind == "f" and dtype.itemsize in _FLOATS:
        return _FLOATS[dtype.itemsize]
    raise NotLowered(f"values of type {dtype}")


def raw(builder: Builder, dtype: np.dtype[Any], value: ir.Value) -> ir.Value:
    """The bits of a value as a whole number."""
    return builder.bitcast(value, ir.IntType(8 * dtype.itemsize)) if dtype.kind == "f" else value


def reinterpreted(builder: Builder, bits: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    return builder.bitcast(bits, type_of(dtype)) if dtype.kind == "f" else bits


def intrinsic(builder: Builder, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
    """A call of a function known to LLVM by its whole ``name``."""
    module = builder.module
    found = module.globals.get(name)
    if found is None:
        found = ir.Function(module, ir.FunctionType(result, [value.type for value in values]), name)
    return builder.call(found, values)


def _suffix(of: ir.Type) -> str:
    return {"float": "f32", "double": "f64"}.get(str(of), str(of))


def math(builder: Builder, name: str, *values: ir.Value) -> ir.Value:
    """``llvm.NAME`` of values of one type, which is the result's."""
    of = values[0].type
    return intrinsic(builder, f"llvm.{name}.{_suffix(of)}", of, *values)


def cast(builder: Builder, value: ir.Value, of: np.dtype[Any], to: np.dtype[Any]) -> ir.Value:
    """``astype``: whole numbers wrap; of floats out of range only what no rule looks at comes out."""
    if of == to:
        return value
    target = type_of(to)
    if to.kind == "b":
        return (
            builder.fcmp_unordered("!=", value, value.type(0.0))
            if of.kind == "f"
            else builder.icmp_unsigned("!=", value, value.type(0))
        )
    if of.kind == "f" and to.kind == "f":
        return builder.fpext(value, target) if to.itemsize > of.itemsize else builder.fptrunc(value, target)
    if of.kind == "f":
        # the saturating form is defined for every operand
        name = "fptosi" if to.kind == "i" else "fptoui"
        return intrinsic(builder, f"llvm.{name}.sat.{target}.{_suffix(value.type)}", target, value)
    if to.kind == "f":
        return builder.sitofp(value, target) if of.kind == "i" else builder.uitofp(value, target)
    if target.width == value.type.width:
        return value
    if target.width < value.type.width:
        return builder.trunc(value, target)
    return builder.sext(value, target) if of.kind == "i" else builder.zext(value, target)


def loop(builder: Builder, name: str, types: Types, values: Sequence[ir.Value]) -> ir.Value:
    """The ufunc ``name`` with the types of its operands and, last, of its result."""
    kind = types[0].kind
    by_kind = _LOOPS.get(name, {})
    found = by_kind.get(kind) or by_kind.get("iu" if kind in "iu" else "")
    if found is None:
        return _library(builder, name, types, values)
    return found(builder, *values)


def _binary(method: str) -> Callable[..., ir.Value]:
    return lambda builder, a, b: getattr(builder, method)(a, b)


def _compared(sign: str) -> dict[str, Callable[..., ir.Value]]:
    return {
        "i": lambda builder, a, b: builder.icmp_signed(sign, a, b),
        "u": lambda builder, a, b: builder.icmp_unsigned(sign, a, b),
        "b": lambda builder, a, b: builder.icmp_unsigned(sign, a, b),
        "f": lambda builder, a, b: (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, a, b),
    }


def _shift(method: str, signed: bool = False) -> Callable[..., ir.Value]:
    """As NumPy has it: counts beyond the width shift everything out."""

    def shifted(builder: Builder, a: ir.Value, count: ir.Value) -> ir.Value:
        bits = a.type.width
        if isinstance(count, ir.Constant) and count.constant < bits:
            return getattr(builder, method)(a, count)
        inside = builder.icmp_unsigned("<", count, count.type(bits))
        if signed:
            return builder.ashr(a, builder.select(inside, count, count.type(bits - 1)))
        return builder.select(inside, getattr(builder, method)(a, builder.and_(count, count.type(bits - 1))), a.type(0))

    return shifted


def _whole_extreme(sign: str) -> dict[str, Callable[..., ir.Value]]:
    return {
        "i": lambda builder, a, b: builder.select(builder.icmp_signed(sign, a, b), a, b),
        "u": lambda builder, a, b: builder.select(builder.icmp_unsigned(sign, a, b), a, b),
    }


def _float_extreme(sign: str, nan_wins: bool) -> Callable[..., ir.Value]:
    def extreme(builder: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
        nan = a if nan_wins else b
        first = builder.or_(builder.fcmp_ordered(sign, a, b), builder.fcmp_unordered("uno", nan, nan))
        return builder.select(first, a, b)

    return extreme


def _quotient(builder: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    zero = builder.icmp_unsigned("==", b, b.type(0))
    return builder.select(zero, a.type(0), builder.udiv(a, builder.select(zero, b.type(1), b)))


def _magnitude(builder: Builder, a: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed("<", a, a.type(0)), builder.neg(a), a)


def _finite(sign: str) -> Callable[..., ir.Value]:
    return lambda builder, a: builder.fcmp_ordered(sign, math(builder, "fabs", a), a.type(float("inf")))


def _sign(builder: Builder, a: ir.Value) -> ir.Value:
    one, zero = a.type(1.0), a.type(0.0)
    negative = builder.select(builder.fcmp_ordered("<", a, zero), a.type(-1.0), a)
    return builder.select(builder.fcmp_ordered(">", a, zero), one, negative)


def _negative(builder: Builder, a: ir.Value) -> ir.Value:
    bits = builder.bitcast(a, I32 if str(a.type) == "float" else I64)
    return builder.icmp_signed("<", bits, bits.type(0))


def _rounded(name: str) -> dict[str, Callable[..., ir.Value]]:
    return {"f": lambda builder, a: math(builder, name, a)}


def _count(builder: Builder, a: ir.Value) -> ir.Value:
    count = math(builder, "ctpop", a)
    return count if count.type.width == 8 else builder.trunc(count, I8)


def _both(whole: str, floating: str) -> dict[str, Callable[..., ir.Value]]:
    return {"iu": _binary(whole), "f": _binary(floating)}


def _bits(method: str) -> dict[str, Callable[..., ir.Value]]:
    return {"iu": _binary(method), "b": _binary(method)}


_LOOPS: dict[str, dict[str, Callable[..., ir.Value]]] = {
    "add": _both("add", "fadd"),
    "subtract": _both("sub", "fsub"),
    "multiply": _both("mul", "fmul"),
    "divide": {"f": _binary("fdiv")},
    "fmod": {"f": _binary("frem")},
    "floor_divide": {"u": _quotient},
    "negative": {"iu": lambda builder, a: builder.neg(a), "f": lambda builder, a: builder.fneg(a)},
    "absolute": {"i": _magnitude, "u": lambda builder, a: a, "f": lambda builder, a: math(builder, "fabs", a)},
    "sign": {"f": _sign},
    "bitwise_and": _bits("and_"),
    "bitwise_or": _bits("or_"),
    "bitwise_xor": _bits("xor"),
    "invert": {"iu": lambda builder, a: builder.not_(a), "b": lambda builder, a: builder.not_(a)},
    "logical_and": {"b": _binary("and_")},
    "logical_or": {"b": _binary("or_")},
    "logical_xor": {"b": _binary("xor")},
    "logical_not": {"b": lambda builder, a: builder.not_(a)},
    "left_shift": {"iu": _shift("shl")},
    "right_shift": {"u": _shift("lshr"), "i": _shift("ashr", signed=True)},
    "equal": _compared("=="),
    "not_equal": _compared("!="),
    "less": _compared("<"),
    "less_equal": _compared("<="),
    "greater": _compared(">"),
    "greater_equal": _compared(">="),
    "minimum": {**_whole_extreme("<"), "f": _float_extreme("<=", True)},
    "maximum": {**_whole_extreme(">"), "f": _float_extreme(">=", True)},
    "fmin": {"f": _float_extreme("<=", False)},
    "fmax": {"f": _float_extreme(">=", False)},
    "isnan": {"f": lambda builder, a: builder.fcmp_unordered("uno", a, a)},
    "isfinite": {"f": _finite("<")},
    "isinf": {"f": _finite("==")},
    "signbit": {"f": _negative},
    "copysign": {"f": lambda builder, a, b: math(builder, "copysign", a, b)},
    "rint": _rounded("rint"),
    "trunc": _rounded("trunc"),
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "sqrt": _rounded("sqrt"),
    "bitwise_count": {"iu": _count},
}  # fmt: skip


def _library(builder: Builder, name: str, types: Types, values: Sequence[ir.Value]) -> ir.Value:
    """A function that no processor has: NumPy's own loop for these types, called for one element."""
    address = address_of_loop(name, "".join(one.char for one in types[:-1]) + "->" + types[-1].char)
    if address is None:
        raise NotLowered(f"the function {name} of {', '.join(map(str, types[:-1]))}")
    function, data = address
    with builder.goto_entry_block():
        slots = [builder.alloca(type_of(one)) for one in types]
        pointers = builder.alloca(I64, len(slots))
        numbers = builder.alloca(I64, 1 + len(slots))
        builder.store(I64(1), builder.gep(numbers, [I32(0)]))
        for index, (slot, one) in enumerate(zip(slots, types, strict=True)):
            builder.store(builder.ptrtoint(slot, I64), builder.gep(pointers, [I32(index)]))
            builder.store(I64(one.itemsize), builder.gep(numbers, [I32(index + 1)]))
    for slot, value in zip(slots, values, strict=False):
        builder.store(value, slot)
    of = ir.FunctionType(ir.VoidType(), [I64] * 4)
    target = builder.inttoptr(I64(function), of.as_pointer())
    count, steps = builder.ptrtoint(numbers, I64), builder.ptrtoint(builder.gep(numbers, [I32(1)]), I64)
    builder.call(target, [builder.ptrtoint(pointers, I64), count, steps, I64(data)])
    return builder.load(slots[-1])
