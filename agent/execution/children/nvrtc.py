"""The compiler child: NVRTC through CuPy, one program after the other. Needs no GPU.

It changes no file, knows no network, and while it compiles it reads nothing but the include folders that it was given
and its own libraries: what a text includes by some way that nobody thought of is not there.
"""

import os
import re
from typing import Any

from attrs import evolve

from agent.execution.children import rights
from agent.execution.children.messages import AskCompiler, Compile, Compiled, CompilerIs
from agent.execution.children.serve import allow_cpu, serve
from agent.execution.wire import Channel

# Enough for the heaviest template libraries; a runaway instantiation ends here and not in the swap.
MEMORY = 8 << 30

_FOLDER = "--include-path="


def main() -> None:
    try:
        from cupy.cuda import nvrtc

        identity = CompilerIs(tuple(nvrtc.getVersion()), tuple(nvrtc.getSupportedArchs()))
    except Exception as error:  # a missing CuPy, a missing library, a wheel of the wrong CUDA: all the same to the user
        nvrtc, identity = None, CompilerIs((0, 0), (), missing=f"{type(error).__name__}: {error}")
    fewer = rights.give_up()
    identity = evolve(identity, held_by=fewer.by, unheld=fewer.missing)

    def handle(channel: Channel) -> None:
        request: AskCompiler | Compile = channel.receive(AskCompiler, Compile)
        channel.send(identity if isinstance(request, AskCompiler) else compile_program(nvrtc, request))

    serve(handle, MEMORY)


def compile_program(nvrtc: Any, request: Compile) -> Compiled:
    """Compile one program. Whatever NVRTC says, or CuPy cannot do, is in the answer."""
    allow_cpu(request.seconds)
    try:
        folders = [option.removeprefix(_FOLDER) for option in request.options if option.startswith(_FOLDER)]
        return _anonymous(rights.reading_only(folders, lambda: _answer(nvrtc, request)))
    except Exception as failure:  # for example text that CuPy cannot hand to NVRTC
        return Compiled(f"{type(failure).__name__}: {failure}", "", b"", b"", ())


def _answer(nvrtc: Any, request: Compile) -> Compiled:
    compiled = _compile(nvrtc, request, request.options)
    if compiled.error and "ptxas" in compiled.log:
        virtual = tuple(option.replace("-architecture=sm_", "-architecture=compute_") for option in request.options)
        return evolve(compiled, ptx=_compile(nvrtc, request, virtual).ptx)
    return compiled


def _compile(nvrtc: Any, request: Compile, options: tuple[str, ...]) -> Compiled:
    program = nvrtc.createProgram(
        request.source,
        request.name,
        tuple(text.encode() for _, text in request.headers),
        tuple(name.encode() for name, _ in request.headers),
    )
    try:
        error = ""
        try:
            for name in request.names:
                nvrtc.addNameExpression(program, name)
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as failure:
            error = str(failure)
        log = nvrtc.getProgramLog(program).replace("\0", "")
        if error:
            return Compiled(error, log, b"", b"", ())
        lowered = tuple(nvrtc.getLoweredName(program, name) for name in request.names)
        real = any("-architecture=sm_" in option for option in options)
        return Compiled("", log, nvrtc.getPTX(program).rstrip(b"\0"), nvrtc.getCUBIN(program) if real else b"", lowered)
    finally:
        nvrtc.destroyProgram(program)


def _anonymous(compiled: Compiled) -> Compiled:
    """The same without what NVRTC writes of this process: names in anonymous namespaces hold a random number and the
    process's own, so that equal programs would look different. Lengths stay, so that mangled names stay well-formed."""
    mark = re.compile(rb"_[0-9a-f]{8}_%d" % os.getpid())
    found = set(mark.findall(compiled.ptx))
    ptx, cubin, lowered = compiled.ptx, compiled.cubin, compiled.lowered
    for name in found:
        plain = re.sub(rb"[0-9a-f]", b"0", name)
        ptx, cubin = ptx.replace(name, plain), cubin.replace(name, plain)
        lowered = tuple(entry.replace(name.decode(), plain.decode()) for entry in lowered)
    return evolve(compiled, ptx=ptx, cubin=cubin, lowered=lowered)


if __name__ == "__main__":
    main()
