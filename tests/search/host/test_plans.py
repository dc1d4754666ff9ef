"""Host code for plans of other shapes: several launches for one, one for several, scratch, loops."""

from pathlib import Path

import pytest
from attrs import evolve

from agent.search.host.edits import host_edits
from agent.search.host.readback import contradiction
from agent.source.document import Document, parse, read
from agent.source.edits import Edit, apply_edits
from agent.source.span import Span
from agent.workload.directive import read_directive
from agent.workload.expression import build, number
from agent.workload.find import find_workload
from agent.workload.plan import Launch, Plan, Repeat
from agent.workload.program import Program
from agent.workload.statements import read_statements
from agent.workload.workload import Origin, Workload

FIXTURES = Path(__file__).parents[3] / "fixtures"


def plan(text: str) -> Plan:
    """A plan from directive statements."""
    return read_statements(text, "k", Origin("directive"), 1).plan


def with_helpers(document: Document, kernel: str, helpers: str) -> Document:
    """The document with further kernels above one of its kernels."""
    start = document.kernel(kernel).span.start
    return parse(apply_edits(document.text, [Edit(Span(start, start), helpers.encode())]), document.path)


def edited(fixture: str, kernel: str, helpers: str, statements: str) -> tuple[str, Program, Workload]:
    """What the lines after the first cudaMalloc become, checked by reading the file back."""
    document = read(str(FIXTURES / f"{fixture}.cu"))
    workload = find_workload(document, document.kernel(kernel))
    original = Program(document, workload.plan, "original")
    rewrite = Program(with_helpers(document, kernel, helpers), plan(statements), "rewrite")
    edits = host_edits(original, rewrite, workload)
    assert edits.by_hand == ""
    assert contradiction(original, rewrite, edits.document, workload) == ""
    text = edits.document.text.decode()
    return text[text.index("int main") :], rewrite, workload


STATISTICS = """\
__global__ void statistics(const float* x, float* part, int rows, int cols) { part[blockIdx.x] = x[threadIdx.x]; }
__global__ void normalise(const float* x, const float* part, float* y, int rows, int cols) { y[blockIdx.x] = part[0]; }
"""


def test_one_launch_becomes_two_with_scratch() -> None:
    host, _, _ = edited(
        "layernorm",
        "layernorm",
        STATISTICS,
        """
        scratch part: f32[rows * 264]
        launch statistics<<<dim3(264, rows), 256>>>(x, part, rows, cols)
        launch normalise<<<dim3(264, rows), 256>>>(x, part, y, rows, cols)
        """,
    )
    assert (
        """\
    float* part = nullptr;
    CHECK(cudaMalloc(&part, sizeof(float) * (rows * 264)));
    statistics<<<dim3(264, rows), 256>>>(x, part, rows, cols);
    normalise<<<dim3(264, rows), 256>>>(x, part, y, rows, cols);
    CHECK(cudaFree(part));
    CHECK(cudaGetLastError());
"""
        in host
    )
    assert "layernorm<<<" not in host


FUSED = """\
__global__ void fused(const float* x, const float* weight, const float* bias, float* z, int images, int filters) {
    z[0] = x[0] + weight[0] + bias[images + filters];
}
"""


def test_three_launches_become_one() -> None:
    host, _, _ = edited(
        "conv_relu_pool",
        "conv2d",
        FUSED,
        "launch fused<<<dim3(filters, images), 128, 60000>>>(x, weight, bias, z, images, filters)",
    )
    assert (
        """\

    CHECK(cudaFuncSetAttribute(fused, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
    fused<<<dim3(filters, images), 128, 60000>>>(x, weight, bias, z, images, filters);
    CHECK(cudaGetLastError());
"""
        in host
    )
    assert "relu<<<" not in host and "max_pool<<<" not in host and "conv2d<<<" not in host
    assert "grid" not in host and "dim3 block" not in host, "what only those launches used is gone"


def test_what_the_launch_passes_on_is_called_by_its_name() -> None:
    document = read(str(FIXTURES / "conv_relu_pool.cu"))
    workload = find_workload(document, document.kernel("conv2d"))
    first, *others = workload.plan.steps
    assert isinstance(first, Launch)
    area = build("*", (first.arguments[-2], first.arguments[-1]))
    grid = (build("/", (area, number(128))), *first.grid[1:])
    changed = evolve(workload.plan, steps=(evolve(first, grid=grid), *others))
    edits = host_edits(Program(document, workload.plan, "a"), Program(document, changed, "b"), workload)
    assert b"dim3 conv_grid(conv_height * conv_width / 128, (conv_height + 15) / 16, images" in edits.document.text


TWO_STEPS = """\
__global__ void heat_two(const float* now, float* next, int height, int width, float alpha) { next[0] = now[0]; }
"""


