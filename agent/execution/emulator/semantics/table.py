"""The table of semantics, and how a rule in it becomes an operation for one instruction."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from agent.execution.emulator.ptx.instruction import Instruction, Operand, Register, Vector
from agent.execution.emulator.semantics.arrays import FILES, Array, dtype_of, raw_dtype, typed_dtype

#: Takes one array per source and ``out`` (an array, or a tuple of them), gives the result (or a tuple of them).
Function = Callable[..., Any]


class Unsupported(ValueError):
    """An instruction that is not emulated, by its full opcode."""

    def __init__(self, opcode: str, reason: str = "") -> None:
        super().__init__(f"the instruction {opcode} is not emulated" + (f": {reason}" if reason else ""))
        self.opcode = opcode


@frozen(eq=False)
class Operation:
    """What one instruction computes; see the package's own text for how to call it."""

    opcode: str
    sources: tuple[str, ...]
    results: tuple[str, ...]
    apply: Callable[[Sequence[Array]], tuple[Array, ...]]
    into: Callable[[Sequence[Array], Sequence[Array]], None]
    reads_carry: bool = False
    writes_carry: bool = False


@frozen(eq=False)
class Meaning:
    """What a rule says of one instruction: ``function`` works on arrays as wide as the types (unsigned, or bool)."""

    sources: tuple[str, ...]
    results: tuple[str, ...]
    function: Function
    reads_carry: bool = False
    writes_carry: bool = False


@frozen(eq=False)
class _Rule:
    modifiers: frozenset[str]
    build: Callable[[Instruction], Meaning]


_RULES: dict[tuple[str, str], _Rule] = {}
_KINDS = {
    **dict.fromkeys(("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"), "int"),
    **dict.fromkeys(("f32", "f64"), "float"),
    **dict.fromkeys(("f16", "f16x2", "bf16", "bf16x2"), "half"),
    **dict.fromkeys(("u16x2", "s16x2"), "pair"),
    "f32x2": "float2",
    "pred": "pred",
}


def rule(
    *bases: str, kinds: Sequence[str] = ("*",), modifiers: str = ""
) -> Callable[[Callable[[Instruction], Meaning]], Callable[[Instruction], Meaning]]:
    """Register what the decorated function says for these base opcodes.

    ``kinds`` of the last type: ``int``, ``float``, ``half``, ``pair``, ``float2``, ``pred``, or ``*`` for any. An
    instruction with a modifier that is not among ``modifiers`` (separated by blanks) is refused.
    """

    def register(build: Callable[[Instruction], Meaning]) -> Callable[[Instruction], Meaning]:
        for base in bases:
            for kind in kinds:
                assert (base, kind) not in _RULES, f"two rules for {base} {kind}"
                _RULES[base, kind] = _Rule(frozenset(modifiers.split()), build)
        return build

    return register


def bases() -> frozenset[str]:
    """The base opcodes that any rule is for."""
    return frozenset(base for base, _ in _RULES)


def flatten(operands: Iterable[Operand | None]) -> tuple[Operand | None, ...]:
    """The operands with every vector replaced by its elements; a sink is None."""
    flat: list[Operand | None] = []
    for operand in operands:
        if isinstance(operand, Vector):
            flat += flatten(operand.elements)
        else:
            flat.append(operand)
    return tuple(flat)


def lower(instruction: Instruction) -> Operation:
    """What the instruction computes. Raises Unsupported."""
    kind = _KINDS.get(instruction.types[-1], "") if instruction.types else ""
    found = _RULES.get((instruction.base, kind)) or _RULES.get((instruction.base, "*"))
    if found is None:
        raise Unsupported(instruction.opcode)
    unknown = [modifier for modifier in instruction.modifiers if modifier not in found.modifiers]
    if unknown:
        raise Unsupported(instruction.opcode, f".{unknown[0]} is not known")
    try:
        meaning = found.build(instruction)
        return _operation(instruction, meaning)
    except (KeyError, IndexError) as error:
        raise Unsupported(instruction.opcode) from error


