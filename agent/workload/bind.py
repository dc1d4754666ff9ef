"""A workload and a plan at given sizes -> concrete launches: repeats unrolled, swaps resolved, all numbers known."""

import math
from collections.abc import Callable, Iterator, Mapping

from attrs import define, field, frozen

from agent.source.document import Document
from agent.source.kernel import Kernel, Parameter
from agent.workload import data, dtypes, textures, types
from agent.workload.arithmetic import round_float
from agent.workload.binding import (
    Argument,
    Bound,
    BoundBuffer,
    BoundCopy,
    BoundFill,
    BoundLaunch,
    BoundStep,
    PointerArgument,
    TextureArgument,
    Three,
    ValueArgument,
)
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError, build, number
from agent.workload.layout import Layout, LayoutError, parameter_layout
from agent.workload.plan import Copy, Fill, Grid, Launch, Plan, Repeat, Scratch, Step, Swap
from agent.workload.struct_arguments import Value, record_argument
from agent.workload.workload import Access, Buffer, Domain, Workload

MAX_STEPS = 100_000
MAX_BUFFER_BYTES = 2**40

# CUDA C++ Programming Guide, "Features and Technical Specifications per Compute Capability": the largest values of any.
MAX_GRID: Three = (2**31 - 1, 65535, 65535)
MAX_BLOCK: Three = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_SHARED = 227 * 1024
FREE_SHARED = 48 * 1024
"""Bytes of shared memory that a block may have, static and dynamic together, unless the host raises the kernel's limit
(CUDA C++ Programming Guide, "Shared Memory" of compute capability 7.x and later)."""

Names = Mapping[str, int | float]


@frozen
class _Scene:
    """What stays fixed while the steps are walked."""

    names: Names
    buffers: Mapping[str, BoundBuffer]
    document: Document | None
    views: Mapping[str, textures.View] = field(factory=dict)


@define
class _Progress:
    """What changes: which buffer each pointer name stands for now, and how many steps there were."""

    pointers: dict[str, str]
    steps: int = 0
    used: dict[int, tuple[str, ...]] = field(factory=dict)
    known: dict[tuple[object, ...], BoundLaunch] = field(factory=dict)


def bind(
    workload: Workload, plan: Plan, sizes: Mapping[str, int] | None = None, document: Document | None = None
) -> Bound:
    """The plan at the workload's sizes, or at ``sizes`` where given (those not named keep their declared value).

    ``document`` defines the launched kernels; it is needed wherever a scalar is passed, as only the kernel's signature
    tells its type. Raises WorkloadError where a number is missing or outside what CUDA can launch, where a pointer name
    is not a buffer, where arguments and parameters do not match, or where repeats unroll to more than 100,000 steps.
    """
    chosen = _sizes(workload, sizes or {})
    names = environment(workload, plan, chosen)
    stated: tuple[Buffer | Scratch, ...] = (*workload.buffers, *plan.scratch)
    buffers = tuple(_bound_buffer(buffer, names) for buffer in stated)
    by_name = _by_name(buffers)
    scene = _Scene(names, by_name, document, _views(workload, by_name, names))
    progress = _Progress({buffer.name: buffer.name for buffer in buffers})
    steps = tuple(_walk(plan.steps, names, scene, progress))
    exchanged = tuple((name, held) for name, held in sorted(progress.pointers.items()) if name != held)
    return Bound(chosen, buffers, steps, exchanged)


def environment(workload: Workload, plan: Plan, sizes: Mapping[str, int] | None = None) -> dict[str, int | float]:
    """The value of every name: sizes, constants and the plan's locals, each group in order. Raises WorkloadError where
    a local takes a name that has a value already: a plan must not redefine what its workload says."""
    names: dict[str, int | float] = {size.name: size.value for size in workload.sizes}
    names.update(sizes or {})
    for constant in workload.constants:
        names[constant.name] = _value(constant.value, names, f"constant `{constant.name}`")
    for local, expression in plan.locals:
        if local in names:
            raise WorkloadError(f"local `{local}` has a value already; give it another name")
        names[local] = _value(expression, names, f"local `{local}`")
    return names


def _sizes(workload: Workload, sizes: Mapping[str, int]) -> dict[str, int]:
    known = {size.name: size for size in workload.sizes}
    for name, value in sizes.items():
        if name not in known:
            raise WorkloadError(f"`{name}` is not a size of this workload; it has {', '.join(known) or 'none'}")
        if value < known[name].minimum:
            raise WorkloadError(f"size `{name}` is {value}, its minimum is {known[name].minimum}")
    return {name: int(sizes.get(name, size.value)) for name, size in known.items()}


