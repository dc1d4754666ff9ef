"""Locals that only launches used which are gone."""

import pytest

from agent.search.host.unused import without_unused
from agent.source.document import parse

LAUNCH = "k<<<blocks, threads>>>(x);"


def left(head: str, launch: str = "other<<<1, 1>>>(x);") -> str:
    """What stands before the new launch in the function."""
    text = f"void before() {{ int threads = 3; }}\nvoid f(float* x, int n) {{\n{head}    {LAUNCH}\n}}\n"
    after = without_unused(parse(text.encode()), parse(text.replace(LAUNCH, launch).encode()))
    kept = after.text.decode()
    assert kept.startswith("void before() { int threads = 3; }\n") and launch in kept
    return kept[kept.index("{\n") + 2 : kept.index(launch)].strip()


@pytest.mark.parametrize(
    "head",
    [
        "    int threads = 256;\n    int blocks = (n + threads - 1) / threads;\n",
        "    const size_t threads = 256;\n    dim3 blocks((n + 255) / 256, max(n, 1));\n",
        "    unsigned int threads{64}, *p;\n    constexpr int blocks = 8;\n".replace(", *p", ""),
        "    dim3 blocks = dim3(n);\r\n    auto threads = 1 << 8;\r\n",
    ],
)
def test_they_go_with_what_only_they_used(head: str) -> None:
    assert left(head) == ""


@pytest.mark.parametrize(
    "line",
    [
        "int blocks = count(n);",
        "int blocks = n++;",
        "int blocks = 3, other = 4;",
        "static int blocks = 3;",
        "Guard blocks(n);",
        "int blocks = (n = 4);",
        "float* blocks = x;",
    ],
)
def test_what_may_do_something_stays(line: str) -> None:
    assert left(f"    int threads = 256;\n    {line}\n") == line


def test_what_is_used_elsewhere_or_was_unused_before_stays() -> None:
    assert left("    int unused = 4;\n    int threads = 256;\n    int blocks = 2;\n    // blocks of old\n") == (
        "int unused = 4;\n    int blocks = 2;\n    // blocks of old"
    )
    assert left("    int threads = 256;\n    int blocks = 2;\n", "other<<<blocks, 1>>>(x);") == "int blocks = 2;"
