"""One lane in place of arrays: the rules of the table of semantics, run on it, write down LLVM instructions.

So both back ends stand on one table: the very function that computes arrays of lanes is called once with operands of
this kind, and each NumPy function that it applies becomes an instruction. Where a rule asks whether any lane is
special, the answer is yes, so that its corrections, made for all lanes at once there, are made for every lane here.

What a rule does with arrays that has no counterpart for one lane raises :class:`NotLowered`.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numpy.lib.mixins import NDArrayOperatorsMixin

from agent.execution.emulator.compiled.loops import NotLowered, cast, loop, raw, reinterpreted, type_of
from agent.execution.emulator.compiled.primitives import PRIMITIVES
from agent.execution.emulator.semantics.arrays import Symbolic

_WEAK = (int, float)


class _Place:
    """What a lane and its views share: the bits, as an unsigned number (or one bit)."""

    def __init__(self, value: ir.Value) -> None:
        self.value = value


class _Most:
    """The largest of all lanes: as large as it takes for a rule to see a special one, and no number."""

    def __gt__(self, other: Any) -> bool:
        return True

    __ge__ = __gt__

    def __lt__(self, other: Any) -> bool:
        return False

    __le__ = __eq__ = __lt__
    __hash__ = None  # type: ignore[assignment]


class _Least(_Most):
    """The smallest of all lanes."""

    def __gt__(self, other: Any) -> bool:
        return False

    def __lt__(self, other: Any) -> bool:
        return True

    __ge__ = __eq__ = __gt__
    __le__ = __lt__
    __hash__ = None


class Lane(NDArrayOperatorsMixin, Symbolic):
    """Behaves as a 0-d array of ``dtype`` towards NumPy functions; ``builder`` takes the instructions."""

    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1

    def __init__(self, builder: ir.IRBuilder, dtype: Any, value: ir.Value, place: _Place | None = None) -> None:
        self.builder = builder
        self.dtype = np.dtype(dtype)
        self.place = place or _Place(raw(builder, self.dtype, value))

    @property
    def value(self) -> ir.Value:
        return reinterpreted(self.builder, self.place.value, self.dtype)

    def _new(self, dtype: Any, value: ir.Value) -> "Lane":
        return Lane(self.builder, dtype, value)

    def _assign(self, value: Any, condition: Any = None) -> None:
        new = self._as(value, self.dtype)
        if condition is not None:
            new = self.builder.select(self._as(condition, np.dtype(bool)), new, self.value)
        self.place.value = raw(self.builder, self.dtype, new)

    def _as(self, operand: Any, dtype: np.dtype[Any]) -> ir.Value:
        """Any operand as a value of ``dtype``."""
        if isinstance(operand, Lane):
            return cast(self.builder, operand.value, operand.dtype, dtype)
        with np.errstate(all="ignore"):
            number = np.asarray(operand).astype(dtype)
        if number.ndim:
            raise NotLowered("an array among the operands")
        return type_of(dtype)(number.item())

    # What arrays have -----------------------------------------------------------------------------------------------

    def view(self, dtype: Any) -> "Lane":
        wanted = np.dtype(dtype)
        if wanted.itemsize != self.dtype.itemsize or (wanted.kind == "b") != (self.dtype.kind == "b"):
            raise NotLowered(f"a view of {self.dtype} as {wanted}")
        return Lane(self.builder, wanted, self.place.value, self.place)

    def astype(self, dtype: Any, copy: bool = True) -> "Lane":
        wanted = np.dtype(dtype)
        return self._new(wanted, cast(self.builder, self.value, self.dtype, wanted))

    def copy(self) -> "Lane":
        return self._new(self.dtype, self.value)

    def reshape(self, *shape: Any) -> "Lane":
        return self

    def any(self) -> bool:
        return True

    def all(self) -> bool:
        return False

    def min(self, initial: Any = None) -> _Least:
        return _Least()

    def max(self, initial: Any = None) -> _Most:
        return _Most()

    def __getitem__(self, chosen: Any) -> "Lane":
        """The chosen lanes alone: this one, chosen or not; what is stored back is stored only where it was."""
        if not (isinstance(chosen, Lane) and chosen.dtype.kind == "b"):
            raise NotLowered("an element of an array")
        return self.copy()

    def __setitem__(self, chosen: Any, value: Any) -> None:
        if not (isinstance(chosen, Lane) and chosen.dtype.kind == "b"):
            raise NotLowered("an element of an array")
        self._assign(value, chosen)

    def __bool__(self) -> bool:
        raise NotLowered("a decision by the value of one lane")

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise NotLowered("an array of lanes")

    # What NumPy asks ------------------------------------------------------------------------------------------------

    def primitive(self, name: str, *operands: Any) -> "Lane":
        lanes = [one if isinstance(one, Lane | None) else self._constant(one) for one in operands]
        dtype, value = PRIMITIVES[name](self.builder, [(lane.dtype, lane.value) for lane in lanes if lane is not None])
        return self._new(dtype, value)

    def _constant(self, operand: Any) -> "Lane":
        number = np.asarray(operand)
        return self._new(number.dtype, self._as(number, number.dtype))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method == "reduce":
            return {"maximum": _Most(), "minimum": _Least(), "logical_or": True}[ufunc.__name__]
        dtype = options.pop("dtype", None)
        if method != "__call__" or ufunc.nout != 1 or set(options) - {"casting"}:
            raise NotLowered(f"{ufunc.__name__} with {', '.join(options) or method}")
        signature = {} if dtype is None else {"signature": (*(None,) * len(inputs), np.dtype(dtype))}
        found = ufunc.resolve_dtypes((*map(_kind, inputs), None), casting="unsafe", **signature)
        values = [self._as(one, of) for one, of in zip(inputs, found, strict=False)]
        result = self._new(found[-1], loop(self.builder, ufunc.__name__, found, values))
        if out is None:
            return result
        (target,) = out
        if not isinstance(target, Lane):
            raise NotLowered("a lane stored to an array")
        target._assign(result)
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        mine = _FUNCTIONS.get(function.__name__)
        if mine is None:
            raise NotLowered(f"the function {function.__name__}")
        return mine(self, *args, **options)

    def _where(self, condition: Any, yes: Any, no: Any) -> "Lane":
        dtype = np.result_type(*(one if type(one) in _WEAK else _kind(one) for one in (yes, no)))
        chosen = self._as(condition, np.dtype(bool))
        return self._new(dtype, self.builder.select(chosen, self._as(yes, dtype), self._as(no, dtype)))


def _kind(operand: Any) -> Any:
    """The dtype of an operand; the type of a plain Python number, which adapts to the others."""
    if type(operand) in _WEAK:
        return type(operand)
    return operand.dtype if isinstance(operand, Lane) else np.asarray(operand).dtype


_FUNCTIONS: dict[str, Any] = {
    "where": Lane._where,
    "clip": lambda lane, a, low, high: np.minimum(np.maximum(a, low), high),
    "copyto": lambda lane, target, value, casting="same_kind", where=None: target._assign(value, where),
    "copy": lambda lane, a: a.copy(),
    "ravel": lambda lane, a: a,
    "broadcast_to": lambda lane, a, shape: a,
    "broadcast_arrays": lambda lane, *arrays: arrays,
    "ones_like": lambda lane, a: a._constant(a.dtype.type(1)),
    "shape": lambda lane, a: (),
    "any": lambda lane, a: True,
    "all": lambda lane, a: False,
}
