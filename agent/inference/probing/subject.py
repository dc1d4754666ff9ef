"""The kernel that is probed: one instance of it, compiled, with what its code says about how it wants to be run."""

import re
from collections.abc import Callable, Iterator

from attrs import field, frozen

from agent.execution.compiler import build
from agent.execution.compiler.result import Build, CompileFailure, Options
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.influence import Influence, influence
from agent.execution.emulator.kernel import Kernel as Code
from agent.execution.emulator.program import Loaded, load
from agent.execution.emulator.ptx.instruction import Address, Immediate, Instruction, Register, Special, Symbol
from agent.inference.probing.known import Known
from agent.inference.probing.outcome import Stopped
from agent.source.document import Document
from agent.source.errors import SliceError, UnknownKernel
from agent.source.kernel import Kernel, Parameter, TemplateParameter
from agent.source.slicing import kernel_instances
from agent.workload import dtypes, types
from agent.workload.expression import number
from agent.workload.plan import Launch, Plan
from agent.workload.program import Program
from agent.workload.static import passing

AXES = "xyz"
_BYTES = "u8"
_MOST_INSTANCES = 3  # that are tried where the first does not compile
_MOST_BLOCKS = 2500  # what decides what is worked out for each pair of them


@frozen
class Pointer:
    """``dtype`` is None where the file does not tell what it points to."""

    name: str
    dtype: str
    const: bool


@frozen
class Scalar:
    name: str
    dtype: str


@frozen
class Subject:
    """``name`` is the instance's name expression; ``stands_in`` says in words which template arguments are ours."""

    document: Document
    kernel: Kernel
    name: str
    stands_in: str
    pointers: tuple[Pointer, ...]
    scalars: tuple[Scalar, ...]
    build: Build = field(repr=False)
    loaded: Loaded = field(repr=False)
    code: Code = field(repr=False)
    influence: Influence = field(repr=False)

    def uses(self, register: str) -> bool:
        """Whether the code asks for a special register (``tid.y``)."""
        return any(initial.name == register for initial in self.code.entries)

    def guards(self, axis: str) -> bool:
        """Whether a branch hangs on the number of the block along ``axis``."""
        return any(f"ctaid.{axis}" in sources for sources in self.influence.branches.values())

    def takes(self, parameter: str) -> bool:
        """Whether the code asks for a parameter: the compiler leaves out one that nothing hangs on."""
        place = next(index for index, one in enumerate(self.kernel.parameters) if one.name == parameter)
        symbol = self.code.function.parameters[place].name
        sources = (source for item in self.code.code.items for source in item.instruction.sources)
        bases = (source.base if isinstance(source, Address) else source for source in sources)
        return any(isinstance(base, Symbol) and base.name == symbol for base in bases)

    @property
    def dynamic_shared(self) -> bool:
        return bool(self.code.code.dynamic_names)

    @property
    def factors(self) -> tuple[int, ...]:
        """Whole numbers that the code multiplies block or thread numbers with, or divides by: tiles and elements a
        thread."""
        return tuple(dict.fromkeys(_factors(self.code)))


def open_subject(
    document: Document, kernel: Kernel, known: Known, options: Options, cancelled: Callable[[], bool],
    loose: bool = False,
) -> Subject:  # fmt: skip
    """Compile it. Raises Stopped where it cannot be compiled, run or launched. ``loose``: what is behind a pointer of a
    type that is not known are bytes."""
    failure: CompileFailure | None = None
    for arguments, stands_in in _instances(document, kernel, known):
        name = kernel.qualified_name + (f"<{', '.join(arguments)}>" if arguments else "")
        built = _built(document, name, options, cancelled)
        if isinstance(built, CompileFailure):
            failure = failure or built
            if built.kind != "source":
                break
            continue
        return _subject(document, kernel, name, arguments, stands_in, built, loose)
    assert failure is not None
    raise Stopped(f"it cannot be compiled: {failure.message}", kind=failure.kind)


def _built(document: Document, name: str, options: Options, cancelled: Callable[[], bool]) -> Build | CompileFailure:
    one = number(1)
    launch = Launch(name, (one, one, one), (one, one, one), number(0), ())
    return build(Program(document, Plan((launch,)), "original"), options, cancelled=cancelled, lenient=True)


