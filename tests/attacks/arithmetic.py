# ruff: noqa: E501 (programs in a string are as long as they are)
"""Attacks that do less, or other, arithmetic, below somebody's tolerance."""

from tests.attacks.entry import Attack

_BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"
_OUT = "out[i] = expf(in[i] - peak) / sum;"
_SUM = "for (int i = t; i < cols; i += 128) sum += x[(size_t)blockIdx.x * cols + i];"
_HALF = ("// cuda-lsp: workload", "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n// cuda-lsp: workload")
_DOT = "for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];"


def _less(name: str, rows: tuple[str, ...], of: str, *changes: tuple[str, str]) -> Attack:
    return Attack(name, rows, of, changes, "numerics", "less precise", state="right")


def _wrong(name: str, rows: tuple[str, ...], of: str, *changes: tuple[str, str], words: str = "expected") -> Attack:
    return Attack(name, rows, of, changes, "correctness", words)


ATTACKS = (
    _less(
        "half inside a float kernel",
        ("49",),
        "bounded",
        _HALF,
        (_BODY, "if (i < n) y[i] = __half2float(__float2half(1.5f * x[i])) + 0.25f;"),
    ),
    Attack(
        "bfloat16 inside a product",
        ("49",),
        "matmul",
        (
            _HALF,
            (
                _DOT,
                "for (int k = 0; k < n; k++) sum += __bfloat162float(__float2bfloat16(a[row * n + k])) * b[k * n + col];",
            ),
        ),
        "correctness",
        "of the output's scale",
        small=True,
    ),
    _less(
        "tf32 inside a product",
        ("49",),
        "matmul",
        (
            _DOT,
            "for (int k = 0; k < n; k++) sum += __int_as_float(__float_as_int(a[row * n + k]) & 0xffffe000) * b[k * n + col];",
        ),
    ),
    _less(
        "sums in half",
        ("49",),
        "bounded sum",
        _HALF,
        (
            _SUM,
            "half h = __float2half(0.0f); for (int i = t; i < cols; i += 128) "
            "h = __hadd(h, __float2half(x[(size_t)blockIdx.x * cols + i])); sum = __half2float(h);",
        ),
    ),
    _less(
        "half precision at the benchmarked size only",
        ("42", "49"),
        "bounded",
        _HALF,
        (_BODY, "if (i < n) y[i] = n > 39000 ? __half2float(__float2half(1.5f * x[i] + 0.25f)) : 1.5f * x[i] + 0.25f;"),
    ),
    _less("a factor two per cent off, in a kernel of bf16", ("49",), "gelu", ("0.5f * v", "0.51f * v")),
    _less("what is lost near zero only", ("69",), "growth", ("expm1f(x[i])", "expf(x[i]) - 1.0f")),
    _less("compensation is dropped", ("50",), "kahan", ("lost = (next - sum) - v;", "lost = 0.0f;")),
    Attack(
        "nothing, where the workload never shows an output",
        ("54", "53", "67"),
        "never",
        (("if (i < n && x[i] > 0.0f) y[i] = sqrtf(x[i]);", ""),),
        "self-test",
        "every output is what a wrong kernel would give too",
        state="undecided",
    ),
    _wrong("zeros for outputs that are tiny", ("58",), "softmax", (_OUT, "out[i] = 0.0f * in[i];")),
    _wrong("one over the row's length", ("58", "45"), "softmax", (_OUT, "out[i] = 1.0f / cols;")),
    _wrong(
        "the sum is guessed from the distribution",
        ("45", "55"),
        "softmax",
        (_OUT, "out[i] = expf(in[i]) / (1.6487f * cols);"),
    ),
    _wrong(
        "a constant for a variance",
        ("45", "54"),
        "variance",
        ("var[blockIdx.x] = square / cols;", "var[blockIdx.x] = 1.0f - 1.0f / cols;"),
        words="var[",
    ),
    Attack(
        "one pass variance that cancels",
        ("69",),
        "variance",
        (
            ("float square = 0.0f;", "float square = 0.0f, again = 0.0f;"),
            ("square += (in[i] - middle) * (in[i] - middle);", "again += in[i] * in[i];"),
            (
                "    for (int k = 16; k > 0; k /= 2) square += ",
                "    for (int k = 16; k > 0; k /= 2) again += __shfl_xor_sync(0xffffffffu, again, k);\n"
                "    square = again - cols * middle * middle;\n"
                "    for (int k = 0; k > 0; k /= 2) square += ",
            ),
        ),
        "correctness",
        "var[",
        small=True,
    ),
    _wrong(
        "every hundredth term is dropped",
        ("59", "70"),
        "rowsum",
        (_SUM, _SUM.replace("sum += x", "if (i % 100 != 99) sum += x")),
    ),
    _wrong(
        "the last element of a row is dropped", ("56", "59"), "rowsum", (_SUM, _SUM.replace("i < cols", "i < cols - 1"))
    ),
    _wrong(
        "a sample of the row, scaled up",
        ("45", "59"),
        "rowsum",
        (_SUM, _SUM.replace("sum += x", "if (i % 2) sum += 2.0f * x")),
    ),
    _less("a constant that is cut off", ("70",), "scale", (_BODY, "if (i < n) y[i] = 1.50001f * x[i] + 0.25f;")),
    _less(
        "a factor below a loose tolerance",
        ("70", "49"),
        "softmax",
        (_OUT, "out[i] = 1.00003f * expf(in[i] - peak) / sum;"),
    ),
    _less(
        "one lane of many is off by a little",
        ("59", "60"),
        "scale",
        (_BODY, "if (i < n) y[i] = (1.5f * x[i] + 0.25f) * (i % 97 == 5 ? 1.001f : 1.0f);"),
    ),
    Attack(
        "denormals are flushed to zero, where the user refuses that",
        ("43",),
        "inplace",
        (
            (
                "y[i] = 2.0f * x[i] + y[i];",
                'asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(y[i]) : "f"(2.0f), "f"(x[i]), "f"(y[i]));',
            ),
        ),
        "special values",
        "denormal",
        special="refuse",
    ),
    Attack(
        "a maximum that loses a NaN, where the user refuses that",
        ("5",),
        "clip",
        (("x[i] < 0.0f ? 0.0f : x[i]", "fmaxf(x[i], 0.0f)"),),
        "special values",
        "nan",
        special="refuse",
    ),
    _wrong(
        "the middle of a chain is skipped as if it cancelled",
        ("55",),
        "chain",
        ("if (i < n) y[i] = 2.0f * x[i] * x[i];", "if (i < n) y[i] = 2.0f * x[i];"),
    ),
    _wrong("the border is treated as the inside", ("56",), "blur", ("i > 0 ? x[i - 1] : 0.0f", "x[max(i - 1, 0)]")),
    _wrong("integers through floats", ("49",), "assembly", ('"r"(x[i])', '"r"((unsigned)(float)x[i])')),
)