def _value(expression: Expression, names: Names, what: str) -> int | float:
    try:
        return expression.evaluate(names)
    except ExpressionError as error:
        raise WorkloadError(f"{what}: {error}") from None


def _integer(expression: Expression, names: Names, what: str) -> int:
    value = _value(expression, names, what)
    if isinstance(value, float) and not math.isfinite(value):
        raise WorkloadError(f"{what}: `{expression}` is not finite")
    return int(value)


def _bound_buffer(buffer: Buffer | Scratch, names: Names) -> BoundBuffer:
    what = f"extent of `{buffer.name}`"
    count = _integer(buffer.extent, names, what)
    nbytes = count * dtypes.size_of(buffer.dtype)
    if count < 0 or nbytes > MAX_BUFFER_BYTES:
        raise WorkloadError(f"{what}: `{buffer.extent}` is {count} elements{_at(names)}")
    if isinstance(buffer, Scratch):
        plain = Domain("zeros") if buffer.zeroed else Domain("poison")
        return BoundBuffer(
            buffer.name, buffer.dtype, count, nbytes, Access.OUT, plain, None, None, scratch=True, zeroed=buffer.zeroed
        )
    if buffer.domain.kind == "data" and buffer.access is not Access.OUT:
        _check_data(buffer, nbytes)
    low, high = (_bound(limit, names, buffer.name) for limit in (buffer.domain.low, buffer.domain.high))
    return BoundBuffer(
        buffer.name, buffer.dtype, count, nbytes, buffer.access, buffer.domain, low, high, symbol=buffer.symbol
    )


def _check_data(buffer: Buffer, nbytes: int) -> None:
    held = data.size(buffer.domain.data, buffer.name)
    if held != nbytes:
        raise WorkloadError(
            f"`{buffer.name}` has {nbytes} bytes, and what was captured for it {held}: captured contents fit the sizes "
            "that they were captured at alone; state a domain such as `normal` to have other sizes tried"
        )


def _bound(limit: Expression | None, names: Names, buffer: str) -> float | None:
    return None if limit is None else float(_value(limit, names, f"domain of `{buffer}`"))


def _by_name(buffers: tuple[BoundBuffer, ...]) -> dict[str, BoundBuffer]:
    found = {buffer.name: buffer for buffer in buffers}
    if len(found) < len(buffers):
        names = [buffer.name for buffer in buffers]
        double = next(name for name in names if names.count(name) > 1)
        raise WorkloadError(f"two buffers are called `{double}`; give one of them another name")
    return found


def _views(workload: Workload, buffers: Mapping[str, BoundBuffer], names: Names) -> dict[str, textures.View]:
    found: dict[str, textures.View] = {}
    for texture in workload.textures:
        if texture.name in buffers or texture.name in names or texture.name in found:
            raise WorkloadError(f"`{texture.name}` has a meaning already; give the texture another name", texture.line)
        buffer = buffers.get(texture.buffer)
        if buffer is None or buffer.symbol:
            raise WorkloadError(
                f"texture `{texture.name}`: `{texture.buffer}` is no buffer; there are {', '.join(buffers) or 'none'}",
                texture.line,
            )
        found[texture.name] = textures.view(texture, buffer.dtype, buffer.nbytes, names)
    return found


def _walk(steps: tuple[Step, ...], names: Names, scene: _Scene, progress: _Progress) -> Iterator[BoundStep]:
    for step in steps:
        progress.steps += 1
        if progress.steps > MAX_STEPS:
            raise WorkloadError(f"the plan unrolls to more than {MAX_STEPS} steps; lower the count of a repeat")
        if isinstance(step, Repeat):
            for inner in _rounds(step, names):
                yield from _walk(step.body, inner, scene, progress)
        elif isinstance(step, Swap):
            first, second = (_pointer(name, scene, progress, "swap") for name in (step.first, step.second))
            progress.pointers |= {step.first: second, step.second: first}
        elif isinstance(step, Launch):
            yield _launch_again(step, names, scene, progress)
        elif isinstance(step, Fill):
            yield BoundFill(_pointer(step.buffer, scene, progress, "fill"), step.byte)
        else:
            yield _copy(step, scene, progress)


def _launch_again(launch: Launch, names: Names, scene: _Scene, progress: _Progress) -> BoundLaunch:
    """A launch of a repeat is worked out once for each of the numbers and buffers that it is launched with."""
    used = progress.used.setdefault(id(launch), tuple(sorted(_names(launch))))
    told = [progress.pointers.get(name, names.get(name)) for name in used]
    key = (id(launch), *((type(one), one) for one in told))
    if key not in progress.known:
        progress.known[key] = _launch(launch, names, scene, progress)
    return progress.known[key]


