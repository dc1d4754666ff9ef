"""``pow`` of mixed arguments: what nvcc takes of it, with the same types, and what becomes of the numbers."""

from pathlib import Path

import numpy as np
import pytest

from agent.execution import toolkit
from agent.execution.compiler import Build, CompileFailure, Options, check_file, compile_slice
from agent.source.document import parse
from agent.source.slicing import device_slice
from tests.execution.emulator.building import launch, run

pytestmark = pytest.mark.usefixtures("nvrtc")

TYPES = ("float", "double", "int", "unsigned", "long", "long long", "char", "short", "bool")
PAIRS = [(a, b) for a in TYPES for b in TYPES]
ALIKE = "".join(
    f"  static_assert(std::is_same<decltype({name}(({a})1, ({b})1)), {'float' if a == b == 'float' else 'double'}>"
    f'::value, "{name}({a}, {b})");\n'
    for name in ("pow", "std::pow")
    for a, b in PAIRS
)
TAKEN = [
    f"__global__ void k(double* p) {{\n{ALIKE}}}\n",
    "__global__ void k(float* p) { p[0] = pow(p[1], 2.0); }\n",
    "__global__ void k(float* x, double* d, int* n) { d[0] = pow(d[1], x[0]) + pow(n[0], n[1]) + pow(10, x[1]) + "
    "std::pow(x[1], 2.5) + std::pow(n[0], 2u); }\n",
    "enum E { A, B };\n__global__ void k(float* p) { const float a = p[1]; volatile int b = 2; p[0] = pow(a, B) + "
    "pow(b, a) + std::pow<float>(a, 2.f); float (*f)(float, float) = pow; p[1] = f(a, a); }\n",
    "struct V { float x; };\n__device__ V pow(V a, double b) { return V{(float)pow(a.x, b)}; }\n"
    "__global__ void k(V* p) { p[0] = pow(p[1], 2.0); }\n",
    "__device__ float pow(float a, long b) { return a; }\n__global__ void k(float* p) { p[0] = pow(p[1], 2L); }\n",
    "template <class T> __device__ T pow(T a, int n) { return a; }\n"
    "__global__ void k(float* p, int* q) { p[0] = pow(p[1], 2) + pow(q[1], 2); }\n",
    "namespace n { using std::pow; template <class T> __device__ T f(T a) { return pow(a, 2.5); } }\n"
    "__global__ void k(float* p) { p[0] = n::f(p[1]); }\n",
    "using namespace std;\n__global__ void k(float* p) { p[0] = pow(p[1], 2.0) + ::pow(2, p[1]) + std::pow(1, 2); }\n",
    "#include <cuda_fp16.h>\n__global__ void k(float* p, __half* h) { p[0] = pow(__half2float(h[0]), 2.0); }\n",
]
REFUSED = [
    "__global__ void k(float* p) { p[0] = pow(p, 2.0); }\n",
    "__global__ void k(float* p) { p[0] = fmax(p[1], 0.1); }\n",
    "#include <cuda_fp16.h>\n__global__ void k(float* p, __half* h) { p[0] = pow(h[0], 2.0); }\n",
]


def compiled(code: str, path: str = "t.cu") -> Build | CompileFailure:
    return compile_slice(device_slice(parse(code.encode(), path), ["k"]), Options())


@pytest.mark.parametrize("header", ["cmath", "math.h"])
@pytest.mark.parametrize("code", TAKEN)
def test_what_is_taken(code: str, header: str) -> None:
    built = compiled(f"#include <{header}>\n#include <type_traits>\n{code}")
    assert isinstance(built, Build), built


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused_is_so_on_its_own_line(code: str) -> None:
    failure = compiled(f"#include <cmath>\n{code}")
    assert isinstance(failure, CompileFailure)
    wrong = {(one.file, one.line) for one in failure.diagnostics if one.severity == "error"}
    assert wrong == {("t.cu", 1 + code.count("\n"))}


def test_nvcc_is_of_the_same_mind(tmp_path: Path) -> None:
    if toolkit.nvcc() is None:
        pytest.skip("no nvcc here")
    includes = "#include <cmath>\n#include <type_traits>\n"
    apart = "".join(f"namespace apart{n} {{\n{code}}}\n" for n, code in enumerate(TAKEN[:4]))
    path = str(tmp_path / "t.cu")
    assert not isinstance(check_file(parse((includes + apart).encode(), path), Options()), CompileFailure)
    refused = check_file(parse((includes + REFUSED[1]).encode(), path), Options())
    assert isinstance(refused, CompileFailure) and "fmax" in refused.message


