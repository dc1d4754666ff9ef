"""Real kernels through all gates: right rewrites pass, and each known way of being wrong is refused for its reason."""

import pytest
from attrs import evolve

from agent.evaluation.gates import gates
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.verdict import Verdict
from agent.workload.program import Program
from tests.evaluation.kernels import SOFTMAX, original, rewrite, setting

SCALE = """
// cuda-lsp: workload
//   size     n = 300000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.5f * x[i] + 0.25f;
}
"""

ROWSUM = """
// cuda-lsp: workload
//   size     rows = 300, cols = 3000
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows] out
//   launch   rowsum<<<rows, 128>>>(x, y, rows, cols)
__global__ void rowsum(const float* x, float* y, int rows, int cols) {
    __shared__ float s[128];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = t; i < cols; i += 128) sum += x[(size_t)blockIdx.x * cols + i];
    s[t] = sum;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""


def prepared(text: str) -> tuple[Prepared, Program]:
    program, workload = original(text)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared), found
    assert not found.contract.broken, found.contract.summary
    return found, program


@pytest.fixture(scope="module")
def scale() -> tuple[Prepared, Program]:
    return prepared(SCALE)


@pytest.fixture(scope="module")
def rowsum() -> tuple[Prepared, Program]:
    return prepared(ROWSUM)


@pytest.fixture(scope="module")
def softmax() -> tuple[Prepared, Program]:
    return prepared(SOFTMAX)


def verdict(side: tuple[Prepared, Program], text: str, **more: bool) -> Verdict:
    found, program = side
    return judge(found, rewrite(text, program.plan), **more)


def changed(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new)


def stopped_at(found: Verdict) -> str:
    return found.gates[-1].gate


def test_gates_are_in_order_and_say_why_they_exist() -> None:
    names = [gate.name for gate in gates()]
    assert names == [
        "source",
        "compile",
        "instructions",
        "self-test",
        "correctness",
        "special values",
        "numerics",
        "memory",
        "sanitizer",
        "timing",
        "confirmation",
        "baseline",
        "floor",
    ]
    assert all(gate.reason and gate.answers for gate in gates())


def test_a_screen_tells_only_seeds_that_are_not_used_again(scale: tuple[Prepared, Program]) -> None:
    side, program = scale
    first, second = (judge(side, rewrite(SCALE, program.plan)).evidence.seeds for _ in range(2))
    assert first
    assert second
    assert not set(first) & set(second)
    assert not set(first) & {case.seed for case in side.cases}


def test_a_full_verdict_draws_every_seed_anew(scale: tuple[Prepared, Program]) -> None:
    side, program = scale
    deep = evolve(side, setting=evolve(side.setting, depth="full"))
    found = judge(deep, rewrite(SCALE, program.plan))
    assert found.correctness.state == "right"
    assert len(set(found.evidence.seeds)) > 10
    assert not set(found.evidence.seeds) & {case.seed for case in side.cases}
    assert len(found.correctness.families) > 8


def test_progress_and_cancelling(scale: tuple[Prepared, Program]) -> None:
    side, program = scale
    seen: list[str] = []
    judge(side, rewrite(SCALE, program.plan), progress=lambda result: seen.append(result.gate))
    assert seen == [gate.name for gate in gates()]
    stopped = evolve(side, setting=evolve(side.setting, cancelled=lambda: len(seen) > 0))
    found = judge(stopped, rewrite(SCALE, program.plan))
    assert (found.correctness.state, found.correctness.reason) == ("undecided", "cancelled")


@pytest.mark.parametrize(
    ("scope", "old", "new", "state"),
    [
        ("drop-in", "1.5f * x[i]", "x[i] * 1.5f", "right"),
        ("drop-in", "float* y, int n)", "float* y, long long n)", "wrong"),
        ("plan", "float* y, int n)", "float* y, long long n)", "right"),
    ],
)
def test_scopes(scale: tuple[Prepared, Program], scope: str, old: str, new: str, state: str) -> None:
    side, program = scale
    found = judge(side, rewrite(changed(SCALE, old, new), program.plan), scope=scope)
    assert found.correctness.state == state, found.correctness


class TestRight:
    def test_the_original_itself(self, scale: tuple[Prepared, Program]) -> None:
        found = verdict(scale, SCALE)
        assert (found.correctness.state, found.precision.state) == ("right", "same")
        assert found.correctness.sampled.endswith("blocks at n=300000")
        assert len(found.correctness.sizes) >= 5
        assert found.shown

    def test_a_shuffle_in_place_of_a_tree(self, rowsum: tuple[Prepared, Program]) -> None:
        tree = ROWSUM[ROWSUM.index("    for (int k = 64") : ROWSUM.index("    if (t == 0)")]
        shuffled = """
    if (t < 32) {
        float v = s[t] + s[t + 32] + s[t + 64] + s[t + 96];
        for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffffu, v, k);
        if (t == 0) s[0] = v;
    }
