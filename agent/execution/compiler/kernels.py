"""From kernels of a document to a build: sliced, compiled, and where it fails for something beside the kernels, again.

Nobody names the flags of a build, and a slice may hold what its kernels do not need: a macro call that makes host code,
a type of a header that is not there. What the compiler finds wrong outside the kernels is left out and tried again;
what needs it then does not compile, so that nothing can mean something else. Each such liberty is said in the slice.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from agent.execution.compiler.result import Build, CompileFailure, Options
from agent.execution.compiler.slices import SECONDS, compile_slice
from agent.execution.process import never
from agent.source.document import Document
from agent.source.pruning import Place, key_of, prunable
from agent.source.slicing import Slice, device_slice
from agent.source.writing import named

_ROUNDS = 8
_TRYING = 10.0
"""Seconds after which nothing more is tried."""
_RELAXED_FLAG = re.compile(r"--?expt-relaxed-constexpr")
_OF_THE_HOST = re.compile(r'"std"|std::|constexpr|__host__ function|non-__device__')


@frozen
class Way:
    """How a slice is read: see ``device_slice``."""

    relaxed_constexpr: bool = False
    alone: bool = False
    stand_ins: str = ""


def compile_kernels(
    document: Document,
    names: Sequence[str],
    options: Options,
    folders: Sequence[str] = (),
    seconds: float = SECONDS,
    cancelled: Callable[[], bool] = never,
    stand_ins: Sequence[str] = (),
) -> tuple[Slice, Build | CompileFailure]:
    """The slice for kernels that are given by name, and what became of it. The failure is that of the plainest way to
    read them, which is what the user's own compiler would say.

    ``stand_ins`` are the types that may be put in for template arguments that nothing in sight fixes, in the order in
    which they are tried. Raises UnknownKernel and SliceError, see :func:`agent.source.slicing.device_slice`.
    """
    first: tuple[Slice, Build | CompileFailure] | None = None
    ends = time.monotonic() + min(seconds, _TRYING)
    relaxed = any(_RELAXED_FLAG.fullmatch(flag) for flag in options.flags)
    for way in _ways(relaxed, stand_ins):
        if first is not None and (time.monotonic() > ends or not _worth(way, first, relaxed)):
            continue
        found = _compiled(document, names, options, folders, way, seconds, cancelled, ends)
        if isinstance(found[1], Build) or found[1].kind != "source":
            return found
        first = first or found
    assert first is not None, "there is a first way"
    return first


def _ways(relaxed: bool, stand_ins: Sequence[str]) -> Iterator[Way]:
    chosen = tuple(stand_ins) or ("",)
    yield Way(relaxed, False, chosen[0])
    if not relaxed:
        yield Way(True, False, chosen[0])
    yield Way(relaxed, True, chosen[0])
    for other in chosen[1:]:
        yield Way(relaxed, False, other)


def _worth(way: Way, first: tuple[Slice, Build | CompileFailure], relaxed: bool) -> bool:
    """Whether what went wrong may go right this way."""
    part, failure = first
    assert isinstance(failure, CompileFailure)
    if way.relaxed_constexpr and not relaxed:
        return any(_OF_THE_HOST.search(one.message) for one in failure.diagnostics if one.severity == "error")
    if way.alone:
        return bool(part.context)
    return bool(part.assumed)


def _compiled(
    document: Document,
    names: Sequence[str],
    options: Options,
    folders: Sequence[str],
    way: Way,
    seconds: float,
    cancelled: Callable[[], bool],
    ends: float,
) -> tuple[Slice, Build | CompileFailure]:
    without: frozenset[Place] = frozenset()
    gone: frozenset[str] = frozenset()
    first: tuple[Slice, Build | CompileFailure] | None = None
    for _ in range(_ROUNDS):
        part = device_slice(document, names, folders, way.relaxed_constexpr, way.alone, way.stand_ins, without)
        result = compile_slice(part, options, seconds, cancelled)
        first = first or (part, result)
        if isinstance(result, Build):
            return part, result
        errors = frozenset((named(one.file), one.line) for one in result.diagnostics if one.severity == "error")
        more = prunable(part.items, part.roots, errors, gone)
        if result.kind != "source" or not more or time.monotonic() > ends:
            break
        without |= {key_of(item) for item in more}
        gone = gone.union(*(item.gives for item in more))
    assert first is not None, "there is a first round"
    return first