def test_a_header_of_the_files_own_may_bring_it(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#pragma once\n#include <math.h>\n")
    code = '#include "own.h"\n' + TAKEN[1]
    assert isinstance(compiled(code, str(tmp_path / "t.cu")), Build)


@pytest.mark.parametrize("code", TAKEN[1:])
def test_it_is_there_whatever_the_file_includes(code: str) -> None:
    assert isinstance(built := compiled(code.replace("std::is_same", "is_same")), Build), built


def test_nothing_is_added_where_there_is_no_call() -> None:
    code = "#include <cmath>\n__global__ void k(float* p) { p[0] = powf(2, 3); }\n"
    assert "cuda_lsp" not in device_slice(parse(code.encode(), "t.cu"), ["k"]).text


@pytest.mark.parametrize(
    ("call", "kind"),
    [("pow(x, 2)", "f64"), ("std::pow(x, n)", "f64"), ("::pow(n, x)", "f64"), ("POWER(x)", "f64"),
     ("pow(x, 2.0f)", "f32"), ("powf(x, 2)", "f32"), ("a > 1 ? x : pow(x,\n 2)", "f64")],
)  # fmt: skip
def test_a_power_of_a_whole_number_is_a_double_and_takes_the_same_road_in_nvcc(call: str, kind: str) -> None:
    code = (
        "#define POWER(a) pow(a, 3)\n"
        f"__global__ void k(float* p, int n) {{ float x = p[1], a = p[2]; p[0] = {call}; }}\n"
    )
    built = compiled(code)
    assert isinstance(built, Build)
    assert ("cvt.rn.f32.f64" in built.ptx) == (kind == "f64") and "powi" not in built.ptx


@pytest.mark.parametrize(
    "code",
    [
        # what is called pow and is another thing stays what it is
        "__global__ void k(float* p) { float pow = p[1]; p[0] = pow * 2; }\n",
        "__global__ void k(float* p) { auto pow = [](float a, int b) { return a + b; }; p[0] = pow(p[1], 2); }\n",
        "#define pow(a, b) ((a) * (b))\n__global__ void k(float* p) { p[0] = pow(p[1], 2); }\n",
        "struct S { float x; __device__ float pow(float a, int n) { return x + a * n; } };\n"
        "__global__ void k(float* p) { S s{p[2]}; p[0] = s.pow(p[1], 2); }\n",
        "__device__ float pow(float a, int b) { return a * b; }\n"
        "__global__ void k(float* p) { p[0] = pow(p[1], 2); }\n",
        "namespace n { __device__ float pow(float a, int b) { return a * b; } }\n"
        "__global__ void k(float* p) { p[0] = n::pow(p[1], 2); }\n",
    ],
)
def test_what_a_file_calls_so_itself_goes_first(code: str) -> None:
    built = compiled(code)
    assert isinstance(built, Build), built
    assert "f64" not in built.ptx


def test_a_complaint_has_the_users_own_word() -> None:
    failure = compiled("__global__ void k(float* p) { p[0] = pow(p, 2.0); }\n")
    assert isinstance(failure, CompileFailure) and "pow" in failure.message and "cuda_lsp" not in str(failure)


def test_the_numbers_are_those_of_float64() -> None:
    built = compiled(
        "#include <cmath>\n__global__ void k(const float* x, double* y, float* z, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) { y[i] = std::pow(x[i], 2.5); y[n + i] = pow(i, 3); z[i] = pow(x[i], 2.0); }\n}\n"
    )
    assert isinstance(built, Build), built
    n = 1000
    x = np.random.default_rng(3).uniform(0.1, 9, n).astype(np.float32)
    step = launch(built.entries["k"], -(-n // 128), 128, "x", "y", "z", n)
    answer, out = run(built, step, {"x": x, "y": np.zeros(2 * n), "z": np.zeros(n, np.float32)})
    assert answer.status == "ok", answer
    wide = x.astype(np.float64)
    np.testing.assert_allclose(out["y"][:n], wide**2.5, rtol=1e-14)
    np.testing.assert_allclose(out["y"][n:], np.arange(n, dtype=np.float64) ** 3, rtol=1e-14)
    np.testing.assert_array_equal(out["z"], (wide**2).astype(np.float32))
