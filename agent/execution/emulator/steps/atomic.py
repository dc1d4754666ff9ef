"""Atomics with a result (``atom``) and without (``red``), on global, shared and generic addresses."""

from typing import TYPE_CHECKING, Any

import numpy as np

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.atomic_update import compare_and_swap, update
from agent.execution.emulator.buffers import UNSIGNED
from agent.execution.emulator.ptx.instruction import Operand, Vector
from agent.execution.emulator.values import Lowering, Step, Values, file_of, lowers, width_of

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_TYPES: dict[str, Any] = {
    "u32": np.uint32,
    "s32": np.int32,
    "b32": np.uint32,
    "u64": np.uint64,
    "s64": np.int64,
    "b64": np.uint64,
    "b16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "f16x2": np.float16,
    "bf16": None,
    "bf16x2": None,
}
_FOLDS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_IGNORED = frozenset(["relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys", "noftz", "ftz"])
_ALLOWED = {
    "add": ("u32", "s32", "u64", "s64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"),
    "min": ("u32", "s32", "u64", "s64", "f16", "f16x2"),
    "max": ("u32", "s32", "u64", "s64", "f16", "f16x2"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64"),
    "cas": ("b16", "b32", "b64"),
}


@lowers("atom", "red")
def atomic(lowering: Lowering) -> Step:
    space, name, count = words_of(lowering)
    kind = lowering.instruction.types[0] if len(lowering.instruction.types) == 1 else ""
    if kind not in _ALLOWED.get(name, ()):
        raise lowering.refuse()
    instruction, site, file = lowering.instruction, lowering.site, file_of(kind)
    width = width_of(kind)
    base, shift, owner = lowering.address(instruction.sources[0])
    if owner and space == "generic":
        space = "shared" if owner == "shared" else "global"
    operands = [[lowering.source(part, file) for part in _parts(operand, count)] for operand in instruction.sources[1:]]
    if len(operands) != (2 if name == "cas" else 1):
        raise lowering.refuse("operands")
    outs: list[int | None] = [None] * count
    if instruction.base == "atom":
        targets = _parts(instruction.destinations[0], count)
        outs = [None if target is None else lowering.destination(target) for target in targets]
    reads = (base, *(entry for group in operands for entry in group))

    def run(values: Values, batch: "Batch") -> None:
        lanes = batch.lanes
        for k in range(count):
            inputs = [np.broadcast_to(values[group[k]], lanes.shape).reshape(-1) for group in operands]
            old = np.zeros(lanes.count, UNSIGNED[width])
            for place in memory.places(batch, site, values[base], shift + k * width, width, space):
                chosen = tuple(one[place.places].astype(UNSIGNED[width], copy=False) for one in inputs)
                old[place.places] = apply(place.view, place.index, name, kind, chosen)
                place.done()
            target = outs[k]
            if target is not None:
                values[target] = old.reshape(lanes.shape)

    return Step(run, reads, tuple(out for out in outs if out is not None))


def words_of(lowering: Lowering) -> tuple[str, str, int]:
    """Space, operation and vector length."""
    space, name, count = "generic", "", 1
    for word in lowering.instruction.modifiers:
        if word in ("global", "shared", "shared::cta", "shared::cluster"):
            space = word[:6]
        elif word in _ALLOWED:
            name = word
        elif word in ("v2", "v4", "v8"):
            count = int(word[1:])
        elif word not in _IGNORED and not word.startswith("L2"):
            raise lowering.refuse(f".{word}")
    return space, name, count


def _parts(operand: Operand, count: int) -> tuple[Operand | None, ...]:
    if isinstance(operand, Vector):
        return (None,) * count if operand.elements == (None,) else operand.elements
    return (operand,)


def apply(view: Array, index: Array, name: str, kind: str, operands: tuple[Array, ...]) -> Array:
    """The operation in lane order on raw bits; gives the raw bits found before."""
    if name == "cas":
        return compare_and_swap(view, index, *operands)
    if name == "exch":
        return update(view, index, lambda old, new: new, operands)
    if name in ("inc", "dec"):
        return update(view, index, _increment if name == "inc" else _decrement, operands)
    fold = _FOLDS[name]
    dtype = _TYPES[kind]
    if kind.endswith("x2"):
        return _halves(view, index, fold, kind, operands[0])
    if dtype is None:
        return update(view, index, _bf16(fold), operands)
    typed = view.view(dtype)
    return update(typed, index, fold, (operands[0].view(dtype),), fold).view(view.dtype)


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, np.uint32(0), old + np.uint32(1))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - np.uint32(1))


def _halves(view: Array, index: Array, fold: Any, kind: str, operand: Array) -> Array:
    """Packed pairs: each half by itself (PTX promises no more for them)."""
    halves = view.view(np.uint16)
    result = np.empty(len(index), np.uint32)
    parts = operand.view(np.uint16)
    for k in range(2):
        part = np.ascontiguousarray(parts[k::2])
        old = apply(halves, index * 2 + k, "add" if fold is np.add else _name(fold), kind[:-2], (part,))
        result.view(np.uint16)[k::2] = old
    return result


def _name(fold: Any) -> str:
    return next(name for name, function in _FOLDS.items() if function is fold)


def _bf16(fold: Any) -> Any:
    """The operation in float32, rounded to nearest even: exact for one sum of two bf16 values."""

    def apply_bf16(old: Array, value: Array) -> Array:
        total = fold(_from_bf16(old), _from_bf16(value))
        bits = total.view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
        return np.where(np.isnan(total), np.uint32(0x7FFF), rounded).astype(np.uint16)

    return apply_bf16


def _from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