"""
        found = verdict(rowsum, changed(ROWSUM, tree, shuffled))
        assert (found.correctness.state, found.precision.state) == ("right", "same"), found.correctness

    def test_an_online_softmax(self, softmax: tuple[Prepared, Program]) -> None:
        start = SOFTMAX.index("    float peak")
        text = (
            SOFTMAX[:start]
            + """
    float peak = -3.402823e38f, sum = 0.0f;
    for (int i = t; i < cols; i += 128) {
        float v = in[i], top = fmaxf(peak, v);
        sum = sum * expf(peak - top) + expf(v - top);
        peak = top;
    }
    __shared__ float p[128];
    s[t] = sum;
    p[t] = peak;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) {
            float top = fmaxf(p[t], p[t + k]);
            s[t] = s[t] * expf(p[t] - top) + s[t + k] * expf(p[t + k] - top);
            p[t] = top;
        }
        __syncthreads();
    }
    for (int i = t; i < cols; i += 128) out[i] = expf(in[i] - p[0]) / s[0];
}
"""
        )
        found = verdict(softmax, text)
        assert (found.correctness.state, found.precision.state) == ("right", "same"), found.correctness

    def test_a_better_sum_is_never_called_worse(self, rowsum: tuple[Prepared, Program]) -> None:
        text = changed(ROWSUM, "float sum = 0.0f;", "double sum = 0.0;")
        found = verdict(rowsum, text)
        assert found.correctness.state == "right"
        assert found.precision.state in ("same", "better")


FORMULA = "y[i] = 1.5f * x[i] + 0.25f"
INPUT_WRITTEN = """float v = x[min(i, n - 1)];
    if (i < n) ((float*)x)[i] = 0.0f, y[i] = 1.5f * v + 0.25f;
    if (i < 0)"""
INPUT_PUT_BACK = """if (i < n) {
        *(volatile float*)(x + i) += 1.0f;
        *(volatile float*)(x + i) = x[i] - 1.0f;
    }
    if (i < n) y"""
MULTIPROCESSOR = """unsigned sm; asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm == 500000) n = 0;
    if (i < n)"""

WRONG_SCALES = {
    "tail missing": ("if (i < n)", "if (i < n / 256 * 256)", "correctness"),
    "last element missing": ("if (i < n)", "if (i < n - 1)", "correctness"),
    "one past the end": ("if (i < n)", "if (i <= n)", "correctness"),
    "zeros": (FORMULA, "y[i] = 0.0f", "correctness"),
    "stale output": (f"if (i < n) {FORMULA};", "", "correctness"),
    "copy of the input": (FORMULA, "y[i] = x[i]", "correctness"),
    "hard-coded size": ("if (i < n)", "if (i < 300000)", "correctness"),
    "branch on the size": (FORMULA, f"y[i] = n > 200000 ? 0.25f : {FORMULA[7:]}", "correctness"),
    "branch on the value": (FORMULA, f"y[i] = x[i] > 5.0f ? 0.0f : {FORMULA[7:]}", "correctness"),
    "writes its input": ("if (i < n)", INPUT_WRITTEN, "correctness"),
    "writes its input and puts it back": ("if (i < n) y", INPUT_PUT_BACK, "correctness"),
    "answers from the output's past": ("y[i] = 1.5f", "y[i] = y[i] == y[i] + 1.0f ? 0.0f : 1.5f", "memory"),
    "does not end": ("if (i < n) y", "while (n > 0 && i < 32) n = n | 1;\n    if (i < n) y", "correctness"),
    "reads the clock": ("if (i < n)", "if (clock64() == 0) n = 0;\n    if (i < n)", "instructions"),
    "reads the multiprocessor": ("if (i < n)", MULTIPROCESSOR, "instructions"),
    "prints": ("if (i < n)", 'if (i == 123456789) printf("%d", i);\n    if (i < n)', "instructions"),
    "does not compile": ("if (i < n)", "if (i < n +)", "source"),
    "unknown name": ("1.5f * x[i]", "factor * x[i]", "compile"),
    "other signature": ("float* y, int n)", "float* y)", "source"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_SCALES)
def test_wrong_elementwise(scale: tuple[Prepared, Program], name: str) -> None:
    old, new, gate = WRONG_SCALES[name]
    found = verdict(scale, changed(SCALE, old, new))
    assert found.correctness.state == "wrong", found.correctness
    assert stopped_at(found) == gate, found.gates[-1]
    assert found.correctness.reason
    assert not found.shown
    assert found.speed.ratio is None


def test_state_between_launches(scale: tuple[Prepared, Program]) -> None:
    text = changed(SCALE, "__global__", "__device__ int calls;\n__global__")
    text = changed(text, "if (i < n)", "if (i == 0) calls = calls + 1;\n    if (i < n)")
    found = verdict(scale, text)
    assert (found.correctness.state, stopped_at(found)) == ("wrong", "instructions")
    assert "calls" in found.correctness.reason


STORE = "if (t == 0) y[blockIdx.x] = s[0];"
NEIGHBOUR = f"{STORE}\n    if (t == 1 && blockIdx.x + 1 < rows) y[blockIdx.x + 1] = 7.0f;"

WRONG_SUMS = {
    "missing barrier": ("        __syncthreads();\n    }\n    if", "    }\n    if", "memory"),
    "one element lost": ("i < cols; i += 128", "i < cols - 1; i += 128", "correctness"),
    "uninitialised shared memory": ("    s[t] = sum;", "    if (t < 100) s[t] = sum;", ""),
    "writes of a neighbour's place": (STORE, NEIGHBOUR, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_SUMS)
def test_wrong_sums(rowsum: tuple[Prepared, Program], name: str) -> None:
    old, new, gate = WRONG_SUMS[name]
    found = verdict(rowsum, changed(ROWSUM, old, new))
    assert found.correctness.state == "wrong", found.correctness
    assert not gate or stopped_at(found) == gate, found.gates[-1]


def test_a_race_names_line_and_threads(rowsum: tuple[Prepared, Program]) -> None:
    old, new, _ = WRONG_SUMS["missing barrier"]
    found = verdict(rowsum, changed(ROWSUM, old, new))
    fault = found.correctness.fault
    assert fault is not None
    assert fault.kind == "shared-memory race"
    assert ROWSUM.splitlines()[fault.where.line - 1].strip().startswith("if (t < k) s[t] += s[t + k];")
    assert fault.other is not None
    assert f"line {fault.where.line}" in found.correctness.reason


ONES = """
// cuda-lsp: workload
//   size     n = 1000
//   buffer   x: f32[n] in uniform(1, 2)
//   buffer   y: f32[n] out
//   buffer   seen: i32[1] inout integers(0, 0)
//   launch   halves<<<(n + 127) / 128, 128>>>(x, y, seen, n)
__global__ void halves(const float* x, float* y, int* seen, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    y[i] = 0.5f * x[i];
    atomicExch(seen, 1);
}
"""

RACES: dict[str, tuple[str, str, str | None]] = {
    "passed on in place": (
        "y[i] = 0.5f * x[i];",
        "y[i] = x[i]; if (i + 1 < n) y[i + 1] = x[i + 1]; y[i] *= 0.5f;",
        "global-memory race",
    ),
    "a test of what others write": ("atomicExch(seen, 1);", "if (*seen == 0) *seen = 1;", "race on a tested value"),
    "equal values": ("atomicExch(seen, 1);", "*seen = 1;", None),
    "a test before an atomic": ("atomicExch(seen, 1);", "if (*seen == 0) atomicExch(seen, 1);", None),
}


@pytest.fixture(scope="module")
def halves() -> tuple[Prepared, Program]:
    return prepared(ONES)


@pytest.mark.parametrize("name", RACES)
def test_races_on_global_memory(halves: tuple[Prepared, Program], name: str) -> None:
    """All give the right answer in the emulator, in any order of blocks."""
    old, new, kind = RACES[name]
    found = verdict(halves, changed(ONES, old, new))
    if kind is None:
        assert found.correctness.state == "right", found.correctness
        (gate,) = (item for item in found.gates if item.gate == "memory")
        assert "(line 12)" in gate.reason
        return
    assert found.correctness.state == "wrong", found.correctness
    assert stopped_at(found) == "memory", found.gates[-1]
    assert found.correctness.fault is not None and found.correctness.fault.kind == kind


ZEROS = """
// cuda-lsp: workload
//   size     n = 1000
//   buffer   x: f32[n] in uniform(-2, -1)
//   buffer   y: f32[1] out
//   launch   none<<<1, 32>>>(x, y, n)
__global__ void none(const float* x, float* y, int n) {
    if ((int)threadIdx.x < n - 100000000) y[0] = x[0];
}
"""


def test_an_output_that_nobody_writes_proves_nothing() -> None:
    found = verdict(prepared(ZEROS), ZEROS)
    assert (found.correctness.state, stopped_at(found)) == ("undecided", "self-test")


def test_what_the_workload_cannot_tell_is_said(scale: tuple[Prepared, Program]) -> None:
    side, program = scale
    blind = evolve(side, selftest=evolve(side.selftest, survived=("y: zeros",)))
    found = judge(blind, rewrite(SCALE, program.plan))
    assert (found.correctness.state, stopped_at(found)) == ("undecided", "self-test")
    assert "y: zeros" in found.correctness.reason


HALF = """#include <cuda_fp16.h>
"""


class TestLess:
    text = HALF + ROWSUM.replace("float sum = 0.0f;", "half sum = __float2half(0.0f);").replace(
        "sum += x[(size_t)blockIdx.x * cols + i];", "sum = __hadd(sum, __float2half(x[(size_t)blockIdx.x * cols + i]));"
    ).replace("s[t] = sum;", "s[t] = __half2float(sum);")  # fmt: skip

    def test_half_precision_accumulation_is_less_precise(self, rowsum: tuple[Prepared, Program]) -> None:
        found = verdict(rowsum, self.text)
        assert (found.correctness.state, found.precision.state) == ("right", "less"), found.correctness
        assert found.precision.candidate_error > 100 * found.precision.original_error
        assert stopped_at(found) == "numerics"
        assert not found.shown

    def test_half_precision_beyond_some_size_only(self, scale: tuple[Prepared, Program]) -> None:
        rounded = "__half2float(__float2half(1.5f * x[i] + 0.25f))"
        text = HALF + changed(SCALE, FORMULA, f"y[i] = n > 200000 ? {rounded} : {FORMULA[7:]}")
        found = verdict(scale, text)
        assert (found.correctness.state, found.precision.state) == ("right", "less"), found.correctness

    def test_it_goes_on_where_the_user_allows_it(self, rowsum: tuple[Prepared, Program]) -> None:
        found = verdict(rowsum, self.text, allow_lossy=True)
        assert (found.correctness.state, found.precision.state, stopped_at(found)) == ("right", "less", "floor")

    def test_and_where_the_workload_does(self, rowsum: tuple[Prepared, Program]) -> None:
        side, program = rowsum
        found = verdict((evolve(side, workload=evolve(side.workload, lossy=True)), program), self.text)
        assert (found.correctness.state, found.precision.state, stopped_at(found)) == ("right", "less", "floor")
