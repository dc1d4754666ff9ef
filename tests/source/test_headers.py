"""Where a further ``#include`` goes."""

import pytest

from agent.source.document import parse
from agent.source.headers import header_lines, header_place, includes

KERNEL = "__global__ void k(float* x) { x[0] = 1; }\n"


def behind(text: str, name: str = "zlib.h") -> str | None:
    document = parse(text.encode())
    place = header_place(document, name, document.kernels[0].span.start)
    return None if place is None else document.slice_text(place.span)


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("#include <cstdio>\n#include <vector>\n\n", "#include <vector>\n"),
        ("#include <cstdio>  // printf\n#define N 3\n", "#include <cstdio>  // printf\n"),
        ('#include <cstdio>\n#include "mine.h"\n', "#include <cstdio>\n"),
        ('#include "mine.h"\n#include "yours.h"\n', '#include "yours.h"\n'),
        ("#include <a>\n#if DEBUG\n#include <b>\n#endif\n", "#include <a>\n"),
        ("#include <a>\nint f() { return 1; }\n#include <late>\n", "#include <a>\n"),
        ("int f() { return 1; }\n#include <late>\n", "#include <late>\n"),
        ("/* #include <b>\n*/\n#include <a>\n// #include <c>\n", "#include <a>\n"),
        ("#include <a>\r\n\r\n", "#include <a>\r\n"),
        ("#include <a>\nnamespace n {\n#include <inside>\n}\n", "#include <a>\n"),
        ("#if DEBUG\n#include <b>\n#endif\n", None),
        ("#define X\n", None),
        ("", None),
    ],
)
def test_it_goes_behind_the_last_one_of_the_head(head: str, line: str | None) -> None:
    assert behind(head + KERNEL) == line
    assert behind(head + KERNEL + "#include <behind_the_kernel>\n") == line


def test_inside_an_include_guard_it_is_as_without_one() -> None:
    assert behind(f"// mine\n#ifndef A_H\n#define A_H\n#include <a>\n{KERNEL}#endif\n") == "#include <a>\n"
    assert behind(f"#ifdef A_H\n#include <a>\n{KERNEL}#endif\n") is None


def test_only_what_holds_whatever_is_defined_is_included() -> None:
    text = "#include <a>\n#if X\n#include <b>\n#endif\n" + KERNEL + "#include <c>\n#include HEADER\n"
    document = parse(text.encode())
    start = document.kernels[0].span.start
    assert [includes(document, name, start) for name in "abc"] == [True, False, False]
    assert [line.name for line in header_lines(document)] == ["a", "c"]


def test_where_they_are_in_order_it_takes_its_place() -> None:
    head = "#include <b.h>\n#include <cstdio>\n#include <vector>\n"
    assert behind(head + KERNEL, "cuda_pipeline.h") == "#include <cstdio>\n"
    assert behind(head + KERNEL, "zlib.h") == behind(head + KERNEL, "a.h") == "#include <vector>\n"
    unordered = "#include <vector>\n#include <cstdio>\n#include <map>\n"
    assert behind(unordered + KERNEL, "cuda_pipeline.h") == "#include <map>\n"
    assert behind("#include <z.h>\n\n" + head + KERNEL, "cuda_pipeline.h") == "#include <cstdio>\n"
    assert behind('#include "a.h"\n' + head + '#include "z.h"\n' + KERNEL, "cuda_pipeline.h") == "#include <cstdio>\n"
