"""A PyTorch reference in a process of its own: the user's own Python, run only where he said so."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from attrs import define, field

from agent.execution.children import reference_messages as say
from agent.execution.process import Child, ChildCancelled, ChildDied, ChildTimeout, never
from agent.execution.wire import Channel
from agent.workload.workload import Reference

MODULE = "agent.execution.children.reference"
START_SECONDS = 120.0
"""For importing torch on a slow disk."""

SECONDS = 60.0
COMPILE_SECONDS = 180.0
CALLS = 30
"""Timed calls, of which the median counts."""

MOST_BYTES = 1 << 28
"""Of inputs and outputs together; larger runs are not asked for."""

T = TypeVar("T")
Doubles = npt.NDArray[np.float64]


@define
class TorchReference:
    """The user's function, kept loaded between calls. ``folder`` is what its path is relative to."""

    reference: Reference
    folder: Path
    version: str = ""
    _child: Child | None = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False, repr=False)

    def answer(
        self,
        tensors: Mapping[str, npt.NDArray[np.generic]],
        numbers: Mapping[str, int | float],
        outputs: Mapping[str, int],
        cancelled: Callable[[], bool] = never,
        seconds: float = SECONDS,
    ) -> dict[str, Doubles] | str:
        """What it computes in float64, for each of ``outputs`` (name, elements) that it gives; or why it does not,
        after ``seconds`` at most (loading it apart)."""
        limit = min(seconds, SECONDS)
        total = sum(one.nbytes for one in tensors.values()) + 8 * sum(outputs.values())
        if total > MOST_BYTES:
            return f"{total >> 20} MiB of tensors are too much for it here"
        call = say.Call(
            tuple(say.Tensor(name, one.dtype.str, one.tobytes()) for name, one in tensors.items()),
            dict(numbers),
            tuple(outputs.items()),
        )
        with self._lock:
            try:
                problem = self._open(cancelled)
                if problem:
                    return problem
                assert self._child is not None
                found = self._child.converse(lambda channel: _asked(channel, call, say.Called), limit, cancelled)
            except ChildTimeout:
                return f"{self.reference} did not answer within {limit:g} s"
            except ChildCancelled:
                return "cancelled"
            except ChildDied as death:
                return f"{self.reference} ended its process: {death}"
        if found.problem:
            return f"{self.reference}: {found.problem}"
        return {one.name: np.frombuffer(one.data, np.float64) for one in found.outputs}

    def times(
        self,
        tensors: Mapping[str, tuple[str, bytes]],
        numbers: Mapping[str, int | float],
        compiled: bool,
        flush: int,
        cancelled: Callable[[], bool] = never,
    ) -> tuple[float, ...] | str:
        """Seconds of its calls on the card, in a process of its own, as it is or through ``torch.compile``; or why
        there are none. ``tensors``: (type as NumPy names it or ``bf16``, bytes) by name. Who asks sees to it that
        nobody else is timing. ``flush`` bytes are read before each call."""
        given = tuple(say.Tensor(name, dtype, data) for name, (dtype, data) in tensors.items())
        request = say.Time(given, dict(numbers), compiled, CALLS, flush)
        alone = TorchReference(self.reference, self.folder)
        try:
            problem = alone._open(cancelled)
            if problem or alone._child is None:
                return problem
            found = alone._child.converse(
                lambda channel: _asked(channel, request, say.Times), COMPILE_SECONDS, cancelled
            )
        except ChildCancelled:
            return "cancelled"
        except (ChildTimeout, ChildDied) as failure:
            return f"{self.reference} was not timed: {failure}"
        finally:
            alone.close()
        return f"{self.reference}: {found.problem}" if found.problem else found.seconds

    def _open(self, cancelled: Callable[[], bool]) -> str:
        """Load it, where it is not loaded yet; why that fails."""
        if self._child is not None and self._child.usable:
            return ""
        self._child = Child(MODULE)
        where = say.Open(str((self.folder / self.reference.path).resolve()), self.reference.name)
        opened = self._child.converse(lambda channel: _asked(channel, where, say.Opened), START_SECONDS, cancelled)
        self.version = opened.version
        if opened.problem:
            self.close()
        return opened.problem

    def close(self) -> None:
        """End its process."""
        if self._child is not None:
            self._child.close()
            self._child = None


def _asked(channel: Channel, message: object, answer: type[T]) -> T:
    channel.send(message)
    reply: T = channel.receive(answer)
    return reply
