"""The frame: places, silence by comment, selection, what is remembered, what is known from a workload."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.analysis.rules import EVERYTHING, Finding, Selection, Severity, check, checking
from agent.analysis.rules.pages import page
from agent.analysis.rules.registry import by_id
from agent.source.document import Document, parse
from agent.workload.directive import read_directive

ROOT = Path(__file__).resolve().parents[3]

STRIDED = """\
__global__ void first(const float* image, float* red, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) red[i] = image[i * 4];
}
"""
POWER = """\
__global__ void second(float* x) {
    x[threadIdx.x] = powf(x[threadIdx.x], 2.0f);
}
"""


def findings(text: str | Document, selection: Selection | None = None) -> list[Finding]:
    document = parse(text.encode(), "test.cu") if isinstance(text, str) else text
    return [one for kernel in document.kernels for one in check(document, kernel, selection=selection)]


def ids(text: str, selection: Selection | None = None) -> list[str]:
    return [finding.rule for finding in findings(text, selection)]


def test_what_nests_too_deeply_is_not_looked_at() -> None:
    """A generated sum of 20,000 terms would keep the rules busy for hours, and the editor with them."""
    terms = " + ".join(f"powf(x[{at}], 2.0f)" for at in range(20_000))
    assert ids(POWER) and ids(f"__global__ void k(float* x) {{ x[0] = {terms}; }}") == []
    host = "int main() {{ float* x; cudaMalloc(&x, 4 * {}); second<<<1, 32>>>(x); }}"
    few, many = host.format(" + ".join("1" * 9)), host.format(" + ".join("1" * 20_000))
    assert ids(POWER + many) == ids(POWER) and ids(POWER + few) != []


def test_a_finding_says_what_where_and_how_bad() -> None:
    (finding,) = findings(STRIDED)
    document = parse(STRIDED.encode())
    assert document.slice_text(finding.span) == "image[i * 4]"
    assert (finding.rule, finding.severity, finding.fix) == ("M1", Severity.WARNING, None)
    assert finding.cost == "16 sectors per request (4 would do)"  # 32 lanes, 16 bytes apart: 512 bytes
    assert "\n" not in finding.message


def test_the_page_is_what_the_rules_say() -> None:
    expected = (ROOT / "docs" / "rules.md").read_text()
    assert expected == page(), "run: python -m agent.analysis.rules.pages > docs/rules.md"


IGNORED = [
    ("image[i * 4];", "image[i * 4];  // cuda-lsp: ignore[M1]"),
    ("image[i * 4];", "image[i * 4];  // small on purpose, cuda-lsp: ignore[S1, M1]"),
    ("image[i * 4];", "image[i * 4];  /* cuda-lsp: ignore[M] */"),
    ("image[i * 4];", "image[i * 4];  // cuda-lsp: ignore"),
    ("    if (i < n)", "    // cuda-lsp: ignore[M1]\n    if (i < n)"),
    ("__global__", "// cuda-lsp: ignore[M1]\n__global__"),
    ("__global__", "// cuda-lsp: ignore[M1]\n// the first of four\n__global__"),
]
NOT_IGNORED = [
    ("image[i * 4];", "image[i * 4];  // cuda-lsp: ignore[M12]"),
    ("image[i * 4];", "image[i * 4];  // cuda-lsp: ignore[S]"),
    ("image[i * 4];", "image[i * 4];  // cuda-lsp: ignore[]"),
    ("    int i", "    // cuda-lsp: ignore[M1]\n    int i"),
    ("__global__", "// cuda-lsp: ignore[M1]\n\nint far;\n__global__"),
    ("    if (i < n)", "    int k = 0;  // cuda-lsp: ignore[M1]\n    if (i < n)"),
]


@pytest.mark.parametrize(("old", "new"), IGNORED)
def test_comments_silence(old: str, new: str) -> None:
    assert ids(STRIDED.replace(old, new)) == []


@pytest.mark.parametrize(("old", "new"), NOT_IGNORED)
def test_comments_about_something_else_do_not(old: str, new: str) -> None:
    assert ids(STRIDED.replace(old, new)) == ["M1"]


def test_a_comment_at_a_launch_silences_what_is_said_there() -> None:
    text = POWER + "void run(float* x) {\n    second<<<1, 100>>>(x);\n}\n"
    assert ids(text) == ["A4", "L1"]
    assert ids(text.replace("(x);\n}", "(x);  // cuda-lsp: ignore[L1]\n}")) == ["A4"]


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        ((), (), ["M1", "A4"]),
        (("M",), (), ["M1"]),
        (("A4",), (), ["A4"]),
        (("ALL",), ("A",), ["M1"]),
        (("A4",), ("A",), ["A4"]),
        (("A",), ("A4",), []),
        ((), ("M1", "A4"), []),
        (("M12",), (), []),
        (("m1",), (), ["M1"]),
        ((), ("ALL",), []),
    ],
)
def test_selection(select: tuple[str, ...], ignore: tuple[str, ...], expected: list[str]) -> None:
    assert ids(STRIDED + POWER, Selection(select, ignore)) == expected


def test_findings_move_with_their_kernel() -> None:
    alone = findings(POWER)
    moved = findings("// before\nint x;\n" + STRIDED + POWER)[-1]
    shift = len("// before\nint x;\n" + STRIDED)
    assert (moved.span.start, moved.span.end) == (alone[0].span.start + shift, alone[0].span.end + shift)
    assert moved.message == alone[0].message


def test_only_a_kernel_that_changed_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    run = checking._run

    def counted(document, kernel, *rest):  # type: ignore[no-untyped-def]
        looked.append(kernel.name)
        return run(document, kernel, *rest)

    monkeypatch.setattr(checking, "_run", counted)
    monkeypatch.setattr(checking, "_remembered", {})
    text = "#define UNUSED 1\n#define STEP 4\n" + STRIDED.replace("* 4", "* STEP") + POWER + "// remembered\n"
    findings(text)
    findings("\n" + text.replace("UNUSED 1", "UNUSED 2"))
    assert looked == ["first", "second"]
    findings(text.replace("powf(x", "powf(1.0f + x"))
    assert looked == ["first", "second", "second"]
    # a constant that a kernel uses is part of what it was looked at with
    assert findings(text.replace("STEP 4", "STEP 8"))[0].cost.startswith("32 sectors")
    assert looked == ["first", "second", "second", "first"]


def test_blocks_of_launches_count() -> None:
    body = "__global__ void k(float* x) {{ __shared__ float s[32][32]; s[threadIdx.x][threadIdx.y] = 0.0f; }}\n{}"
    only = Selection(("S1",))
    assert ids(body.format("void run(float* x) { k<<<1, dim3(32, 32)>>>(x); }"), only) == ["S1"]
    assert ids(body.format("void run(float* x) { k<<<1, dim3(1, 128)>>>(x); }"), only) == []
    two = "void run(float* x) { k<<<1, dim3(1, 128)>>>(x); k<<<1, dim3(32, 32)>>>(x); }"
    assert ids(body.format(two), only) == []


def test_a_workload_says_what_the_file_does_not() -> None:
    text = """\
