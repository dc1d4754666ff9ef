"""One run of the kernel on buffers without ends, and what it reached.

A buffer's memory lies around the address that the kernel gets: some before it, more behind. Only pages that are touched
take up memory. What lies beyond is out of reach, and a run that goes there says so.
"""

import time
from collections.abc import Callable, Mapping

import numpy as np
from attrs import define, field, frozen

from agent.execution.device import Answer, Bytes, Fault, Image, Reached, Recipe, Request
from agent.execution.emulator import Emulator
from agent.inference.probing.outcome import Stopped
from agent.inference.probing.subject import Subject
from agent.workload import dtypes
from agent.workload.binding import Argument, BoundLaunch, PointerArgument, ValueArgument

Three = tuple[int, int, int]
BEFORE = 8 << 20
_BEHIND, _LEAST, _TOGETHER = 40 << 20, 12 << 20, 400 << 20
"""Bytes behind a pointer: fewer where there are many, so that a kernel which touches all of them stays small."""
_PAGE = 1 << 16
STEPS = 200_000_000
"""Thread-instructions of one run: at the sizes tried here even cubic work needs far fewer."""
MOST_POINTERS = 24


@frozen
class Contents:
    """One way of filling memory: floats all of one sign, whole numbers below ``high``."""

    name: str
    sign: int
    low: int
    high: int


FIRST, OTHER = Contents("first", 1, 1, 4), Contents("other", -1, 0, 1)
"""Between them, most branches that a value decides go both ways, for every element."""


@frozen
class Span:
    """What one pointer's accesses took in: bytes ``low <= i < high`` from the pointer, and blocks by axis."""

    low: int
    high: int
    blocks: Three
    reads: bool
    writes: bool
    fresh: bool

    def joined(self, other: "Span") -> "Span":
        x, y, z = (max(pair) for pair in zip(self.blocks, other.blocks, strict=True))
        return Span(
            min(self.low, other.low), max(self.high, other.high), (x, y, z), self.reads or other.reads,
            self.writes or other.writes, self.fresh or other.fresh,
        )  # fmt: skip


@frozen
class Seen:
    """One run. ``spans`` has the pointers that were accessed; ``reached`` all accesses; ``work`` is in
    thread-instructions."""

    spans: Mapping[str, Span]
    reached: tuple[Reached, ...]
    shared: int
    faults: tuple[Fault, ...]
    work: int = 0


@define(eq=False)
class Lab:
    """Runs the subject. Raises Stopped where it does not end, or where time is up. No run gets more than ``patience``
    seconds."""

    subject: Subject
    deadline: float
    cancelled: Callable[[], bool]
    patience: float = 10.0
    runs: int = 0
    pages: dict[tuple[str, str], Bytes] = field(factory=dict)

    def run(
        self, values: Mapping[str, int | float], grid: Three, block: Three, shared: int,
        contents: Contents = FIRST, checks: frozenset[str] = frozenset(),
    ) -> Seen:  # fmt: skip
        """One launch with the scalars' ``values``."""
        self.look()
        left = self.deadline - time.monotonic()
        self.runs += 1
        subject = self.subject
        launch = BoundLaunch(subject.name, grid, block, shared, tuple(self._arguments(values)))
        images = (*self._buffers(contents), *self._symbols(contents))
        names = tuple(image.name for image in images)
        request = Request(
            subject.build, (launch,), images, names, checks, step_cap=STEPS,
            seconds=max(min(left, self.patience), 0.01), cancelled=self.cancelled, reach=True,
        )  # fmt: skip
        answer = Emulator().run(request)
        self._judge(answer)
        return Seen(
            _spans(answer.reached), answer.reached, answer.shared_reached, answer.faults, answer.thread_instructions
        )

    def look(self) -> None:
        """Raise where the time is used up or nobody waits any more."""
        if self.cancelled():
            raise Stopped("cancelled", kind="cancelled")
        if time.monotonic() >= self.deadline:
            raise Stopped("the time for probing is used up: give it more, or state the workload in a directive")

    def _judge(self, answer: Answer) -> None:
        if answer.status == "cancelled":
            raise Stopped("cancelled", kind="cancelled")
        endless = next((fault for fault in answer.faults if fault.kind in ("step limit", "deadlock")), None)
        if endless is not None:
            what = "a deadlock" if endless.kind == "deadlock" else f"more than {STEPS} thread-instructions"
            raise Stopped(f"the kernel does not end at small sizes: {what}", endless.where.line)
        if answer.status == "timeout":
            raise Stopped(f"the kernel did not end within {self.patience:.3g} s in the emulator, at small sizes")
        if answer.status not in ("ok", "fault"):
            raise Stopped(answer.message)

    def _arguments(self, values: Mapping[str, int | float]) -> "list[Argument]":
        types = {scalar.name: scalar.dtype for scalar in self.subject.scalars}
        return [
            ValueArgument(types[one.name], values[one.name]) if one.name in types else PointerArgument(one.name, BEFORE)
            for one in self.subject.kernel.parameters
        ]

    def _buffers(self, contents: Contents) -> "list[Image]":
        size = BEFORE + max(min(_BEHIND, _TOGETHER // max(len(self.subject.pointers), 1)), _LEAST)
        return [
            Image(one.name, size, Recipe(size, _repeated(self._page(one.dtype, contents))))
            for one in self.subject.pointers
        ]

    def _symbols(self, contents: Contents) -> "list[Image]":
        """Module variables that the host fills: those that the source gives no value."""
        variables = self.subject.loaded.module.variables
        found = []
        for name, mangled in self.subject.build.symbols.items():
            variable = variables.get(mangled)
            if variable is not None and variable.space == "const" and not variable.initial:
                words = np.resize(self._page("i32", contents), variable.nbytes)
                found.append(Image(name, variable.nbytes, words, symbol=True))
        return found

    def _page(self, dtype: str, contents: Contents) -> Bytes:
        key = (dtype, contents.name)
        if key not in self.pages:
            self.pages[key] = _filled(dtype, contents)
        return self.pages[key]


def _repeated(page: Bytes) -> Callable[[int, int], Bytes]:
    def make(start: int, stop: int) -> Bytes:
        first = start % len(page)
        return np.resize(np.roll(page, -first) if first else page, stop - start)

    return make


def _filled(dtype: str, contents: Contents) -> Bytes:
    """Small whole numbers, also in structs; floats of magnitude 0.1 to 1."""
    scalar = "i32" if dtypes.is_raw(dtype) else dtypes.base(dtype)[0]
    rng = np.random.default_rng(11)
    kind = np.dtype(dtypes.numpy_dtype(scalar))
    count = _PAGE // kind.itemsize
    if not dtypes.is_float(scalar):
        high = min(contents.high, 2) if scalar == "bool" else contents.high
        return rng.integers(contents.low, high, count).astype(kind).view(np.uint8)
    values = contents.sign * rng.uniform(0.1, 1, count)
    if scalar == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(kind).view(np.uint8)
    return values.astype(kind).view(np.uint8)


def _spans(reached: tuple[Reached, ...]) -> dict[str, Span]:
    found: dict[str, Span] = {}
    for one in reached:
        new = Span(one.low - BEFORE, one.high - BEFORE, one.blocks, one.reads, one.writes, one.fresh)
        found[one.buffer] = found[one.buffer].joined(new) if one.buffer in found else new
    return found
