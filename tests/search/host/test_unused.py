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


def test_what_a_macro_may_use_stays() -> None:
    text = f"#define SIZE blocks\nvoid f(float* x, int n) {{\n    int blocks = n;\n    {LAUNCH}\n    use(SIZE);\n}}\n"
    text = text.replace("threads", "64")
    after = without_unused(parse(text.encode()), parse(text.replace("k<<<blocks", "k<<<n").encode()))
    assert b"int blocks = n;" in after.text


LOOP = "for (int d = 1; d < n; d *= 2) {\n        k<<<d, 1>>>(x);\n    }"


def emptied(now: str, head: str = "", tail: str = "", was: str = LOOP) -> str:
    """What stands between ``head`` and ``tail`` where a loop became ``now``."""
    text = f"void f(float* x, int n) {{\n    {head}\n    {was}\n    {tail}\n}}\n"
    after = without_unused(parse(text.encode()), parse(text.replace(was, now).encode())).text.decode()
    assert after.startswith("void f(float* x, int n) {\n") and tail in after
    return after[after.index(head) + len(head) : after.rindex(tail)].strip()


@pytest.mark.parametrize(
    "now",
    [
        "for (int d = 1; d < n; d *= 2) {\n    }",
        "for (int d = 0; d < n; ++d) ;",
        "for (size_t d = n - 1; d > 0; d--) {}",
        "for (int d = 1; d < n; d = d * 2) {\n        if (d > 3) {\n        }\n    }",
        "if (n > 3) {\n    }",
        "for (int d = 1; d < n; d <<= 1) {\n        std::swap(a, b);\n    }",
        "if (n & 1) swap( a , b );",
    ],
)
@pytest.mark.parametrize("tail", ["cudaFree(a);\n    cudaFree(b);", "return;"])
def test_a_loop_with_nothing_left_to_do_goes(now: str, tail: str) -> None:
    assert emptied(now, "float *a, *b = nullptr;", tail) == ""


@pytest.mark.parametrize(
    "now",
    [
        "for (int d = 1; d < n; d *= 2) {\n        // wait for it\n    }",
        "for (int d = 1; next(d); d *= 2) {}",
        "for (int d = first(); d < n; d *= 2) {}",
        "for (int d = 1; d < n; d *= step()) {}",
        "for (int d = 1; d < n; n--) {}",
        "for (d = 1; d < n; d *= 2) {}",
        "for (auto one : list) {}",
        "while (poll()) {}",
        "for (int d = 1; d < n; d *= 2) cudaDeviceSynchronize();",
        "for (int d = 1; d < n; d *= 2) std::swap(a, x);",
        "for (int d = 1; d < n; d *= 2) mine::swap(a, b);",
        "if (n > 3) {} else { n = 3; }",
        "if (failed()) {}",
    ],
)
def test_a_loop_that_may_do_something_stays(now: str) -> None:
    assert emptied(now, "float *a, *b;", "cudaFree(a); cudaFree(b);") == now


EXCHANGED = "for (int d = 1; d < n; d *= 2) {\n        std::swap(a, b);\n    }"


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("float *a, *b;", "use(a);"),
        ("float *a, *b;", "cudaFree(a);"),
        ("float *a, *b; float* c = a;", "use(c);"),
        ("float *a, *b; float** c = &a;", "use(c);"),
        ("float *a, *b; auto c = [&] { use(a); };", "c();"),
        ("float *a, *b; for (;;) {", "done(); }"),
        ("static float *a, *b;", "return;"),
        ("// a and b are members", "return;"),
    ],
)
def test_an_exchange_that_somebody_may_see_stays(head: str, tail: str) -> None:
    assert emptied(EXCHANGED, head, tail) == EXCHANGED


def test_a_loop_that_was_empty_before_is_the_users() -> None:
    spin = "for (int d = 0; d < n; ++d) {}"
    assert emptied("other<<<1, 1>>>(x);", spin, "return;", "k<<<1, 1>>>(x);") == "other<<<1, 1>>>(x);"
    assert spin in left(f"    {spin}\n    int threads = 3;\n")
