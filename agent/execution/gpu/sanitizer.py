"""One run of a program under compute-sanitizer, in a runner of its own."""

from pathlib import Path

from agent.execution.device import Request
from agent.execution.gpu.runners import MODULE
from agent.execution.gpu.talking import run_exactly
from agent.execution.leaving import scratch
from agent.execution.process import Child
from agent.execution.sanitizing import Sanitized, read_log
from agent.execution.toolkit import sanitizer

PADDING = 1024
"""Bytes between allocations that memcheck owns: a stray access does not reach the next buffer unseen."""

_ENDS = 30.0
"""Seconds in which it writes the end of its report."""

MISSING = "compute-sanitizer is not installed (pip install nvidia-cuda-sanitizer-api, or the CUDA toolkit)"


def sanitized(request: Request, tool: str, seconds: float) -> Sanitized:
    """Raises BadRequest, and what becomes of the process: ChildDied, ChildTimeout, ChildCancelled."""
    program = sanitizer()
    if program is None:
        return Sanitized("unavailable", message=MISSING)
    with scratch() as folder:
        log = folder / "log"
        child = Child(MODULE, _command(program, tool, log))
        try:
            problem = _ran(child, request, seconds)
            child.finish(_ENDS)
        finally:
            child.close()
        if problem:
            return Sanitized("unavailable", message=problem)
        try:
            return read_log(log.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            return Sanitized("unavailable", message=f"it left no report ({error})")


def _command(program: Path, tool: str, log: Path) -> list[str]:
    more = ["--padding", str(PADDING)] if tool == "memcheck" else []
    return [
        *(str(program), "--tool", tool, "--log-file", str(log), "--print-limit", "100", "--show-backtrace", "device"),
        *("--report-api-errors", "no", "--target-processes", "application-only", *more),
    ]


def _ran(child: Child, request: Request, seconds: float) -> str:
    """Why it could not run; a fault of the program is no such reason, as that is in the report."""
    ran = run_exactly(child, request, seconds)
    if isinstance(ran, str):
        return ran
    return ran.message if ran.kind == "refused" else ""
