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
# nvcc gives a double for a float to the power of an int; NVRTC's own overload, which nothing hides, a float
PAIRS = [(a, b) for a in TYPES for b in TYPES if (a, b) != ("float", "int")]
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


def test_nothing_is_added_where_the_header_or_the_call_is_missing() -> None:
    without_call = "#include <cmath>\n__global__ void k(float* p) { p[0] = powf(2, 3); }\n"
    for code in ("#include <cstdio>\n" + TAKEN[1], without_call):
        assert "cuda_lsp" not in device_slice(parse(code.encode(), "t.cu"), ["k"]).text


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
