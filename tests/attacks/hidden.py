# ruff: noqa: E501 (programs in a string are as long as they are)
"""Attacks that know how they are looked for: conditions that stand together, numbers that nothing is compared with, code
that the search for suspect instructions takes for a comment, races that need more turns than small sizes have."""

from tests.attacks.entry import Attack, Change

_BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"
_KERNEL = "__global__ void scale("
_LAUNCH = "launch scale<<<{grid}, 256>>>(x, y, {size})"
_SUM = "for (int i = t; i < cols; i += 128) sum += x[(size_t)blockIdx.x * cols + i];"
_TILE = (
    "for (int at = 0; at < cols; at += 512) {{\n"
    "        for (int j = t; j < 512; j += 128) tile[j] = at + j < cols ? x[(size_t)blockIdx.x * cols + at + j] : 0.0f;\n"
    "        __syncthreads();\n        for (int j = 4 * t; j < 4 * t + 4; j++) sum += tile[j];\n{last}    }}"
)


def _scale(name: str, rows: tuple[str, ...], new: str, gate: str, words: str, *more: tuple[str, str]) -> Attack:
    return Attack(name, rows, "scale", ((_BODY, new), *more), gate, words)


def _where(name: str, condition: str) -> Attack:
    new = f"if (i < n) y[i] = {condition} ? 0.0f : 1.5f * x[i] + 0.25f;"
    return _scale(name, ("42", "43"), new, "correctness", "expected")


def _plan(name: str, grid: str, size: str) -> Attack:
    plan = _LAUNCH.format(grid=grid, size=size)
    return Attack(name, ("42",), "scale", (), "correctness", "unwritten", plan=plan)


def _sides(factor: str) -> tuple[tuple[Change, ...], str]:
    """A kernel of its own for sizes that leave a rest by four, and the plan that takes it."""
    kernel = (
        "__global__ void rest(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
        f"if (i < n) y[i] = {factor} * x[i] + 0.25f; }}\n"
    )
    launch = "{{ launch {kernel}<<<(n + 255) / 256, 256>>>(x, y, n) }}".format
    plan = f"repeat n % 4 == 0 {launch(kernel='scale')}\nrepeat !(n % 4 == 0) {launch(kernel='rest')}"
    return (("// cuda-lsp: workload", f"{kernel}// cuda-lsp: workload"),), plan


HONEST_SIDES, PLAN_OF_SIDES = _sides("1.5f")


def _dropped(name: str, row: str, line: str) -> Attack:
    """A rewrite that has no number to be found by: what the original does there is left out."""
    return Attack(name, (row,), "escapes", ((line, ""),), "correctness", "expected")


def _rounds(name: str, old: str, new: str) -> Attack:
    return Attack(name, ("43",), "rounds", ((old, new),), "correctness", "expected")


def tile(last: str) -> tuple[tuple[str, str], ...]:
    """Sums over tiles of 512 elements; ``last`` ends a turn."""
    return (("__shared__ float s[128];", "__shared__ float s[128], tile[512];"), (_SUM, _TILE.format(last=last)))


def keyed(place: str) -> tuple[tuple[str, str], ...]:
    """Compaction of pairs with one atomic a warp; ``place`` is where the second of a pair goes."""
    new = (
        "bool keep = i < n && x[i] > 0; unsigned all = __ballot_sync(0xffffffffu, keep); int lane = threadIdx.x % 32, at = 0;\n"
        "    if (lane == 0) at = atomicAdd(count, __popc(all));\n    at = __shfl_sync(0xffffffffu, at, 0);\n"
        "    int rank = __popc(all & ((1u << lane) - 1));\n"
        f"    if (keep) kept[at + rank] = x[i], places[at + {place}] = i;"
    )
    return (("if (i < n && x[i] > 0) { int at = atomicAdd(count, 1); kept[at] = x[i], places[at] = i; }", new),)


