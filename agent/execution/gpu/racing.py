"""A race as the messages that a GPU runner understands, and its answer as values."""

import re
from collections.abc import Iterator

import numpy as np

from agent.execution.children import timing_messages as say
from agent.execution.children.gpu_messages import Chunk
from agent.execution.compiler.result import Build
from agent.execution.device import Digest, Image, Recipe
from agent.execution.gpu.jobs import BadRequest, contents, make_step
from agent.execution.nvml import throttled
from agent.execution.timing import Entry, Race, Timed, digest_layout
from agent.workload import dtypes
from agent.workload.binding import Bound, BoundBuffer, BoundLaunch, TextureArgument
from agent.workload.forms import NUMBERS, form
from agent.workload.generators import recipe
from agent.workload.textures import ARRAY
from agent.workload.workload import Access

_ROLES = {Access.IN: "in", Access.OUT: "out", Access.INOUT: "inout"}
_VARIABLE = re.compile(r"^\s*(?:\.(?:visible|weak|extern|common)\s+)*\.(?:global|const)\b", re.MULTILINE)
"""A variable of the module in PTX, as opposed to an instruction on global memory."""

_FAULTS = frozenset({"ok", "refused", "timeout"})


def measure(race: Race, support: Build, flush: int, memory: int) -> say.Measure:
    """The request without contents. Raises BadRequest."""
    first = race.sides[0].bound
    return say.Measure(
        support.cubin,
        tuple(_side(entry) for entry in race.sides),
        _spaces(race.sides, race.family),
        _outputs(first, race.unordered),
        race.seed,
        len(race.sides) - 1,
        flush,
        race.blocks,
        race.warm,
        race.budget,
        memory,
    )


def recompute(race: Race, support: Build, timed: Timed) -> say.Recompute:
    """The last side alone. Raises BadRequest."""
    last = race.sides[-1]
    return say.Recompute(
        support.cubin,
        _side(last),
        _spaces((last,), race.family),
        _outputs(race.sides[0].bound, race.unordered),
        race.seed,
        timed.calls,
        timed.sets,
        stateful=bool(_VARIABLE.search(last.build.ptx)),
    )


def chunks(race: Race) -> Iterator[Chunk]:
    """Contents that no kernel makes, in the order of the spaces."""
    for buffer in _shared(race.sides[0].bound):
        if buffer.access is not Access.OUT and form(buffer, race.family) is None:
            image = Image(buffer.name, buffer.nbytes, Recipe(buffer.nbytes, recipe(buffer, race.family, race.seed)))
            yield from contents(image)


def _shared(bound: Bound) -> list[BoundBuffer]:
    return [buffer for buffer in bound.buffers if not buffer.scratch]


def _spaces(sides: tuple[Entry, ...], family: str) -> tuple[say.Space, ...]:
    return tuple(_space(buffer, sides, family) for buffer in _shared(sides[0].bound))


def _space(buffer: BoundBuffer, sides: tuple[Entry, ...], family: str) -> say.Space:
    symbols: tuple[str, ...] = ()
    if buffer.symbol:
        if any(buffer.name not in side.build.symbols for side in sides):
            raise BadRequest(f"a module has no variable {buffer.name}")
        symbols = tuple(side.build.symbols[buffer.name] for side in sides)
    made = None if buffer.access is Access.OUT else form(buffer, family)
    return say.Space(buffer.name, buffer.nbytes, _ROLES[buffer.access], made, symbols)


def _side(entry: Entry) -> say.Side:
    _check_textures(entry.bound)
    names = {buffer.name for buffer in entry.bound.buffers}
    return say.Side(
        entry.build.cubin,
        tuple(make_step(step, entry.build.entries, names) for step in entry.bound.steps),
        tuple(
            say.Space(buffer.name, buffer.nbytes, "zeroed" if buffer.zeroed else "scratch")
            for buffer in entry.bound.buffers
            if buffer.scratch
        ),
    )


def _check_textures(bound: Bound) -> None:
    """Raises BadRequest where a timed call would have to copy between a buffer and a CUDA array: arrays are filled
    before the clock starts, and nothing looks into one afterwards."""
    inputs = {buffer.name for buffer in bound.buffers if buffer.access is Access.IN and not buffer.scratch}
    for step in bound.steps:
        for argument in step.arguments if isinstance(step, BoundLaunch) else ():
            if not isinstance(argument, TextureArgument) or argument.view.memory != ARRAY:
                continue
            view = argument.view
            if view.surface:
                raise BadRequest(f"launches that write a surface ('{view.name}') are not timed")
            if view.buffer not in inputs:
                raise BadRequest(f"'{view.name}' shows what the plan writes: such textures of arrays are not timed")


def _outputs(bound: Bound, unordered: frozenset[str]) -> tuple[say.Output, ...]:
    return tuple(
        _output(buffer, buffer.name in unordered) for buffer in _shared(bound) if buffer.access is not Access.IN
    )


def _output(buffer: BoundBuffer, unordered: bool) -> say.Output:
    """Lane by lane; element by element where the order is open, as the lanes of one element stay together."""
    found = lanes_of(buffer.name, buffer.nbytes, buffer.dtype)
    width = dtypes.size_of(buffer.dtype)
    if not unordered:
        return found
    return say.Output(buffer.name, buffer.nbytes // width, width, found.dtype if width == found.width else -1, True)


def lanes_of(name: str, nbytes: int, dtype: str) -> say.Output:
    """A buffer as it is digested lane by lane."""
    scalar = dtypes.base(dtype)[0]
    width = dtypes.size_of(scalar)
    return say.Output(name, nbytes // width, width, NUMBERS.get(scalar, -1) if dtypes.is_float(dtype) else -1)


def digest_of(data: bytes) -> Digest:
    """One digest as a value."""
    found = np.frombuffer(data, digest_layout(say.GROUPS))[0]
    return Digest(int(found["hash"]), tuple(map(float, found["sum"])), tuple(map(float, found["magnitude"])))


def timed(measured: say.Measured, race: Race, foreign: int) -> Timed:
    """The runner's answer."""
    status = measured.kind or "ok"
    outputs = len(_outputs(race.sides[0].bound, race.unordered))
    shape = (len(measured.calls), -1, outputs)
    table = None
    if measured.digests:
        table = np.frombuffer(measured.digests, digest_layout(say.GROUPS)).reshape(shape)
    label = f" in {measured.kernel}" if measured.kernel else ""
    return Timed(
        status if status in _FAULTS else "fault",
        f"{status}{label}: {measured.message}" if status not in _FAULTS else measured.message,
        measured.side,
        measured.cold,
        measured.warm,
        measured.first,
        measured.sets,
        measured.overhead,
        measured.calls,
        table,
        measured.clocks,
        throttled(measured.reasons),
        measured.unwatched,
        measured.odd,
        measured.starved,
        measured.fixed,
        foreign,
        measured.seconds,
    )
