"""Moves, address conversions and special registers."""

from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import LOCAL, PARAM, SHARED, WINDOWS, Array, tags_of
from agent.execution.emulator.cluster_shape import parted
from agent.execution.emulator.ptx.instruction import Register, Special, Vector
from agent.execution.emulator.steps.pure import pure
from agent.execution.emulator.values import FILE_TYPES, Lowering, Step, Values, file_of, lowers

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_FILE_BITS = {"pred": 1, "b16": 16, "b32": 32, "b64": 64}


@lowers("mov")
def move(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    if len(instruction.destinations) != 1 or len(instruction.sources) != 1 or len(instruction.types) != 1:
        raise lowering.refuse()
    (target,), (source,) = instruction.destinations, instruction.sources
    if instruction.types[0] == "b128":
        raise lowering.refuse()
    if isinstance(source, Vector) or (isinstance(target, Vector) and target.elements != (None,)):
        return pure(lowering)
    file = target.file if isinstance(target, Register) else file_of(instruction.types[0])
    if isinstance(source, Special) and source.name.startswith(("clock", "globaltimer")):
        return _clock(lowering, source.name, file)
    return _copy(lowering.destination(target), lowering.source(source, file))


def _copy(target: int, source: int) -> Step:
    def run(values: Values, batch: object) -> None:
        values[target] = values[source]

    return Step(run, (source,), (target,))


def _clock(lowering: Lowering, name: str, file: str) -> Step:
    target, dtype = lowering.destination(lowering.instruction.destinations[0]), FILE_TYPES[file]
    mask, shift = (1 << _FILE_BITS[file]) - 1, 32 if name.endswith("_hi") else 0

    def run(values: Values, batch: "Batch") -> None:
        values[target] = np.array([[dtype((batch.ticks() >> shift) & mask)]])

    return Step(run, (), (target,))


@lowers("cvta")
def convert_address(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    space = instruction.modifiers[-1].split("::")[0] if instruction.modifiers else ""
    if space not in ("global", "const", "shared", "local", "param"):
        raise lowering.refuse()
    (source,), (target,) = instruction.sources, instruction.destinations
    out, file = lowering.destination(target), file_of(instruction.types[-1])
    window = WINDOWS.get(space, 0)
    base = FILE_TYPES[file](window) if file == "b64" else None
    if base is None and window:
        raise lowering.refuse("32-bit generic address")
    entry = lowering.source(source, file)
    if not window:
        return _copy(out, entry)
    back = "to" in instruction.modifiers

    def run(values: Values, batch: object) -> None:
        value = values[entry]
        values[out] = value - base if back else value + base

    return Step(run, (entry,), (out,))


@lowers("isspacep")
def is_in_space(lowering: Lowering) -> Step:
    instruction = lowering.instruction
    space = instruction.modifiers[-1].split("::")[0] if instruction.modifiers else ""
    tag = {"shared": SHARED, "local": LOCAL, "param": PARAM}.get(space, 0)
    if not tag and space not in ("global", "const"):
        raise lowering.refuse()
    entry = lowering.source(instruction.sources[0], "b64")
    out = lowering.destination(instruction.destinations[0])

    own = "shared::cluster" not in instruction.modifiers

    def run(values: Values, batch: "Batch") -> None:
        tags = tags_of(values[entry])
        values[out] = tags == tag if tag else _in_buffers(batch, tags, space)
        if tag == SHARED and own and batch.team is not None:
            owner, _ = parted(values[entry].astype(np.int64) - WINDOWS["shared"])
            rank = batch.lanes.block % batch.team.size + 1
            values[out] = values[out] & ((owner <= 0) | (owner == rank))

    return Step(run, (entry,), (out,))


def _in_buffers(batch: "Batch", tags: Array, space: str) -> Array:
    wanted = [tag for tag, buffer in batch.memory.buffers.items() if buffer.writable == (space == "global")]
    return np.isin(tags, np.array(wanted, np.uint64))
