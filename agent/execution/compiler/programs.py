"""From a program (a document and a plan over its kernels) to a build."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import evolve

from agent.execution.compiler import includes
from agent.execution.compiler.flags import translate
from agent.execution.compiler.kernels import compile_kernels
from agent.execution.compiler.result import Build, CompileFailure, Diagnostic, Options
from agent.execution.compiler.slices import SECONDS
from agent.execution.process import never
from agent.source.document import Document
from agent.source.errors import SliceError, UnknownKernel
from agent.source.pruning import LEFT_OUT
from agent.source.slicing import Slice
from agent.workload.program import Program

T = TypeVar("T")


def build(
    program: Program,
    options: Options,
    seconds: float = SECONDS,
    cancelled: Callable[[], bool] = never,
    lenient: bool = False,
) -> Build | CompileFailure:
    """Compile the kernels that ``program``'s plan launches, and what they use. Bad source is a value, never raised.

    The user's own program may be compiled ``lenient``-ly (see :func:`compile_kernels`); a rewrite of it with the
    liberties that the original took, which are part of ``options``.

    ``entries`` and ``resources`` of the build are keyed by the kernels' names as the plan's launches have them.
    """
    asked = tuple(dict.fromkeys(launch.kernel for launch in program.plan.launches()))
    try:
        return build_named(program.document, asked, options, seconds, cancelled, lenient)
    except (SliceError, UnknownKernel) as error:
        path = program.document.path
        return CompileFailure("source", str(error), (Diagnostic("error", path, 0, str(error)),))


def build_named(
    document: Document,
    asked: tuple[str, ...],
    options: Options,
    seconds: float = SECONDS,
    cancelled: Callable[[], bool] = never,
    lenient: bool = False,
) -> Build | CompileFailure:
    """The same for kernels by name, where nobody knows what launches them. Raises SliceError, UnknownKernel."""
    folders = includes.search(document.path, translate(options.flags).includes, ()).explicit
    part, result = compile_kernels(
        document, asked, options, [str(folder) for folder in folders], seconds, cancelled, lenient=lenient
    )
    result = evolve(result, diagnostics=(*_remarks(part), *result.diagnostics))
    if isinstance(result, CompileFailure):
        return result
    names = tuple(zip(asked, part.names, strict=True))
    return evolve(result, entries=_renamed(result.entries, names), resources=_renamed(result.resources, names))


def _renamed(values: Mapping[str, T], names: tuple[tuple[str, str], ...]) -> dict[str, T]:
    return {asked: values[expression] for asked, expression in names if expression in values}


def _remarks(part: Slice) -> tuple[Diagnostic, ...]:
    """What the slicer left out or changed: it explains an error that may follow from it."""
    dropped = tuple(Diagnostic("note" if LEFT_OUT in text else "warning", part.path, 0, text) for text in part.dropped)
    relaxed = tuple(
        Diagnostic("note", part.path, 0, f"constexpr function {name} is compiled as a device function")
        for name in part.relaxed
    )
    read = f"read as {part.context} sees it, which includes it"
    context = (Diagnostic("note", part.path, 0, read),) if part.context else ()
    return (*dropped, *relaxed, *context)
