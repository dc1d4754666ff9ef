"""What instructions on floats compute in the shadow: the same functions of float64, without rounding to the format."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import raw_dtype, typed_dtype
from agent.execution.emulator.shadows.cells import Float, joined

#: The formats of the numbers in one register, lowest first.
PARTS = {
    "f16": ("f16",), "bf16": ("bf16",), "f32": ("f32",), "f64": ("f64",), "f16x2": ("f16", "f16"),
    "bf16x2": ("bf16", "bf16"), "f32x2": ("f32", "f32"),
}  # fmt: skip
INTEGRAL: dict[str, Callable[..., Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "fma": lambda a, b, c: a * b + c,
    "mad": lambda a, b, c: a * b + c,
    "neg": np.negative,
    "abs": np.abs,
    "copysign": lambda a, b: np.copysign(b, a),
    "sqrt": np.sqrt,
    "rcp": lambda a: 1.0 / a,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}
_EXTREMES: dict[tuple[str, bool], Callable[..., Any]] = {
    ("min", False): np.fmin,
    ("min", True): np.minimum,
    ("max", False): np.fmax,
    ("max", True): np.maximum,
}
# what is added to a float to round it to a whole number: 1.5 * 2**23 and those beside it, and 2**23
_ROUNDERS = ((12582912.0 - 512, 12582912.0 + 512), (8388608.0, 8388608.0))


def computes(instruction: Instruction) -> bool:
    """Whether it is arithmetic on floats that has a shadow."""
    if not instruction.types or len(instruction.types) != 1 or instruction.types[0] not in PARTS:
        return False
    return instruction.base in _FUNCTIONS or instruction.base in ("min", "max")


def evaluate(instruction: Instruction, sources: Sequence[Float], owns: Sequence[Array], own: Array) -> Float:
    """The shadow of one number of the result from those of the operands. ``owns`` are the program's own operands and
    ``own`` its result."""
    words = instruction.modifiers
    flags = joined(*(marks for _, marks in sources))
    values = [value for value, _ in sources]
    if instruction.base in ("min", "max"):
        function = _EXTREMES[instruction.base, "NaN" in words]
        if "xorsign" in words:
            found = np.copysign(function(*map(np.abs, values)), values[0] * values[1])
        else:
            found = function(*values) if len(values) == 2 else function(function(values[0], values[1]), values[2])
    else:
        found = _FUNCTIONS[instruction.base](*values)
    found = np.asarray(bounded(found, words))
    if instruction.base in ("add", "sub", "fma", "mad") and any(_rounds(one) for one in owns):
        # a whole number is what the program wants: it goes on with its own, and so does the shadow
        found = np.where(np.abs(found - own) <= 1.0, own, found)
    return found, flags


def bounded(value: Any, words: Sequence[str]) -> Any:
    """``.sat`` clamps to [0, 1] with NaN to zero, ``.relu`` to what is not negative."""
    if "sat" in words:
        value = np.minimum(np.fmax(value, 0.0) + 0.0, 1.0)
    return np.maximum(value, 0.0) if "relu" in words else value


def _rounds(operand: Array) -> bool:
    """Whether an operand is one of the constants that round to whole numbers, in all lanes."""
    first = abs(float(operand.reshape(-1)[0])) if operand.size else 0.0
    if not any(low <= first <= high for low, high in _ROUNDERS):
        return False
    return bool((np.abs(operand) == first).all())


def from_integer(bits: Array, kind: str) -> Array:
    """A whole number in a register of any width as float64."""
    value: Array = bits.astype(raw_dtype(kind)).view(typed_dtype(kind)).astype(np.float64)
    return value
