"""A device request as the job that a GPU runner understands."""

import re
import struct
from collections.abc import Iterator, Mapping

import numpy as np
from attrs import evolve

from agent.execution.children import gpu_messages as say
from agent.execution.compiler.result import Build
from agent.execution.device import Image, Poison, Recipe, Request
from agent.workload.binding import (
    Argument,
    BoundCopy,
    BoundFill,
    BoundLaunch,
    BoundStep,
    PointerArgument,
    RecordArgument,
    TextureArgument,
    ValueArgument,
)
from agent.workload.forms import NUMBERS

CHUNK = 64 << 20


class BadRequest(ValueError):
    """A request that no card could run, whatever the kernel does; the message says why."""


def make_job(request: Request, support: bytes = b"", exact: bool = False) -> say.Job:
    """The job without the buffers' contents. ``support`` are our own kernels, or nothing: then every content comes from
    here. ``exact``: buffers without guards, and nothing written to them but contents. Raises BadRequest for names that
    nothing has."""
    build = request.build
    names = {image.name for image in request.images}
    for name in request.outputs:
        _known(name, names, "an output")
    for step in request.steps:
        if isinstance(step, BoundLaunch):
            _check_structs(step, build)
    regions = tuple(_region(image, build.symbols, names) for image in request.images)
    if exact:
        regions = tuple(evolve(region, fill=None, offset=region.offset if region.alias else 0) for region in regions)
    if support:
        regions = tuple(map(_made, regions, request.images))
        regions = tuple(evolve(region, watched=region.name in request.watched) for region in regions)
    steps = tuple(make_step(step, build.entries, names) for step in request.steps)
    needed = any(region.made is not None or region.watched for region in regions) or bool(request.parts)
    return say.Job(build.cubin, regions, steps, support if needed else b"", exact)


def _made(region: say.Region, image: Image) -> say.Region:
    """The region with contents that the card makes, where they can be made there."""
    recipe = image.contents
    if not region.follows or not isinstance(recipe, Recipe) or recipe.made is None:
        return region
    made = recipe.made
    number = NUMBERS.get(made.form.scalar, -1)
    here = say.MadeHere(made.form.packed(made.seed), made.form.count, made.form.nbytes, number, made.nudge, made.wide)
    return evolve(region, follows=False, made=here)


def _region(image: Image, symbols: Mapping[str, str], names: set[str]) -> say.Region:
    if image.alias is not None:
        _known(image.alias, names, f"the alias of {image.name}")
    symbol = None
    if image.symbol:
        if image.name not in symbols:
            raise BadRequest(f"the module has no variable {image.name}")
        symbol = symbols[image.name]
    # A region that shares another's memory has that one's contents.
    own = image.alias is None and image.nbytes > 0
    fill = image.contents.byte if own and isinstance(image.contents, Poison) else None
    return say.Region(image.name, image.nbytes, image.offset, image.alias, symbol, fill, own and fill is None)


def make_step(
    step: BoundStep, entries: Mapping[str, str], names: set[str]
) -> say.LaunchStep | say.FillStep | say.CopyStep:
    """A step as the runner's. Raises BadRequest for what nothing has."""
    if isinstance(step, BoundFill):
        return say.FillStep(_known(step.buffer, names, "a fill"), step.byte)
    if isinstance(step, BoundCopy):
        return say.CopyStep(_known(step.target, names, "a copy"), _known(step.source, names, "a copy"))
    if step.kernel not in entries:
        raise BadRequest(f"the build has no kernel {step.kernel}")
    return _launch(step, entries[step.kernel], names)


def _launch(step: BoundLaunch, entry: str, names: set[str]) -> say.LaunchStep:
    arguments = tuple(_argument(item, names, f"an argument of {step.kernel}") for item in step.arguments)
    return say.LaunchStep(entry, step.kernel, step.grid, step.block, step.shared, arguments)


def _argument(item: Argument, names: set[str], what: str) -> say.Argument:
    if isinstance(item, PointerArgument):
        return say.Argument(_known(item.buffer, names, what), item.offset, b"")
    if isinstance(item, TextureArgument):
        return say.Argument(_known(item.view.buffer, names, what), 0, b"", item.view)
    if isinstance(item, ValueArgument):
        return say.Argument(None, 0, pack(item))
    whole, inside = bytearray(item.nbytes), list[say.Inside]()
    for member in item.members:
        if isinstance(member.held, PointerArgument):
            inside.append(say.Inside(member.offset, _known(member.held.buffer, names, what), member.held.offset))
        elif isinstance(member.held, ValueArgument):
            packed = pack(member.held)
            whole[member.offset : member.offset + len(packed)] = packed
    return say.Argument(None, 0, bytes(whole), inside=tuple(inside))


def _check_structs(step: BoundLaunch, build: Build) -> None:
    """A card takes as many bytes of an argument as its kernel's parameter has: a struct of another size is no argument
    for it."""
    entry = re.escape(build.entries.get(step.kernel, step.kernel))
    found = re.search(rf"\.entry\s+{entry}\s*\(([^()]*)\)", build.ptx)
    declared = found[1].split(",") if found else []
    for parameter, item in zip(declared, step.arguments, strict=False):
        size = re.search(r"\[(\d+)\]\s*$", parameter)
        if isinstance(item, RecordArgument) and size and int(size[1]) != item.nbytes:
            raise BadRequest(f"a struct of {item.nbytes} bytes is passed to {step.kernel}, which takes {size[1]}")


def _known(name: str, names: set[str], what: str) -> str:
    if name not in names:
        raise BadRequest(f"{what} names {name}, which no buffer has")
    return name


_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def pack(argument: ValueArgument) -> bytes:
    """A scalar as the kernel's parameter holds it. Integers wrap as C's conversions do; bf16 rounds to nearest even."""
    dtype, value = argument.dtype, argument.value
    if dtype == "bool":
        return bytes([bool(value)])
    if dtype == "bf16":
        bits = int(np.float32(value).view(np.uint32))
        if bits & 0x7FFFFFFF > 0x7F800000:
            return (bits >> 16 | 0x40).to_bytes(2, "little")
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF).to_bytes(2, "little")
    if dtype in _FORMATS:
        with np.errstate(over="ignore"):
            return struct.pack(_FORMATS[dtype], float(np.dtype(_FORMATS[dtype]).type(value)))
    if dtype[:1] in "iu" and dtype[1:] in ("8", "16", "32", "64"):
        size = int(dtype[1:]) // 8
        return (int(value) % (1 << 8 * size)).to_bytes(size, "little")
    raise BadRequest(f"a value of type {dtype} cannot be passed to a kernel")


def contents(image: Image, chunk: int = CHUNK) -> Iterator[say.Chunk]:
    """The bytes of an image in pieces, none for poison."""
    if isinstance(image.contents, Poison):
        return
    for start in range(0, image.nbytes, chunk):
        stop = min(image.nbytes, start + chunk)
        made = image.contents.make(start, stop) if isinstance(image.contents, Recipe) else image.contents[start:stop]
        yield say.Chunk(image.name, start, np.ascontiguousarray(made, np.uint8).tobytes())
