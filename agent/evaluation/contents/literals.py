"""Numbers that a program compares something with: what a rewrite would branch on that misbehaves for one value only.

A rewrite that is wrong where ``n == 77777`` or ``x[i] == 3.5f`` passes any test whose contents are drawn by chance. It
must hold the number, though, and the compiled code shows it as an operand of a comparison. A comparison may be of
something that was computed from the size or the value, so from the operand back through each step that has an inverse
(sums, products, squares, shifts, exclusive or, conversions) the value before the step counts too; of a remainder, its
divisor and the rest. Where nothing is compared (``popc(n ^ 77777)``), the number is what makes a step's result zero.

PTX is what is searched, as with ``ptx.traits``: macros, templates and folded constants all end up there.
"""

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

import numpy as np
from attrs import frozen

from agent.execution.emulator.ptx.decode import PtxError, decode
from agent.execution.emulator.ptx.instruction import Function, Immediate, Instruction, Operand, Register

Number = int | float
Residue = tuple[int, int]
"""A divisor and the rest that it leaves."""

Makers = Mapping[Register, list[Instruction]]

_STEPS = 8
"""So many steps are followed back from a comparison."""

_COMPARE = frozenset({"setp", "set", "min", "max", "slct"})
_PLAIN = frozenset({"mov", "cvt", "ld", "abs", "and", "or", "rem"})
_UNSIGNED = ("u16", "u32", "u64")
_ZERO = frozenset({"xor", "sub", "add", "div", "fma"})
"""Steps of which it counts what makes their result zero (of a quotient: whether there is one)."""

_DIVISORS = range(2, 1 << 20)

_EQUAL = frozenset({"eq", "ne", "equ", "neu"})
_ROUNDINGS = ("rni", "rmi", "rpi", "rzi")
_TIES = tuple(sign * (whole + 0.5) for whole in (0, 1, 2, 3, 5, 12, 31, 62, 101) for sign in (1.0, -1.0))
"""Where two ways to round to whole numbers part, and two ways to scale before it: of both signs, beside even and odd
ones, inside what eight bits hold."""

_UPPER = {"lt": True, "ge": True, "le": False, "gt": False}
"""Whether what equals the second operand of a comparison is on the side of what is greater."""


@frozen
class Literals:
    """``whole`` numbers (sizes, indices, integer data) and ``real`` ones (float data); the two overlap. ``residues`` of
    what is compared after a division, as (divisor, rest). ``faint`` and ``faint_real`` are numbers that nothing is
    compared with and that make a result zero. ``floats`` are those of all real ones that are compared as floats, or as
    the bits of one: the others are whole numbers, and may be sizes.
    ``equal`` are floats that something is tested for being equal to, ``ties`` where a step that rounds to whole numbers
    has a half, by the way in which it rounds. ``edges`` are floats that something is compared with by size, and whether
    what equals one counts as greater."""

    whole: frozenset[int] = frozenset()
    real: frozenset[float] = frozenset()
    residues: frozenset[Residue] = frozenset()
    faint: frozenset[int] = frozenset()
    faint_real: frozenset[float] = frozenset()
    floats: frozenset[float] = frozenset()
    equal: frozenset[float] = frozenset()
    ties: frozenset[tuple[str, float]] = frozenset()
    edges: frozenset[tuple[bool, float]] = frozenset()

    def beyond(self, other: "Literals") -> "Literals":
        """Those that ``other`` lacks."""
        return Literals(
            self.whole - other.whole,
            self.real - other.real,
            self.residues - other.residues,
            self.faint - self.whole - other.whole - other.faint,
            self.faint_real - self.real - other.real - other.faint_real,
            self.floats - other.floats,
            self.equal - other.equal,
            self.ties - other.ties,
            self.edges - other.edges,
        )


def literals(ptx: str) -> Literals:
    """All of them; none where the text cannot be decoded (which the emulator then says itself)."""
    try:
        module = decode(ptx)
    except PtxError:
        return Literals()
    found = [item for function in module.functions.values() for item in _of(function)]
    weak = [item for function in module.functions.values() for item in _zeroed(function)]
    numbers, faint = ([item for item in side if not isinstance(item, tuple)] for side in (found, weak))
    return Literals(
        whole=frozenset(_whole(numbers)),
        real=frozenset(_real(numbers)),
        residues=frozenset(item for item in (*found, *weak) if isinstance(item, tuple)),
        faint=frozenset(_whole(faint)),
        faint_real=frozenset(_real(faint)),
        floats=frozenset(_floats([*numbers, *faint])),
        equal=frozenset(item for function in module.functions.values() for item in _equal(function)),
        ties=frozenset(item for function in module.functions.values() for item in _ties(function)),
        edges=frozenset(item for function in module.functions.values() for item in _edges(function)),
    )


def _whole(numbers: Sequence[Number]) -> Iterator[int]:
    for number in numbers:
        if abs(number) < 2**63 and number == int(number):
            yield int(number)


