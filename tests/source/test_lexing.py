"""What is code and what is not."""

import pytest

from agent.source.lexing import macro_of, scan, without_comments
from agent.source.names import names_in


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"a // b\nc", b"a     \nc"),
        (b"a // b \\\n b\nc", b"a       \n  \nc"),
        (b"a // b \\\r\n b\r\nc", b"a       \r\n  \r\nc"),
        (b"a /* b\n */ c", b"a     \n    c"),
        (b"a /* b", b"a     "),
        (b'f("a\\"b") c', b'f("""""") c'),
        (b'"a\nb', b'""\nb'),
        (b"'\"' b", b'""" b'),
        (b"L'\"' b", b'L""" b'),
        (b"1'000'000 + b", b"1'000'000 + b"),
        (b'R"x(a)"b)x" c', b'""""""""""" c'),
        (b'u8R"(a\n)" c', b'u8""""\n"" c'),
        (b'FOOR"(a" c', b'FOOR"""" c'),
        (b"  #define A b\nc", b"             \nc"),
        (b"#define A /* b\n b */ c\nd", b"              \n       \nd"),
        (b"#define A \\\n b\nc", b"           \n  \nc"),
        (b'#define A "/*"\nb', b"              \nb"),
        (b"#include <a//b>\nc", b"               \nc"),
        (b"\xef\xbb\xbf#define A\nb", b"            \nb"),
        (b"a / b", b"a / b"),
        (b"a # b", b"a # b"),
    ],
)
def test_scan(text, code):
    assert scan(text).code == code


def test_directives_with_their_places():
    text = b"\xef\xbb\xbf#pragma once\n\t# define A(x, y) \\\r\n  (x) /* c */ + y // d\r\nint b;\n#endif"
    found = scan(text).directives
    assert [d.keyword for d in found] == ["pragma", "define", "endif"]
    assert all(text[d.span.start : d.span.end] == d.text for d in found)
    macro = macro_of(found[1])
    assert macro is not None
    assert (macro.name, macro.parameters) == ("A", "x, y")
    assert macro.body.split() == ["(x)", "+", "y"]
    assert macro_of(found[0]) is None


def test_comments_go_and_strings_stay():
    assert without_comments(b'a /* b */ "// c" // d').split() == [b"a", b'"//', b'c"']


def test_names():
    code = b"""x.member + p->field + ns::f<T>(1.f, 0x1Fu, 1e5f) + "word" /* word */ + line;
#if defined(A) && B > 2
#define C(y) (D y)
#pragma unroll E
#include "word.h"
#endif
template <class... Args> void g(Args... args);
asm("word" : "=f"(out));
"""
    expected = {"x", "p", "ns", "f", "T", "line", "A", "B", "C", "D", "y", "E", "Args", "g", "args", "out"}
    assert names_in(code) == expected