def test_a_time_loop_is_replaced_as_a_whole() -> None:
    host, _, _ = edited(
        "heat",
        "heat_step",
        TWO_STEPS,
        """
        repeat steps / 2 {
          launch heat_two<<<dim3((width + 31) / 32, (height + 31) / 32), dim3(32, 8)>>>(now, next, height, width, 0.2f)
          swap now next
        }
        repeat steps % 2 {
          launch heat_step<<<dim3((height + 15) / 16, (width + 15) / 16),
                             dim3(16, 16)>>>(now, next, height, width, 0.2f)
          swap now next
        }
        """,
    )
    assert (
        """\
    for (int turn = 0; turn < steps / 2; ++turn) {
        heat_two<<<dim3((width + 31) / 32, (height + 31) / 32), dim3(32, 8)>>>(now, next, height, width, alpha);
        std::swap(now, next);
    }
    for (int turn = 0; turn < steps % 2; ++turn) {
"""
        in host
    )
    assert host.count("for (int step = 0; step < steps; ++step)") == 1  # that of the check on the host


SCANS = """\
__global__ void first(const int* in, int* out, int* sums, int n) { out[0] = in[0]; sums[0] = n; }
__global__ void second(int* out, const int* sums, int n) { out[0] += sums[0] + n; }
"""


def test_a_loop_with_scratch_of_its_own_becomes_launches() -> None:
    host, _, _ = edited(
        "scan",
        "scan_step",
        SCANS,
        """
        scratch sums: i32[(n + 1023) / 1024] zeroed
        launch first<<<(n + 1023) / 1024, 256>>>(in, out, sums, n)
        launch second<<<(n + 1023) / 1024, 256>>>(out, sums, n)
        swap in out
        """,
    )
    assert (
        """\
    int* sums = nullptr;
    CHECK(cudaMalloc(&sums, sizeof(int) * ((n + 1023) / 1024)));
    CHECK(cudaMemsetAsync(sums, 0, sizeof(int) * ((n + 1023) / 1024), 0));
    first<<<(n + 1023) / 1024, 256>>>(in, out, sums, n);
    second<<<(n + 1023) / 1024, 256>>>(out, sums, n);
    std::swap(in, out);
    CHECK(cudaFree(sums));
"""
        in host
    )


def test_a_loop_may_be_left_with_nothing_but_its_exchanges() -> None:
    """Launches behind it go by the names that the pointers then have: read back, the file launches the same."""
    host, _, _ = edited(
        "scan",
        "scan_step",
        SCANS,
        """
        scratch sums: i32[(n + 1023) / 1024]
        scratch tiles: i32[n]
        launch first<<<(n + 1023) / 1024, 256>>>(in, tiles, sums, n)
        repeat distance = 1; distance < n; distance *= 2 { swap in out }
        launch second<<<(n + 1023) / 1024, 256>>>(in, sums, n)
        """,
    )
    assert (
        """\
    for (int distance = 1; distance < n; distance *= 2) {
        std::swap(in, out);
    }
    second<<<(n + 1023) / 1024, 256>>>(in, sums, n);
"""
        in host
    )


def test_a_shape_that_stays_is_told_as_it_was_and_other_kernels_have_numbers() -> None:
    host, _, _ = edited(
        "scan",
        "scan_step",
        SCANS,
        """
        launch second<<<(n + 256 - 1) / 256, 256>>>(in, out, n)
        launch scan_step<<<(n + 256 - 1) / 256, 256>>>(in, out, n, 1)
        """,
    )
    assert (
        """\
    int blocks = (n + threads - 1) / threads;
    second<<<(n + 256 - 1) / 256, 256>>>(in, out, n);
    scan_step<<<blocks, threads>>>(in, out, n, 1);
"""
        in host
    )


KERNEL = "__global__ void k(const float* x, float* y, int n) { y[threadIdx.x] = x[n]; }\n"
HELPER = "__global__ void k2(const float* x, float* t, float* y, int n) { y[threadIdx.x] = x[n] + t[0]; }\n"
MAIN = """\
int main() {
    int count = 5000;
    float *d_in, *d_out;
    cudaMalloc(&d_in, count * sizeof(float));
    cudaMalloc(&d_out, count * sizeof(float));
BODY
    cudaFree(d_in);
}
"""


def written(body: str, statements: str, head: str = "") -> tuple[str, str]:
    """(host code, by hand) of a small program whose launch is rewritten to the plan of ``statements``."""
    document = parse((head + KERNEL + MAIN.replace("BODY", body)).encode(), "k.cu")
    kernel = document.kernel("k")
    workload = read_directive(document, kernel) or find_workload(document, kernel)
    original = Program(document, workload.plan, "original")
    rewrite = Program(with_helpers(document, "k", ""), plan(statements), "rewrite")
    text = rewrite.document.text.replace(KERNEL.encode(), KERNEL.encode() + HELPER.encode())
    rewrite = evolve(rewrite, document=parse(text, "k.cu"))
    edits = host_edits(original, rewrite, workload)
    if not edits.by_hand:
        assert contradiction(original, rewrite, edits.document, workload) == ""
    return edits.document.text.decode(), edits.by_hand


TWICE = """
scratch t: f32[count * 2]
launch k2<<<(count + 63) / 64, 64>>>(d_in, t, d_out, count)
"""


