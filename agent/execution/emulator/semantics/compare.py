"""Comparisons: setp and set with all operators, ordered and unordered, joined with a second predicate; testp."""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array, raw_dtype, typed_dtype
from agent.execution.emulator.semantics.formats import FORMATS, flushed
from agent.execution.emulator.semantics.table import Function, Meaning, Unsupported, give, rule

_ORDERED: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
# "a ltu b" is the complement of "a ge b"; only equ and neu come as one comparison or the other
_COMPLEMENT: dict[str, Function] = {
    "ltu": np.greater_equal,
    "leu": np.greater,
    "gtu": np.less_equal,
    "geu": np.less,
}
_JOINS: dict[str, Function] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
_OPERATORS = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz"


def operator_of(instruction: Instruction) -> str:
    """The one comparison that is named."""
    operators = [modifier for modifier in instruction.modifiers if modifier not in _JOINS and modifier != "ftz"]
    if len(operators) != 1:
        raise Unsupported(instruction.opcode)
    return operators[0]


def joins_of(instruction: Instruction) -> list[Function]:
    """How the comparison is joined with a predicate, where it is."""
    return [_JOINS[modifier] for modifier in instruction.modifiers if modifier in _JOINS]


def _comparison(instruction: Instruction, kind: str) -> Function:
    """The comparison that the modifiers name, on arrays as registers hold them."""
    operator = operator_of(instruction)
    if kind in FORMATS:
        load = _loader(kind, "ftz" in instruction.modifiers)
        compare = float_comparison(operator)
        return lambda a, b, out=None: compare(load(a), load(b), out=out)
    ufunc, dtype = _ORDERED[_UNSIGNED.get(operator, operator)], typed_dtype(kind)
    if dtype == raw_dtype(kind):
        return ufunc
    return lambda a, b, out=None: ufunc(a.view(dtype), b.view(dtype), out=out)


def _loader(kind: str, ftz: bool) -> Function:
    if ftz:
        return lambda bits: FORMATS[kind].load(flushed(bits, kind))
    return FORMATS[kind].load


def float_comparison(operator: str) -> Function:
    """The comparison of float arrays by its name."""
    if operator in ("eq", "lt", "le", "gt", "ge"):
        return _ORDERED[operator]
    if operator == "neu":
        return np.not_equal
    if operator in _COMPLEMENT:
        opposite = _COMPLEMENT[operator]
        return lambda a, b, out=None: np.logical_not(opposite(a, b, out=out), out=out)
    combined: dict[str, Function] = {
        "ne": lambda a, b: (a < b) | (a > b),
        "equ": lambda a, b: ~((a < b) | (a > b)),
        "num": lambda a, b: (a == a) & (b == b),
        "nan": lambda a, b: (a != a) | (b != b),
    }
    function = combined[operator]
    return lambda a, b, out=None: give(function(a, b), out)


@rule("setp", modifiers=_OPERATORS)
def _set_predicate(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    packed = kind in ("f16x2", "bf16x2")
    part = kind.removesuffix("x2") if packed else kind
    compare = _comparison(instruction, part)
    joins = joins_of(instruction)
    results = ("pred",) * len(instruction.destinations)
    sources = (kind, kind, "pred") if joins else (kind, kind)
    if packed:
        return Meaning(sources, results, _packed(compare, joins))
    if len(results) == 1 and not joins:
        return Meaning(sources, results, compare)

    def joined(a: Array, b: Array, *other: Array, out: Any = None) -> Any:
        holds = compare(a, b)
        if len(results) == 1:
            return joins[0](holds, other[0], out=out)
        fails = np.logical_not(holds)
        return (joins[0](holds, other[0]), joins[0](fails, other[0])) if joins else (holds, fails)

    return Meaning(sources, results, joined)


def _packed(compare: Function, joins: list[Function]) -> Function:
    """Two halves are compared each for itself; the first predicate is for the low ones."""

    def both(a: Array, b: Array, *other: Array, out: Any = None) -> Any:
        shift = np.uint32(16)
        low = compare(a.astype(np.uint16), b.astype(np.uint16))
        high = compare((a >> shift).astype(np.uint16), (b >> shift).astype(np.uint16))
        return (joins[0](low, other[0]), joins[0](high, other[0])) if joins else (low, high)

    return both


@rule("set", modifiers=_OPERATORS)
def _set_value(instruction: Instruction) -> Meaning:
    """All ones, or 1.0 for a float result."""
    result, kind = instruction.types
    packed = kind in ("f16x2", "bf16x2")
    part, result_part = (kind.removesuffix("x2"), result.removesuffix("x2")) if packed else (kind, result)
    compare = _comparison(instruction, part)
    joins = joins_of(instruction)
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
    dtype = raw_dtype(result_part)
    if packed and result in ("u32", "s32"):
        dtype = np.dtype(np.uint16)
    true = dtype.type(ones.get(result_part, (1 << 8 * dtype.itemsize) - 1))

    def single(a: Array, b: Array, *other: Array, out: Array | None = None) -> Any:
        holds = compare(a, b)
        holds = joins[0](holds, other[0]) if joins else holds
        return give(np.where(holds, true, dtype.type(0)), out)

    def double(a: Array, b: Array, *other: Array, out: Array | None = None) -> Any:
        shift = np.uint32(16)
        low = single(a.astype(np.uint16), b.astype(np.uint16), *other)
        high = single((a >> shift).astype(np.uint16), (b >> shift).astype(np.uint16), *other)
        return give(low.astype(np.uint32) | high.astype(np.uint32) << shift, out)

    sources = (kind, kind, "pred") if joins else (kind, kind)
    return Meaning(sources, (result,), double if packed else single)


@rule("testp", kinds=("float",), modifiers="finite infinite number notanumber normal subnormal")
def _test(instruction: Instruction) -> Meaning:
    kind, (what,) = instruction.types[0], instruction.modifiers
    dtype = typed_dtype(kind)
    smallest = np.finfo(dtype).tiny
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda x: x == x,
        "notanumber": np.isnan,
        # PTX counts zeros as normal
        "normal": lambda x: np.isfinite(x) & ((np.abs(x) >= smallest) | (x == 0)),
        "subnormal": lambda x: (np.abs(x) < smallest) & (x != 0),
    }
    test = tests[what]
    return Meaning((kind,), ("pred",), lambda a, out=None: give(test(a.view(dtype)), out))
