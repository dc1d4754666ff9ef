"""The compiler as its callers see it: real NVRTC in a child process."""

import re
from pathlib import Path

import pytest

from agent.execution.children.messages import CompilerIs
from agent.execution.compiler import Build, CompileFailure, Options, compile_slice, pool, slices
from tests.execution.slices import HandSlice

pytestmark = pytest.mark.usefixtures("nvrtc")

ROTATE = """#line 40 "/somewhere/rotate.cu"
__constant__ float weights[4];
template <int N> __global__ void rotate(float* x) {
    __shared__ float s[N];
    int i = threadIdx.x;
    s[i] = x[i];
    __syncthreads();
    x[i] = s[(i + 1) % N] * weights[i & 3];
}
"""

BOMB = """template <int N, int M> struct F { static const int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };
template <int M> struct F<0, M> { static const int v = 1; };
__global__ void k(int* x) { *x = F<30, 0>::v; }
"""


DEFAULT = Options()


def built(part: HandSlice, options: Options = DEFAULT) -> Build:
    result = compile_slice(part, options)
    assert isinstance(result, Build), result
    return result


def failed(part: HandSlice, options: Options = DEFAULT, seconds: float = 60.0) -> CompileFailure:
    result = compile_slice(part, options, seconds)
    assert isinstance(result, CompileFailure)
    return result


def test_a_template_is_built_for_each_name_expression() -> None:
    build = built(HandSlice(ROTATE, ("rotate<32>", "rotate<64>"), symbols=("weights",)))
    assert build.entries == {"rotate<32>": "_Z6rotateILi32EEvPf", "rotate<64>": "_Z6rotateILi64EEvPf"}
    assert build.symbols == {"weights": "weights"}
    # float s[N]: 4 bytes each; one __syncthreads
    assert {name: used.static_shared for name, used in build.resources.items()} == {
        "rotate<32>": 128,
        "rotate<64>": 256,
    }
    assert all(used.barriers == 1 and used.registers > 0 and used.stack == 0 for used in build.resources.values())
    assert build.cubin[:4] == b"\x7fELF"
    assert ".target sm_90" in build.ptx
    assert re.fullmatch(r"NVRTC \d+\.\d+", build.compiler)


def test_ptx_carries_the_users_lines() -> None:
    ptx = built(HandSlice(ROTATE, ("rotate<32>",))).ptx
    assert '"/somewhere/rotate.cu"' in ptx
    lines = {int(number) for number in re.findall(r"\.loc\s+\d+\s+(\d+)", ptx)}
    assert {43, 44, 46} <= lines <= set(range(41, 48))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_any_architecture_without_its_card(arch: str) -> None:
    build = built(HandSlice(ROTATE, ("rotate<32>",)), Options(arch=arch))
    assert f".target {arch}" in build.ptx
    assert build.resources["rotate<32>"].registers >= 8


def test_an_error_stands_on_the_users_line() -> None:
    failure = failed(HandSlice(ROTATE.replace("x[i];", "y[i];", 1), ("rotate<32>",)))
    assert failure.kind == "source"
    error = next(item for item in failure.diagnostics if item.severity == "error")
    assert (error.file, error.line) == ("/somewhere/rotate.cu", 44)
    assert 'identifier "y" is undefined' in error.message
    assert failure.message.startswith("line 44:")


def test_a_warning_is_kept() -> None:
    build = built(HandSlice(ROTATE.replace("__syncthreads();", "__syncthreads(); int unused;"), ("rotate<32>",)))
    (warning,) = build.diagnostics
    assert (warning.severity, warning.line) == ("warning", 45)
    assert "unused" in warning.message


def test_an_error_before_any_line_marker_names_the_document() -> None:
    failure = failed(HandSlice("__global__ void k() { nothing; }", ("k",), path="some/where/k.cu"))
    assert [(item.file, item.line) for item in failure.diagnostics] == [("some/where/k.cu", 1)]


def test_an_error_inside_a_template_says_for_which_instance() -> None:
    source = "template <class T> __device__ T f(T a) { return a.z; }\n__global__ void k(float* x) { *x = f(*x); }"
    (error,) = failed(HandSlice(source, ("k",))).diagnostics
    assert "T=float" in error.message and "at line 2" in error.message


def test_what_only_ptxas_rejects_is_found_and_has_its_line() -> None:
    source = '#line 7 "a.cu"\n__global__ void k(float* x) {\n  asm("bogus.f32 %0;" : "=f"(*x));\n}\n'
    failure = failed(HandSlice(source, ("k",)))
    errors = [(item.file, item.line, item.message) for item in failure.diagnostics if item.line]
    assert errors == [("a.cu", 8, "ptxas: Not a name of any known instruction: 'bogus'")]


