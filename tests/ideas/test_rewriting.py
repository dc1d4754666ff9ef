"""Edits keep the user's layout: lines go whole, blank lines do not pile up, names are new."""

import pytest

from agent.analysis.facts import analyse
from agent.analysis.syntax import Node, statements
from agent.ideas.rewriting import (
    Rewrite,
    code_in,
    code_of,
    comment_start,
    fresh_counter,
    fresh_local,
    fresh_name,
    indent_unit,
    insert_after,
    insert_before,
    remove,
    splice_code,
    with_unit,
)
from agent.source.document import Document, parse
from agent.source.edits import Edit
from agent.source.kernel import Kernel

TEXT = """\
#define LIMIT 3
int other;

/* Doubles
   all. */
// Really.
__global__ void twice(float* x) {
  int i = threadIdx.x;  // mine

  x[i] *= 2;

  if (i) return; x[i] = 1;
}
"""


def opened(text: str = TEXT) -> tuple[Document, Kernel, list[Node]]:
    document = parse(text.encode(), "test.cu")
    (kernel,) = document.kernels
    return document, kernel, statements(analyse(document, kernel).body)


def body(document: Document, kernel: Kernel, *edits: Edit) -> list[str]:
    return code_of(document, kernel, Rewrite(edits)).split("\n")[1:-1]


def test_a_statement_goes_with_its_line_and_one_of_two_blank_lines() -> None:
    document, kernel, found = opened()
    assert body(document, kernel, remove(document, found[1])) == [
        "  int i = threadIdx.x;  // mine",
        "",
        "  if (i) return; x[i] = 1;",
    ]


def test_a_comment_at_the_end_of_the_line_goes_with_it() -> None:
    document, kernel, found = opened()
    assert "mine" not in "".join(body(document, kernel, remove(document, found[0])))


def test_of_two_statements_on_a_line_one_stays() -> None:
    document, kernel, found = opened()
    assert body(document, kernel, remove(document, found[3]))[-1] == "  if (i) return; "


def test_lines_take_the_indentation_of_their_place() -> None:
    document, kernel, found = opened()
    lines = body(
        document, kernel, insert_before(document, found[1], "a;\nb;"), insert_after(document, found[0], "c;\nd;")
    )
    assert lines[:7] == ["  int i = threadIdx.x;  // mine", "  c;", "  d;", "", "  a;", "  b;", "  x[i] *= 2;"]


def test_helpers_take_the_kernels_unit_of_indentation() -> None:
    document, kernel, _ = opened()
    assert indent_unit(document, kernel) == "  "
    assert with_unit("f() {\n    if (a)\n        b;\n}", "  ") == "f() {\n  if (a)\n    b;\n}"
    assert with_unit("f() {\n    b;\n}", "\t") == "f() {\n\tb;\n}"


def test_names_are_new() -> None:
    document, kernel, _ = opened()
    assert fresh_name("other", document) == "other_2" and fresh_local("other", document, kernel) == "other"
    assert fresh_local("i", document, kernel) == "i_2" and fresh_local("LIMIT", document, kernel) == "LIMIT_2"
    assert fresh_counter(document, kernel) == "k" and fresh_counter(document, kernel, "k") == "j"
    assert fresh_counter(document, kernel, *"kjmpq") == "k_2"
    assert fresh_name("new", document, "new", "new_2") == "new_3"


def test_helpers_go_above_the_comment_that_belongs_to_the_kernel() -> None:
    document, kernel, _ = opened()
    start = comment_start(document, kernel)
    assert start is not None and document.text[start:].startswith(b"/* Doubles")
    text = splice_code(document, kernel, code_of(document, kernel, Rewrite((), ("void help() {}",)))).text.decode()
    assert text == TEXT.replace("/* Doubles", "void help() {}\n\n/* Doubles")


def test_a_comment_with_a_blank_line_below_it_is_not_the_kernels() -> None:
    document, kernel, _ = opened("// A file.\n\n__global__ void k() {}\n")
    assert comment_start(document, kernel) is None


def with_header(text: str, header: str = "cuda_pipeline.h", helper: str = "") -> str:
    document, kernel, _ = opened(text)
    helpers = (helper,) if helper else ()
    return splice_code(
        document, kernel, code_of(document, kernel, Rewrite((), helpers, headers=(header,)))
    ).text.decode()


KERNEL = "// Counts.\n__global__ void k(int* x) { x[0] += 1; }\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_header_goes_with_the_files_own_and_helpers_above_the_kernel(end: str) -> None:
    before = "#include <cstdio>\n#include <vector>\n\n#define N 3\n\n"
    text = with_header((before + KERNEL).replace("\n", end), helper="__device__ int one() { return 1; }")
    wanted = before.replace("<cstdio>\n", "<cstdio>\n#include <cuda_pipeline.h>\n")
    assert text == (wanted + "__device__ int one() { return 1; }\n\n" + KERNEL).replace("\n", end)


def test_a_header_that_is_there_is_not_included_again() -> None:
    text = "#include <cuda_pipeline.h>\n" + KERNEL
    assert with_header(text) == text
    conditional = f"#include <cstdio>\n#if A\n#include <cuda_pipeline.h>\n#endif\n{KERNEL}"
    assert with_header(conditional) == conditional.replace("<cstdio>\n", "<cstdio>\n#include <cuda_pipeline.h>\n")


def test_without_any_other_a_header_goes_above_the_kernels_comment() -> None:
    assert with_header("#define N 3\n\n" + KERNEL) == "#define N 3\n\n#include <cuda_pipeline.h>\n\n" + KERNEL


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", ["#include <a>\n\n" + KERNEL, "int a;\n__global__ void k(int* x) {}\nint b;\n"])
def test_the_code_of_a_rewrite_can_be_read_off_the_file(text: str, end: str) -> None:
    document, kernel, _ = opened(text.replace("\n", end))
    for helpers in ((), ("__device__ int one() { return 1; }", "// Two.\n__device__ int two() { return 2; }")):
        code = code_of(document, kernel, Rewrite((), helpers))
        assert code_in(splice_code(document, kernel, code), document, kernel) == code
    other = parse(b"// more\n" + document.text, document.path)
    assert code_in(other, document, kernel) is None
