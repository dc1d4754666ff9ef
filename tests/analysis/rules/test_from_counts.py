"""Findings that are made from counts; the counts here are written by hand."""

import pytest

from agent.analysis.rules.counted import Executed
from agent.analysis.rules.finding import Finding, Severity
from agent.analysis.rules.from_counts import Counts, from_counts, moved
from agent.source.document import parse

WIDE = Executed("load", "ld.global.f32", 4, 128, 4, 128, 16, width=4)
"""Four requests of 32 lanes, 4 bytes each: 32 sectors a request, 4 would do."""
CLEAN = Executed("load", "ld.global.f32", 4, 128, 4, 16, 16, width=4)
STORED = Executed("store", "st.global.f32", 4, 128, 4, 32, 16, width=4)
FEW = Executed("load", "ld.global.f32", 4, 4 * 7, 4, 28, 4, width=4)
ONE_SECTOR = Executed("load", "ld.global.v2.f32", 4, 4 * 8, 4, 32, 8, width=8)
"""Eight lanes with a sector each are no worse than 32 of them side by side, which need eight."""
MEETING = Executed("shared", "ld.shared.f32", 4, 128, shared=4, passes=32, ideal_passes=4, width=4)

HIDDEN = """\
__device__ int place(int i);
__global__ void spread(const float* x, const int* order, float* y, int n) {
    __shared__ float tile[32][32], flat[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[place(i)];
    a += x[place(i) + 1];
    y[place(i)] = a;
    int j = order[i];
    a += x[place(j)];
    a += tile[place(i)][0] + flat[i];
    a += flat[place(i)];
    y[i] = a;
}
"""


def found(
    lines: dict[int, list[Executed]], text: str = HIDDEN, sizes: str = "n=4096", made_up: bool = False
) -> list[tuple[str, int, Finding]]:
    document = parse(text.encode(), "spread.cu")
    return [
        (one.rule, document.line(one.span.start), one)
        for one in from_counts(document, document.kernels[0], Counts(lines, sizes, made_up))
    ]


def test_a_line_that_no_rule_names_is_named_with_its_count_and_the_others_of_its_array_beside_it() -> None:
    ((rule, line, finding),) = found({5: [WIDE], 6: [WIDE]})
    assert (rule, line) == ("M1", 5)
    assert finding.message == "the lanes of a warp are spread over x"
    assert finding.cost == "counted at n=4096: 32 sectors a request, 4 would do"
    assert [one.words for one in finding.related] == ["32 sectors here (x[place(i) + 1])"]
    assert finding.counted and finding.severity is Severity.WARNING
    further = moved(finding, 10)
    assert (further.span.start, further.related[0].span.start) == (
        finding.span.start + 10,
        finding.related[0].span.start + 10,
    )


def test_each_array_has_its_own_finding() -> None:
    assert [(rule, line) for rule, line, _ in found({5: [WIDE], 7: [CLEAN, STORED]})] == [("M1", 5), ("M1", 7)]


def test_conflicts_by_the_shape_of_the_array() -> None:
    both = found({10: [MEETING], 11: [MEETING]})
    assert [(rule, line) for rule, line, _ in both] == [("S1", 10), ("S2", 11)]
    assert both[1][2].message == "the lanes of a warp meet in the same banks of flat"
    assert both[1][2].cost == "counted at n=4096: 8 passes an access, 1 would do"


@pytest.mark.parametrize("one", [CLEAN, FEW, ONE_SECTOR], ids=["clean", "few lanes", "a sector for all"])
def test_what_is_not_bad_is_not_named(one: Executed) -> None:
    assert found({5: [one]}) == []


def test_a_line_without_such_an_access_is_not_named() -> None:
    assert found({4: [WIDE], 8: [MEETING], 12: [WIDE]}) == [], "a declaration, no shared array, a store that was none"


COMPACTED = """\
__global__ void keep(const int* flags, int* kept, int n) {
    int count = 0;
    for (int k = 0; k < n; k++) {
        int flag = flags[k * 32 + threadIdx.x];
        if (flag) {
            kept[32 * count + threadIdx.x] = k;
            count++;
        }
    }
}
"""


