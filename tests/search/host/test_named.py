"""Grids and blocks that the user named keep their names; launches fit on their lines."""

import pytest

from agent.search.host.named import with_names
from agent.search.host.wide import without_wide_launches
from agent.source.document import parse

KERNEL = "__global__ void k(float* x, int n);\n"


def host(body: str, tail: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f"{KERNEL}void f(float* x, int n) {{\n{lines}\n{tail}}}\n"


def named(before: str, after: str) -> str:
    """The body of a function that a rewrite made ``after`` of."""
    text = with_names(parse(host(before).encode()), parse(host(after).encode())).text.decode()
    return "\n".join(line.strip() for line in text.split("{\n", 1)[1].rsplit("}", 1)[0].strip().split("\n"))


@pytest.mark.parametrize(
    ("declared", "grid", "retold"),
    [
        ("dim3 g(n, 2);", "dim3((n + 3) / 4, 7)", "dim3 g((n + 3) / 4, 7);"),
        ("dim3 g{n};", "n / 2", "dim3 g{n / 2};"),
        ("const dim3 g = dim3(n, n);", "dim3(n, 1, n)", "const dim3 g = dim3(n, 1, n);"),
        ("dim3 g = dim3(n);", "n / 4", "dim3 g = dim3(n / 4);"),
        ("int g = n;", "(n + 255) / 256", "int g = (n + 255) / 256;"),
        ("const unsigned int g(n);", "n / 8", "const unsigned int g(n / 8);"),
        ("auto g = dim3(n, 3);", "dim3(n, 4)", "auto g = dim3(n, 4);"),
        ("constexpr int g = 8;", "16", "constexpr int g = 16;"),
    ],
)
def test_the_declaration_tells_the_new_value(declared: str, grid: str, retold: str) -> None:
    before = f"{declared}\nk<<<g, 64>>>(x, n);"
    assert named(before, before.replace("<<<g", f"<<<{grid}")) == f"{retold}\nk<<<g, 64>>>(x, n);"


def test_a_grid_that_is_told_over_the_block_goes_first() -> None:
    before = "dim3 b(16, 16);\ndim3 g((n + b.x - 1) / b.x);\nk<<<g, b>>>(x, n);\nk<<<g, b, 0, 0>>>(x, n);"
    after = before.replace("<<<g, b", "<<<(n + 255) / 256, 256")
    assert named(before, after) == before.replace("b(16, 16)", "b(256)").replace(
        "(n + b.x - 1) / b.x", "(n + 255) / 256"
    )


def test_exchanged_axes_are_exchanged_where_they_are_declared() -> None:
    before = "dim3 g(n, (n + 7) / 8, 2);\nk<<<g, 64>>>(x, n);\nk<<<g, 64>>>(x, n);"
    after = before.replace("<<<g", "<<<dim3(g.y, g.x, g.z)")
    assert named(before, after) == before.replace("g(n, (n + 7) / 8, 2)", "g((n + 7) / 8, n, 2)")
    other = before.replace("\nk", "\nuse(g);\nk", 1)
    assert named(other, other.replace("<<<g", "<<<dim3(g.y, g.x, g.z)")) == other.replace(
        "<<<g", "<<<dim3(g.y, g.x, g.z)"
    )
    one = "dim3 g(n);\nk<<<g, 64>>>(x, n);"
    assert named(one, one.replace("<<<g", "<<<dim3(g.y, g.x, g.z)")) == one.replace("<<<g", "<<<dim3(g.y, g.x, g.z)")


@pytest.mark.parametrize(
    ("before", "grid"),
    [
        ("int g = n;\nuse(g);\nk<<<g, 64>>>(x, n);", "n / 2"),
        ("int g = n;\nk<<<g, 64>>>(x, n);", "dim3(n, 2)"),
        ("constexpr int g = 8;\nk<<<g, 64>>>(x, n);", "n / 2"),
        ("int g = n, h = 2;\nk<<<g, 64>>>(x, n);", "n / 2"),
        ("int g = n;\nint m = n / 2;\nk<<<g, 64>>>(x, n);", "m"),
        ("int g = n;\nn = 3;\nk<<<g, 64>>>(x, n);", "n / 2"),
        ("int g = n;\nn += 3;\nk<<<g, 64>>>(x, n);", "n / 2"),
        ("int g = n;\nread(&n);\nk<<<g, 64>>>(x, n);", "n / 2"),
        ("int g = n;\nfor (int d = 1; d < n; ++d) {\nk<<<g, 64>>>(x, n);\n}", "n / d"),
        ("int g = n;\nk<<<g, 64>>>(x, n);", "g / 2"),
        ("Shape g = n;\nk<<<g, 64>>>(x, n);", "n / 2"),
    ],
)
def test_where_the_declaration_cannot_tell_it_the_launch_does(before: str, grid: str) -> None:
    after = before.replace("<<<g", f"<<<{grid}")
    assert named(before, after) == after


def test_two_launches_with_different_values_share_no_name() -> None:
    before = "int g = n;\nk<<<g, 64>>>(x, n);\nk<<<g, 64>>>(x, n);"
    after = before.replace("<<<g", "<<<n / 2", 1).replace("<<<g", "<<<n / 4", 1)
    assert named(before, after) == after
    half = before.replace("<<<g", "<<<n / 2", 1)
    assert named(before, half) == half, "the other still uses it"


def test_a_variable_that_a_macro_may_use_is_left_alone() -> None:
    before = "#define SHAPE g\nint g = n;\nk<<<g, 64>>>(x, n);\nuse(SHAPE);"
    after = before.replace("<<<g", "<<<n / 2")
    assert named(before, after) == after


LONG = "a_long_kernel_name<<<dim3((n + 127) / 128, (n + 95) / 96), 256>>>(x, weight, bias, height, width"


def wide(before: str, after: str) -> str:
    text = without_wide_launches(parse(host(before).encode()), parse(host(after).encode())).text.decode()
    return text.split("{\n", 1)[1].rsplit("}", 1)[0].strip()


def test_a_launch_that_is_too_long_goes_on_in_the_next_line() -> None:
    short = "k<<<g, 64>>>(x, n);"
    text = wide(short, f"{LONG}, filters, n);")
    assert max(map(len, text.split("\n"))) <= 100 - 4 and text.replace("\n", "").replace(" ", "") == (
        f"{LONG}, filters, n);".replace(" ", "")
    )
    assert wide(f"{LONG}, filters, n);", f"{LONG}, filters, n);") == f"{LONG}, filters, n);", "the user's own"


def test_arguments_stay_aligned_with_their_bracket() -> None:
    before = "k<<<grid_of_it, 64>>>(x,\n                          n);"
    assert wide(before, before.replace("grid_of_it", "n")) == "k<<<n, 64>>>(x, n);"
    many = ", ".join(f"argument_{i}" for i in range(12))
    lines = wide(before, f"k<<<n, 64>>>({many});").split("\n")
    assert len(lines) == 2 and lines[1].startswith(" " * (4 + len("k<<<n, 64>>>(")) + "argument_")
    commented = "k<<<n, 64>>>(x,  // in and out\n                 n);"
    assert wide(before, commented).split() == commented.split()
