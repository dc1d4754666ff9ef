"""Every way to write a launch, its parts as written."""

import pytest

from agent.source.document import parse


def only(statement: str, before: str = ""):
    code = f"{before}void f(int n) {{\n  {statement}\n}}\n"
    launches = parse(code.encode()).launches
    assert len(launches) == 1
    return code, launches[0]


@pytest.mark.parametrize(
    ("statement", "parts"),
    [
        ("k<<<1, 2>>>(x, n + 1);", ("k", "k", (), "1", "2", None, None, ("x", "n + 1"))),
        ("k<<<g, b, 0, s>>>();", ("k", "k", (), "g", "b", "0", "s", ())),
        ("a::k<T, 2 * N><<<g, b, s>>>(x);", ("k", "a::k<T, 2 * N>", ("T", "2 * N"), "g", "b", "s", None, ("x",))),
        ("k<<<{1, 2}, {n / 2, 4}>>>(x);", ("k", "k", (), "{1, 2}", "{n / 2, 4}", None, None, ("x",))),
        ("k<<<dim3(1, 2), dim3{n, 4}, 8>>>(x);", ("k", "k", (), "dim3(1, 2)", "dim3{n, 4}", "8", None, ("x",))),
        ("k<T> << < n >> 5, 32 > >> (x);", ("k", "k<T>", ("T",), "n >> 5", "32", None, None, ("x",))),
        ("k<<<(n + 9) / 8, 256>>>\n  (x, /* c */ y);", ("k", "k", (), "(n + 9) / 8", "256", None, None, ("x", "y"))),
        ("s.k<<<1, 2>>>(x);", ("k", "s.k", (), "1", "2", None, None, ("x",))),
        ("(&k)<<<1, 2>>>(x);", ("k", "(&k)", (), "1", "2", None, None, ("x",))),
        ("table[n]<<<1, 2>>>(x);", ("table", "table[n]", (), "1", "2", None, None, ("x",))),
        ("CHECK((k<<<1, 2>>>(x)))", ("k", "k", (), "1", "2", None, None, ("x",))),
    ],
)  # fmt: skip
def test_parts(statement, parts):
    code, site = only(statement)
    assert (
        site.kernel,
        site.callee,
        site.template_arguments,
        site.grid,
        site.block,
        site.shared,
        site.stream,
        site.arguments,
    ) == parts
    assert site.damage is None
    assert site.line == 2
    assert code[site.grid_span.start : site.grid_span.end] == site.grid
    assert code[site.block_span.start : site.block_span.end] == site.block
    assert tuple(code[s.start : s.end] for s in site.argument_spans) == site.arguments
    if site.shared_span:
        assert code[site.shared_span.start : site.shared_span.end] == site.shared


def test_the_function_and_the_loops_around_it():
    code = b"""template <class T>
void Solver<T>::run(int n) {
  for (int t = 0; t < n; ++t) {
    while (n) { auto go = [&] { k<<<1, 2>>>(n); }; go(); }
  }
}
"""
    site = parse(code).launches[0]
    assert site.function == "run"
    assert code[site.function_span.start : site.function_span.end].startswith(b"void Solver")
    loops = [code[span.start : span.start + 5] for span in site.loops]
    assert loops == [b"for (", b"while"]


def test_all_launches_in_text_order():
    code = b"void f() { b<<<1, 2>>>(); a<<<1, 2>>>(); }\nvoid g() { c<<<1, 2>>>(); }\n"
    assert [(s.kernel, s.function) for s in parse(code).launches] == [("b", "f"), ("a", "f"), ("c", "g")]


def test_a_launch_after_a_bare_macro_is_seen():
    _, site = only("n = 1;\n  CUDA_ERRCK\n  k<<<1, 2>>>(x);")
    assert site.kernel == "k"
    assert site.line == 4


def test_a_launch_in_a_macro_body_is_not_seen():
    assert parse(b"#define GO(x) k<<<1, 2>>>(x)\nvoid f() { GO(1); }\n").launches == ()


def test_damage():
    sites = parse(b"void f() { k<<<1, 2>>>(x, ); }\nvoid g() { j<<<1, 2>>>(y); }").launches
    damage = {site.kernel: site.damage for site in sites}
    assert damage["j"] is None
    assert damage.get("k") is None or "line 1" in damage["k"]


def test_launches_that_begin_together_keep_their_order():
    code = b"void f() { a << < g, b >> > (y)\n\x04 k<<<1, 2>>>(p); }\n" * 3
    assert len({parse(code).launches for _ in range(40)}) == 1
