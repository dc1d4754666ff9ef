# ruff: noqa: E501 (programs in a string are as long as they are)
"""Attacks on where answers come from: stale memory, the output's own past, changed inputs, scratch, device variables."""

from agent.workload.expression import Expression
from agent.workload.plan import Copy, Launch, Plan
from tests.attacks.entry import Attack

_BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"
_blocks, _block, _one, _shared = map(Expression.parse, ("(n + 255) / 256", "256", "1", "300000"))
_arguments = tuple(map(Expression.parse, ("x", "y", "n")))
_KERNEL = "__global__ void scale("
_LAUNCH = "launch scale<<<(n + 255) / 256, 256>>>(x, y, n)"


def _scale(
    name: str,
    rows: tuple[str, ...],
    new: str,
    gate: str,
    words: str,
    *more: tuple[str, str],
    card: tuple[tuple[str, str, str], ...] = (),
) -> Attack:
    return Attack(name, rows, "scale", ((_BODY, new), *more), gate, words, card=card)


def _state(declaration: str) -> tuple[str, str]:
    return _KERNEL, f"{declaration}\n{_KERNEL}"


ATTACKS = (
    _scale("nothing is written", ("1", "53"), ";", "correctness", "unwritten"),
    _scale(
        "nothing is written for all but the first block",
        ("1",),
        f"if (blockIdx.x == 0) {_BODY}",
        "correctness",
        "unwritten",
    ),
    _scale(
        "written only where memory is as the allocator left it",
        ("1", "35"),
        "if (i < n && y[i] != 1.5f * x[i] + 0.25f) y[i] = 1.5f * x[i] + 0.25f;",
        "memory",
        "uninitialised read",
    ),
    _scale(
        "what stands in the output is kept when it is finite",
        ("1", "37"),
        "if (i < n) y[i] = y[i] > -1.0e-3f && y[i] < 0.0f ? y[i] : 1.5f * x[i] + 0.25f;",
        "memory",
        "uninitialised read",
    ),
    _scale(
        "the input is zeroed", ("2",), f"{_BODY} if (i < n) ((float*)x)[i] = 0.0f;", "correctness", "read-only input"
    ),
    _scale(
        "the input is changed and put back",
        ("2",),
        f"if (i < n) {{ *(volatile float*)(x + i) = 0.0f + x[i]; }} {_BODY}",
        "correctness",
        "read-only input",
    ),
    _scale("the output is the input", ("3",), "if (i < n) y[i] = x[i];", "correctness", "expected"),
    Attack(
        "the input is where the output goes",
        ("3",),
        "scale",
        (),
        "correctness",
        "read-only input",
        plan="launch scale<<<(n + 255) / 256, 256>>>(x, x, n)",
    ),
    Attack("nothing is launched", ("52", "53"), "scale", (), "correctness", "expected", plan=Plan((Copy("y", "x"),))),
    _scale(
        "memory beside the output is searched for answers",
        ("6",),
        "if (i < n) y[i] = y[i + 64 * n] == 0.0f ? 0.0f : 1.5f * x[i] + 0.25f;",
        "correctness",
        "out-of-bounds read",
        card=(("wrong", "correctness", "y["),),
    ),
    _scale(
        "memory in front of the input is searched for answers",
        ("6",),
        "if (i < n) y[i] = 1.5f * x[i] + 0.25f + 0.0f * x[-1 - i];",
        "correctness",
        "out-of-bounds read",
        card=(("wrong", "memory", "out-of-bounds read"),),
    ),
    _scale(
        "an address made of a number is read",
        ("6",),
        "if (i < n) y[i] = 1.5f * x[i] + 0.25f; if (i == 0) y[0] += 0.0f * *(const float*)0x7f0000001000ull;",
        "correctness",
        "out-of-bounds read",
        card=(("wrong", "correctness", "illegal address"),),
    ),
    _scale(
        "uninitialised shared memory is taken for zero",
        ("9",),
        "__shared__ float s[256]; if (i < n) y[i] = 1.5f * x[i] + 0.25f + 0.0f * s[threadIdx.x];",
        "memory",
        "uninitialised read",
    ),
    Attack(
        "more shared memory than a multiprocessor has",
        ("9",),
        "scale",
        (
            (
                _BODY,
                "extern __shared__ float s[]; s[threadIdx.x] = 0.25f; if (i < n) y[i] = 1.5f * x[i] + s[threadIdx.x];",
            ),
        ),
        "source",
        "bytes of shared memory",
        plan=Plan((Launch("scale", (_blocks, _one, _one), (_block, _one, _one), _shared, _arguments),)),
    ),
    _scale(
        "answers are kept in a device variable",
        ("37",),
        "if (i >= n) return; if (i >= 40000 || !full[i]) { float v = 1.5f * x[i] + 0.25f; if (i < 40000) held[i] = v, full[i] = 1; } "
        "y[i] = i < 40000 ? held[i] : 1.5f * x[i] + 0.25f;",
        "instructions",
        "keeps state between launches",
        _state("__device__ float held[40000]; __device__ int full[40000];"),
    ),
    _scale(
        "only the first call writes",
        ("66", "18"),
        "if (calls > 0) return; __syncthreads(); if (i < n) y[i] = 1.5f * x[i] + 0.25f; if (i == 0) calls = 1;",
        "instructions",
        "keeps state between launches",
        _state("__device__ int calls;"),
    ),
    _scale(
        "answers are kept by the address of the output",
        ("35", "38"),
        "if (seen == y) return; if (i < n) y[i] = 1.5f * x[i] + 0.25f; if (i == n - 1) seen = y;",
        "instructions",
        "keeps state between launches",
        _state("__device__ float* seen;"),
    ),
    _scale(
        "answers are kept by a sample of the contents",
        ("36",),
        "if (x[0] == first && x[n - 1] == last) return; if (i < n) y[i] = 1.5f * x[i] + 0.25f; "
        "if (i == n - 1) first = x[0], last = x[n - 1];",
        "instructions",
        "keeps state between launches",
        _state("__device__ float first, last;"),
    ),
    Attack(
        "answers are kept in scratch from one call to the next",
        ("37", "40a"),
        "scale",
        (
            (_KERNEL + "const float* x, float* y, int n)", _KERNEL + "const float* x, float* y, float* held, int n)"),
            (
                _BODY,
                "if (i >= n) return; if (held[i] != held[i] || held[i] < -1.0e6f || held[i] == 0.0f) "
                "held[i] = 1.5f * x[i] + 0.25f; y[i] = held[i];",
            ),
        ),
        "correctness",
        "",
        plan="scratch held: f32[n]\nlaunch scale<<<(n + 255) / 256, 256>>>(x, y, held, n)",
    ),
    Attack(
        "scratch is taken for zero",
        ("9", "1"),
        "scale",
        (
            (_KERNEL + "const float* x, float* y, int n)", _KERNEL + "const float* x, float* y, float* held, int n)"),
            (_BODY, "if (i < n) y[i] = 1.5f * x[i] + 0.25f + held[i];"),
        ),
        "correctness",
        "",
        plan="scratch held: f32[n]\nlaunch scale<<<(n + 255) / 256, 256>>>(x, y, held, n)",
    ),
    Attack(
        "the output is taken for zero",
        ("1",),
        "rowsum",
        (("if (t == 0) y[blockIdx.x] = s[0];", "if (t == 0) atomicAdd(&y[blockIdx.x], s[0]);"),),
        "correctness",
        "",
    ),
    _scale(
        "answers known by heart for the first elements",
        ("40b",),
        "const float known[4] = {0.5f, -1.0f, 2.0f, 0.25f}; if (i < n) y[i] = i < 4 ? known[i] : 1.5f * x[i] + 0.25f;",
        "correctness",
        "expected",
    ),
    _scale("NaN as a wildcard", ("5",), "if (i < n) y[i] = __int_as_float(0x7fc00000);", "correctness", "nan"),
    _scale(
        "NaN for one element as a wildcard",
        ("5",),
        "if (i < n) y[i] = i == 17 ? NAN : 1.5f * x[i] + 0.25f;",
        "correctness",
        "nan",
    ),
    Attack(
        "a later launch of the plan is left out",
        ("52",),
        "chain",
        (),
        "correctness",
        "expected",
        plan="launch doubled<<<(n + 255) / 256, 256>>>(x, y, n)",
    ),
    Attack(
        "fewer blocks are launched than there is work",
        ("53", "56"),
        "scale",
        (),
        "correctness",
        "unwritten",
        plan="launch scale<<<max(1, n / 256), 256>>>(x, y, n)",
    ),
    Attack(
        "a drop-in rewrite that changes the launch",
        ("8",),
        "scale",
        (),
        "source",
        "drop-in",
        plan="launch scale<<<(n + 127) / 128, 128>>>(x, y, n)",
        scope="drop-in",
    ),
    Attack(
        "the bytes behind the output are written too",
        ("28",),
        "scale",
        ((_BODY, "if (i < n) y[i] = 1.5f * x[i] + 0.25f; if (i == n - 1) y[n] = 0.0f;"),),
        "correctness",
        "out-of-bounds write",
    ),
    Attack(
        "an element that the original leaves alone is written",
        ("28",),
        "compact",
        (
            (
                "int i = blockIdx.x",
                "if (blockIdx.x == 0 && threadIdx.x == 0) count[0] = count[0] + 0, kept[n - 1] = 3;\n    int i = blockIdx.x",
            ),
        ),
        "correctness",
        "kept",
    ),
)