def _names(launch: Launch) -> frozenset[str]:
    return frozenset[str]().union(
        *(part.names for part in (*launch.grid, *launch.block, launch.shared, *launch.arguments))
    )


def _rounds(repeat: Repeat, names: Names) -> Iterator[Names]:
    """The names at each turn of a repeat."""
    if repeat.count is not None:
        for turn in range(_integer(repeat.count, names, "count of a repeat")):
            yield {**names, repeat.variable: turn} if repeat.variable else names
        return
    if repeat.start is None or repeat.update is None or repeat.condition is None or repeat.variable is None:
        raise WorkloadError("a repeat needs a count, or a variable with start, condition and update")
    what = f"repeat over `{repeat.variable}`"
    inner = {**names, repeat.variable: _value(repeat.start, names, what)}
    for _ in range(MAX_STEPS):
        if not _value(repeat.condition, inner, what):
            return
        yield inner
        inner = {**inner, repeat.variable: _value(repeat.update, inner, what)}
    raise WorkloadError(f"{what}: `{repeat.condition}` still holds after {MAX_STEPS} turns")


def _pointer(name: str, scene: _Scene, progress: _Progress, what: str) -> str:
    if name not in progress.pointers:
        raise WorkloadError(f"{what}: `{name}` is no buffer; buffers are {', '.join(scene.buffers) or 'none'}")
    return progress.pointers[name]


def _copy(step: Copy, scene: _Scene, progress: _Progress) -> BoundCopy:
    target, source = (_pointer(name, scene, progress, "copy") for name in (step.target, step.source))
    if scene.buffers[target].nbytes != scene.buffers[source].nbytes:
        raise WorkloadError(
            f"copy: `{target}` has {scene.buffers[target].nbytes} bytes, `{source}` {scene.buffers[source].nbytes}"
        )
    return BoundCopy(target, source)


def _launch(launch: Launch, names: Names, scene: _Scene, progress: _Progress) -> BoundLaunch:
    grid = _three(launch.grid, MAX_GRID, names, f"grid of `{launch.kernel}`")
    block = _three(launch.block, MAX_BLOCK, names, f"block of `{launch.kernel}`")
    if math.prod(block) > MAX_THREADS:
        raise WorkloadError(f"block of `{launch.kernel}` has {math.prod(block)} threads; CUDA allows {MAX_THREADS}")
    shared = _integer(launch.shared, names, f"shared bytes of `{launch.kernel}`")
    if not 0 <= shared <= MAX_SHARED:
        raise WorkloadError(
            f"`{launch.kernel}` asks for {shared} bytes of shared memory; no GPU has more than {MAX_SHARED}"
        )

    def value_of(argument: Expression) -> Value:
        return _argument(argument, names, scene, progress, launch.kernel)

    return BoundLaunch(launch.kernel, grid, block, shared, _typed(launch, value_of, scene))


def _three(grid: Grid, limits: Three, names: Names, what: str) -> Three:
    x, y, z = (_integer(part, names, what) for part in grid)
    for axis, value, part, limit in zip("xyz", (x, y, z), grid, limits, strict=True):
        if not 1 <= value <= limit:
            problem = "must be at least 1" if value < 1 else f"is at most {limit} in CUDA"
            raise WorkloadError(f"{what} is {value} in {axis} (`{part}`){_at(names)}; it {problem}")
    return x, y, z


def _at(names: Names) -> str:
    shown = ", ".join(f"{name}={value}" for name, value in list(names.items())[:6])
    return f" at {shown}" if shown else ""


def _argument(argument: Expression, names: Names, scene: _Scene, progress: _Progress, kernel: str) -> Value:
    if argument.op == "name" and argument.value in scene.views:
        return TextureArgument(scene.views[str(argument.value)])
    pointers = argument.names & progress.pointers.keys()
    if not pointers:
        return _value(argument, names, f"argument `{argument}` of `{kernel}`")
    split = pointer_offset(argument, frozenset(progress.pointers))
    if split is None:
        raise WorkloadError(f"argument `{argument}` of `{kernel}` is not a buffer plus an element offset")
    buffer = scene.buffers[progress.pointers[split[0]]]
    offset = _integer(split[1], names, f"offset `{split[1]}`") * dtypes.size_of(buffer.dtype)
    if not 0 <= offset <= buffer.nbytes:
        raise WorkloadError(
            f"argument `{argument}` of `{kernel}` points {offset} bytes into `{buffer.name}` of {buffer.nbytes}"
        )
    return PointerArgument(buffer.name, offset)


