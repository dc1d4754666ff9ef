"""What is written is laid out as the file is."""

import pytest

from agent.ideas.layout import laid_out, line_limit
from agent.source.document import parse

OWN = """\
__global__ void k(float* x) {
#pragma unroll 3
    for (int i = 0; i < 9; ++i) x[i] = 1.0f;
}"""
NEW = "    #pragma unroll\n#pragma unroll 2\n    for (;;) {\n#pragma unroll\n        f();\n    }\n"
CODE = OWN.replace("    for", f"{NEW}    for")


def test_pragmas_stand_with_the_code_where_the_file_does_not_say_otherwise() -> None:
    document = parse(b"int f();\n")
    indented = NEW.replace("\n#pragma unroll 2", "\n    #pragma unroll 2")
    indented = indented.replace("\n#pragma unroll\n", "\n        #pragma unroll\n")
    assert laid_out(CODE, document, OWN, "    ") == CODE.replace(NEW, indented)


def test_pragmas_stand_where_those_of_the_file_do() -> None:
    flat = CODE.replace("    #pragma", "#pragma")
    assert laid_out(CODE, parse(OWN.encode()), OWN, "    ") == flat
    mixed = parse(OWN.encode() + b"\n    #pragma unroll\n    # pragma unroll 4\n")
    assert "\n#pragma unroll 3" in laid_out(CODE, mixed, OWN, "    "), "the user's own stay"
    assert "\n        #pragma unroll\n" in laid_out(CODE, mixed, OWN, "    ")


LONG = "    for (int i = 0; i < (n + 1) / 2; ++i) " + "x[i] = " + "y[i] + " * 9 + "z[i];"


@pytest.mark.parametrize("unit", ["    ", "\t"])
def test_a_head_and_its_statement_go_on_two_lines_where_one_is_too_long(unit: str) -> None:
    document = parse(b"int a;\n")
    head, rest = LONG[:41], LONG[42:]
    assert laid_out(LONG, document, "", unit) == f"{head}\n    {unit}{rest}"
    assert laid_out(LONG, document, LONG, unit) == LONG, "the user's own"
    wide = parse(b"// " + b"x" * 200 + b"\n")
    assert (line_limit(document), line_limit(wide)) == (100, 120)
    assert 100 < len(LONG) <= 120 and laid_out(LONG, wide, "", unit) == LONG


@pytest.mark.parametrize(
    "line", ["    for (;;) {" + " " * 100 + "// why", "    x = " + "y + " * 40 + "z;", "if (" + "(" * 120 + ";"]
)
def test_other_long_lines_stay(line: str) -> None:
    assert laid_out(line, parse(b""), "", "    ") == line


def test_parameters_go_on_below_the_first_one() -> None:
    listed = ", ".join(f"const float* __restrict__ operand_{i}" for i in range(4))
    margin = " " * len("__global__ void k(")
    for tail in ("int n) {", "int n,"):
        lines = laid_out(f"__global__ void k({listed}, {tail}", parse(b""), "", "    ").split("\n")
        assert all(len(line) <= 100 for line in lines) and lines[1].startswith(f"{margin}const")
        assert " ".join(line.strip() for line in lines) == f"__global__ void k({listed}, {tail}"
    bounds = f"__global__ void __launch_bounds__(256, 2) k({listed}) {{"
    assert laid_out(bounds, parse(b""), "", "    ").split("\n")[1].startswith(" " * bounds.index("const"))


def test_comments_of_several_lines_are_filled() -> None:
    words = "word " * 30
    text = f"// {words.strip()}\n// more of it.\nvoid f() {{\n    // one\n    // two\n  // other\n}}"
    lines = laid_out(text, parse(b""), "", "    ").split("\n")
    assert len(lines[0]) > 90 and all(len(line) <= 100 for line in lines)
    assert " ".join(line[3:] for line in lines[:2]) == f"{words}more of it."
    assert lines[2:] == ["void f() {", "    // one two", "  // other", "}"]
    own = "    // the user's\n    // own"
    assert laid_out(own, parse(b""), own, "    ") == own
    assert laid_out("//   a table\n//   of it", parse(b""), "", "    ") == "//   a table\n//   of it"