def test_too_much_shared_memory_is_an_error_not_a_crash() -> None:
    failure = failed(
        HandSlice(
            "__global__ void k(float* x) { __shared__ float s[20000]; s[threadIdx.x] = *x; __syncthreads(); *x = *s; }",
            ("k",),
        )
    )
    assert failure.kind == "source"
    assert "too much shared data" in failure.message


def test_an_unknown_kernel_name_is_said_in_words() -> None:
    failure = failed(HandSlice(ROTATE, ("turn<3>",)))
    assert failure.kind == "source"
    assert "no kernel can be made of the name `turn<3>`" in failure.message


def test_host_functions_are_not_callable_from_the_device() -> None:
    failure = failed(HandSlice("int f(int a) { return a; } __global__ void k(int* x) { *x = f(1); }", ("k",)))
    assert failure.kind == "source" and "host" in failure.message


def test_spills_and_stack_are_reported() -> None:
    source = """extern "C" __global__ void k(float* x) {
        float a[64];
        for (int i = 0; i < 64; i++) a[i] = x[i];
        for (int j = 0; j < 64; j++) for (int i = 0; i < 64; i++) a[i] = a[(i * 7 + j) % 64] * a[i] + x[i * j];
        for (int i = 0; i < 64; i++) x[i] = a[i];
    }"""
    used = built(HandSlice(source, ("k",)), Options(flags=("-maxrregcount=64",))).resources["k"]
    assert used.registers <= 64
    assert used.stack >= 256  # a[64] is indexed by a variable: it must lie in local memory


def test_no_contraction_on_request() -> None:
    source = 'extern "C" __global__ void k(float* x) { x[0] = x[1] * x[2] + x[3]; }'
    assert "fma.rn.f32" in built(HandSlice(source, ("k",))).ptx
    apart = built(HandSlice(source, ("k",)), Options(fmad=False)).ptx
    assert "fma" not in apart and "mul" in apart
    assert (
        "fma" not in built(HandSlice(source, ("k",)), Options(fmad=False, flags=("-fmad=true", "-use_fast_math"))).ptx
    )


def test_unoptimised_ptx_keeps_what_the_optimiser_removes() -> None:
    source = 'extern "C" __global__ void k(float* x) { float a = x[0]; float b = a * 0.0f + 1; (void)b; x[1] = a; }'
    plain, debug = (built(HandSlice(source, ("k",)), Options(optimised=flag)).ptx for flag in (True, False))
    assert "mul" not in plain and "fma" not in plain
    assert "mul" in debug or "fma" in debug
    assert ".loc" in debug


def test_defines_and_standard_come_from_the_flags() -> None:
    source = "__global__ void k(int* x) { static_assert(__cplusplus >= 202002L); x[0] = WIDTH; }"
    assert isinstance(compile_slice(HandSlice(source, ("k",)), Options()), CompileFailure)
    assert built(HandSlice(source, ("k",)), Options(flags=("-D", "WIDTH=3", "-std=c++20", "-O3", "-arch=sm_50")))


def test_an_unknown_flag_is_a_warning() -> None:
    build = built(HandSlice(ROTATE, ("rotate<32>",)), Options(flags=("--frobnicate",)))
    assert [item.message for item in build.diagnostics] == ["compiler flag --frobnicate is not used here"]


def test_cuda_headers_are_found() -> None:
    source = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <cuda/std/limits>
