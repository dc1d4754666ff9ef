"""From kernels of a document to a build: sliced, compiled, and where it fails for something beside the kernels, again.

Nobody names the flags of a build, and a slice may hold what its kernels do not need: a macro call that makes host code,
a type of a header that is not there. What the compiler finds wrong outside the kernels is left out and tried again;
what needs it then does not compile, so that nothing can mean something else. Each such liberty is said, and a rewrite
gets those of its original.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence

from attrs import evolve, field, frozen

from agent.execution.compiler.result import Build, CompileFailure, Liberties, Options
from agent.execution.compiler.slices import SECONDS, compile_slice
from agent.execution.process import never
from agent.source.document import Document
from agent.source.pruning import key_of, prunable
from agent.source.slicing import Reading, Slice, device_slice, read_for
from agent.source.writing import named

_ROUNDS = 8
_TRYING = 10.0
"""Seconds after which nothing more is tried."""
_RELAXED_FLAG = re.compile(r"--?expt-relaxed-constexpr")
_NO_NAME = re.compile(r"no kernel can be made of the name `&([^`]+)`")
_OF_THE_HOST = re.compile(r'"std"|std::|constexpr|__host__ function|non-__device__')

Compiled = tuple[Slice, Build | CompileFailure]


@frozen
class Asked:
    """What is to be compiled."""

    document: Document
    names: tuple[str, ...]
    options: Options
    folders: Sequence[str]
    seconds: float
    cancelled: Callable[[], bool]
    readings: dict[bool, Reading] = field(factory=dict)

    def reading(self, alone: bool) -> Reading:
        """The file and its headers are read once, however often something is left out."""
        if alone not in self.readings:
            self.readings[alone] = read_for(self.document, self.names, self.folders, alone)
        return self.readings[alone]


@frozen
class Way:
    """How a slice is read: see ``device_slice``."""

    liberties: Liberties
    stand_ins: str = ""


def compile_kernels(
    document: Document,
    names: Sequence[str],
    options: Options,
    folders: Sequence[str] = (),
    seconds: float = SECONDS,
    cancelled: Callable[[], bool] = never,
    stand_ins: Sequence[str] = (),
    lenient: bool = False,
) -> Compiled:
    """The slice for kernels that are given by name, and what became of it.

    A ``lenient`` compilation may take liberties; the build says which. Where nothing helps, the failure is that of the
    plainest way to read the kernels, which is what the user's own compiler would say. ``stand_ins`` are the types that
    may be put in for template arguments that nothing in sight fixes, in the order in which they are tried. Raises
    UnknownKernel and SliceError, see :func:`agent.source.slicing.device_slice`.
    """
    asked = Asked(document, tuple(names), options, folders, seconds, cancelled)
    relaxed = options.liberties.relaxed_constexpr or any(map(_RELAXED_FLAG.fullmatch, options.flags))
    plain = evolve(options.liberties, relaxed_constexpr=relaxed)
    first = _compiled(asked, Way(plain, (*stand_ins, "")[0]))
    if not lenient or _is_over(first):
        return first
    ends = time.monotonic() + min(seconds, _TRYING)
    for way in _ways(plain, stand_ins):
        if time.monotonic() < ends and _worth(way, first, plain):
            found = _pruned(asked, way, ends)
            if _is_over(found):
                return found
    return first


def _ways(plain: Liberties, stand_ins: Sequence[str]) -> Iterator[Way]:
    chosen = (*stand_ins, "")[0]
    yield Way(plain, chosen)
    yield Way(evolve(plain, relaxed_constexpr=True), chosen)
    yield Way(evolve(plain, alone=True), chosen)
    for other in stand_ins[1:]:
        yield Way(plain, other)


def _worth(way: Way, first: Compiled, plain: Liberties) -> bool:
    """Whether what went wrong at first may go right this way."""
    part, failure = first
    assert isinstance(failure, CompileFailure)
    if way.liberties.relaxed_constexpr and not plain.relaxed_constexpr:
        return any(_OF_THE_HOST.search(one.message) for one in failure.diagnostics if one.severity == "error")
    if way.liberties.alone and not plain.alone:
        return bool(part.context)
    return bool(part.assumed) or way.liberties == plain


def _is_over(found: Compiled) -> bool:
    """Whether nothing else can help: it compiles, or what is wrong is not the source."""
    return isinstance(found[1], Build) or found[1].kind != "source"


def _pruned(asked: Asked, way: Way, ends: float) -> Compiled:
    """Compiled without what fails beside the kernels; the first failure where that does not help."""
    first: Compiled | None = None
    gone: frozenset[str] = frozenset()
    for _ in range(_ROUNDS):
        part, result = _compiled(asked, way)
        first = first or (part, result)
        if isinstance(result, Build):
            return part, result
        errors = frozenset((named(one.file), one.line) for one in result.diagnostics if one.severity == "error")
        more = prunable(part.items, part.roots, errors, gone)
        if result.kind != "source" or not more or time.monotonic() > ends:
            break
        left_out = dict.fromkeys((*way.liberties.left_out, *map(key_of, more)))
        way = evolve(way, liberties=evolve(way.liberties, left_out=tuple(left_out)))
        gone = gone.union(*(item.gives for item in more))
    assert first is not None, "there is a first round"
    return first


def _compiled(asked: Asked, way: Way) -> Compiled:
    taken = way.liberties
    part = device_slice(
        asked.document, asked.names, asked.folders, taken.relaxed_constexpr, taken.alone, way.stand_ins,
        frozenset(taken.left_out), asked.reading(taken.alone),
    )  # fmt: skip
    result = compile_slice(part, asked.options, asked.seconds, asked.cancelled)
    while isinstance(result, CompileFailure) and (nameless := _nameless(part, result)):
        left = tuple(symbol for symbol in part.symbols if symbol not in nameless)
        part = evolve(part, symbols=left)
        result = compile_slice(part, asked.options, asked.seconds, asked.cancelled)
    return part, evolve(result, liberties=taken) if isinstance(result, Build) else result


def _nameless(part: Slice, failure: CompileFailure) -> frozenset[str]:
    """Variables of the slice of which the compiler gives no name (managed ones, those of templates): a kernel that uses
    them compiles all the same, and only their contents cannot be told from outside."""
    named = (_NO_NAME.search(one.message) for one in failure.diagnostics)
    return frozenset(found[1] for found in named if found is not None) & frozenset(part.symbols)
