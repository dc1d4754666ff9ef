"""The rewrite as nvcc reads it, compiled by the compiler that is here: code may ask which of the two it is.

NVRTC defines a macro that nvcc does not, nvcc those of the host's compiler. Where a kernel reads another way under
nvcc's, what was judged is not what the user will run. The two are told apart by compiling both and comparing the code.
"""

import re
from collections.abc import Callable

from attrs import evolve

from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, CompileFailure, Options
from agent.source.errors import SourceError
from agent.source.slicing import Slice, device_slice
from agent.workload.program import Program

_OURS = "__CUDACC_RTC__"
_THEIRS = ("__NVCC__", "__GNUC__", "__linux__", "__unix__", "__x86_64__", "__ELF__")
_LEAVE = "".join((f"#undef {_OURS}\n", *(f"#define {name} 1\n" for name in _THEIRS)))
_RETURN = "".join((f"#define {_OURS} 1\n", *(f"#undef {name}\n" for name in _THEIRS)))

_ASKS = re.compile(
    r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(?!line\b|include\b|pragma\b)|##|%:%:|\b__\w*RTC__\b|\b__NVCC__\b|\\[ \t]*$|\\[uU]",
    re.MULTILINE,
)
"""Text that may read another way elsewhere: without directives and pasted names nothing does."""

_MARKER = re.compile(r'^#line (\d+)( "[^"]*")?')
_INCLUDE = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*include\b")
_UNTOLD = re.compile(r"^\s*\.(?:loc|file)\b.*$|//.*$", re.MULTILINE)
_OWN_NAME = re.compile(r"_INTERNAL_[0-9a-f]+_")


def told_apart(program: Program, options: Options, cancelled: Callable[[], bool]) -> str:
    """How the kernels that are launched differ for nvcc, in words; empty where they do not, or where nobody can say."""
    names = tuple(dict.fromkeys(launch.kernel for launch in program.plan.launches()))
    try:
        part = device_slice(program.document, names)
    except SourceError:
        return ""
    if not _ASKS.search(part.text):
        return ""
    here = compile_slice(part, options, cancelled=cancelled)
    there = compile_slice(as_nvcc(part), options, cancelled=cancelled)
    if isinstance(here, CompileFailure) or (isinstance(there, CompileFailure) and there.kind != "source"):
        return ""
    if isinstance(there, CompileFailure):
        return f"does not compile as nvcc reads it: {there.message}"
    return "" if _code(here) == _code(there) else "reads another way for nvcc than for the compiler that judges it"


def as_nvcc(part: Slice) -> Slice:
    """The slice without NVRTC's own macro and with some of the host compiler's, headers but for; lines keep their
    numbers."""
    written = [_LEAVE, '#line 1 "kernel.cu"\n']
    line, file = 1, ' "kernel.cu"'
    for text in part.text.splitlines():
        marker = _MARKER.match(text)
        if marker is not None:
            line, file = int(marker[1]) - 1, marker[2] or file
        if _INCLUDE.match(text):
            text = f"{_RETURN}#line {line}{file}\n{text}\n{_LEAVE}#line {line + 1}{file}"
        written.append(f"{text}\n")
        line += 1
    return evolve(part, text="".join(written))


def _code(build: Build) -> str:
    return _OWN_NAME.sub("", _UNTOLD.sub("", build.ptx))