__global__ void k(__half* x) { x[0] = __hadd(x[1], x[2]); cooperative_groups::this_thread_block().sync(); }
"""
    assert built(HandSlice(source, ("k",)))


def test_headers_of_the_users_folders_are_found(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text('#include "nested.h"\n#define A 1\n')
    (tmp_path / "nested.h").write_text("#define B 2\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "far.h").write_text("#define C 3\n")
    source = (
        '#include "own.h"\n#include <far.h>\n__global__ void k(int* x) { static_assert(A + B + C == 6); x[0] = A; }'
    )
    part = HandSlice(source, ("k",), path=str(tmp_path / "k.cu"))
    first = built(part, Options(flags=("-I", "more")))
    (tmp_path / "nested.h").write_text("#define B 3\n")  # a header that changes makes another build
    second = compile_slice(part, Options(flags=("-I", "more")))
    assert isinstance(second, CompileFailure) and "static assertion" in second.message
    (tmp_path / "nested.h").write_text("#define B 2\n")
    assert built(part, Options(flags=("-I", "more"))).key == first.key


def test_headers_held_in_memory_are_found_and_checked() -> None:
    source = '#include "held.h"\n__global__ void k(int* x) { x[0] = A; }'
    assert built(HandSlice(source, ("k",), headers=(("held.h", "#define A 1\n"),)))
    assert failed(HandSlice(source, ("k",), headers=(("held.h", '#include "/etc/passwd"\n'),))).kind == "refused"


def test_a_private_file_never_reaches_a_message(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("TOKEN-1234 is my key\n")
    home = tmp_path / "project"
    home.mkdir()
    for include in (
        f'#include "{secret}"',
        '#include "../secret"',
        "#include <../secret>",
        f"#\f/**/include\r<{secret}>",
    ):
        failure = failed(HandSlice(f'#line 11 "k.cu"\n{include}\n', ("k",), path=str(home / "k.cu")))
        assert failure.kind == "refused"
        assert "TOKEN" not in str(failure)


def test_zero_bytes_do_not_hide_the_rest_of_the_source() -> None:
    failure = failed(HandSlice('__global__ void k() {}\0\n#include "/etc/passwd"\n', ("k",)))
    assert failure.kind == "refused"


def test_half_a_surrogate_is_no_crash_of_ours() -> None:
    assert built(HandSlice("// \udc80\n__global__ void k() {}", ("k",)))


def test_endless_templates_end_in_time() -> None:
    failure = failed(HandSlice(BOMB, ("k",)), seconds=1.5)
    assert failure.kind == "timeout" and "1.5 s" in failure.message
    assert built(HandSlice(ROTATE, ("rotate<32>",)))  # the next one gets a new child


def test_a_compilation_can_be_cancelled() -> None:
    calls = iter([False, False, True])
    result = compile_slice(HandSlice(BOMB, ("k",)), Options(), cancelled=lambda: next(calls, True))
    assert isinstance(result, CompileFailure) and result.kind == "cancelled"


def test_an_architecture_that_nvrtc_does_not_know() -> None:
    old = failed(HandSlice(ROTATE, ("rotate<32>",)), Options(arch="sm_35"))
    assert old.kind == "unavailable" and "sm_90" in old.message
    assert failed(HandSlice(ROTATE), Options(arch="sm_90;rm")).kind == "refused"


def test_no_cupy_names_the_command_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "identity", lambda: CompilerIs((0, 0), (), "ModuleNotFoundError: No module named 'cupy'"))
    failure = failed(HandSlice(ROTATE, ("rotate<32>",)))
    assert failure.kind == "unavailable"
    assert "pip install 'cuda-lsp[cuda13]'" in failure.message
    monkeypatch.setattr(slices, "_installed", lambda name: name == "cupy-cuda12x")
    assert "pip install 'cuda-lsp[cuda12]'" in failed(HandSlice(ROTATE, ("rotate<32>",))).message


def test_ptx_is_the_same_in_every_process() -> None:
    """Candidates are told apart by their PTX, so names made up by the compiler must not hold a process number."""
    part = HandSlice("namespace { __global__ void k(int* x) { *x = 1; } }", ("k",))
    first = built(part).ptx
    pool.shutdown()
    from agent.execution.compiler import cache

    cache.forget()
    for file in cache.folder().iterdir():
        file.unlink()
    assert built(part).ptx == first


def test_a_header_forced_by_a_flag_is_checked_and_moves_no_line(tmp_path: Path) -> None:
    (tmp_path / "first.h").write_text("#define A 1\n\n\n")
    part = HandSlice("__global__ void k(int* x) {\n  *x = A + y; }", ("k",), path=str(tmp_path / "k.cu"))
    (error,) = failed(part, Options(flags=("-include", "first.h"))).diagnostics
    assert (error.line, error.message) == (2, 'identifier "y" is undefined')
    assert failed(part, Options(flags=("-include", "/etc/passwd"))).kind == "refused"


def test_a_folder_that_may_not_be_read_is_named_where_something_is_lacking(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    path, options = str(tmp_path / "project" / "k.cu"), Options(flags=("-I", str(tmp_path)))
    lacking = failed(HandSlice("__global__ void k(int* x) { *x = deep(); }", ("k",), path=path), options)
    assert '"deep" is undefined' in lacking.message and "CUDA_LSP_INCLUDE_PATH" in lacking.message
    assert built(HandSlice("__global__ void k(int* x) { *x = 1; }", ("k",), path=path), options)
