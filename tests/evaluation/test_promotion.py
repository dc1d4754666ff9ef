"""The float64 twin computes what NumPy computes in float64, from a kernel whose text says float."""

import numpy as np
import pytest

from agent.evaluation import runs
from agent.evaluation.oracles.promotion import Refused, promote_bound, promote_name, promote_options, promote_slice
from agent.evaluation.runs import PRIORS, Case
from agent.evaluation.sizes import bound_at
from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, Options
from agent.source.slicing import Slice, device_slice
from agent.workload.binding import Bound
from tests.evaluation.kernels import original, setting

HEAD = """
// cuda-lsp: workload
//   size     n = 500
//   buffer   x: f32[n] in uniform(0.5, 2)
//   buffer   y: f32[n] out
//   launch   f<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void f(const float* x, float* y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
"""

EMPTY = Bound({}, (), ())


def twin(text: str) -> tuple[Slice | Refused, Bound]:
    program, workload = original(text)
    bound = bound_at(workload, program)
    names = tuple(launch.kernel for launch in program.plan.launches())
    return promote_slice(device_slice(program.document, names), bound), bound


def run(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (as float32 values in float64) and what the twin makes of them."""
    promoted, bound = twin(text)
    assert isinstance(promoted, Slice), promoted
    built = compile_slice(promoted, Options())
    assert isinstance(built, Build), built
    before = runs.contents(bound, Case((("n", 500),), "uniform", 7))
    answer = runs.run(setting(), built, runs.widened(before))
    assert answer.status == "ok", answer
    return np.asarray(before.given["x"]).view(np.float32).astype(float), answer.outputs["y"].view(np.float64)


FORMULAS = {
    "expf(v)": np.exp,
    "__expf(v)": np.exp,
    "logf(v) + log2f(v) + log10f(v)": lambda v: np.log(v) + np.log2(v) + np.log10(v),
    "sqrtf(v) * rsqrtf(v + 1.0f)": lambda v: np.sqrt(v) / np.sqrt(v + 1),
    "fmaxf(v, 1.0f) + fminf(v, 0.75f)": lambda v: np.maximum(v, 1) + np.minimum(v, 0.75),
    "fmax(v, 1.0f)": lambda v: np.maximum(v, 1),
    "powf(v, 1.5f)": lambda v: v**1.5,
    "__powf(v, 1.5f)": lambda v: v**1.5,
    "__fdividef(1.0f, v)": lambda v: 1 / v,
    "__frcp_rn(v) + __fsqrt_rn(v)": lambda v: 1 / v + np.sqrt(v),
    "__fmaf_rn(v, v, 0.5f)": lambda v: v * v + 0.5,
    "fmaf(v, v, 0.5f)": lambda v: v * v + 0.5,
    "sinf(v) + __cosf(v) + tanhf(v)": lambda v: np.sin(v) + np.cos(v) + np.tanh(v),
    "(float)(int)(v * 100.0f) / 3": lambda v: (v * 100).astype(int) / 3,
    "(float)__float2int_rd(v * 10.0f)": lambda v: np.floor(v * 10),
    "v * 0.1f": lambda v: v * np.float64(np.float32(0.1)),
    "__saturatef(v - 1.0f)": lambda v: np.clip(v - 1, 0, 1),
    "copysignf(v, -1.0f) + fabsf(-v)": lambda v: -v + v,
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_against_numpy(formula: str) -> None:
    x, y = run(f"{HEAD}    y[i] = {formula};\n}}\n")
    np.testing.assert_allclose(y, FORMULAS[formula](x), rtol=1e-14)


def test_vectors_shared_memory_and_shuffles() -> None:
    text = """
// cuda-lsp: workload
//   size     n = 256
//   buffer   x: f32[n] in uniform(0.5, 2)
//   buffer   y: f32[n / 4] out
//   launch   f<<<1, 64, 64 * 4>>>(x, y)
__global__ void f(const float* x, float* y) {
    extern __shared__ float s[];
    float4 v = reinterpret_cast<const float4*>(x)[threadIdx.x];
    float2 w = make_float2(v.x + v.y, v.z + v.w);
    s[threadIdx.x] = w.x + w.y;
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x] + __shfl_xor_sync(0xffffffffu, s[threadIdx.x], 1);
}
"""
    promoted, bound = twin(text)
    assert isinstance(promoted, Slice), promoted
    built = compile_slice(promoted, Options())
    assert isinstance(built, Build), built
    before = runs.contents(bound, Case((("n", 256),), "uniform", 3))
    answer = runs.run(setting(), built, runs.widened(before))
    assert answer.status == "ok", answer
    sums = np.asarray(before.given["x"]).view(np.float32).astype(float).reshape(64, 4)
    sums = (sums[:, 0] + sums[:, 1]) + (sums[:, 2] + sums[:, 3])
    expected = sums[::-1] + sums.reshape(32, 2)[:, ::-1].reshape(-1)
    np.testing.assert_allclose(answer.outputs["y"].view(np.float64), expected, rtol=1e-15)


REFUSED = {
    "y[i] = __int_as_float(__float_as_int(v) ^ 1);": "bits",
    "y[i] = *reinterpret_cast<int*>(&v);": "reinterprets",
    "y[i] = *(unsigned int*)&v;": "casts a pointer",
    "union { float f; int i; } u; u.f = v; y[i] = u.i;": "bits",
    'asm("mov.f32 %0, %1;" : "=f"(y[i]) : "f"(v));': "assembly",
    "y[i] = __half2float(__float2half(v));": "narrower",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_depends_on_the_bits_is_refused(line: str) -> None:
    found, _ = twin(f"#include <cuda_fp16.h>\n{HEAD}    {line}\n}}\n")
    assert isinstance(found, Refused)
    assert REFUSED[line] in found.reason


def test_a_constant_written_as_bits_is_no_trick() -> None:
    x, y = run(f"{HEAD}    y[i] = fminf(v, __int_as_float(0x7f800000));\n}}\n")
    np.testing.assert_array_equal(x, y)


def test_comments_do_not_count() -> None:
    found, _ = twin(f"{HEAD}    y[i] = v;  // a union of half floats, as asm would have it\n}}\n")
    assert isinstance(found, Slice)


def test_buffers_offsets_shared_bytes_and_scalars_double() -> None:
    text = """
