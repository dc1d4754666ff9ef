"""Where the user has nvcc: does the whole file still compile, with the user's own flags?"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from agent.execution import process, toolkit
from agent.execution.compiler import includes, log
from agent.execution.compiler.flags import translate
from agent.execution.compiler.result import CompileFailure, Diagnostic, Options
from agent.execution.leaving import scratch
from agent.execution.process import never
from agent.source.document import Document

SECONDS = 120.0
_OURS = re.compile(
    r"-o|-c|-[lLM].*|-ptx|-cubin|-dc|-(arch|code|gencode|keep).*|--(output-file|compile|device-c|library.*|keep.*|gpu-.*|generate-code.*)"
)
_TAKES_VALUE = frozenset(
    {"-o", "--output-file", "-L", "-l", "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "-MF", "-MT",
     "-MQ", "--generate-code", "--library", "--library-path"}
)  # fmt: skip
_HOST = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?P<severity>fatal error|error|warning|note): (?P<text>.*)$"
)


def check_file(
    document: Document, options: Options, seconds: float = SECONDS, cancelled: Callable[[], bool] = never
) -> tuple[Diagnostic, ...] | CompileFailure:
    """Compile ``document``, host code and all, with nvcc and the user's flags; nothing is run or kept.

    Gives the diagnostics (warnings too) when it compiles, a CompileFailure otherwise; kind ``unavailable`` where there
    is no nvcc. The text goes to a temporary folder; includes are found as from the document's own folder.
    """
    compiler = toolkit.nvcc()
    if compiler is None:
        return CompileFailure("unavailable", "no nvcc here: install the CUDA toolkit to have whole files compiled too")
    try:
        text = document.text.decode("utf-8", "replace")
        includes.check_host(text, document.path, translate(options.flags).includes)
    except includes.Refused as refusal:
        return CompileFailure("refused", str(refusal))
    with scratch() as folder:
        own = Path(document.path).absolute()
        source = folder / (own.name if own.suffix else f"{own.name}.cu")
        source.write_bytes(document.text)
        command = [
            str(compiler), "-x", "cu", "-c", str(source), "-o", str(folder / "out.o"), f"-arch={options.arch}",
            *kept_flags(options.flags), f"-I{own.parent}",
        ]  # fmt: skip
        # nvcc runs in the document's folder, so that relative -I flags mean what they mean to the user.
        where = own.parent if own.parent.is_dir() else folder
        try:
            code, output = _run(command, where, folder, seconds, cancelled)
        except process.ChildTimeout:
            return CompileFailure("timeout", f"nvcc did not finish within {seconds:g} s")
        except process.ChildCancelled:
            return CompileFailure("cancelled", "the compilation was cancelled")
        except OSError as error:
            return CompileFailure("unavailable", f"nvcc cannot be run: {error}")
    found = _diagnostics(output, str(source), document.path)
    if code == 0:
        return found
    errors = [item for item in found if item.severity == "error"]
    message = f"line {errors[0].line}: {errors[0].message}" if errors else output.strip()[-500:]
    return CompileFailure("source", f"the whole file does not compile with nvcc: {message}", found)


def kept_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The user's flags without outputs, libraries and architectures: those are ours to choose."""
    kept: list[str] = []
    rest = list(reversed(flags))
    while rest:
        flag = rest.pop()
        if flag in _TAKES_VALUE:
            rest[-1:] = []
        elif not _OURS.fullmatch(flag):
            kept.append(flag)
    return tuple(kept)


def _run(
    command: list[str], folder: Path, scratch: Path, seconds: float, cancelled: Callable[[], bool]
) -> tuple[int, str]:
    """Exit code and output. nvcc starts other programs: all of them end with it. What it puts aside, and leaves there
    where it is ended, goes to ``scratch``."""
    aside = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(scratch))
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env=process.scrubbed(os.environ) | _host_compiler() | aside, start_new_session=True,
        ) as running,
    ):  # fmt: skip
        try:
            process.wait(running, seconds, cancelled)
        finally:
            process.kill(running)
        output.seek(0)
        return running.returncode, output.read().decode("utf-8", "replace")


def _host_compiler() -> dict[str, str]:
    """Visual C++ finds its own parts through the environment."""
    names = ("INCLUDE", "LIB", "LIBPATH") if sys.platform == "win32" else ("CPATH", "CPLUS_INCLUDE_PATH", "NVCC_CCBIN")
    return {name: os.environ[name] for name in names if name in os.environ}


def _diagnostics(output: str, temporary: str, path: str) -> tuple[Diagnostic, ...]:
    """nvcc's messages (EDG's form) and the host compiler's (GCC's form), on the user's file."""
    text = output.replace(temporary, path)
    host = (
        Diagnostic(
            "error" if "error" in matched["severity"] else matched["severity"],
            matched["file"], int(matched["line"]), matched["text"],
        )
        for matched in map(_HOST.match, text.splitlines())
        if matched is not None
    )  # fmt: skip
    return (*log.diagnostics(text), *host)
