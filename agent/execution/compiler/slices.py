"""From a device slice to a build: check, look up, compile in a child, and put the answer into values."""

import hashlib
import json
import os
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Protocol

from attrs import evolve

from agent.execution import children, toolkit
from agent.execution.children.messages import Compile, Compiled, CompilerIs
from agent.execution.compiler import cache, includes, log, pool
from agent.execution.compiler.flags import Flags, nvrtc_options, translate
from agent.execution.compiler.result import Build, CompileFailure, Diagnostic, Options
from agent.execution.process import ChildCancelled, ChildDied, ChildTimeout, never
from agent.source import mixed_math
from agent.source.writing import named

SECONDS = 60.0
# Part of every cache key: raise it when the meaning of what is stored changes.
_SCHEMA = 1
_HERE = Path(children.__file__).parent
_PUBLIC_WHEELS = (("cuda12", 12), ("cuda13", 13))


class SliceLike(Protocol):
    """What is read of ``agent.source.slicing.Slice``."""

    @property
    def text(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def symbols(self) -> tuple[str, ...]: ...
    @property
    def path(self) -> str: ...


def compile_slice(
    part: SliceLike, options: Options, seconds: float = SECONDS, cancelled: Callable[[], bool] = never
) -> Build | CompileFailure:
    """Compile one device slice for ``options.arch``. Everything that can go wrong is a :class:`CompileFailure`."""
    try:
        return _compile(part, options, seconds, cancelled)
    except includes.Refused as refusal:
        line = includes.line_of(part.text, refusal.target)
        return CompileFailure("refused", str(refusal), (Diagnostic("error", part.path, line, str(refusal)),))
    except ChildTimeout:
        return CompileFailure(
            "timeout", f"the compiler did not finish within {seconds:g} s (endless templates, or too much unrolling)"
        )
    except ChildCancelled:
        return CompileFailure("cancelled", "the compilation was cancelled")
    except ChildDied as death:
        return CompileFailure(
            "crashed",
            f"NVRTC crashed on this source ({death}). The source is most likely malformed; it cannot be compiled here",
        )


def _compile(
    part: SliceLike, options: Options, seconds: float, cancelled: Callable[[], bool]
) -> Build | CompileFailure:
    compiler = pool.identity()
    if (missing := unavailable(compiler, options.arch)) is not None:
        return missing
    flags = translate(options.flags)
    folders = toolkit.include_folders(compiler.version[0])
    where = includes.search(part.path, flags.includes, folders)
    forced = "".join(f'#include "{name}"\n' for name in flags.forced)
    text = (f'{forced}#line 1 "{_file_name(part.path)}"\n' if forced else "") + _plain(part.text)
    headers = tuple((name, _plain(body)) for name, body in part.headers)
    reached = includes.check(text, headers, where, _HERE)
    arguments = (*nvrtc_options(options, flags.passed), *(f"--include-path={folder}" for folder in where.folders))
    names = (*part.names, *(f"&{symbol}" for symbol in part.symbols))
    request = Compile(text, _file_name(part.path), arguments, names, headers, seconds)
    key = _key(request, part.path, options, compiler, reached, folders)
    kept = cache.get(key)
    if kept is None:
        kept = _result(pool.compile_program(request, cancelled), part, options, compiler, key)
        cache.put(key, kept)
    told = evolve(kept, diagnostics=(*_flag_warnings(flags, where, part.path), *kept.diagnostics))
    if isinstance(told, CompileFailure) and where.outside:  # what it lacks may be there
        return evolve(told, message=f"{told.message}; {_unread(where.outside[0])}")
    return told


def _result(
    compiled: Compiled, part: SliceLike, options: Options, compiler: CompilerIs, key: str
) -> Build | CompileFailure:
    # NVRTC completes a relative file name with the folder that it works in, which is none of the user's.
    ptx = compiled.ptx.decode("utf-8", "replace").replace(f'"{_HERE}{os.sep}', '"')
    said = compiled.log.replace(mixed_math.OURS, "")
    found = tuple(
        evolve(item, file=part.path) if item.file in (_file_name(part.path), named(part.path)) else item
        for item in log.diagnostics(said, ptx)
    )
    if compiled.error:
        errors = [item for item in found if item.severity == "error"]
        message = _said(errors[0]) if errors else f"NVRTC refused the source without saying why ({compiled.error})"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return CompileFailure("source", message + more, found)
    used = log.resources(compiled.log)
    entries = dict(zip(part.names, compiled.lowered, strict=False))
    return Build(
        ptx=ptx,
        cubin=compiled.cubin,
        entries=entries,
        resources={name: used[lowered] for name, lowered in entries.items() if lowered in used},
        symbols=dict(zip(part.symbols, compiled.lowered[len(part.names) :], strict=True)),
        arch=options.arch,
        compiler=f"NVRTC {compiler.version[0]}.{compiler.version[1]}",
        diagnostics=found,
        key=key,
    )


def unavailable(compiler: CompilerIs, arch: str) -> CompileFailure | None:
    """Why this machine cannot compile for ``arch`` at all, with the command that mends it; None if it can."""
    if compiler.missing:
        return CompileFailure("unavailable", f"no CUDA compiler: {mend_compiler()} ({compiler.missing})")
    matched = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if matched is None:
        return CompileFailure("refused", f"{arch!r} is no architecture; write it like sm_90")
    if int(matched[1]) not in compiler.archs:
        known = ", ".join(f"sm_{number}" for number in compiler.archs)
        version = ".".join(map(str, compiler.version))
        return CompileFailure("unavailable", f"NVRTC {version} cannot compile for {arch}; it knows {known}")
    return None


def mend_compiler() -> str:
    """The command that installs what the compiler needs, for the CUDA of an installed CuPy (13 if there is none)."""
    extra = "cuda13"
    for name, major in _PUBLIC_WHEELS:
        if _installed(f"cupy-cuda{major}x"):
            extra = name
    return f"pip install 'cuda-lsp[{extra}]'"


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _plain(text: str) -> str:
    """Text as NVRTC will see it: a zero byte would end the program early, half a surrogate cannot be encoded."""
    return text.removeprefix("\ufeff").replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def _file_name(path: str) -> str:
    return named(Path(path).name) or "kernel.cu"


def _said(diagnostic: Diagnostic) -> str:
    return f"line {diagnostic.line}: {diagnostic.message}" if diagnostic.line else diagnostic.message


def _flag_warnings(flags: Flags, where: includes.Search, path: str) -> tuple[Diagnostic, ...]:
    outside = tuple(Diagnostic("warning", path, 0, _unread(folder)) for folder in where.outside)
    return (*flags.warnings(), *outside)


def _unread(folder: Path) -> str:
    return (
        f"include folder {folder} lies outside the workspace and is not read; "
        "add it to the environment variable CUDA_LSP_INCLUDE_PATH to allow it"
    )


def _key(
    request: Compile, path: str, options: Options, compiler: CompilerIs, reached: str, folders: tuple[Path, ...]
) -> str:
    """A hash of everything that the result depends on."""
    stamps = [
        (str(folder), (folder / "cuda_runtime.h").stat().st_mtime_ns)
        for folder in folders
        if (folder / "cuda_runtime.h").is_file()
    ]
    parts = (
        _SCHEMA, request.source, path, request.options, request.names, request.headers,
        options.arch, options.fmad, options.optimised, compiler.version, reached, stamps,
    )  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
