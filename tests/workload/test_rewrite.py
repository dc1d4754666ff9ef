"""The plan of a rewritten file: its own launches in the original's names, its own buffers as scratch."""

import pytest

from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.directive import format_statements, read_directive
from agent.workload.errors import WorkloadError
from agent.workload.rewrite import plan_of
from agent.workload.static import infer
from agent.workload.workload import Workload

KERNEL = """
__global__ void sum(const float* x, float* out, int n) {
    float total = 0;
    for (int i = 0; i < n; ++i) total += x[i];
    *out = total;
}
"""
HOST = """
int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 5000;
    float *d_x, *d_out;
    cudaMalloc(&d_x, n * sizeof(float));
    cudaMalloc(&d_out, sizeof(float));
    cudaMemcpy(d_x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    sum<<<1, 1>>>(d_x, d_out, n);
    cudaMemcpy(h, d_out, sizeof(float), cudaMemcpyDeviceToHost);
}
"""
ORIGINAL = KERNEL + HOST


def original() -> Workload:
    document = parse(ORIGINAL.encode())
    return infer(document, document.kernel("sum"))


def plan(text: str) -> list[str]:
    workload = original()
    document = parse(text.encode())
    found = plan_of(document, workload, parse(ORIGINAL.encode()))
    bind(workload, found, None, document)
    shown = Workload(workload.kernel, (), (), (), found)
    return [" ".join(line.split()) for line in format_statements(shown)]


def test_the_same_file_has_the_same_plan() -> None:
    assert plan(ORIGINAL) == ["launch sum<<<1, 1>>>(d_x, d_out, n)"]


def test_a_relaunch_is_read() -> None:
    text = ORIGINAL.replace("sum<<<1, 1>>>", "int block = 128; sum<<<(n + block - 1) / block, block, block * 4>>>")
    assert plan(text) == ["launch sum<<<(n + 128 - 1) / 128, 128, 512>>>(d_x, d_out, n)"]


TWO_PASS = KERNEL + "__global__ void last(const float* parts, float* out, int n) { out[0] = parts[n - 1]; }\n" + HOST


def test_two_passes_with_scratch() -> None:
    text = TWO_PASS.replace(
        "sum<<<1, 1>>>(d_x, d_out, n);",
        "int blocks = (n + 255) / 256; float* d_part; cudaMalloc(&d_part, blocks * sizeof(float));"
        " sum<<<blocks, 256>>>(d_x, d_part, n); last<<<1, 256>>>(d_part, d_out, blocks);",
    )
    assert plan(text) == [
        "scratch d_part: f32[(n + 255) / 256]",
        "launch sum<<<(n + 255) / 256, 256>>>(d_x, d_part, n)",
        "launch last<<<1, 256>>>(d_part, d_out, (n + 255) / 256)",
    ]


def test_zeroed_scratch_and_a_cleared_output() -> None:
    text = TWO_PASS.replace(
        "sum<<<1, 1>>>(d_x, d_out, n);",
        "float* d_part; cudaMalloc(&d_part, 64); cudaMemset(d_part, 0, 64); cudaMemset(d_out, 0, sizeof(float));"
        " sum<<<2, 256>>>(d_x, d_part, n); last<<<1, 256>>>(d_part, d_out, 16);",
    )
    assert plan(text)[:2] == ["scratch d_part: f32[16] zeroed", "fill d_out 0"]


def test_renamed_buffers_are_found_by_parameter() -> None:
    text = ORIGINAL.replace("d_x", "input").replace("d_out", "result")
    assert plan(text) == ["launch sum<<<1, 1>>>(d_x, d_out, n)"]


def test_warm_up_timing_and_reference_launches_are_left_out() -> None:
    text = TWO_PASS.replace(
        "sum<<<1, 1>>>(d_x, d_out, n);",
        "float* y; cudaMalloc(&y, 4); sum<<<2, 64>>>(d_x, d_out, n); last<<<1, 1>>>(d_x, y, n);"
        " for (int i = 0; i < 10; ++i) sum<<<2, 64>>>(d_x, d_out, n);",
    )
    assert plan(text) == ["launch sum<<<2, 64>>>(d_x, d_out, n)"]


def test_a_file_without_host_code_keeps_the_plan_while_the_signature_stands() -> None:
    workload = original()
    assert plan_of(parse(KERNEL.encode()), workload) == workload.plan
    changed = KERNEL.replace("int n)", "int n, int m)")
    with pytest.raises(WorkloadError, match="takes 4 arguments now and nothing in the file launches it"):
        plan_of(parse(changed.encode()), workload)
    with pytest.raises(WorkloadError, match="no kernel 'sum'"):
        plan_of(parse(b"__global__ void other(float* x) { *x = 1; }"), workload)


