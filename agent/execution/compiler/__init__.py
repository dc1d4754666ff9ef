"""NVRTC in a child process: device slices in, PTX, cubin, resources and diagnostics out. Needs no GPU."""

from agent.execution.compiler.kernels import compile_kernels
from agent.execution.compiler.pool import shutdown
from agent.execution.compiler.programs import build, build_named
from agent.execution.compiler.result import Build, CompileFailure, Diagnostic, Options, Resources
from agent.execution.compiler.slices import compile_slice
from agent.execution.compiler.whole_file import check_file

__all__ = [
    "Build", "CompileFailure", "Diagnostic", "Options", "Resources", "build", "build_named", "check_file",
    "compile_kernels", "compile_slice", "shutdown",
]  # fmt: skip
