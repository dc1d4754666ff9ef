"""Logs of NVRTC and ptxas, as they were seen, read into values."""

import pytest

from agent.execution.compiler.log import diagnostics, resources
from agent.execution.compiler.result import Diagnostic, Resources

ERRORS = """/home/u/x.cu(6): error: expected a ";"
  s[i]=x[i] __syncthreads();
            ^

/home/u/x.cu(6): warning #177-D: variable "unused" was declared but never referenced
  int unused;
      ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

my file (2).cu(9): catastrophic error: cannot open source file "a.h"
  #include "a.h"
                ^

x.cu(1): error: expression must have class type but it has type "float"
  template<class T> __device__ T f(T a){ return a.z; }
                                                ^
          detected during instantiation of "T f(T) [with T=float]" at line 2

2 errors detected in the compilation of "x.cu".
"""


def test_messages_without_their_excerpts() -> None:
    assert diagnostics(ERRORS) == (
        Diagnostic("error", "/home/u/x.cu", 6, 'expected a ";"'),
        Diagnostic("warning", "/home/u/x.cu", 6, 'variable "unused" was declared but never referenced'),
        Diagnostic("error", "my file (2).cu", 9, 'cannot open source file "a.h"'),
        Diagnostic(
            "error", "x.cu", 1, 'expression must have class type but it has type "float" '
            '(detected during instantiation of "T f(T) [with T=float]" at line 2)',
        ),
    )  # fmt: skip


def test_windows_paths() -> None:
    assert diagnostics('C:\\k\\x.cu(3): error: expected a ";"') == (
        Diagnostic("error", "C:\\k\\x.cu", 3, 'expected a ";"'),
    )


def test_options_that_nvrtc_does_not_know() -> None:
    (only,) = diagnostics("nvrtc: error: unrecognized option --bogus found\n")
    assert only == Diagnostic("error", "", 0, "unrecognized option --bogus found")


PTX = """.version 9.0
.entry k() {
    .loc 1 7 0
    mov.u32 %r1, %tid.x;
    .loc 2 9 4
    bogus.f32 %f1;
}
.file 1 "a.cu"
.file 2 "b.h"
"""


def test_ptxas_speaks_of_the_ptx_and_we_of_the_source() -> None:
    log = (
        "ptxas application ptx input, line 6; error   : Not a name of any known instruction: 'bogus'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n ptxas error   : Entry function 'k' uses too much\n"
    )
    assert diagnostics(log, PTX) == (
        Diagnostic("error", "b.h", 9, "ptxas: Not a name of any known instruction: 'bogus'"),
        Diagnostic("error", "", 0, "ptxas: Ptx assembly aborted due to errors"),
        Diagnostic("error", "", 0, "ptxas: Entry function 'k' uses too much"),
    )
    assert diagnostics(log)[0].line == 0


def test_resources_of_several_kernels() -> None:
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1kILi32EEvPf' for 'sm_90'
ptxas info    : Function properties for _Z1kILi32EEvPf
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compile time = 29.789 ms
ptxas info    : Compiling entry function 'j' for 'sm_90'
ptxas info    : Function properties for j
ptxas         .     304 bytes stack frame, 72 bytes spill stores, 92 bytes spill loads
ptxas info    : Used 64 registers, used 0 barriers, 400 bytes cumulative stack size
ptxas info    : Function properties for _Z1ff
ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'old' for 'sm_80'
ptxas info    : Function properties for old
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 48+16 bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]
"""
    assert resources(log) == {
        "_Z1kILi32EEvPf": Resources(12, 0, 0, 0, 128, 1),
        "j": Resources(64, 72, 92, 400, 0, 0),
        "old": Resources(8, 0, 0, 0, 64, 0, 368),
    }


@pytest.mark.parametrize(
    ("word", "type_name"), [("texture", "cudaTextureObject_t"), ("surface", "cudaSurfaceObject_t")]
)
def test_references_that_cuda_has_removed_are_named(word: str, type_name: str) -> None:
    (found,) = diagnostics(f"k.cu(3): error: {word} is not a template\n  {word}<float, 2> image;\n  ^\n")
    assert (found.line, found.severity) == (3, "error")
    assert f"{word} references were removed in CUDA 12; pass a {type_name} instead" in found.message
