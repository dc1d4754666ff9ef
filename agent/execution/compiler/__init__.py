"""NVRTC in a child process: device slices in, PTX, cubin, resources and diagnostics out. Needs no GPU."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.execution.compiler.pool import shutdown
from agent.execution.compiler.result import Build, CompileFailure, Options
from agent.execution.compiler.slices import SECONDS, compile_slice
from agent.execution.process import never

if TYPE_CHECKING:
    from agent.workload.program import Program

__all__ = ["Build", "CompileFailure", "Options", "build", "compile_slice", "shutdown"]


def build(
    program: "Program", options: Options, seconds: float = SECONDS, cancelled: Callable[[], bool] = never
) -> Build | CompileFailure:
    """Compile the kernels that ``program``'s plan launches, and what they use. Bad source is a value, never raised."""
    from agent.source.slicing import device_slice

    names = tuple(dict.fromkeys(launch.kernel for launch in program.plan.launches()))
    return compile_slice(device_slice(program.document, names), options, seconds, cancelled)
