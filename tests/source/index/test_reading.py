"""What is read off one file."""

import pytest
from hypothesis import given

from agent.source.index.facts import CALL, DEVICE, HOST, KERNEL, LAUNCH, MACRO, OUTSIDE, SYMBOL, USE
from agent.source.index.packing import pack, summary, unpack
from agent.source.index.reading import read_facts
from tests.source.strategies import clean_texts, texts

TEXT = """\
#include "common/util.cuh"
#include <vector>
#define HD __host__ __device__
#define LAUNCH(k, g, b, ...) k<<<g, b>>>(__VA_ARGS__)
#define RUN(x) fixed<<<1, 2>>>(x)
__constant__ float table[32];
extern __constant__ int size;
__global__ void plain(float* x);
namespace ns {
__device__ float inner(float x) { return x + table[0]; }
struct Op { __device__ float operator()(float a) const { return inner(a); } };
}
HD float both(float größe) { return größe; }
template <typename T> __global__ void made(T* x) { x[0] = ns::inner(both(x[1])); }
template __global__ void made<float>(float*);
template <typename F> void go(F kern, int n) { kern<<<1, n>>>(n); }
int main() {
    dim3 grid(1, 2);
    made<float><<<grid, 2>>>(x);
    LAUNCH(plain, 1, 2, x);
    cudaMemcpyToSymbol(table, a, 4);
    cudaFuncSetAttribute((void*)made<int>, A, 3);
    auto chosen = &made<double>;
    chosen<<<1, 2>>>(x);
    go(plain, 3);
    RUN(x);
    CHECK(ns::plain<<<1, 2>>>(x));
    plain << <1, 2 >> >(x);
}
"""


def definitions(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.qualified) for one in read_facts(text.encode()).definitions]


def mentions(text: str, name: str) -> list[tuple[str, str, str]]:
    """(how, the call that it is an argument of, the function it stands in) of each."""
    facts = read_facts(text.encode())
    return [
        (one.how, one.within, facts.definitions[one.inside].name if one.inside != OUTSIDE else "")
        for one in facts.mentions
        if one.name == name
    ]


def test_definitions_in_text_order() -> None:
    assert definitions(TEXT) == [
        (MACRO, "LAUNCH"),
        (MACRO, "RUN"),
        (SYMBOL, "table"),
        (SYMBOL, "size"),
        (KERNEL, "plain"),
        (DEVICE, "ns::inner"),
        (DEVICE, "ns::Op::operator()"),
        (DEVICE, "both"),
        (KERNEL, "made"),
        (HOST, "go"),
        (HOST, "main"),
    ]
    facts = read_facts(TEXT.encode())
    assert {one.name for one in facts.definitions if not one.whole} == {"size", "plain"}
    assert {one.name for one in facts.definitions if one.launches} == {"LAUNCH", "go"}, (
        "they launch what they are given"
    )
    assert facts.includes == ("common/util.cuh", "vector")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("made", [(USE, "", ""), (LAUNCH, "", "main"), (USE, "cudaFuncSetAttribute", "main"), (USE, "", "main"),
                  (LAUNCH, "", "main")]),
        ("plain", [(USE, "LAUNCH", "main"), (USE, "go", "main"), (LAUNCH, "CHECK", "main"), (LAUNCH, "", "main")]),
        ("fixed", [(LAUNCH, "", "RUN")]),
        ("table", [(USE, "", "inner"), (USE, "cudaMemcpyToSymbol", "main")]),
        ("inner", [(CALL, "", "operator()"), (CALL, "", "made")]),
        ("both", [(CALL, "inner", "made")]),
    ],
)  # fmt: skip
def test_where_a_name_stands_and_how(name: str, expected: list[tuple[str, str, str]]) -> None:
    assert mentions(TEXT, name) == expected


def test_a_mention_is_where_the_name_is_spelled() -> None:
    text = TEXT.encode()
    for one in read_facts(text).mentions:
        spelled = text[one.span.start : one.span.end].decode()
        assert spelled == one.name or (spelled == "chosen" and one.how == LAUNCH), "through a pointer"