def test_a_directive_in_the_rewritten_file_is_its_plan() -> None:
    text = "// cuda-lsp: workload\n//   buffer d_x: f32[8] in\n//   buffer d_out: f32[1] out\n"
    text += "//   launch sum<<<3, 7>>>(d_x, d_out, 8)\n"
    found = plan_of(parse((text + KERNEL.lstrip()).encode()), original())
    assert [str(part) for part in found.launches()[0].grid] == ["3", "1", "1"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("sum<<<1, 1>>>", "sum<<<blocks(), 1>>>"), "grid of `sum`: `blocks` is not defined in this file"),
        (
            (
                "sum<<<1, 1>>>(d_x, d_out, n);",
                "float* t; cudaMalloc(&t, get()); sum<<<1, 1>>>(d_x, t, n); sum<<<1, 1>>>(t, d_out, 1);",
            ),
            "size of scratch `t`",
        ),
        (
            (
                "sum<<<1, 1>>>(d_x, d_out, n);",
                "float* t; cudaMalloc(&t, 4); cudaMemcpy(t, h, 4, cudaMemcpyHostToDevice); sum<<<1, 1>>>(t, d_out, 1);",
            ),
            "is filled by the host and is no buffer of the original",
        ),
    ],
)
def test_what_cannot_be_told_in_the_workloads_names_is_refused(change: tuple[str, str], words: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        plan(ORIGINAL.replace(*change))
    assert words in str(raised.value)


def test_a_launch_that_the_rewrite_no_longer_reaches_is_refused() -> None:
    text = ORIGINAL.replace("    sum<<<", "    if (n < 1000) sum<<<").replace("argc > 1 ? atoi(argv[1]) : 5000", "5000")
    before = parse(ORIGINAL.encode())
    with pytest.raises(WorkloadError, match="is not reached from `main`"):
        plan_of(parse(text.encode()), original(), before)
    assert plan_of(parse(KERNEL.encode()), original(), before) == original().plan


def test_a_device_variable_that_only_the_rewrite_fills_is_refused() -> None:
    text = ORIGINAL.replace("*out = total", "*out = total * w[0]").replace("    sum<<<", "    FILL sum<<<")
    text = "__constant__ float w[1];\n" + text.replace("FILL", "cudaMemcpyToSymbol(w, h, sizeof(float));")
    before = parse(ORIGINAL.encode())
    with pytest.raises(WorkloadError, match="fills `w`, which the original does not have"):
        plan_of(parse(text.encode()), original(), before)
    assert plan_of(parse(text.encode()), original(), parse(text.encode())).launches()


WIDE = (
    "__global__ void wide(const float4* x, float4* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }"
)
NARROW = """
__global__ void plain(const float* x, float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }
int main() {
    int n = 4096;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    LAUNCH
    cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
}
"""
PLAIN = "plain<<<n / 64, 64>>>(x, y, n);"
QUICK = "wide<<<n / 256, 64>>>((const float4*)x, (float4*)y, n / 4);"
BOTH = [
    "repeat n % 4 == 0 {",
    "launch wide<<<n / 256, 64>>>(x, y, n / 4)",
    "}",
    "repeat !(n % 4 == 0) {",
    "launch plain<<<n / 64, 64>>>(x, y, n)",
    "}",
]


def branched(launch: str, functions: str = "") -> list[str]:
    """The plan of a rewrite that launches by a branch."""
    before = parse(NARROW.replace("LAUNCH", PLAIN).encode())
    workload = infer(before, before.kernel("plain"))
    document = parse((WIDE + NARROW.replace("LAUNCH", launch).replace("int main", functions + "int main")).encode())
    found = plan_of(document, workload, before)
    steps = [bind(workload, found, {"n": size}, document).steps for size in (4096, 4093)]
    assert len(steps[0]) == len(steps[1]) > 0
    shown = Workload(workload.kernel, (), (), (), found)
    return [" ".join(line.split()) for line in format_statements(shown)]


LEAVING = f"void run(float* x, float* y, int n) {{ if (n % 4 == 0) {{ {QUICK} return; }} {PLAIN} }}\n"


@pytest.mark.parametrize(
    ("launch", "functions"),
    [
        (f"if (n % 4 == 0) {QUICK} else {PLAIN}", ""),
        (f"if (n % 4 == 0) {{ {QUICK} }} else {{ {PLAIN} cudaDeviceSynchronize(); }}", ""),
        (f"bool fits = n % 4 == 0; if (fits) {QUICK} if (!fits) {PLAIN}", ""),
        ("run(x, y, n);", LEAVING),
        (f"for (int t = 0; t < 9; ++t) if (n % 4 == 0) {QUICK} else {PLAIN}", ""),
        (f"if (n % 4 == 0) {QUICK} else {PLAIN} cudaDeviceSynchronize(); " * 2, ""),
    ],
)
def test_both_sides_of_a_branch_by_a_size_are_in_the_plan(launch: str, functions: str) -> None:
    assert branched(launch, functions) == BOTH


def test_a_branch_that_the_original_has_as_well_is_its_own() -> None:
    """Its directive says at which sizes the kernel of one side is judged."""
    host = NARROW.replace("LAUNCH", f"if (n > 1000) {QUICK} else {PLAIN}")
    stated = "// cuda-lsp: workload\n//   size n = 4096\n//   buffer x: f32[n] in\n//   buffer y: f32[n] out\n"
    stated += "//   launch wide<<<1, 64>>>(x, y, n / 4)\n"
    before = parse((stated + WIDE.lstrip() + host).encode())
    workload = read_directive(before, before.kernel("wide"))
    assert workload is not None
    for text in (host, host.replace("wide<<<n / 256, 64>>>", "wide<<<n / 512, 128>>>")):
        found = plan_of(parse((WIDE + text).encode()), workload, before)
        assert [type(step).__name__ for step in found.steps] == ["Launch"]
    switched = NARROW.replace("LAUNCH", f"switch (n % 4) {{ case 0: {QUICK} break; default: {PLAIN} }}")
    both = parse((stated + WIDE.lstrip() + switched).encode())
    assert [type(step).__name__ for step in plan_of(both, workload, both).steps] == ["Launch"]
    other = plan_of(parse((WIDE + host.replace("n > 1000", "n > 2000")).encode()), workload, before)
    assert [type(step).__name__ for step in other.steps] == ["Repeat"]


def test_numbers_that_a_branch_sets_hang_on_it() -> None:
    text = "int block = 64; if (n > 1000) { block = 256; } plain<<<(n + block - 1) / block, block>>>(x, y, n);"
    (line,) = branched(text)
    assert line.endswith("(n > 1000 ? 256 : 64)>>>(x, y, n)")


def test_only_the_branch_that_leaves_without_a_launch_leaves_the_plan_alone() -> None:
    assert branched(f"if (n > 1000000) return 1; {PLAIN}") == [BOTH[4]]


@pytest.mark.parametrize(
    "launch",
    [
        f"switch (n % 4) {{ case 0: {QUICK} break; default: {PLAIN} }}",
        f"float* from = x; if (n % 4 != 0) from = y; {PLAIN.replace('(x,', '(from,')}",
        f"if (n % 4 == 0) {{ {QUICK} exit(0); }} {PLAIN}",
    ],
)
def test_a_branch_by_a_size_that_is_not_followed_is_refused(launch: str) -> None:
    with pytest.raises(WorkloadError, match="hangs on `n` by a branch that is followed at n=4096 alone") as raised:
        branched(launch)
    assert raised.value.line is not None


FREED = PLAIN.replace("(x, y", "(t, y")
TAKEN = f"float* t; cudaMalloc(&t, n * sizeof(float)); {PLAIN.replace('(x, y', '(x, t')} "


def test_memory_that_is_freed_before_its_launch_is_refused() -> None:
    with pytest.raises(WorkloadError, match="launched with `t`, which line 9 frees before"):
        branched(f"{TAKEN} cudaFree(t);\n{FREED}")
    assert branched(f"{TAKEN} {FREED} cudaFree(t);")[1:] == [
        "launch plain<<<n / 64, 64>>>(x, t, n)",
        "launch plain<<<n / 64, 64>>>(t, y, n)",
    ]


@pytest.mark.parametrize(
    "launch",
    [
        f"{TAKEN} cudaFree(t); cudaMalloc(&t, n * sizeof(float)); {PLAIN}",
        f"{TAKEN} if (rand()) cudaFree(t); {FREED}",
        f"for (int i = 0; i < 9; ++i) {{ {TAKEN} {FREED} cudaFree(t); }}",
        f"if (n % 4 == 0) {{ {QUICK} cudaFree(x); return 0; }} {PLAIN}",
    ],
)
def test_memory_that_another_run_or_turn_frees_is_there(launch: str) -> None:
    assert branched(launch)


def test_what_the_original_frees_too_early_is_its_own_fault() -> None:
    document = parse(NARROW.replace("LAUNCH", f"cudaFree(y); {PLAIN}").encode())
    workload = infer(document, document.kernel("plain"))
    assert plan_of(document, workload, document).launches()