// cuda-lsp: workload
//   size     n = 512
//   const    a = 0.1
//   buffer   x: f32[n + 4] in
//   buffer   k: i32[n] in
//   buffer   y: f32[n] out
//   launch   f<<<2, 256, 1024>>>(x + 4, k + 2, y, a, n)
__global__ void f(const float* x, const int* k, float* y, float a, int n) { y[threadIdx.x] = a * x[k[0]]; }
"""
    program, workload = original(text)
    wide = promote_bound(bound_at(workload, program))
    assert {buffer.name: (buffer.dtype, buffer.nbytes) for buffer in wide.buffers} == {
        "x": ("f64", 516 * 8),
        "k": ("i32", 512 * 4),
        "y": ("f64", 512 * 8),
    }
    (launch,) = wide.steps
    assert launch.shared == 2048
    assert [getattr(argument, "offset", None) for argument in launch.arguments[:3]] == [32, 8, 0]
    assert launch.arguments[3].dtype == "f64"
    assert launch.arguments[3].value == float(np.float32(0.1))
    assert launch.arguments[4].dtype == "i32"


def test_names_and_flags() -> None:
    assert promote_name("ns::scan<float, 256>") == "ns::scan<double, 256>"
    assert promote_name("floaty<float4>") == "floaty<double4>"
    options = Options(flags=("--use_fast_math", "-DTILE=16", "-ftz=true"))
    assert promote_options(options).flags == ("-DTILE=16",)


class TestContents:
    """Lazy contents are the eager ones, page by page."""

    text = HEAD + "    y[i] = v;\n}\n"

    def both(self) -> tuple[runs.Contents, runs.Contents]:
        program, workload = original(self.text)
        bound = bound_at(workload, program)
        sizes = (("n", 500),)
        return runs.contents(bound, Case(sizes, "normal", 9)), runs.contents(bound, Case(sizes, "normal", 9, lazy=True))

    @pytest.mark.parametrize("change", [runs.widened, lambda before: runs.nudges(before, 5)[0].contents])
    @pytest.mark.parametrize(("start", "stop"), [(0, 2000), (4, 8), (3, 77), (1001, 1999), (8, 8)])
    def test_any_part(self, change: object, start: int, stop: int) -> None:
        eager, lazy = (change(before).given["x"] for before in self.both())
        np.testing.assert_array_equal(lazy.make(start, stop), eager[start:stop])

    def test_a_nudge_is_one_unit_in_the_last_place(self) -> None:
        eager, _ = self.both()
        old = np.asarray(eager.given["x"]).view(np.float32)
        new = np.asarray(runs.nudges(eager, 5)[0].contents.given["x"]).view(np.float32)
        up, down = np.nextafter(old, np.float32(np.inf)), np.nextafter(old, np.float32(-np.inf))
        assert ((new == up) | (new == down)).all()
        assert 100 < (np.abs(new) > np.abs(old)).sum() < 400

    def test_priors_have_no_bit_in_common(self) -> None:
        assert PRIORS[0] ^ PRIORS[1] == 0xFF


def test_numbers_of_sixteen_bits_are_nudged_with_the_others_and_the_others_alone() -> None:
    """By powers of two: a float has 2^13 steps between two halves, and 2^16 between two bf16."""
    wide, half = np.full(4, 1.5, np.float32), np.full(4, 1.5, np.float16)
    both, alone = runs.nudges(mixed(x=wide, h=half), 5)
    assert both.finer == 2.0**-13 and alone.finer == 1.0
    steps = np.abs(np.asarray(both.contents.given["h"]).view(np.float16) - half) / 2.0**-10
    np.testing.assert_array_equal(steps, 1.0)
    np.testing.assert_array_equal(alone.contents.given["h"], half.view(np.uint8))
    moved = np.asarray(alone.contents.given["x"]).view(np.float32) - wide
    np.testing.assert_array_equal(np.abs(moved) / 2.0**-23, 1.0)
    (only,) = runs.nudges(mixed(h=half), 5)
    assert only.finer == 2.0**-13
    (floats,) = runs.nudges(mixed(x=wide), 5)
    assert floats.finer == 1.0
    assert runs.nudges(mixed(), 5) == ()


def mixed(**given: np.ndarray) -> runs.Contents:
    buffers = "".join(
        f"//   buffer {name}: {'f16' if values.dtype == np.float16 else 'f32'}[4] in\n"
        for name, values in given.items()
    )
    arguments = ", ".join((*given, "y"))
    parameters = ", ".join(f"const {'__half' if v.dtype == np.float16 else 'float'}* {k}" for k, v in given.items())
    text = (
        f"#include <cuda_fp16.h>\n// cuda-lsp: workload\n{buffers}//   buffer y: i32[4] out\n"
        f"//   launch k<<<1, 4>>>({arguments})\n__global__ void k({parameters}{', ' if given else ''}int* y) {{}}\n"
    )
    program, workload = original(text)
    contents = {name: values.view(np.uint8) for name, values in given.items()}
    return runs.Contents(bound_at(workload, program), contents, 0)