def test_what_is_declared_around_it_is_no_mention() -> None:
    text = """
template <typename T, int N> __global__ void k(T* plain, int (&grid)[N]) {
    extern __shared__ float s[];
    for (auto& e : xs) { int i = e; plain[i] = s[i] + N; }
    auto [a, b] = pair; dim3 g(1, 2); other(a, g, T(b));
}
"""
    assert {one.name for one in read_facts(text.encode()).mentions} == {"other", "xs", "pair"}


@pytest.mark.parametrize(
    "text",
    ["// k<<<1, 2>>>(x)", 'const char* s = "k<<<1, 2>>>(x)";', "/* k<<<1, 2>>>(x) */", 'auto r = R"(k<<<1, 2>>>(x))";'],
)
def test_what_is_no_code_mentions_nothing(text: str) -> None:
    assert mentions(f"void f() {{ {text}\n g<<<1, 2>>>(); }}", "k") == []


def test_a_launch_with_long_template_arguments() -> None:
    assert mentions("void f() { a::k<T<int>, (1 << 3), 4>\n  <<<g, b>>>(x); }", "k") == [(LAUNCH, "", "f")]


def test_a_launch_through_a_pointer_is_of_the_kernel_and_not_of_what_its_template_is_given() -> None:
    text = "void f() { auto k = made<SIZE, ns::Kind>; if (x) k = other; k<<<1, 1>>>(); }"
    assert mentions(text, "SIZE") == [(USE, "", "f")]
    assert [mentions(text, name)[-1] for name in ("made", "other")] == [(LAUNCH, "", "f")] * 2


def test_a_launch_in_a_macro_of_several_lines() -> None:
    text = "#define RUN(x) do { \\\n    made<int, \\\r\n  4>  \\\n    <<<1, 2>>>(x); \\\n  } while (0)\n"
    assert mentions(text, "made") == [(LAUNCH, "", "RUN")]


def test_a_macro_between_the_specifiers_and_the_name() -> None:
    kernel = "template <class T>\n__global__ void\nBOUNDS (A, B)\nk(const T* x) { x; }\n"
    text = kernel + "__device__ int BOUNDS(1) f() { return 1; }"
    assert (KERNEL, "k") in definitions(text) and (DEVICE, "f") in definitions(text)


def test_a_kernel_that_the_parser_lost_is_there() -> None:
    two_heads = "#if A\n__global__ void k(int a) {\n#else\n__global__ void k(float a) {\n#endif\n  f(a);\n}\n"
    text = two_heads + "void g() { k<<<1, 1>>>(1); }\n"
    assert (KERNEL, "k") in definitions(text)
    assert mentions(text, "k")[-1][0] == LAUNCH


def test_a_file_that_says_nothing_is_not_parsed() -> None:
    assert read_facts(b"int main() { return f(1); }\n") == read_facts(b"")
    assert read_facts(b'#include "a.h"\nint x;').includes == ("a.h",)


@given(texts | clean_texts)
def test_any_text_is_read_and_kept(text: bytes) -> None:
    facts = read_facts(text)
    for one in facts.mentions:
        assert OUTSIDE <= one.inside < len(facts.definitions)
        assert 0 <= one.span.start < one.span.end <= len(text)
    packed = pack(facts)
    assert unpack(packed) == facts
    assert summary(packed).defined == {one.name for one in facts.definitions}
    assert summary(packed).sure == {one.name for one in facts.mentions if one.sure}
    assert summary(packed).mentioned == {one.name for one in facts.mentions}


@pytest.mark.parametrize("packed", [b"", b"abc", b"\xff\xff\xff\xff", b"\2\0\0\0{}", b"\2\0\0\0[]"])
def test_what_was_not_packed_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError):
        unpack(packed)
    with pytest.raises(ValueError):
        summary(packed)
