"""What was found, as a workload, and as a directive to correct, with its origin in comments."""

import math
from collections.abc import Iterator, Mapping
from functools import partial

from attrs import frozen

from agent.inference.probing.findings import Extent, Findings
from agent.inference.probing.fitting import Form
from agent.inference.probing.known import Known
from agent.inference.probing.outcome import Found, Probed, Stop
from agent.inference.probing.subject import Subject
from agent.workload import dtypes, types
from agent.workload.bind import bind
from agent.workload.directive import format_directive, plan_statements
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError, build, number
from agent.workload.expression import name as name_of
from agent.workload.generators import default_domain
from agent.workload.plan import Launch, Plan
from agent.workload.static.usage import device_symbols
from agent.workload.workload import PROBED, Access, Buffer, Constant, Domain, Origin, Size, Workload

_BLANK = "__open__"
_BY_DEGREE = {1: 1 << 20, 2: 1024, 3: 128}
_HIGH_DEGREE = 32
_MOST_MINIMUM = 64


@frozen
class Result:
    """What one subject came to."""

    subject: Subject
    known: Known
    found: Findings
    values: Mapping[str, int | float]
    runs: int
    seconds: float


def probed(result: Result) -> Probed:
    """The workload, if nothing is open and it binds; the directive in any case."""
    stops = [*result.found.stops, *_contents(result.found)]
    notes = [*_assumed(result), *result.found.notes]
    workload = _workload(result, tuple(notes))
    if not stops:
        try:
            bind(workload, workload.plan, None, result.subject.document)
        except WorkloadError as error:
            stops.append(Stop("launch", str(error)))
    draft = _heading(result, stops, notes) + format_directive(workload).replace(_BLANK, "?")
    seen = tuple(
        Found(one.pointer.name, one.pointer.dtype, str(_elements(one)) if one.count else None, one.access,
              str(one.before.expression) if one.before else "0")
        for one in result.found.extents
    )  # fmt: skip
    (launch,) = plan_statements(workload.plan)
    return Probed(
        None if stops else workload, draft, tuple(stops), tuple(notes), seen,
        launch.replace(_BLANK, "?").removeprefix("launch").strip(), result.runs, result.seconds,
    )  # fmt: skip


def _contents(found: Findings) -> Iterator[Stop]:
    for one in found.extents:
        if dtypes.is_raw(one.pointer.dtype) and one.access is not Access.OUT and one.accessed:
            size = dtypes.size_of(one.pointer.dtype)
            yield Stop(one.pointer.name, f"its elements are structs of {size} bytes: what may they hold?")


def _heading(result: Result, stops: list[Stop], notes: list[str]) -> str:
    """Comments above the directive. None may read as the head of one."""
    lines = [
        f"Probed by cuda-lsp: run {result.runs} times in the emulator at small sizes, on buffers without ends.",
        "What is `probed` is what the code touches there, which need not be what your program allocates: correct it,",
        "then take the word away. Nothing is known of bounds until then.",
    ]
    lines += [f"open: {stop.text}" for stop in stops] + [f"assumed: {note}" for note in notes]
    return "".join(f"// {line}\n" for line in lines)


def _workload(result: Result, notes: tuple[str, ...]) -> Workload:
    subject, found = result.subject, result.found
    origin = Origin(PROBED, subject.kernel.line, f"{result.runs} runs in the emulator")
    sizes = tuple(_sizes(result, origin))
    buffers = [_buffer(one, origin) for one in found.extents] + list(symbol_buffers(subject, origin))
    x, y, z = (_open(form) for form in found.grid)
    bx, by, bz = map(number, found.block)
    arguments = tuple(_arguments(result))
    launch = Launch(subject.name, (x, y, z), (bx, by, bz), _open(found.shared), arguments)
    return Workload(
        subject.kernel.qualified_name, sizes, tuple(_constants(result, origin)), tuple(buffers), Plan((launch,)),
        origin=origin, notes=notes,
    )  # fmt: skip


def _open(form: Form | None) -> Expression:
    return form.expression if form is not None else name_of(_BLANK)


def _elements(one: Extent) -> Expression:
    """Of a pointer that the code does not use there is one: an empty buffer cannot be passed."""
    return _open(one.count) if one.accessed or one.count is None else number(1)


def _buffer(one: Extent, origin: Origin) -> Buffer:
    pointer = one.pointer
    return Buffer(pointer.name, pointer.dtype, _elements(one), one.access, default_domain(pointer.dtype), origin)