def _operation(instruction: Instruction, meaning: Meaning) -> Operation:
    sources, destinations = flatten(instruction.sources), flatten(instruction.destinations)
    if len(sources) != len(meaning.sources) or len(destinations) != len(meaning.results):
        raise Unsupported(instruction.opcode, f"{len(destinations)} results of {len(sources)} operands")
    function = _negated(meaning.function, instruction)
    function = _narrowed(
        function, [_narrow(operand, kind) for operand, kind in zip(sources, meaning.sources, strict=True)]
    )
    function = _widened(
        function, [_widen(operand, kind) for operand, kind in zip(destinations, meaning.results, strict=True)]
    )
    several = len(meaning.results) + meaning.writes_carry > 1

    def apply_one(arrays: Sequence[Array]) -> tuple[Array, ...]:
        return (function(*arrays),)

    def into_one(arrays: Sequence[Array], outs: Sequence[Array]) -> None:
        function(*arrays, out=outs[0])

    def apply_all(arrays: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(function(*arrays))

    def into_all(arrays: Sequence[Array], outs: Sequence[Array]) -> None:
        for out, result in zip(outs, separate(function(*arrays), outs), strict=True):
            np.copyto(out, result)

    return Operation(
        opcode=instruction.opcode,
        sources=meaning.sources,
        results=meaning.results,
        apply=apply_all if several else apply_one,
        into=into_all if several else into_one,
        reads_carry=meaning.reads_carry,
        writes_carry=meaning.writes_carry,
    )


def separate(results: Sequence[Array], outs: Sequence[Array]) -> list[Array]:
    """The results, copied where writing one of the outs would spoil a later result."""
    return [
        np.array(result) if any(np.may_share_memory(result, out) for out in outs[:index]) else result
        for index, result in enumerate(results)
    ]


def _negated(function: Function, instruction: Instruction) -> Function:
    """Sources written with ``!`` are complemented first."""
    if not instruction.negated:
        return function
    indices = frozenset(instruction.negated)

    def complemented(*arrays: Array, out: Any = None) -> Any:
        flipped = [np.logical_not(array) if index in indices else array for index, array in enumerate(arrays)]
        return function(*flipped, out=out)

    return complemented


def _narrow(operand: Operand | None, kind: str) -> np.dtype[Any] | None:
    """The dtype that a source must be cut to: registers may be wider than the type (``cvt``, 8-bit types)."""
    held = dtype_of(operand.file) if isinstance(operand, Register) and operand.file in FILES else dtype_of(kind)
    return None if held == raw_dtype(kind) else raw_dtype(kind)


def _narrowed(function: Function, dtypes: Sequence[np.dtype[Any] | None]) -> Function:
    if not any(dtype is not None for dtype in dtypes):
        return function

    def narrowed(*arrays: Array, out: Any = None) -> Any:
        cut = [
            array.astype(dtype) if dtype is not None else array
            for array, dtype in zip(arrays, [*dtypes, None][: len(arrays)], strict=True)
        ]
        return function(*cut, out=out)

    return narrowed


def _widen(operand: Operand | None, kind: str) -> tuple[np.dtype[Any], np.dtype[Any]] | None:
    """How a result becomes a wider register: (the dtype that gives the sign, the dtype of the register)."""
    held = dtype_of(operand.file) if isinstance(operand, Register) and operand.file in FILES else dtype_of(kind)
    if held == raw_dtype(kind):
        return None
    signed = kind in ("s8", "s16", "s32")
    return (typed_dtype(kind) if signed else raw_dtype(kind)), held


def _widened(function: Function, ways: Sequence[tuple[np.dtype[Any], np.dtype[Any]] | None]) -> Function:
    if not any(way is not None for way in ways):
        return function

    def extend(array: Array, way: tuple[np.dtype[Any], np.dtype[Any]] | None) -> Array:
        return array if way is None else array.view(way[0]).astype(way[1])

    def widened(*arrays: Array, out: Any = None) -> Any:
        results = function(*arrays)
        if len(ways) > 1:
            return tuple(extend(result, way) for result, way in zip(results, ways, strict=True))
        return give(extend(results, ways[0]), out)

    return widened


def give(result: Any, out: Array | None) -> Any:
    """The result, also copied to ``out`` where one is given. For rules that need whole temporaries anyway."""
    if out is None:
        return result
    np.copyto(out, result)
    return out


def typed(function: Function, sources: Sequence[str], result: str) -> Function:
    """``function`` of typed arrays (``int32``, ``float32``, ...) as one of the registers' own unsigned arrays."""
    views = [typed_dtype(kind) for kind in sources]
    plain = [view == raw_dtype(kind) for view, kind in zip(views, sources, strict=True)]
    inner, outer = typed_dtype(result), raw_dtype(result)
    if all(plain) and inner == outer:
        return function
    if len(views) == 2:
        first, second = views

        def binary(a: Array, b: Array, out: Array | None = None) -> Any:
            if out is None:
                return function(a.view(first), b.view(second)).view(outer)
            return function(a.view(first), b.view(second), out=out.view(inner))

        return binary

    def general(*arrays: Array, out: Array | None = None) -> Any:
        viewed = [array.view(view) for array, view in zip(arrays, views, strict=True)]
        if out is None:
            return function(*viewed).view(outer)
        return function(*viewed, out=out.view(inner))

    return general
