"""One run of a program under Nsight Compute's ``ncu``, in a runner of its own: what the card itself counts."""

from pathlib import Path

from agent.execution.device import Request
from agent.execution.gpu.runners import MODULE
from agent.execution.gpu.talking import run_exactly
from agent.execution.leaving import scratch
from agent.execution.nsight import METRICS, Counted, parse_report
from agent.execution.process import Child
from agent.execution.toolkit import tool

_ENDS = 30.0
"""Seconds in which it writes the end of its report."""

MISSING = "ncu is not here: install Nsight Compute (part of the CUDA toolkit)"
FORBIDDEN = (
    "ncu may not read the card's counters: run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
)


def profiled(request: Request, seconds: float) -> tuple[Counted, ...] | str:
    """Each launch of the request's steps as the card counted it, in order; why there is none. Raises BadRequest, and
    what becomes of the process: ChildDied, ChildTimeout, ChildCancelled."""
    ncu = tool("ncu")
    if ncu is None:
        return MISSING
    with scratch() as folder:
        log = folder / "log"
        child = Child(MODULE, command(ncu, log))
        try:
            problem = _ran(child, request, seconds)
            child.finish(_ENDS)
        finally:
            child.close()
        said = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    if "ERR_NVGPUCTRPERM" in said:
        return FORBIDDEN
    found = tuple(parse_report(said.splitlines()))
    if problem or not found:
        return problem or f"ncu counted nothing: {said.strip()[-300:] or 'it left no report'}"
    return found


def command(ncu: Path, log: Path) -> list[str]:
    """Clocks are left alone: nothing of a card's settings is changed."""
    return [
        *(str(ncu), "--csv", "--print-units", "base", "--clock-control", "none", "--metrics", ",".join(METRICS)),
        *("--target-processes", "application-only", "--log-file", str(log)),
    ]


def _ran(child: Child, request: Request, seconds: float) -> str:
    ran = run_exactly(child, request, seconds)
    if isinstance(ran, str):
        return ran
    return f"the run ended with {ran.kind}: {ran.message}" if ran.kind else ""