def test_what_loaded_data_decides_is_not_named() -> None:
    assert found({9: [WIDE]}) == []
    assert found({6: [STORED]}, COMPACTED) == []
    assert len(found({6: [STORED]}, COMPACTED.replace("if (flag)", "if (k > 2)"))) == 1, "every thread counts alike"


NAMED = """\
__global__ void apart(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[4 * i];  // here
    y[i] += x[4 * i + 1];
}
"""


def test_a_line_that_a_rule_names_is_not_named_again_silenced_or_not() -> None:
    assert found({3: [WIDE], 4: [WIDE]}, NAMED) == []
    assert found({3: [WIDE], 4: [WIDE]}, NAMED.replace("// here", "// cuda-lsp: ignore[M1]")) == []


@pytest.mark.parametrize("names", ["M1", "M", "M2", "ALL"])
def test_it_is_silenced_as_a_rule_is(names: str) -> None:
    text = HIDDEN.replace("x[place(i)];", f"x[place(i)];  // cuda-lsp: ignore[{names}]")
    ((_, line, finding),) = found({5: [WIDE], 6: [WIDE]}, text)
    assert (line, finding.related) == (6, ())


def test_a_launch_that_was_made_up_is_named_and_is_no_warning() -> None:
    ((_, _, finding),) = found({5: [WIDE]}, made_up=True)
    assert finding.cost == "counted at n=4096 on a launch that was made up: 32 sectors a request, 4 would do"
    assert finding.severity is Severity.INFORMATION


DECIDED = [
    "__global__ void f(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x / n * 64]; }",
    "__global__ void f(const char* x, float* y, int n) { int j = place(threadIdx.x); y[0] = *(float*)(x + j * n); }",
    "__global__ void f(const float* x, float* y, int n) { y[0] = at(x[threadIdx.y * 64 + place(threadIdx.x)]); }",
    "template <int N> __global__ void f(const float* x, float* y) { y[0] = x[place(threadIdx.x) * N]; }",
]


@pytest.mark.parametrize(
    "text",
    DECIDED,
    ids=["a parameter", "one times what is not known", "the block", "a template's number"],
)
def test_numbers_that_were_made_up_decide_nothing(text: str) -> None:
    assert found({1: [WIDE]}, text, made_up=True) == []
    assert len(found({1: [WIDE]}, text)) == 1


def test_without_sizes_and_with_several_arrays_the_line_is_meant() -> None:
    text = "__global__ void f(const float* x, const float* z, float* y) {\n    y[0] = x[at(y)] + z[at(x)];\n}\n"
    ((_, line, finding),) = found({2: [WIDE]}, text, sizes="")
    assert (line, finding.message) == (2, "the lanes of a warp are spread over x or z")
    assert finding.cost == "counted: 32 sectors a request, 4 would do"
    assert text[finding.span.start : finding.span.end] == "y[0] = x[at(y)] + z[at(x)];"


def test_another_block_than_the_one_in_sight_says_nothing_of_rows() -> None:
    text = "__global__ void f(const float* x, float* y) { y[0] = x[place(threadIdx.x) + 32 * threadIdx.y]; }\n"
    document = parse((text + "void run(float* x) { f<<<4, dim3(32, 8)>>>(x, x); }\n").encode(), "f.cu")
    (kernel,) = document.kernels
    said = [from_counts(document, kernel, Counts({1: [WIDE]}, "", True, block)) for block in ((32, 8, 1), (8, 8, 1))]
    assert [len(one) for one in said] == [1, 0]


ROWS = "__global__ void f(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x / n * 64]; }"
"""A row's length decides, which nobody wrote."""


def elsewhere(*lines: dict[int, list[Executed]], text: str = ROWS) -> list[Finding]:
    """On a launch that was made up, where line 1 is bad, and with the numbers of others."""
    document = parse(text.encode(), "f.cu")
    others = [Counts(there, f"n={128 + at}", True) for at, there in enumerate(lines)]
    return list(from_counts(document, document.kernels[0], Counts({1: [WIDE]}, "n=34", True), others))