// cuda-lsp: workload
//   size     n = 64, stride = {stride}
//   buffer   x: f32[n * stride * 32] inout
//   launch   k<<<n / 32, 32>>>(x, stride)
__global__ void k(float* x, int stride) {{
    x[(blockIdx.x * blockDim.x + threadIdx.x) * stride] = 0.0f;
}}
"""
    for stride, expected in ((1, []), (2, ["M2"]), (64, ["M2"])):
        document = parse(text.format(stride=stride).encode())
        (kernel,) = document.kernels
        workload = read_directive(document, kernel)
        assert [one.rule for one in check(document, kernel, workload)] == expected
        assert [one.rule for one in check(document, kernel)] == ["M2"]  # with no word on the stride


def test_no_hints_for_hip_nor_inside_damage() -> None:
    assert ids("#include <hip/hip_runtime.h>\n" + STRIDED) == []
    assert ids(STRIDED.replace("image[i * 4];", "image[i * 4]")) == []


def test_a_name_from_elsewhere_may_be_anything() -> None:
    """``#define TID threadIdx.x`` in a header would turn what looks uniform into what is not."""
    text = "__global__ void k(float* x, float v) { if (v > LIMIT) atomicAdd(&x[SLOT], x[threadIdx.x]); }"
    assert ids(text) == []
    assert ids("#define LIMIT 0.5f\nconst int SLOT = 3;\n" + text) == ["T1"]
    assert ids("#define LIMIT 0.5f\n#define SLOT threadIdx.x\n" + text) == []


def test_kernels_of_one_name_share_no_launches() -> None:
    text = "namespace a { __global__ void k(float* x) { x[0] = 1.0f; } }\n"
    text += "namespace b { __global__ void k(float* x) { x[1] = 1.0f; } }\nvoid run(float* x) { a::k<<<1, 33>>>(x); }\n"
    assert ids(text) == []


def test_macros_of_any_kind_are_no_reason_to_fail() -> None:
    assert ids("#define ZERO(x) ((uint4)0)\n#define F(x, y) (x)(y)\n#define E()\n" + STRIDED) == ["M1"]


def test_an_unknown_pitch_is_named() -> None:
    text = "__global__ void k(float* x, int pitch) { x[threadIdx.x * pitch] = 0.0f; }"
    (finding,) = findings(text)
    assert "apart if pitch is large" in finding.message and "32 sectors" in f"{finding.message} {finding.cost}"


def test_what_is_said_of_assumed_blocks_is_a_least() -> None:
    text = "__global__ void k(float* x, int n) { x[threadIdx.x * n + threadIdx.y] = 0.0f; }"
    (finding,) = findings(text)
    assert finding.rule == "M3" and "at least 8 sectors" in finding.message  # 8 x 8: 8 rows in a warp


SOURCES = [path.read_text() for path in sorted((ROOT / "fixtures").glob("*.cu"))] + [
    text for rule in by_id().values() for text in (*rule.fires, *rule.silent)
]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(SOURCES), st.integers(0, 6000), st.integers(0, 60), st.sampled_from(["", "(", "}", ";", "i", "#"])
)
def test_half_typed_text_is_no_reason_to_fail(text: str, at: int, length: int, typed: str) -> None:
    at %= len(text)
    cut = text[:at] + typed + text[at + length :]
    document = parse(cut.encode())
    for kernel in document.kernels:
        for finding in check(document, kernel, selection=EVERYTHING):
            assert 0 <= finding.span.start < finding.span.end <= len(cut.encode())
            assert finding.message and not re.search(r"\s{2,}|\n", finding.message)
