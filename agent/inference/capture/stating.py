"""From one recorded launch to a workload whose buffers hold what they held then."""

import math
import struct
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import define, evolve, frozen

from agent.inference.capture import naming
from agent.inference.capture.launches import KEPT, Argument, Launch, Memory
from agent.inference.capture.telling import why_not
from agent.source.document import Document
from agent.source.kernel import Kernel, Parameter
from agent.workload import data, dtypes, types
from agent.workload.bind import bind
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, build, name, number
from agent.workload.generators import default_domain
from agent.workload.plan import Launch as PlannedLaunch
from agent.workload.plan import Plan
from agent.workload.static.usage import device_symbols, usage
from agent.workload.workload import Access, Buffer, Constant, Domain, Origin, Workload


@frozen
class Stated:
    """The workload, and what is to be known of it."""

    workload: Workload
    notes: tuple[str, ...]


@frozen
class _Use:
    """One pointer argument: the parameter and where it points to."""

    parameter: Parameter
    memory: Memory
    dtype: str | None


@define
class _Draft:
    document: Document
    kernel: Kernel
    template: tuple[str, ...]
    notes: list[str]


def state(launch: Launch, kernel: Kernel, document: Document) -> Stated:
    """The workload of ``launch``, checked; the contents that it names are kept (:mod:`agent.workload.data`).

    Raises WorkloadError where a directive cannot state the launch, and OSError where the contents cannot be kept.
    """
    if kernel.damage:
        raise WorkloadError(f"`{kernel.name}` cannot be read: {kernel.damage}", kernel.line)
    _launchable(launch, kernel)
    called = naming.launch_name(launch, kernel)
    draft = _Draft(document, kernel, types.split_name(called)[1], _notes(launch))
    pairs = list(zip(_named(kernel), launch.arguments, strict=True))
    uses = [_use(parameter, one, draft) for parameter, one in pairs if parameter.pointer_depth]
    symbols = _symbols(launch, draft)
    read, written = _roles(draft, frozenset(symbol.name for symbol in launch.symbols))
    buffers = _buffers(uses, read, written, draft)
    constants = tuple(
        Constant(parameter.name, _scalar(parameter, one, draft), _ORIGIN)
        for parameter, one in pairs
        if not parameter.pointer_depth
    )
    passed = tuple(_passed(parameter, one, buffers) for parameter, one in pairs)
    step = PlannedLaunch(called, _three(launch.grid), _three(launch.block), number(launch.shared), passed)
    stated = tuple(buffer for buffer, _ in buffers.values())
    workload = Workload(
        kernel.qualified_name, (), constants, (*stated, *symbols), Plan((step,)), origin=_ORIGIN,
        notes=tuple(draft.notes),
    )  # fmt: skip
    bind(workload, workload.plan, None, document)
    return Stated(workload, tuple(draft.notes))


_ORIGIN = Origin("capture")


def _launchable(launch: Launch, kernel: Kernel) -> None:
    what = f"the launch of `{kernel.name}`"
    if launch.layout == "unknown":
        raise WorkloadError(
            f"the driver is too old to tell the parameters of {what} (12.4 is needed): name the file with --file while "
            "the program is captured, so that its own signature tells them"
        )
    if len(launch.arguments) != len(kernel.parameters):
        raise WorkloadError(
            f"{what} passes {len(launch.arguments)} arguments, and the file's kernel takes {len(kernel.parameters)}: "
            "is the program built from this file?"
        )
    if math.prod(launch.cluster) > 1:
        raise WorkloadError(f"{what} groups blocks in clusters of {launch.cluster}, which a plan cannot state")


def _named(kernel: Kernel) -> list[Parameter]:
    """The parameters, those without a name called by their place."""
    return [
        parameter if parameter.name else evolve(parameter, name=f"argument{at}")
        for at, parameter in enumerate(kernel.parameters, 1)
    ]


def _notes(launch: Launch) -> list[str]:
    return ["it was a cooperative launch; a plan launches plainly"] if launch.cooperative else []


def _use(parameter: Parameter, argument: Argument, draft: _Draft) -> _Use:
    what = f"`{parameter.name}`"
    if parameter.pointer_depth > 1 and not parameter.arrays:
        raise WorkloadError(
            f"{what} is a pointer to pointers, and these are not followed: put the arrays into one and pass that"
        )
    if len(argument.data) != 8:
        raise WorkloadError(f"{what} was passed in {len(argument.data)} bytes, which are no address")
    if not any(argument.data):
        raise WorkloadError(f"{what} was a null pointer, which a plan cannot pass")
    if argument.memory is None:
        raise WorkloadError(
            f"{what} points to memory that the driver does not know (pageable memory of the host): its size is unknown"
        )
    if argument.memory.held == "no extent":
        raise WorkloadError(f"the driver does not tell how large the allocation is that {what} points to")
    return _Use(
        parameter, argument.memory, types.parameter_dtype(draft.document, draft.kernel, parameter, draft.template)
    )