def _real(numbers: Sequence[Number]) -> Iterator[float]:
    """As floats; a large whole number may be the bits of one (``__float_as_int``)."""
    yield from _floats(numbers)
    yield from (float(number) for number in numbers if abs(number) < 2**127)


def _floats(numbers: Sequence[Number]) -> Iterator[float]:
    for number in numbers:
        if isinstance(number, int) and 2**20 < number % 2**32 == number:
            (bits,) = struct.unpack("<f", struct.pack("<I", number))
            if math.isfinite(bits):
                yield bits
        if isinstance(number, float) and abs(number) < 2**127:
            yield number


def _of(function: Function) -> Iterator[Number | Residue]:
    makers = _makers(function)
    for step in function.instructions:
        if step.base in _COMPARE:
            yield from _compared(step, makers)


def _equal(function: Function) -> Iterator[float]:
    makers = _makers(function)
    for step in function.instructions:
        if step.base in _COMPARE and _EQUAL & set(step.modifiers) and step.types and step.types[-1].startswith("f"):
            yield from (item for item in _compared(step, makers) if isinstance(item, float))


def _ties(function: Function) -> Iterator[tuple[str, float]]:
    makers = _makers(function)
    for step in function.instructions:
        way = next((item for item in step.modifiers if item in _ROUNDINGS), "")
        source = step.sources[0] if step.base == "cvt" and way and step.types[-1].startswith("f") else None
        for tie in _TIES if isinstance(source, Register) else ():
            assert isinstance(source, Register)
            found = _back(source, tie, makers, _STEPS)
            yield from ((way, item) for item in found if isinstance(item, float))


def _edges(function: Function) -> Iterator[tuple[bool, float]]:
    makers = _makers(function)
    for step in function.instructions:
        order = next(
            (_UPPER[item.removesuffix("u")] for item in step.modifiers if item.removesuffix("u") in _UPPER), None
        )
        if step.base not in ("set", "setp") or order is None or not step.types[-1].startswith("f"):
            continue
        first, second = step.sources[:2]
        for register, constant, upper in ((first, second, order), (second, first, not order)):
            value = _constant(constant, step, makers)
            if isinstance(register, Register) and value is not None:
                found = _back(register, value, makers, _STEPS)
                yield from ((upper, item) for item in found if isinstance(item, float))


def _makers(function: Function) -> Makers:
    makers: dict[Register, list[Instruction]] = {}
    for step in function.instructions:
        for target in step.destinations:
            if isinstance(target, Register):
                makers.setdefault(target, []).append(step)
    return makers


def _zeroed(function: Function) -> Iterator[Number | Residue]:
    """What makes the result of a step zero."""
    makers = _makers(function)
    for step in function.instructions:
        if step.base in _ZERO:
            known = [item for item in (_constant(source, step, makers) for source in step.sources) if item is not None]
            value = known[0] if step.base == "div" and known else 0
            yield from _through(step, value, makers, _STEPS) if step.base != "div" else _quotient(step, value, makers)


def _quotient(step: Instruction, value: Number, makers: Makers) -> Iterator[Number | Residue]:
    for source in step.sources:
        if value and isinstance(source, Register):
            yield from _back(source, value, makers, _STEPS - 1)


def _compared(step: Instruction, makers: Makers) -> Iterator[Number | Residue]:
    """What one comparison holds against a number, and what that came from. An unsigned one may be half of a range check
    (``n - 1001 < 999``), whose other end is where the operand is 0."""
    constants = [value for value in (_constant(item, step, makers) for item in step.sources) if value is not None]
    if step.types and step.types[-1] in _UNSIGNED and constants:
        constants.append(0)
    for source in step.sources:
        if isinstance(source, Register):
            for value in constants:
                yield from _back(source, value, makers, _STEPS)


def _constant(source: Operand, step: Instruction, makers: Makers) -> Number | None:
    """An operand's value where it is a literal, or a register that only ever holds one."""
    if isinstance(source, Immediate):
        return _value(source, step)
    made = makers.get(source, []) if isinstance(source, Register) else []
    if len(made) == 1 and made[0].base == "mov" and isinstance(made[0].sources[0], Immediate):
        return _value(made[0].sources[0], step)
    return None


def _value(source: Immediate, step: Instruction) -> Number | None:
    """A literal as the instruction's type reads it; NaN and infinities are no values to try."""
    bits, kind = source.bits, step.types[-1] if step.types else ""
    if source.kind == "f32":
        found: Number = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF_FFFF))[0]
    elif source.kind == "f64":
        found = struct.unpack("<d", struct.pack("<Q", bits & (2**64 - 1)))[0]
    elif kind == "f32":
        found = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF_FFFF))[0]
    else:
        width = {"16": 16, "32": 32}.get(kind[1:], 64)
        found = bits & (2**width - 1)
        if not kind.startswith("u") and found >= 2 ** (width - 1):
            found -= 2**width
    return found if math.isfinite(found) else None