def pointer_offset(argument: Expression, pointers: frozenset[str]) -> tuple[str, Expression] | None:
    """(buffer, element offset) of ``x``, ``x + e``, ``e + x`` and ``x - e``; None for any other use of a pointer."""
    if argument.op == "name" and argument.value in pointers:
        return str(argument.value), number(0)
    if argument.op not in "+-" or len(argument.operands) != 2:
        return None
    left, right = argument.operands
    if argument.op == "+" and not left.names & pointers:
        left, right = right, left
    inner = None if right.names & pointers else pointer_offset(left, pointers)
    return (inner[0], build(argument.op, (inner[1], right))) if inner else None


def _typed(
    launch: Launch,
    value_of: Callable[[Expression], Value],
    scene: _Scene,
) -> tuple[Argument, ...]:
    if scene.document is None:
        return _all_pointers(launch, value_of)
    kernel, template = types.kernel_of(scene.document, launch.kernel)
    if len(launch.arguments) != len(kernel.parameters):
        raise WorkloadError(
            f"`{launch.kernel}` takes {len(kernel.parameters)} arguments, the plan passes {len(launch.arguments)}"
        )
    found: list[Argument] = []
    for parameter, told in zip(kernel.parameters, launch.arguments, strict=True):
        what = f"parameter `{parameter.name}` of `{launch.kernel}`"
        if parameter.pointer_depth > 1 and not parameter.arrays:
            raise WorkloadError(
                f"{what} is a pointer to pointers, which a plan cannot pass: put the arrays into one and pass that"
            )
        dtype = None if parameter.pointer_depth else types.parameter_dtype(scene.document, kernel, parameter, template)
        if told.op == "record" or not (
            parameter.pointer_depth or types.is_texture(parameter) or (dtype is not None and dtypes.is_scalar(dtype))
        ):
            layout = _layout(scene.document, kernel, parameter, template)
            found.append(record_argument(told, layout, what, value_of, convert))
            continue
        argument = value_of(told)
        if isinstance(argument, TextureArgument) or types.is_texture(parameter):
            found.append(_texture(argument, parameter, what))
            continue
        if bool(parameter.pointer_depth) != isinstance(argument, PointerArgument):
            wanted = "a buffer" if parameter.pointer_depth else "a number"
            raise WorkloadError(f"{what} (`{parameter.type}`) needs {wanted}")
        if isinstance(argument, PointerArgument):
            found.append(argument)
        elif dtype is not None:
            found.append(convert(argument, dtype))
    return tuple(found)


def _layout(document: Document, kernel: Kernel, parameter: Parameter, template: tuple[str, ...]) -> Layout:
    what = f"parameter `{parameter.name}` of `{kernel.name}`"
    if parameter.pointer_depth:
        raise WorkloadError(f"{what} (`{parameter.type}`) needs a buffer")
    try:
        return parameter_layout(document, kernel, parameter, template)
    except LayoutError as error:
        raise WorkloadError(f"{what}: {error.message}") from None


def _texture(argument: Value, parameter: Parameter, what: str) -> Argument:
    wanted = types.is_texture(parameter)
    if not isinstance(argument, TextureArgument):
        kind = "surface" if wanted == textures.SURFACE else "texture"
        raise WorkloadError(
            f"{what} is a {kind} object: state what it shows, as in `{kind} {parameter.name}: image(width, height)` "
            "for a buffer `image`, and pass its name"
        )
    given = textures.SURFACE if argument.view.surface else textures.TEXTURE
    if wanted != given:
        raise WorkloadError(f"{what} (`{parameter.type}`) is passed `{argument.view.name}`, which is a `{given}`")
    return argument


def _all_pointers(launch: Launch, value_of: Callable[[Expression], Value]) -> tuple[Argument, ...]:
    told = [None if argument.op == "record" else value_of(argument) for argument in launch.arguments]
    found: list[Argument] = [one for one in told if isinstance(one, PointerArgument | TextureArgument)]
    if len(found) < len(told):
        raise WorkloadError(f"`{launch.kernel}` takes scalars: their types need the document that defines it")
    return tuple(found)


def convert(value: int | float, dtype: str) -> ValueArgument:
    """``value`` as C converts it to a parameter of type ``dtype``. Raises WorkloadError where C leaves it undefined."""
    if dtypes.is_float(dtype):
        return ValueArgument(dtype, round_float(float(value), dtype))
    if isinstance(value, float) and not math.isfinite(value):
        raise WorkloadError(f"{value} cannot become a `{dtypes.c_name(dtype)}`")
    whole = int(value != 0) if dtype == "bool" else math.trunc(value)
    low, high = dtypes.integer_range(dtype)
    if not low <= whole <= high:
        if isinstance(value, float):
            raise WorkloadError(f"{value} does not fit a `{dtypes.c_name(dtype)}`")
        whole = (whole - low) % (high - low + 1) + low
    return ValueArgument(dtype, whole)
