"""Launches that stand in macros, which the parser does not see."""

import pytest

from agent.source.document import parse
from agent.source.macro_launches import macro_launches


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("#define RUN(x, n) k<<<n, 256>>>(x, n)\nvoid f() {\n  RUN(y, 4);\n}",
         [("k", "4", "256", ("y", "4"), 3, "f")]),
        ("#define SHAPE(g, b) <<<g, b>>>\nvoid f() { k SHAPE(1, n + 1)(x, 2); }",
         [("k", "1", "n + 1", ("x", "2"), 2, "f")]),
        ("#define LAUNCH(name, ...) do { name<<<grid, block>>>(__VA_ARGS__); check(); } while (0)\n"
         "void f() { LAUNCH(a, x); LAUNCH(b, x, y); }",
         [("a", "grid", "block", ("x",), 2, "f"), ("b", "grid", "block", ("x", "y"), 2, "f")]),
        ("#define IN(x) k<<<1, 2>>>(x)\n#define OUT(x) IN(x)\n#define DEF(T) void f_##T() { OUT(T); }\nDEF(a)\n",
         [("k", "1", "2", ("a",), 4, None)]),
        # a launch of its own is none of a macro's, nor is a shift
        ("#define SHIFT(a) (a << 2)\n#define UNUSED(x) k<<<1, 2>>>(x)\nvoid f() { k<<<1, 2>>>(x); SHIFT(1); }", []),
    ],
)  # fmt: skip
def test_what_a_call_launches(code, expected):
    found = macro_launches(parse(code.encode()))
    assert [(s.kernel, s.grid, s.block, s.arguments, s.line, s.function) for s in found] == expected


def test_a_site_covers_the_call():
    code = b"#define RUN(x) k<<<1, 2>>>(x)\nvoid f() { g(); RUN(y); h(); }"
    (site,) = macro_launches(parse(code))
    assert code[site.span.start : site.span.end] == b"RUN(y)"


def test_macros_without_end_end():
    code = "#define A(x) B(x) k<<<x, 1>>>(x)\n#define B(x) A(x) A(x)\nvoid f() { A(1); }\n" + "A(" * 500
    assert all(site.kernel == "k" for site in macro_launches(parse(code.encode())))
