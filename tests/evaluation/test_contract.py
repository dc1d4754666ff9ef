"""What originals promise: sizes, races, order, and what breaks them; each known from the text of the kernel."""

import pytest

from agent.evaluation.limits import limits
from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.source.document import parse
from agent.workload.program import Program
from agent.workload.static.inference import infer
from tests.evaluation.kernels import SOFTMAX, original, setting


def found(text: str) -> Prepared:
    program, workload = original(text)
    result = prepare(program, workload, setting())
    assert isinstance(result, Prepared), result
    return result


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_any_size() -> None:
    contract = found(SOFTMAX).contract
    assert contract.summary == "in bounds, free of races, deterministic; any rows >= 1, cols >= 1"
    assert not contract.broken
    assert {"base", "plus one", "minus one", "primes", "smallest"} <= set(contract.tried)


FOURS = """
// cuda-lsp: workload
//   size     n = 65536
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   fours<<<(n / 4 + 127) / 128, 128>>>(x, y, n)
__global__ void fours(const float* x, float* y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (4 * i < n) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        reinterpret_cast<float4*>(y)[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
    }
}
"""


def test_a_divisibility_is_found() -> None:
    result = found(FOURS)
    assert "n a multiple of 4" in result.contract.summary
    assert all(sizes["n"] % 4 == 0 for sizes in result.contract.tried.values())
    assert not result.contract.unaligned
    assert not result.contract.broken


WHOLE_BLOCKS = """
// cuda-lsp: workload
//   size     n = 65536
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   twice<<<n / 256, 256>>>(x, y)
__global__ void twice(const float* x, float* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    y[i] = 2.0f * x[i];
}
"""


def test_a_tail_that_nobody_writes_is_outside_the_contract() -> None:
    contract = found(WHOLE_BLOCKS).contract
    assert contract.rules["n"].multiple == 256
    assert not contract.broken


UNGUARDED = """
// cuda-lsp: workload
//   size     n = 100000
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   twice<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void twice(const float* x, float* y, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = x[i];
    __syncthreads();
    if (i < n) y[i] = s[t] + s[255 - t] * 0.0f;
}
"""


def test_a_read_past_the_end_at_the_declared_size_breaks_the_original() -> None:
    contract = found(UNGUARDED).contract
    assert contract.broken
    assert contract.fault is not None
    assert contract.fault.kind == "out-of-bounds read"
    assert contract.fault.where.line == line_of(UNGUARDED, "s[t] = x[i]")
    assert "out-of-bounds read" in contract.summary
    assert f"line {contract.fault.where.line}" in contract.summary


def test_the_same_kernel_is_sound_where_every_declared_block_is_full() -> None:
    result = found(UNGUARDED.replace("n = 100000", "n = 102400"))
    assert not result.contract.broken
    assert result.contract.rules["n"].multiple == 256


FAR = """
// cuda-lsp: workload
//   size     n = 70000
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   far<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void far(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[n > 60000 ? i + 1 : i];
}
"""


def test_a_fault_that_only_the_declared_size_has() -> None:
    contract = found(FAR).contract
    assert contract.broken
    assert "at the declared size" in contract.summary
    assert contract.fault is not None
    assert contract.fault.kind == "out-of-bounds read"