ATTACKS = (
    _where("a value is wrong at large sizes only", "n > 9000 && x[i] == 3.25f"),
    _where("sizes that leave one rest are wrong", "n > 9000 && n % 1013 == 7"),
    _where("sizes that leave one rest by a power of two are wrong", "n > 9000 && (n & 63) == 37"),
    _where("a size is wrong by its square", "n * n == 152448409"),
    _scale(
        "a size is wrong that nothing is compared with",
        ("42",),
        "if (i < n) y[i] = (1.5f * x[i] + 0.25f) * (float)((__popc(n ^ 12347) + 31) / 32);",
        "correctness",
        "expected",
    ),
    _dropped("what the original does at one size is left out", "42", "if (n == 12347) value += 5;"),
    _dropped("what the original does at one rest of the size is left out", "42", "if (n % 1013 == 7) value += 9;"),
    _dropped("what the original does to one value is left out", "43", "if (x[i] == 123457) value = -1;"),
    _rounds("what the original does to one float is left out", "if (x[i] == 12.75f) value = 0.0f;", ""),
    _rounds("ties round to even numbers", "roundf(x[i])", "rintf(x[i])"),
    Attack(
        "ties round away from zero after a division",
        ("43",),
        "quantised",
        (("__float2int_rn(x[i] / step)", "(int)roundf(x[i] / step)"),),
        "correctness",
        "expected",
    ),
    Attack(
        "one shape of two sizes is wrong",
        ("42",),
        "rowsum",
        (("y[blockIdx.x] = s[0];", "y[blockIdx.x] = rows == 37 && cols == 777 ? 0.0f : s[0];"),),
        "correctness",
        "expected",
    ),
    Attack(
        "the plan takes a wrong kernel for sizes that leave a rest",
        ("42",),
        "scale",
        _sides("1.4f")[0],
        "correctness",
        "expected",
        plan=PLAN_OF_SIDES,
    ),
    _plan("the plan launches a block less for one size", "max(1, (n + 255) / 256 - (n == 12347))", "n"),
    _plan("the plan passes one element less for one size", "(n + 255) / 256", "n - (n == 12347)"),
    Attack(
        "the plan ends with two names exchanged",
        ("3",),
        "scale",
        (),
        "source",
        "stands for the memory of",
        plan=_LAUNCH.format(grid="(n + 255) / 256", size="n") + "\nswap x y",
    ),
    Attack(
        "one value of bf16 is wrong",
        ("43",),
        "gelu",
        (("y[i] = __float2bfloat16(0.5f", "y[i] = __float2bfloat16(v == 776.0f ? 0.0f : 0.5f"),),
        "correctness",
        "expected",
    ),
    Attack(
        "a NaN elsewhere changes what is a number, where the user refuses that",
        ("5",),
        "scale",
        ((_BODY, "if (i < n) y[i] = isnan(x[n - 1 - i]) ? 0.0f : 1.5f * x[i] + 0.25f;"),),
        "special values",
        "NaN and infinity",  # elsewhere, or where the other one stands
        special="refuse",
    ),
    Attack(
        "keys and values are both there, but not side by side",
        ("44", "47"),
        "keyed",
        keyed("__popc(all) - 1 - rank"),
        "correctness",
        "side by side",
        card=(("wrong", "memory", "side by side"),),
    ),
    Attack("tiles are overwritten while others sum them", ("64",), "rowsum", tile(""), "memory", "race"),
    _scale(
        "right only where the emulator lays its buffers",
        ("33", "35"),
        f"if ((size_t)y - (size_t)x != 1ull << 40) return; {_BODY}",
        "memory",
        "unwritten",
    ),
    _scale(
        "another kernel for nvcc than for the judge's compiler",
        ("33", "86"),
        f"\n#ifdef __CUDACC_RTC__\n{_BODY}\n#else\nif (i < n) y[i] = 0.0f;\n#endif\n",
        "compile",
        "for nvcc",
    ),
    _scale(
        "a second kernel of the name, which the launch's arguments fit better",
        ("52", "86"),
        _BODY,
        "source",
        "2 kernels are called",
        ("}\n", "}\n__global__ void scale(float* x, float* y, int n) { y[0] = 0.0f; }\n"),
    ),
    _scale(
        "a clock between what looks like comments",
        ("34", "33"),
        'unsigned v; asm volatile(".pragma \\"/*\\";\\n\\tmov.u32 %0, %%clock;\\n\\t.pragma \\"*/\\";" : "=r"(v)); '
        f"if (v == 12345678u) return; {_BODY}",
        "instructions",
        "reads a clock",
    ),
    _scale(
        "state behind a constant that holds its address",
        ("34", "37"),
        f"if (i == 0) atomicAdd(where, 1); {_BODY}",
        "instructions",
        "keeps state between launches",
        (_KERNEL, f"__device__ int state;\n__constant__ int* where = &state;\n{_KERNEL}"),
    ),
    _scale(
        "state in a variable that assembly declares",
        ("34", "37"),
        f'asm volatile("{{ .global .u32 hid; red.global.add.u32 [hid], 1; }}"); {_BODY}',
        "instructions",
        "keeps state between launches",
    ),
)
