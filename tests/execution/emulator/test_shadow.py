"""The float64 shadow against independent computations: fractions, and NumPy in double or longer precision."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.execution.emulator.shadowing import HALVES, shadowed, within

X = np.random.default_rng(5).normal(size=4096).astype(np.float32)
W = X.astype(np.float64)
H = X.astype(np.float16)
B = (X.view(np.uint32) >> 16).astype(np.uint16)
Y = np.zeros(32, np.float32)
TENTH = float(np.float32(0.1))


def _k(body: str, kind: str = "float", more: str = "") -> str:
    return f'extern "C" __global__ void k(const {kind}* x, {kind}* y{more}) {{ int t = threadIdx.x;\n{body} }}'


def test_a_sum_is_the_exact_one() -> None:
    source = _k("float s = 0;\nfor (int i = 0; i < n; i++) s += x[i * 32 + t];\ny[t] = s;", more=", int n")
    found = shadowed(source, ("x", "y", 128), {"x": X, "y": Y})
    exact = np.array([float(sum(Fraction(float(v)) for v in X[t::32])) for t in range(32)])
    within(found, exact)
    assert np.abs(found.own - exact).max() > 1e-7
    # the sum's line hands on what went wrong on it, and brought nothing
    assert found.lines[3].largest > 4 and found.lines[3].brought == 0


def test_catastrophic_cancellation_shows_on_its_line_with_what_was_brought() -> None:
    source = _k("float a = x[t] * 1000.1f;\nfloat b = a + x[t + 32];\ny[t] = b - a;")
    found = shadowed(source, ("x", "y"), {"x": X, "y": Y}, options=("--fmad=false",))
    within(found, W[32:64], 1e-11)
    assert found.lines[4].largest > 50 * found.lines[4].brought
    assert found.lines[3].brought <= 0.51 and found.lines[2].largest <= 0.51


def test_one_pass_variance() -> None:
    body = (
        "float s = 0, q = 0; for (int j = 0; j < 64; j++) { float v = x[j * 32 + t] + 1e3f;\ns += v;\nq += v * v; }\n"
    )
    found = shadowed(
        _k(body + "float m = s / 64;\ny[t] = q / 64 - m * m;", more=", int n"), ("x", "y", 64), {"x": X, "y": Y}
    )
    shifted = [[Fraction(float(v)) + 1000 for v in X[t:2048:32]] for t in range(32)]
    truth = np.array([float(sum(v * v for v in row) / 64 - (sum(row) / 64) ** 2) for row in shifted])
    within(found, truth, 1e-8)
    worst = max(found.lines.values(), key=lambda line: line.largest)
    assert worst.line == 6 and worst.largest > 2.0**18


def test_softmax_in_shared_memory() -> None:
    source = _k(
        "__shared__ float s[128]; float v = x[blockIdx.x * 128 + t] * 5.0f; s[t] = v; __syncthreads();\n"
        "for (int o = 64; o; o /= 2) { if (t < o) s[t] = fmaxf(s[t], s[t + o]); __syncthreads(); }\n"
        "float m = s[0]; __syncthreads(); float e = expf(v - m); s[t] = e; __syncthreads();\n"
        "for (int o = 64; o; o /= 2) { if (t < o) s[t] += s[t + o]; __syncthreads(); }\n"
        "y[blockIdx.x * 128 + t] = e / s[0];"
    )
    found = shadowed(source, ("x", "y"), {"x": X[:512], "y": np.zeros(512, np.float32)}, 4, 128)
    rows = W[:512].reshape(4, 128).astype(np.longdouble) * 5
    parts = np.exp(rows - rows.max(axis=1, keepdims=True))
    within(found, (parts / parts.sum(axis=1, keepdims=True)).astype(np.float64).reshape(-1), 1e-12)


def test_a_chain_of_fused_multiply_adds() -> None:
    found = shadowed(
        _k("float s = 1.0f; for (int i = 0; i < 20; i++) s = fmaf(s, x[t + i], 0.1f); y[t] = s;"),
        ("x", "y"),
        {"x": X, "y": Y},
    )
    truth = []
    for t in range(32):
        s = Fraction(1)
        for i in range(20):
            s = s * Fraction(float(X[t + i])) + Fraction(TENTH)
        truth.append(float(s))
    within(found, np.array(truth))


# The error that is allowed is that of the polynomial which the library itself computes: it is part of the program.
FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "expf(v)": (np.exp, 1e-12),
    "exp2f(v)": (np.exp2, 1e-12),
    "logf(fabsf(v))": (lambda v: np.log(np.abs(v)), 2.0**-24),
    "sinf(v * 9.0f)": (lambda v: np.sin(v * 9), 2.0**-24),
    "cosf(v)": (np.cos, 2.0**-24),
    "tanhf(v)": (np.tanh, 2.0**-22),
    "powf(fabsf(v), 1.5f)": (lambda v: np.abs(v) ** 1.5, 2.0**-22),
    "log1pf(fabsf(v))": (lambda v: np.log1p(np.abs(v)), 2.0**-23),
    "erff(v)": (lambda v: np.array([math.erf(one) for one in v]), 2.0**-22),
    "cbrtf(v)": (np.cbrt, 1e-12),
    "rsqrtf(fabsf(v))": (lambda v: 1 / np.sqrt(np.abs(v)), 1e-14),
    "sqrtf(fabsf(v)) / (v * v + 1.0f)": (lambda v: np.sqrt(np.abs(v)) / (v * v + 1), 1e-14),
    "ldexpf(v, 3) * -v": (lambda v: -8 * v * v, 1e-14),
    "copysignf(v, -1.0f) + fabsf(v)": (lambda v: np.zeros(len(v)), 1e-14),
    "fminf(v, 0.5f) + fmaxf(v, -0.5f)": (lambda v: np.minimum(v, 0.5) + np.maximum(v, -0.5), 1e-14),
    "__fdividef(1.0f, 1.0f + __expf(-v))": (lambda v: 1 / (1 + np.exp(-v)), 2.0**-22),
    "__saturatef(v)": (lambda v: np.clip(v, 0, 1), 1e-14),
    "floorf(v * 4.0f) + rintf(v)": (lambda v: np.floor(v * 4) + np.rint(v), 1e-14),
}


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_library_functions_of_a_sum_that_was_rounded(expression: str) -> None:
    """Each of them does things to the bits of its argument."""
    function, error = FUNCTIONS[expression]
    found = shadowed(
        _k(f"float v = x[t] * 3.0f + x[t + 32] * 0.1f; y[t] = {expression};"), ("x", "y"), {"x": X, "y": Y}
    )
    truth = function(W[:32] * 3 + W[32:64] * TENTH)
    assert (found.flags == 0).sum() >= 30
    size = max(np.abs(truth).max(), 1.0)
    np.testing.assert_allclose(found.value[found.flags == 0], truth[found.flags == 0], rtol=0, atol=error * size)


def test_half_accumulation() -> None:
    body = "__half s = __float2half(0.0f); for (int i = 0; i < 64; i++)\ns = __hadd(s, x[i * 32 + t]);\ny[t] = s;"
    buffers = {"x": H, "y": np.zeros(32, np.float16)}
    found = shadowed(HALVES + _k(body, "__half"), ("x", "y"), buffers, kind="f16")
    exact = [float(sum(Fraction(float(v)) for v in H[t:2048:32])) for t in range(32)]
    within(found, np.array(exact))
    assert np.abs(found.own - exact).max() > 0.01


def test_packed_halves_are_followed_through_packs_and_swaps() -> None:
    body = (
        "__half2 s = __float2half2_rn(0.0f);\n"
        "for (int i = 0; i < 8; i++) s = __hfma2(x[i * 32 + t], x[i * 32 + t + 1], s);\n"
        "s = __lowhigh2highlow(s); s = __halves2half2(__high2half(s), __hneg(__low2half(s)));\n"
        "unsigned b = *(unsigned*)&s; b = __byte_perm(b, 0, 0x1032); s = *(__half2*)&b;\n"
        "y[t] = __hmul2(s, __float2half2_rn(2.0f));"
    )
    buffers = {"x": H, "y": np.zeros(64, np.float16)}
    found = shadowed(HALVES + _k(body, "__half2"), ("x", "y"), buffers, kind="f16")
    wide = H.astype(np.float64).reshape(-1, 2)
    low, high = (wide[: 8 * 32] * wide[1 : 8 * 32 + 1]).reshape(8, 32, 2).sum(axis=0).T
    # swapped: (high, low); taken as (upper, minus lower): (low, -high); exchanged once more
    within(found, np.stack([-2 * high, 2 * low], axis=1).reshape(-1))


def test_bf16_in_a_loop_that_rounds_each_turn() -> None:
    body = (
        "float s = 1.0f; for (int i = 0; i < 16; i++) s = __bfloat162float(__float2bfloat16(s * 0.9f + "
        "__bfloat162float(x[i * 32 + t]))); y[t] = __float2bfloat16(s);"
    )
    found = shadowed(
        HALVES + _k(body, "__nv_bfloat16"), ("x", "y"), {"x": B, "y": np.zeros(32, np.uint16)}, kind="bf16"
    )
    wide, s = (B.astype(np.uint32) << 16).view(np.float32).astype(np.float64), np.ones(32)
    for i in range(16):
        s = s * float(np.float32(0.9)) + wide[i * 32 : i * 32 + 32]
    within(found, s)
    assert np.abs(found.own - s).max() > 1e-3


def test_doubles_carry_the_error_that_floats_brought() -> None:
    body = "double s = 0; for (int i = 0; i < 64; i++) s += x[i * 32 + t] * x[i]; y[t] = __shfl_down_sync(~0u, s, 3);"
    found = shadowed(_k(body), ("x", "y"), {"x": X, "y": Y})
    truth = (W[:2048].reshape(64, 32) * W[:64, None]).sum(axis=0)
    within(found, truth[np.minimum(np.arange(32) + 3, 31) - np.where(np.arange(32) + 3 > 31, 31 - np.arange(32), 0)])


# Marks --------------------------------------------------------------------------------------------------------------

THRESHOLDS = np.concatenate((np.linspace(0.5, 1.5, 31), [0.9999995])).astype(np.float32)


def test_a_branch_that_parts_is_marked_and_no_other_thread() -> None:
    """A hundred times 0.01f is 0.99999934 in floats, and 0.99999998 without rounding."""
    source = _k(
        "float s = 0; for (int j = 0; j < n; j++) s += 0.01f;\n"
        "if (s >= x[t]) { y[t] = s; atomicAdd((int*)y + 32, 1); }\nelse y[t] = -x[t];",
        more=", int n",
    )
    found = shadowed(source, ("x", "y", 100), {"x": THRESHOLDS, "y": np.zeros(33, np.float32)})
    np.testing.assert_array_equal(np.flatnonzero(found.flags[:32] == 1), [31])
    assert found.lines[3].parted == 1
    assert not found.flags[:31].any()


def test_a_choice_that_parts_is_marked_only_where_it_jumps() -> None:
    source = _k(
        "float s = 0; for (int j = 0; j < n; j++) s += 0.01f;\nfloat a = x[t];\ny[t] = s >= a ? a : -a;\n"
        "y[t + 32] = s >= a ? s : a;",
        more=", int n",
    )
    found = shadowed(source, ("x", "y", 100), {"x": THRESHOLDS, "y": np.zeros(64, np.float32)})
    np.testing.assert_array_equal(np.flatnonzero(found.flags), [31])
    exact = 100 * float(np.float32(0.01))
    np.testing.assert_allclose(found.value[32:], np.maximum(exact, THRESHOLDS.astype(np.float64)), rtol=1e-13)


def test_what_is_computed_from_an_index_that_would_be_another_is_marked() -> None:
    source = _k(
        "float s = 0; for (int j = 0; j < n; j++) s += 0.1f;\nint i = (int)(s * x[t + 32]); y[t] = x[i] * 0.1f;",
        more=", int n",
    )
    scale = np.full(64, 5.0, np.float32)
    scale[32:48] = 1.0  # ten times 0.1f: 1.0000001 in floats, 1.000000015 without rounding: both are 1
    scale[48:] = 0.99999996  # between them
    found = shadowed(source, ("x", "y", 10), {"x": scale, "y": Y})
    np.testing.assert_array_equal(found.flags != 0, np.arange(32) >= 16)


def test_bits_that_are_no_number_by_themselves_are_lost_and_said_so() -> None:
    source = _k(
        "float v = 0; for (int i = 0; i < 20; i++) v += x[t + i] * x[t + i + 1];\n"
        "y[t] = __int_as_float(0x5f3759df - (__float_as_int(fabsf(v)) >> 1));"
    )
    found = shadowed(source, ("x", "y"), {"x": X, "y": Y})
    rounded = found.flags != 0
    assert rounded.any()
    # where the rounded sum is the nearest to the exact one, its bits are what they would be
    np.testing.assert_array_equal(found.value[~rounded], found.own[~rounded])


@pytest.mark.parametrize("kind", ["float", "double"])
def test_powers_in_double_whose_parts_are_looked_at_as_whole_numbers(kind: str) -> None:
    # the exponent's upper half is compared with whole numbers, and bears marks alone
    source = (
        f'extern "C" __global__ void k(const {kind}* x, {kind}* y) {{ int t = threadIdx.x;\n'
        "y[t] = pow((double)x[t], (double)x[t + 32]); }"
    )
    base, power = np.abs(W[:32]) + 0.1, np.concatenate([np.arange(-8.0, 8.0), W[:16]])
    x = np.concatenate([base, power]).astype(np.float32 if kind == "float" else np.float64)
    y = np.zeros(32, x.dtype)
    found = shadowed(source, ("x", "y"), {"x": x, "y": y}, kind="f32" if kind == "float" else "f64")
    truth = np.float64(x[:32]) ** np.float64(x[32:])
    known = (found.flags == 0) & np.isfinite(found.value)
    np.testing.assert_allclose(found.value[known], truth[known], rtol=2e-7)