RACE = """
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[n] in
//   buffer   y: f32[(n + 127) / 128] out
//   launch   sums<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void sums(const float* x, float* y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""


def test_a_race_breaks_the_original() -> None:
    contract = found(RACE).contract
    assert contract.broken
    assert contract.fault is not None
    assert contract.fault.kind == "shared-memory race"
    assert "threads" in contract.summary


IN_PLACE = """
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[n] inout
//   launch   smooth<<<(n + 127) / 128, 128>>>(x, n)
__global__ void smooth(float* x, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i > 0 && i < n) x[i] = 0.5f * (x[i - 1] + x[i]);
}
"""


def test_a_stencil_in_place_breaks_the_original() -> None:
    contract = found(IN_PLACE).contract
    assert contract.broken
    assert contract.fault is not None
    assert contract.fault.kind == "global-memory race"
    assert contract.fault.other is not None
    assert "x[" in contract.summary


FLAGS = """
// cuda-lsp: workload
//   size     n = 4096
//   buffer   level: i32[n] inout integers(-1, 3)
//   buffer   changed: i32[1] inout integers(0, 0)
//   launch   visit<<<(n + 127) / 128, 128>>>(level, changed, n)
__global__ void visit(int* level, int* changed, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n || level[i] != 1) return;
    for (int k = 1; k <= 3; k++) {
        int v = (i * 7 + k * 13) % n;
        if (level[v] == -1) {
            level[v] = 2;
            *changed = 1;
        }
    }
}
"""


def test_a_search_by_levels_is_no_broken_original() -> None:
    contract = found(FLAGS).contract
    assert not contract.broken, contract.summary
    assert "free of races but for writes of equal values and values that are tested" in contract.summary


STALE = """
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   add<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) y[i] += x[i];
}
"""


def test_an_output_that_hangs_on_old_memory() -> None:
    contract = found(STALE).contract
    assert contract.broken
    assert contract.summary.startswith("y depends on what was in memory before")


def test_the_same_kernel_with_its_output_declared_inout() -> None:
    assert not found(STALE.replace("y: f32[n] out", "y: f32[n] inout")).contract.broken


STEPS = """
__global__ void step(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) b[i] = 0.5f * a[i] + 0.25f * (a[i - 1] + a[i + 1]);
}
int main() {
    int n = 5000; float *a, *b;
    cudaMalloc(&a, n * sizeof(float)); cudaMalloc(&b, n * sizeof(float));
    cudaMemset(a, 0, n * sizeof(float)); cudaMemset(b, 0, n * sizeof(float));
    for (int t = 0; t < 4; t++) { step<<<(n + 255) / 256, 256>>>(a, b, n); std::swap(a, b); }
}
"""


@pytest.mark.parametrize(("text", "broken"), [(STEPS, False), (STEPS.replace("cudaMemset(b,", "(void)(b,"), True)])
def test_time_steps_that_leave_the_rim_alone(text: str, broken: bool) -> None:
    """Each step reads the rim of what the one before it left: it must have been put there, and was or was not."""
    document = parse(text.encode(), "test.cu")
    workload = infer(document, document.kernels[0])
    result = prepare(Program(document, workload.plan, "original"), workload, setting())
    assert isinstance(result, Prepared), result
    assert result.contract.broken == broken
    assert ("b depends on what was in memory before" in result.contract.summary) == broken


HANG = """
// cuda-lsp: workload
//   size     n = 1000
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   hang<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void hang(const float* x, float* y, int n) {
    int step = blockDim.x / 512 * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) y[i] = x[i];
}
"""


def test_an_endless_original() -> None:
    program, workload = original(HANG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.evaluation.contracts.contract.ENDLESS", 1000)
        result = prepare(program, workload, setting(step_cap=3_000_000))
    assert isinstance(result, Prepared)
    assert result.contract.broken
    assert "step limit" in result.contract.summary


def test_an_endless_original_without_a_low_step_limit() -> None:
    """It runs into the time limit first; the line is found all the same."""
    program, workload = original(HANG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.evaluation.contracts.contract.PROBE_SECONDS", 0.5)
        patch.setattr("agent.evaluation.contracts.contract.ENDLESS", 100)
        result = prepare(program, workload, setting())
    assert isinstance(result, Prepared)
    assert result.contract.broken
    assert "step limit in hang" in result.contract.summary
    assert f"line {line_of(HANG, 'for (int i')}" in result.contract.summary


SPIN = """#include <cuda_runtime.h>
__global__ void spin(volatile int* flag, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    LOOP
    if (i < n) out[i] = i;
}
int main() {
    int n = 4096; int *f, *o;
    cudaMalloc(&f, 4); cudaMalloc(&o, n * 4);
    cudaMemset(f, 0, 4);
    spin<<<n / 128, 128>>>(f, o, n);
}
"""


@pytest.mark.parametrize("loop", ["while (*flag == 0) { }", "while (true) { if (*flag == 12345) break; }"])
def test_a_wait_for_what_nobody_writes(loop: str) -> None:
    """The flag is what the host sets it to; and of sizes that launch nothing a smaller one says nothing."""
    document = parse(SPIN.replace("LOOP", loop).encode(), "test.cu")
    workload = infer(document, document.kernels[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.evaluation.contracts.contract.PROBE_SECONDS", 0.5)
        patch.setattr("agent.evaluation.contracts.contract.ENDLESS", 100)
        result = prepare(Program(document, workload.plan, "original"), workload, setting())
    assert isinstance(result, Prepared), result
    assert result.contract.broken
    assert "step limit in spin: line 4" in result.contract.summary


HEAVY = """
// cuda-lsp: workload
//   buffer   y: f32[1048576] out
//   launch   heavy<<<4096, 256>>>(y)
__global__ void heavy(float* y) {
    float sum = 0.0f;
    for (int i = 0; i < 3000; i++) sum = sum * 0.5f + 1.0f;
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("step_cap", [100_000_000, 20_000_000_000], ids=["by steps", "by time"])
def test_a_large_original_is_not_called_endless(step_cap: int) -> None:
    program, workload = original(HEAVY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.evaluation.contracts.contract.PROBE_SECONDS", 0.5)
        result = prepare(program, workload, setting(step_cap=step_cap))
    assert isinstance(result, Failure)
    assert result.kind == "timeout"
    assert "state smaller ones" in result.message


HOLES = """
// cuda-lsp: workload
//   size     n = 10000
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   smooth<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void smooth(const float* x, float* y, int n) {
    __shared__ float s[258];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t + 1] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = s[t] + s[t + 1] + s[t + 2];
}
"""


def test_shared_memory_that_nobody_fills() -> None:
    contract = found(HOLES).contract
    assert contract.broken
    assert "uninitialised read" in contract.summary
    assert f"line {line_of(HOLES, 'y[i] =')}" in contract.summary


HISTOGRAM = """
// cuda-lsp: workload
//   size     n = 50000
//   buffer   x: i32[n] in integers(0, 64)
//   buffer   h: i32[64] inout zeros
//   launch   count<<<(n + 255) / 256, 256>>>(x, h, n)
__global__ void count(const int* x, int* h, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(&h[x[i]], 1);
}
"""


def test_atomics_are_no_races_and_integers_are_compared_exactly() -> None:
    result = found(HISTOGRAM)
    assert not result.contract.broken
    assert result.contract.kinds == {"h": "exact"}
    assert result.oracle.startswith("not needed")
    assert not result.selftest.survived


FIXED = """
// cuda-lsp: workload
//   buffer   x: f32[1000] in
//   buffer   y: f32[1000] out
//   launch   twice<<<4, 256>>>(x, y)
__global__ void twice(const float* x, float* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < 1000) y[i] = 2.0f * x[i];
}
"""


def test_a_workload_without_sizes() -> None:
    contract = found(FIXED).contract
    assert contract.summary == "in bounds, free of races, deterministic; this size only"


@pytest.mark.parametrize("size", [1, 2])
def test_a_declared_size_that_is_tiny_already(size: int) -> None:
    result = found(SOFTMAX.replace("rows = 512, cols = 4096", f"rows = {size}, cols = {size}"))
    assert not result.contract.broken
    assert result.contract.base == {"rows": size, "cols": size}


def test_an_original_that_does_not_compile() -> None:
    program, workload = original(FIXED.replace("2.0f * x[i]", "factor * x[i]"))
    result = prepare(program, workload, setting())
    assert isinstance(result, Failure)
    assert result.kind == "does not compile"
    assert "factor" in result.message


def test_cancelling() -> None:
    program, workload = original(SOFTMAX)
    result = prepare(program, workload, setting(cancelled=lambda: True))
    assert isinstance(result, Failure)
    assert result.kind == "cancelled"


def test_nothing_is_in_bounds_where_an_extent_was_probed() -> None:
    probed = SOFTMAX.replace("] in", "] probed in", 1)
    assert probed != SOFTMAX
    result = found(probed)
    assert not result.contract.broken
    assert "in bounds" not in result.contract.summary
    assert result.contract.summary.startswith("bounds not known (the extent of `x` was probed), free of races")
    (said,) = [text for text in limits(result.workload, False) if "bounds" in text]
    assert said == "that accesses keep in bounds: the extents of x were probed"
    # a rewrite that is right for square blocks only passes where the block was chosen by probing
    (launch,) = [text for text in limits(result.workload, False) if "launches" in text]
    assert launch.startswith("other launches than the probed one: softmax<<<rows, ")


def test_a_kernel_without_outputs_is_run_before_it_is_said_that_nothing_can_be_compared() -> None:
    """What it does to an address that it makes up itself is a fault all the same."""
    head = "// cuda-lsp: workload\n//   buffer   x: i32[4] in\n//   launch   k<<<1, 1>>>(x)\n"
    wild = head + "__global__ void k(const int* x) {\n    *(int*)0x70000000ll = x[0];\n}\n"
    contract = found(wild).contract
    assert contract.broken and contract.fault is not None
    assert (contract.fault.kind, contract.fault.where.line) == ("out-of-bounds write", line_of(wild, "0x7"))
    program, workload = original(head + "__global__ void k(const int* x) {\n    if (x[0] > 1 << 30) __trap();\n}\n")
    failure = prepare(program, workload, setting())
    assert isinstance(failure, Failure) and "no output to compare" in failure.message


GUARDED = """
// cuda-lsp: workload
//   size     n = 1000
//   buffer   x: i32[n] in
//   buffer   y: i32[n] out
//   launch   turned<<<(n + 63) / 64, 64>>>(x, y, n)
__global__ void turned(const int* x, int* y, int n) {
    __shared__ int s[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    s[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = s[threadIdx.x / 2];
}
"""


def test_threads_that_leave_before_a_barrier_are_told_and_break_nothing() -> None:
    contract = found(GUARDED).contract
    assert not contract.broken
    assert "threads leave before barriers that their warps come to" in contract.summary
    whole = found(GUARDED.replace("if (i >= n) return;", "").replace("n = 1000", "n = 1024 multiple 64")).contract
    assert not whole.broken and "leave" not in whole.summary


HIDDEN_OUTPUT = """
struct Place { float* at; };
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[n] in
//   buffer   y: f32[n] in
//   buffer   z: f32[n] out
//   launch   both<<<(n + 127) / 128, 128>>>(x, y, z, n)
__global__ void both(const float* x, float* y, float* z, int n) {
    Place place = {y};
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) {
        place.at[i] = 2 * x[i];
        z[i] = x[i];
    }
}
"""


def test_an_input_that_the_original_writes_is_asked_about() -> None:
    """Else a rewrite that leaves it out is right, and the original itself wrong."""
    program, workload = original(HIDDEN_OUTPUT)
    failure = prepare(program, workload, setting())
    assert isinstance(failure, Failure) and failure.kind == "workload"
    assert failure.message.startswith("the original writes y, which its workload has as `in`: state it as `out`")