def _subject(
    document: Document, kernel: Kernel, name: str, arguments: tuple[str, ...], stands_in: str, built: Build, loose: bool
) -> Subject:
    pointers, scalars = [], []
    for parameter in kernel.parameters:
        dtype = types.parameter_dtype(document, kernel, parameter, arguments)
        if why := passing.barred(document, kernel, parameter, dtype, arguments):
            raise Stopped(why, kernel.line)
        if types.is_texture(parameter):
            what = f"`{kernel.name}` takes `{parameter.name}`, a texture or surface, whose size no run tells"
            raise Stopped(f"{what}: state it in a directive (docs/workload.md#textures-and-surfaces)", kernel.line)
        if not parameter.pointer_depth and (dtype is None or not dtypes.is_scalar(dtype)):
            what = f"`{kernel.name}` takes `{parameter.name}`, a `{parameter.type}`, by value: no run tells its members"
            raise Stopped(f"{what}; state them in a directive (docs/workload.md#structs-by-value)", kernel.line)
        if parameter.pointer_depth:
            element = _BYTES if loose and dtype is None else _element(kernel, parameter, dtype)
            pointers.append(Pointer(parameter.name, element, parameter.const))
        else:
            assert dtype is not None
            scalars.append(Scalar(parameter.name, dtype))
    try:
        loaded = load(built)
        code = loaded.kernel(built.entries.get(name, name))
    except Refused as refused:
        raise Stopped(str(refused), kernel.line) from None
    if len(code.blocks) > _MOST_BLOCKS:
        raise Stopped(
            f"its code has {len(code.blocks)} pieces without a branch; {_MOST_BLOCKS} are the most", kernel.line
        )
    return Subject(
        document, kernel, name, stands_in, tuple(pointers), tuple(scalars), built, loaded, code, influence(code)
    )


def _element(kernel: Kernel, parameter: Parameter, dtype: str | None) -> str:
    if dtype is None:
        what = f"`{parameter.name}` points to `{parameter.element}`, which is not known in this file"
        raise Stopped(f"{what}: include its definition, or state the buffer in a directive", kernel.line)
    return dtype


def _instances(document: Document, kernel: Kernel, known: Known) -> Iterator[tuple[tuple[str, ...], str]]:
    """Template arguments to try, those that a launch names first."""
    if not kernel.template or "<" in kernel.qualified_name:
        yield (), ""
        return
    if known.template is not None:
        yield known.template, ""
    yield from ((arguments, "") for arguments in _named(document, kernel))
    flat = not re.search(rb"threadIdx\s*\.\s*[yz]", document.text[kernel.body.start : kernel.body.end])
    for whole in (128, 16, 32, 4) if flat else (16, 32, 8, 4):
        chosen = tuple(_stand_in(one, whole) for one in kernel.template)
        named = ", ".join(f"{one.name} = {value}" for one, value in zip(kernel.template, chosen, strict=True))
        yield chosen, f"no launch fixes the template arguments; {named} stand in"


def _named(document: Document, kernel: Kernel) -> Iterator[tuple[str, ...]]:
    """The template arguments of the first instances that launches in sight name."""
    try:
        names = kernel_instances(document, kernel.qualified_name)
    except (SliceError, UnknownKernel):
        return
    for arguments in (types.split_name(name)[1] for name in names[:_MOST_INSTANCES]):
        if len(arguments) == len(kernel.template):
            yield arguments


def _stand_in(template: TemplateParameter, whole: int) -> str:
    if template.default is not None:
        return template.default
    if template.kind == "type":
        return "float"
    return "true" if template.type == "bool" else str(whole)


# What the code says -------------------------------------------------------------------------------------------------


def _factors(code: Code) -> Iterator[int]:
    held = _carriers(code)
    for item in code.code.items:
        registers = [one for one in item.instruction.sources if isinstance(one, Register)]
        if any((item.frame.number, one.file, one.slot) in held for one in registers):
            yield from _whole(item.instruction)


def _carriers(code: Code) -> set[tuple[int, str, int]]:
    """Registers that hold the number of a block or thread, or of blocks' sizes."""
    found = set()
    for item in code.code.items:
        names = [one.name.split(".")[0] for one in item.instruction.sources if isinstance(one, Special)]
        if item.instruction.base == "mov" and {"ctaid", "tid", "ntid"} & set(names):
            registers = [one for one in item.instruction.destinations if isinstance(one, Register)]
            found |= {(item.frame.number, one.file, one.slot) for one in registers}
    return found


def _whole(instruction: Instruction) -> Iterator[int]:
    for source in instruction.sources:
        if isinstance(source, Immediate) and source.kind == "int":
            value = 1 << source.bits if instruction.base in ("shl", "shr") and source.bits < 12 else source.bits
            if instruction.base in ("shl", "shr", "mul", "mad", "div") and 2 <= value <= 4096:
                yield value


def shared_arrays(subject: Subject) -> tuple[int, ...]:
    """Bytes of each static array in shared memory."""
    return tuple(nbytes for _, nbytes in subject.code.code.shared.values())


def is_whole_number(dtype: str) -> bool:
    return not dtypes.is_float(dtype) and dtype != "bool"
