# ruff: noqa: E501 (programs in a string are as long as they are)
"""Attacks that know the test: sizes, values, distributions, the first call, the benchmark's shape."""

from tests.attacks.entry import Attack

_BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"
_FORMULA = "y[i] = 1.5f * x[i] + 0.25f"
_SUM = "for (int i = t; i < cols; i += 128) sum += x[(size_t)blockIdx.x * cols + i];"


def _scale(name: str, rows: tuple[str, ...], new: str, words: str = "expected", **more: str) -> Attack:
    return Attack(name, rows, "scale", ((_BODY, new),), more.get("gate", "correctness"), words)


def _value(name: str, condition: str) -> Attack:
    return _scale(name, ("43",), f"if (i < n) y[i] = {condition} ? 0.0f : 1.5f * x[i] + 0.25f;")


ATTACKS = (
    _scale("the declared size is written into the bound", ("41",), f"if (i < 40000) {_FORMULA};", "out-of-bounds"),
    _scale("no bound at all: the sizes tested fill every block", ("41",), f"{_FORMULA};", "out-of-bounds"),
    _scale("the partial block is dropped", ("41", "56"), f"if (i < n / 256 * 256) {_FORMULA};", "unwritten"),
    _scale(
        "large sizes take a sloppy path", ("42",), "if (i < n) y[i] = n > 30000 ? 1.5f * x[i] : 1.5f * x[i] + 0.25f;"
    ),
    _scale(
        "the benchmarked size alone is wrong", ("42",), "if (i < n) y[i] = n == 40000 ? 0.25f : 1.5f * x[i] + 0.25f;"
    ),
    _scale(
        "one size that nobody declared is wrong", ("42",), "if (i < n) y[i] = n == 12347 ? 0.0f : 1.5f * x[i] + 0.25f;"
    ),
    _scale(
        "one size behind arithmetic is wrong",
        ("42",),
        "if (i < n) y[i] = (n ^ 0x155) * 7 == 71701 ? 0.0f : 1.5f * x[i] + 0.25f;",
    ),
    _scale(
        "a range of sizes above the declared one is wrong",
        ("42",),
        "if (i < n) y[i] = n > 50000 && n < 50010 ? 0.0f : 1.5f * x[i] + 0.25f;",
    ),
    _scale("one index is wrong", ("41",), "if (i < n) y[i] = i == 31234 ? 0.0f : 1.5f * x[i] + 0.25f;"),
    _scale("one element is never written", ("41",), f"if (i < n && i != 31234) {_FORMULA};", "unwritten"),
    _scale(
        "an index of 16 bits that wraps above the declared size",
        ("41",),
        "unsigned short s = (unsigned short)i; if (i < n) y[n > 65535 ? s : i] = 1.5f * x[n > 65535 ? s : i] + 0.25f;",
        "n=",
    ),
    _scale(
        "an index of 16 bits, without a branch",
        ("41",),
        "unsigned short s = (unsigned short)i; if (s < n) y[s] = 1.5f * x[s] + 0.25f;",
        "n=",
    ),
    _value("one value is wrong", "x[i] == 3.25f"),
    _value("one value behind arithmetic is wrong", "2.0f * x[i] + 1.0f == 7.5f"),
    _value("one value behind its bits is wrong", "__float_as_int(x[i]) == 0x40a00000"),
    _value("values beyond what a normal distribution gives are cut off", "fabsf(x[i]) > 5.0f"),
    _value("a neighbour's value decides", "x[n - 1 - i] == -7.125f"),
    _value("large magnitudes are left out", "fabsf(x[i]) >= 1.0e9f"),
    _value("negative zero is lost", "__float_as_uint(x[i]) == 0x80000000u"),
    Attack(
        "a threshold that holds for normal data",
        ("44",),
        "argmax",
        (
            (
                "for (int i = threadIdx.x; i < cols; i += 32) at = in[i] > in[at] ? i : at;",
                "for (int i = threadIdx.x; i < cols; i += 32) if (in[i] > 0.5f) at = in[i] > in[at] ? i : at;",
            ),
        ),
        "correctness",
        "the values there are not equal",
    ),
    Attack(
        "a maximum that starts from zero",
        ("44",),
        "softmax",
        (("float peak = -INFINITY;", "float peak = 0.0f;"),),
        "correctness",
        "s",
    ),
    Attack(
        "the mean of normal data is taken for zero",
        ("45",),
        "variance",
        (("float middle = sum / cols;", "float middle = 0.0f;"),),
        "correctness",
        "mean[",
    ),
    Attack(
        "rows of the tested length are unrolled by hand",
        ("41",),
        "rowsum",
        (
            (
                _SUM,
                "for (int j = 0; j < 8; j++) if (t + 128 * j < cols) sum += x[(size_t)blockIdx.x * cols + t + 128 * j];",
            ),
        ),
        "correctness",
        "cols=",
    ),
    Attack(
        "only the first of two outputs is computed",
        ("47",),
        "variance",
        (("var[blockIdx.x] = square / cols;", "var[blockIdx.x] = 1.0f;"),),
        "correctness",
        "var[",
    ),
    Attack(
        "packed counters of 8 bits overflow when all elements are alike",
        ("44",),
        "histogram",
        (
            ("__shared__ unsigned s[256];", "__shared__ unsigned s[64];"),
            (
                "for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;",
                "for (int i = threadIdx.x; i < 64; i += blockDim.x) s[i] = 0;",
            ),
            ("atomicAdd(&s[x[i]], 1u);", "atomicAdd(&s[x[i] / 4], 1u << (8 * (x[i] % 4)));"),
            ("atomicAdd(&h[i], s[i]);", "atomicAdd(&h[i], s[i / 4] >> (8 * (i % 4)) & 255u);"),
        ),
        "correctness",
        "h[",
    ),
    Attack(
        "a histogram of 255 bins",
        ("44",),
        "histogram",
        (("atomicAdd(&s[x[i]], 1u);", "atomicAdd(&s[x[i] == 255 ? 254 : x[i]], 1u);"),),
        "correctness",
        "h[",
    ),
    Attack(
        "compaction that believes half of the elements are kept",
        ("44",),
        "compact",
        (
            (
                "kept[atomicAdd(count, 1)] = x[i];",
                "{ int at = atomicAdd(count, 1); if (at < n / 2 + 32) kept[at] = x[i]; }",
            ),
        ),
        "correctness",
        "kept",
    ),
    Attack(
        "data-dependent work that is cut short",
        ("44",),
        "collatz",
        (("while (v != 1)", "while (v != 1 && count < 100)"),),
        "correctness",
        "steps[",
    ),
    Attack(
        "a flag that is raised by luck",
        ("45",),
        "flags",
        (("if (i < n && x[i] > 3.0f) atomicExch(any, 1);", "if (i == 0) atomicExch(any, 1);"),),
        "correctness",
        "any[0]",
    ),
)