def test_what_is_bad_with_every_number_tried_is_named_and_all_of_them_are_told() -> None:
    (finding,) = elsewhere({1: [WIDE]}, {1: [WIDE, CLEAN]})
    assert finding.cost == (
        "counted at n=34 on a launch that was made up, and as bad at n=128 and at n=129: "
        "32 sectors a request, 4 would do"
    )
    assert finding.severity is Severity.INFORMATION


@pytest.mark.parametrize(
    "last", [{1: [CLEAN]}, {1: []}, {1: [MEETING]}], ids=["fine", "not reached", "of another kind"]
)
def test_where_one_of_them_does_not_show_it_a_number_decides(last: dict[int, list[Executed]]) -> None:
    assert elsewhere({1: [WIDE]}, last) == []


def test_what_is_fine_with_other_numbers_is_not_named_whatever_decides_it() -> None:
    text = "__global__ void f(const float* x, float* y) { y[0] = x[place(threadIdx.x)]; }"
    assert len(elsewhere(text=text)) == 1
    assert len(elsewhere({1: []}, text=text)) == 1, "where nothing comes to it nothing is known"
    assert elsewhere({1: [CLEAN]}, text=text) == []


def test_loaded_data_decides_whatever_the_numbers_are() -> None:
    text = "__global__ void f(const float* x, const int* at, float* y) { y[0] = x[place(at[threadIdx.x])]; }"
    assert elsewhere({1: [WIDE]}, {1: [WIDE]}, text=text) == []


def test_a_number_that_the_launch_tells_was_not_made_up() -> None:
    document = parse(ROWS.encode(), "f.cu")
    counts = [Counts({1: [WIDE]}, "", True, None, frozenset(names)) for names in ((), ("n",))]
    assert [len(from_counts(document, document.kernels[0], one)) for one in counts] == [1, 0]


def test_a_number_of_bytes_may_be_the_size_of_an_element_which_no_number_tried_is() -> None:
    text = (
        "__global__ void f(const {0}* x, float* y, int w) "
        "{{ int j = place(threadIdx.x); y[0] = *(float*)(({0}*)x + j * w); }}"
    )
    assert elsewhere({1: [WIDE]}, {1: [WIDE]}, text=text.format("char")) == []
    written = text.format("char").replace("((char*)x + j * w)", "(reinterpret_cast<const char *>(x) + j * w)")
    assert written != text.format("char") and elsewhere({1: [WIDE]}, {1: [WIDE]}, text=written) == []
    assert len(elsewhere({1: [WIDE]}, {1: [WIDE]}, text=text.format("float"))) == 1


def test_a_block_that_nobody_tells_decides_nothing_that_others_show_too() -> None:
    text = "__global__ void f(const float* x, float* y) { y[0] = x[threadIdx.y * 64 + place(threadIdx.x)]; }"
    document = parse(text.encode(), "f.cu")

    def said(*others: tuple[int, int, int]) -> list[str]:
        first, *more = (Counts({1: [WIDE]}, "", True, block) for block in ((16, 16, 1), *others))
        return [one.cost for one in from_counts(document, document.kernels[0], first, more)]

    assert said() == said((16, 16, 1)) == [], "one block"
    assert said((32, 8, 1)) == [
        "counted in blocks of 16 x 16 x 1 on a launch that was made up, and as bad in blocks of 32 x 8 x 1: "
        "32 sectors a request, 4 would do"
    ]


@pytest.mark.parametrize("body", ["y[0] = x[i * n + 1];", "int r = i / n; y[0] = x[r * 64];"], ids=["lanes", "rows"])
def test_a_number_beside_a_variable_that_only_a_macro_declares_decides_as_well(body: str) -> None:
    text = f"__global__ void f(const float* x, float* y, int n) {{ EACH(i, n) {{\n{body} }} }}"
    assert found({2: [WIDE]}, text, made_up=True) == []
    assert len(found({2: [WIDE]}, text)) == 1