def _back(register: Register, value: Number, makers: Makers, left: int) -> Iterator[Number | Residue]:
    """``value``, and what the operands of the steps that made ``register`` would be."""
    yield value
    made = makers.get(register, [])
    if not left or len(made) > 4:
        return
    for step in made:
        yield from _through(step, value, makers, left - 1)


def _through(step: Instruction, value: Number, makers: Makers, left: int) -> Iterator[Number | Residue]:
    divisor = _divisor(step, makers)
    if divisor in _DIVISORS and isinstance(value, int) and abs(value) < divisor:
        yield divisor, value % divisor
    numbers = [_constant(item, step, makers) for item in step.sources]
    known = [item for item in numbers if item is not None]
    unknown = [item for item, number in zip(step.sources, numbers, strict=True) if number is None]
    registers = [item for item in unknown if isinstance(item, Register)]
    if step.base == "fma" or (step.base == "mad" and len(registers) == 1):
        before = _before_fma(numbers, value, step.sources[0] == step.sources[1])
    elif step.base in _PLAIN or not known:
        before = [value] if step.base in _PLAIN else [-value] if step.base == "neg" else []
        before = [~value] if step.base == "not" and isinstance(value, int) else before
        before = _roots(value) if step.base in ("mul", "mad") and _twice(step) else before
        before = _over(value, 2) if step.base == "add" and _twice(step) else before
    else:
        before = _before(step.base, value, known[0], first=numbers[0] is not None)
    for number in before:
        for source in registers[:1]:
            yield from _back(source, number, makers, left)


def _twice(step: Instruction) -> bool:
    """Of one operand with itself: a square, or twice as much."""
    return len(step.sources) == 2 and step.sources[0] == step.sources[1]


def _roots(value: Number) -> list[Number]:
    if value < 0:
        return []
    return [math.isqrt(value)] if _is_int(value) else [math.sqrt(value), -math.sqrt(value)]


def _divisor(step: Instruction, makers: Makers) -> int:
    """By what a step leaves the rest; 0 for any other. Compilers write ``a % 7`` as ``a - (a / 7) * 7``."""
    numbers = [_constant(item, step, makers) for item in step.sources]
    last = numbers[-1] if numbers else None
    if step.base == "rem" and _is_whole(last):
        return abs(last)
    if step.base == "and":
        mask = next((item for item in numbers if _is_whole(item)), None)
        return mask + 1 if mask is not None and mask > 0 and mask & (mask + 1) == 0 else 0
    if step.base == "mad" and "hi" not in step.modifiers:
        factor = next((item for item in numbers[:2] if _is_whole(item)), None)
        return -factor if factor is not None and factor < 0 else 0
    taken = step.sources[1] if step.base == "sub" and len(step.sources) == 2 else None
    made = makers.get(taken, []) if isinstance(taken, Register) else []
    return _multiple(made[0], makers) if len(made) == 1 else 0


def _multiple(step: Instruction, makers: Makers) -> int:
    """Of what number a step gives multiples."""
    number = next((item for item in (_constant(one, step, makers) for one in step.sources) if _is_whole(item)), None)
    if number is None:
        return 0
    if step.base == "mul" and "hi" not in step.modifiers:
        return abs(number)
    if step.base == "and" and number < 0:
        return -number if -number & (-number - 1) == 0 else 0
    return 1 << number if step.base == "shl" and 0 < number < 20 else 0


def _is_whole(value: Number | None) -> TypeGuard[int]:
    return isinstance(value, int)


def _before(base: str, value: Number, known: Number, first: bool) -> list[Number]:
    """The operand that a step with one known operand (its first, if ``first``) needs to give ``value``."""
    if base == "add":
        return [value - known]
    if base == "sub":
        return [known - value if first else value + known]
    if base in ("mul", "mad"):
        return _over(value, known)
    if base == "div" and not first:
        return [value * known]
    if not (_is_int(value) and _is_int(known)):
        return []
    if base == "xor":
        return [value ^ known]
    if base == "shl" and not first:
        return [value >> min(known, 63)] if known >= 0 else []
    if base == "shr" and not first:
        return [value << known] if 0 <= known < 63 else []
    return []


def _is_int(value: Number) -> TypeGuard[int]:
    return isinstance(value, int)


def _over(value: Number, known: Number) -> list[Number]:
    if not known:
        return []
    if _is_int(value) and _is_int(known):
        return [value // known] if value % known == 0 else []
    with np.errstate(all="ignore"):
        return [float(np.float32(value / known))]


def _before_fma(numbers: list[Number | None], value: Number, squared: bool) -> list[Number]:
    """``a * b + c`` with two of the three known, or with ``a`` for ``b`` and ``c`` known."""
    a, b, c = numbers[:3] if len(numbers) >= 3 else (None, None, None)
    factor = a if b is None else b
    if c is not None and factor is not None:
        return _over(value - c, factor)
    return _roots(value - c) if c is not None and squared else []
