"""The compiler child: NVRTC through CuPy, one program after the other. Needs no GPU."""

from typing import Any

from agent.execution.children.messages import AskCompiler, Compile, Compiled, CompilerIs
from agent.execution.children.serve import allow_cpu, serve
from agent.execution.wire import Channel

# Enough for the heaviest template libraries; a runaway instantiation ends here and not in the swap.
MEMORY = 8 << 30


def main() -> None:
    try:
        from cupy.cuda import nvrtc

        identity = CompilerIs(tuple(nvrtc.getVersion()), tuple(nvrtc.getSupportedArchs()))
    except Exception as error:  # a missing CuPy, a missing library, a wheel of the wrong CUDA: all the same to the user
        nvrtc, identity = None, CompilerIs((0, 0), (), missing=f"{type(error).__name__}: {error}")

    def handle(channel: Channel) -> None:
        request: AskCompiler | Compile = channel.receive(AskCompiler, Compile)
        channel.send(identity if isinstance(request, AskCompiler) else compile_program(nvrtc, request))

    serve(handle, MEMORY)


def compile_program(nvrtc: Any, request: Compile) -> Compiled:
    allow_cpu(request.seconds)
    program = nvrtc.createProgram(
        request.source,
        request.name,
        tuple(text for _, text in request.headers),
        tuple(name for name, _ in request.headers),
    )
    try:
        error = ""
        try:
            for name in request.names:
                nvrtc.addNameExpression(program, name)
            nvrtc.compileProgram(program, request.options)
        except nvrtc.NVRTCError as failure:
            error = str(failure)
        log = nvrtc.getProgramLog(program).rstrip("\0")
        if error:
            return Compiled(error, log, b"", b"", ())
        lowered = tuple(nvrtc.getLoweredName(program, name) for name in request.names)
        return Compiled("", log, nvrtc.getPTX(program).rstrip(b"\0"), nvrtc.getCUBIN(program), lowered)
    finally:
        nvrtc.destroyProgram(program)


if __name__ == "__main__":
    main()