def symbol_buffers(subject: Subject, origin: Origin) -> Iterator[Buffer]:
    """``__constant__`` and ``__device__`` variables that the kernel uses and the source leaves to the host."""
    variables = subject.loaded.module.variables
    for name, kind, _, immutable, initial, line in device_symbols(subject.document):
        mangled = next((one for key, one in subject.build.symbols.items() if key.split("::")[-1] == name), "")
        dtype = types.c_dtype(subject.document, kind)
        if mangled not in variables or dtype is None or (initial and immutable):
            continue
        count = number(max(variables[mangled].nbytes // dtypes.size_of(dtype), 1))
        access = Access.IN if immutable else Access.INOUT
        domain = default_domain(dtype) if immutable else Domain("zeros", given=True)
        yield Buffer(name, dtype, count, access, domain, Origin("symbol", line), symbol=True)


def _arguments(result: Result) -> Iterator[Expression]:
    before = {one.pointer.name: one.before for one in result.found.extents}
    varied = {variable.name for variable in result.found.design.variables}
    for parameter in result.subject.kernel.parameters:
        name = parameter.name
        if name in before:
            form = before[name]
            yield build("+", (name_of(name), form.expression if form is not None else number(0)))
        elif name not in varied and name in result.known.written:
            yield number(result.values[name])
        else:
            yield name_of(name)


# Numbers ------------------------------------------------------------------------------------------------------------


def _sizes(result: Result, origin: Origin) -> Iterator[Size]:
    used = result.found.names
    declared = _declared(result)
    for variable in result.found.design.variables:
        if variable.name in used:
            unit = max(result.found.units.get(variable.name, 1), 1)
            if variable.kind == "size":
                unit = math.lcm(unit, result.found.design.unit)
            value = max(declared[variable.name] // unit, 1) * unit
            least = _least(result.found, variable.name, {**declared, variable.name: value}, unit)
            yield Size(variable.name, max(value, least), origin, least, unit)


def _declared(result: Result) -> dict[str, int]:
    """What the host code says a size is, or else one that makes the largest buffer a few MiB."""
    degree = max(
        _threads(result.found), *(_degree(one.count) for one in result.found.extents if one.count is not None), 1
    )
    start, found = result.found.design.base(), {}
    for variable in result.found.design.variables:
        told = result.known.arguments.get(variable.name)
        usual = {"size": _BY_DEGREE.get(degree, _HIGH_DEGREE), "blocks": 64}
        found[variable.name] = int(told) if told else usual.get(variable.kind, start[variable.name])
    return found


def _threads(found: Findings) -> int:
    """How many sizes are multiplied in the number of threads."""
    return sum(_degree(form) for form in found.grid if form is not None and form.names)


def _degree(form: Form) -> int:
    """How many sizes are multiplied at most; ones that are small, such as a stride, count too."""
    if form.polynomial is None:
        return max(len(form.names), 1)
    return max((len(monomial) for monomial in form.polynomial), default=1)


def _least(found: Findings, name: str, values: Mapping[str, int], unit: int) -> int:
    """The first value, in steps of ``unit``, from which on every number of a launch makes sense."""
    forms = [form for form in (*found.grid, *(one.count for one in found.extents if one.accessed)) if form is not None]
    least = unit
    for value in range(unit, _MOST_MINIMUM * unit + 1, unit):
        if not all(map(partial(_positive, values={**values, name: value}), forms)):
            least = value + unit
    return least


def _positive(form: Form, values: Mapping[str, int]) -> bool:
    try:
        return form.at(values) >= 1
    except ExpressionError:
        return False


def _constants(result: Result, origin: Origin) -> Iterator[Constant]:
    sized = {variable.name for variable in result.found.design.variables} & result.found.names
    single = {scalar.name for scalar in result.subject.scalars if scalar.dtype in ("f32", "f16", "bf16")}
    fixed = result.known.written - {variable.name for variable in result.found.design.variables}
    for scalar in result.subject.scalars:
        if scalar.name not in sized | fixed:
            value = result.values[scalar.name]
            yield Constant(scalar.name, number(value, scalar.name in single and isinstance(value, float)), origin)


def _assumed(result: Result) -> Iterator[str]:
    """What nobody stated: template arguments, the block, values of scalars."""
    subject, found = result.subject, result.found
    if subject.stands_in:
        yield subject.stands_in
    if result.known.block is None:
        shown = " x ".join(str(side) for side in found.block)
        yield f"blocks of {shown} threads, with which nothing goes wrong inside a block"
    sized = [one.name for one in found.design.variables if one.name in found.names]
    chosen = [name for name in sized if name not in result.known.arguments]
    if chosen:
        yield f"the values of {_listed(chosen)} are ours: state your own"
    others = [one.name for one in subject.scalars if one.name not in {*sized, *result.known.arguments}]
    if others:
        told = ", ".join(f"{name} = {result.values[name]}" for name in others)
        if found.whole:
            yield f"no extent was seen to depend on {_listed(others)}; {told}"
        else:
            yield f"{told}: ours, and what is open may depend on {_listed(others)}"
    unused = [one.pointer.name for one in found.extents if not one.accessed and one.count is not None]
    for name in unused:
        yield f"the code does not use `{name}`; one element stands for it"
    behind = [one.pointer.name for one in found.extents if one.before is not None and one.before.names | _constant(one)]
    if behind:
        yield f"elements before {_listed(behind)} are touched, so the pointer that is passed lies inside its buffer"


def _constant(one: Extent) -> frozenset[str]:
    """Not empty where a fixed number of elements lies before the pointer."""
    assert one.before is not None
    return frozenset(("constant",)) if one.before.expression.constant != 0 else frozenset()


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