def test_a_warm_up_and_a_timed_loop_both_follow() -> None:
    body = """\
    k<<<(count + 255) / 256, 256>>>(d_in, d_out, count);
    for (int i = 0; i < 10; ++i)
        k<<<(count + 255) / 256, 256>>>(d_in, d_out, count);"""
    host, by_hand = written(body, TWICE)
    assert by_hand == ""
    assert host.count("k2<<<(count + 63) / 64, 64>>>(d_in, t") == 2
    assert "    for (int i = 0; i < 10; ++i)\n        k2<<<" in host
    assert host.count("cudaMalloc(&t") == 2 and host.count("cudaFree(t") == 2


def test_a_stream_and_the_line_s_indentation_are_kept() -> None:
    body = """\
    cudaStream_t own;
    {
\tk<<<(count + 255) / 256, 256, 0, own>>>(d_in, d_out, count);
    }"""
    host, by_hand = written(body, TWICE)
    assert by_hand == ""
    assert "\tk2<<<(count + 63) / 64, 64, 0, own>>>(d_in, t, d_out, count);\n\tcudaFree(t);" in host


DIRECTIVE = """\
// cuda-lsp: workload
//   size     n = 5000
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   k<<<(n + 255) / 256, 256>>>(x,
//                y, n)
//   compare  y numeric
"""


def test_a_directive_s_names_are_told_by_what_the_launch_passes_on() -> None:
    body = "    k<<<(count + 255) / 256, 256>>>(d_in, d_out, count);"
    statements = """
    scratch t: f32[n * 2]
    launch k2<<<(n + 63) / 64, 64>>>(x, t, y, n)
    """
    host, by_hand = written(body, statements, DIRECTIVE)
    assert by_hand == ""
    assert "cudaMalloc(&t, sizeof(float) * (count * 2));" in host
    assert "k2<<<(count + 63) / 64, 64>>>(d_in, t, d_out, count);" in host
    again = parse(host.encode(), "k.cu")
    stated = read_directive(again, again.kernel("k"))
    assert stated is not None
    assert [launch.kernel for launch in stated.plan.launches()] == ["k2"]
    assert dict(stated.comparators)["y"].kind == "numeric"
    assert "//                y, n)" not in host


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("    CHECK((k<<<(count + 255) / 256, 256>>>(d_in, d_out, count)));", "part of a larger statement"),
        (
            "    k<<<(count + 255) / 256, 256>>>(d_in, d_out, count);\n    k<<<1, 256>>>(d_in, d_out, 7);",
            "in several places",
        ),
    ],
)
def test_what_cannot_be_written_is_left_to_the_user_whole(body: str, reason: str) -> None:
    host, by_hand = written(body, TWICE, "#define CHECK(x) x\n")
    assert reason in by_hand and "k2<<<" in by_hand
    assert "k2<<<" not in host


def test_a_loop_that_does_more_is_not_replaced() -> None:
    document = read(str(FIXTURES / "heat.cu"))
    text = document.text.replace(b"std::swap(now, next);", b"std::swap(now, next);\n        alpha *= 0.99f;")
    text = text.replace(b"alpha *= 0.99f;", b'printf("%d", step);', 1)
    document = parse(text, "heat.cu")
    workload = find_workload(document, document.kernel("heat_step"))
    (loop,) = workload.plan.steps
    assert isinstance(loop, Repeat)
    shorter = evolve(workload.plan, steps=(evolve(loop, count=plan("repeat steps / 2 { swap a b }").steps[0].count),))  # type: ignore[union-attr]
    edits = host_edits(Program(document, workload.plan, "o"), Program(document, shorter, "c"), workload)
    assert "does more" in edits.by_hand


def test_a_plan_s_own_numbers_are_declared_once() -> None:
    host, _, _ = edited(
        "layernorm",
        "layernorm",
        STATISTICS,
        """
        local parts = min(cols / 1024 + 1, 66)
        scratch part: f32[rows * parts]
        launch statistics<<<dim3(parts, rows), 256>>>(x, part, rows, cols)
        launch normalise<<<dim3(parts, rows), 256>>>(x, part, y, rows, cols)
        """,
    )
    assert (
        """\
    const int parts = cols / 1024 + 1 < 66 ? cols / 1024 + 1 : 66;
    float* part = nullptr;
    CHECK(cudaMalloc(&part, sizeof(float) * (rows * parts)));
    statistics<<<dim3(parts, rows), 256>>>(x, part, rows, cols);
"""
        in host
    )


def test_a_byte_count_that_would_overflow_is_computed_wide() -> None:
    document = read(str(FIXTURES / "softmax.cu"))
    workload = find_workload(document, document.kernel("softmax"))
    rewrite = Program(
        with_helpers(document, "softmax", STATISTICS),
        plan(
            """
            scratch part: f32[rows * cols * 8]
            launch statistics<<<rows, 256>>>(x, part, rows, cols)
            launch normalise<<<rows, 256>>>(x, part, y, rows, cols)
            """
        ),
        "rewrite",
    )
    edits = host_edits(Program(document, workload.plan, "o"), rewrite, workload)
    assert (
        "CHECK(cudaMalloc(&part, sizeof(float) * ((size_t)rows * (size_t)cols * 8)));" in edits.document.text.decode()
    )
