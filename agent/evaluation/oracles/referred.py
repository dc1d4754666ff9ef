"""What a PyTorch function says that the user named: an oracle that owes nothing to the original."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from agent.evaluation.values import Floats, lane_bytes, lanes, to_floats
from agent.execution.device import Answer, Recipe
from agent.workload.binding import Bound, BoundBuffer
from agent.workload.dtypes import base, is_float, is_raw
from agent.workload.expression import ExpressionError
from agent.workload.workload import Access, Workload


class Refers(Protocol):
    """The user's function, wherever it runs (:class:`agent.execution.reference.TorchReference`)."""

    def answer(
        self,
        tensors: Mapping[str, npt.NDArray[np.generic]],
        numbers: Mapping[str, int | float],
        outputs: Mapping[str, int],
        cancelled: Callable[[], bool],
        seconds: float,
    ) -> dict[str, Floats] | str: ...

    def times(
        self,
        tensors: Mapping[str, tuple[str, bytes]],
        numbers: Mapping[str, int | float],
        compiled: bool,
        flush: int,
        cancelled: Callable[[], bool],
    ) -> tuple[float, ...] | str: ...


class Limits(Protocol):
    """How long may be waited (:class:`agent.evaluation.setting.Setting`)."""

    @property
    def seconds(self) -> float: ...

    @property
    def cancelled(self) -> Callable[[], bool]: ...


def referred(
    asked: Refers, workload: Workload, bound: Bound, given: Mapping[str, Any], limits: "Limits"
) -> Answer | str:
    """Its answer to one case, with every output that it gives in float64; or why there is none. ``given`` are the
    contents of the buffers that the plan reads first."""
    tensors = {buffer.name: _tensor(buffer, given[buffer.name]) for buffer in bound.buffers if _passed(buffer, given)}
    wanted = {buffer.name: buffer.nbytes // lane_bytes(buffer.dtype) for buffer in bound.buffers if _wanted(buffer)}
    found = asked.answer(tensors, numbers(workload, bound), wanted, limits.cancelled, limits.seconds)
    if isinstance(found, str):
        return found
    outputs = {name: np.ascontiguousarray(values).view(np.uint8) for name, values in found.items()}
    return Answer("ok", outputs, None, (), (), "", 0.0)


def _passed(buffer: BoundBuffer, given: Mapping[str, Any]) -> bool:
    return not buffer.scratch and buffer.name in given and not is_raw(buffer.dtype)


def _wanted(buffer: BoundBuffer) -> bool:
    return not buffer.scratch and buffer.access is not Access.IN and is_float(buffer.dtype)


def _tensor(buffer: BoundBuffer, contents: Any) -> npt.NDArray[np.generic]:
    data = contents.make(0, buffer.nbytes) if isinstance(contents, Recipe) else contents
    return to_floats(data, buffer.dtype) if is_float(buffer.dtype) else lanes(data, buffer.dtype)


def numbers(workload: Workload, bound: Bound) -> dict[str, int | float]:
    """Sizes and constants by name."""
    found: dict[str, int | float] = dict(bound.sizes)
    for constant in workload.constants:
        try:
            found[constant.name] = constant.value.evaluate(found)
        except ExpressionError:
            continue  # of something that the plan names later: the function will say if it needs it
    return found


def as_they_are(bound: Bound, given: Mapping[str, Any]) -> dict[str, tuple[str, bytes]]:
    """The buffers that the plan reads first, with their own types: (type as NumPy names it or ``bf16``, bytes)."""
    found = {}
    for buffer in (one for one in bound.buffers if _passed(one, given)):
        contents = given[buffer.name]
        data = contents.make(0, buffer.nbytes) if isinstance(contents, Recipe) else contents
        bf16 = base(buffer.dtype)[0] == "bf16"
        found[buffer.name] = ("bf16" if bf16 else lanes(data, buffer.dtype).dtype.str, data.tobytes())
    return found