def _roles(draft: _Draft, symbols: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    how = usage(draft.document, draft.kernel, symbols)
    return how.read, how.written


def _buffers(
    uses: Sequence[_Use], read: frozenset[str], written: frozenset[str], draft: _Draft
) -> dict[int, tuple[Buffer, int]]:
    """The buffer of each allocation, by its address, with the bytes of one of its elements."""
    found: dict[int, tuple[Buffer, int]] = {}
    for base in dict.fromkeys(use.memory.base for use in uses):
        group = [use for use in uses if use.memory.base == base]
        names = {use.parameter.name for use in group}
        access = _access(bool(names & read), bool(names & written))
        dtype = _dtype(group, draft)
        size, memory = dtypes.size_of(dtype), group[0].memory
        domain = _domain(group[0].parameter.name, access, memory, dtype)
        found[base] = Buffer(
            group[0].parameter.name, dtype, number(memory.extent // size), access, domain, _ORIGIN
        ), size  # fmt: skip
        draft.notes += _said(group)
    return found


def _access(reads: bool, writes: bool) -> Access:
    if not writes:
        return Access.IN
    return Access.INOUT if reads else Access.OUT


def _dtype(group: Sequence[_Use], draft: _Draft) -> str:
    """The element type of the first pointer into an allocation; bytes where it is unknown or does not divide it."""
    dtype, memory = group[0].dtype, group[0].memory
    words = [use.memory.offset for use in group]
    if dtype is not None and not any(value % dtypes.size_of(dtype) for value in (memory.extent, *words)):
        return dtype
    why = "its element type is not known here" if dtype is None else f"it holds no whole number of `{dtype}`"
    draft.notes.append(f"`{group[0].parameter.name}` is stated, and compared, as bytes: {why}")
    return "u8"


def _domain(what: str, access: Access, memory: Memory, dtype: str) -> Domain:
    if access is Access.OUT:
        return default_domain(dtype)
    if memory.held != KEPT or memory.file is None:
        raise WorkloadError(f"the contents of `{what}` ({memory.extent} bytes) were not recorded: {why_not(memory)}")
    return Domain("data", None, None, True, data.keep(memory.file))


def _said(group: Sequence[_Use]) -> list[str]:
    found = []
    first = group[0]
    if len(group) > 1:
        names = ", ".join(f"`{use.parameter.name}`" for use in group)
        found.append(f"{names} point into one allocation, and do so in the workload")
    elif first.memory.offset:
        found.append(
            f"`{first.parameter.name}` points {first.memory.offset} bytes into an allocation of {first.memory.extent}: "
            "where that is a block of an allocator of its own, the array may be smaller"
        )
    if first.memory.managed or first.memory.kind == "host":
        kind = "managed" if first.memory.managed else "pinned host"
        found.append(f"`{first.parameter.name}` is {kind} memory; in the workload it is device memory")
    return found


def _symbols(launch: Launch, draft: _Draft) -> tuple[Buffer, ...]:
    """``__constant__`` and ``__device__`` variables of the file that the kernel uses and that were recorded."""
    held = {symbol.name: symbol.memory for symbol in launch.symbols}
    found = []
    for called, text, _, immutable, initial, line in device_symbols(draft.document):
        if called not in draft.kernel.uses or (immutable and initial):
            continue
        memory = held.get(called)
        dtype = types.c_dtype(draft.document, text)
        if memory is None:
            draft.notes.append(f"the variable `{called}` (line {line}) was not recorded: it holds what the file says")
            continue
        if dtype is None or memory.extent % dtypes.size_of(dtype):
            dtype = "u8"
        access = Access.IN if immutable else Access.INOUT
        count = number(memory.extent // dtypes.size_of(dtype))
        found.append(Buffer(called, dtype, count, access, _domain(called, access, memory, dtype), _ORIGIN, symbol=True))
    return tuple(found)


_FORMS: Mapping[str, str] = {
    "f16": "<e", "f32": "<f", "f64": "<d", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I",
    "i64": "<q", "u64": "<Q", "bool": "<?",
}  # fmt: skip


def _scalar(parameter: Parameter, argument: Argument, draft: _Draft) -> Expression:
    what = f"`{parameter.name}` (`{parameter.type}`)"
    dtype = types.parameter_dtype(draft.document, draft.kernel, parameter, draft.template)
    if dtype not in dtypes.SCALARS:
        raise WorkloadError(
            f"{what} is passed by value in {len(argument.data)} bytes; its members, and where pointers in it lead, are "
            "not read off them: state it by hand, as in `{.n = 4, .data = x}`"
        )
    if len(argument.data) != dtypes.size_of(dtype):
        raise WorkloadError(
            f"{what} has {dtypes.size_of(dtype)} bytes in this file, and {len(argument.data)} were passed"
        )
    value = _value(dtype, argument.data)
    if isinstance(value, float) and math.isnan(value):
        raise WorkloadError(f"{what} was not a number (NaN), which a directive cannot state")
    return _written(value, dtype)


def _value(dtype: str, raw: bytes) -> int | float:
    if dtype == "bf16":
        return float(np.frombuffer(b"\0\0" + raw, "<f4")[0])
    (value,) = struct.unpack(_FORMS[dtype], raw)
    return int(value) if isinstance(value, bool | int) else float(value)


def _written(value: int | float, dtype: str) -> Expression:
    """As C would write it; what is negative is the negation of what is not."""
    if value < 0 or (isinstance(value, float) and math.copysign(1, value) < 0):
        return build("neg", (_written(-value, dtype),))
    return number(value, isinstance(value, float) and dtype != "f64" and math.isfinite(value))


def _passed(parameter: Parameter, argument: Argument, buffers: Mapping[int, tuple[Buffer, int]]) -> Expression:
    if not parameter.pointer_depth:
        return name(parameter.name)
    assert argument.memory is not None
    buffer, size = buffers[argument.memory.base]
    offset = argument.memory.offset // size
    return build("+", (name(buffer.name), number(offset))) if offset else name(buffer.name)


def _three(values: tuple[int, int, int]) -> tuple[Expression, Expression, Expression]:
    x, y, z = (number(value) for value in values)
    return x, y, z
