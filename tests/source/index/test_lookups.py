"""What many files say together."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.source.index.calls import callables_at, callees, callers
from agent.source.index.naming import named
from agent.source.index.packing import pack
from agent.source.index.reading import read_facts
from agent.source.index.resolving import declarations_of, meant_at, mentions_of
from agent.source.index.table import Table
from tests.source.index.workspace import at, line, shown, table_of

FILES = {
    "/w/include/kernels.cuh": """\
#pragma once
#define LAUNCH(k, ...) k<<<1, 32>>>(__VA_ARGS__)
#define RUN_SCALE(x) scale<float><<<1, 32>>>(x)
extern __constant__ float weights[16];
__device__ inline float twice(float x) { return 2 * x; }
template <typename T> __global__ void scale(T* x) { x[0] = twice(x[0]) * weights[0]; }
template <> __global__ void scale<double>(double* x) { x[0] *= 2; }
__global__ void apart(float* x);
namespace a { __global__ void same(int); }
namespace b { __global__ void same(int); }
""",
    "/w/src/apart.cu": """\
#include "kernels.cuh"
__constant__ float weights[16];
__global__ void apart(float* x) { x[0] = twice(1); }
namespace a { __global__ void same(int) {} }
namespace b { __global__ void same(int) {} }
""",
    "/w/src/main.cu": """\
#include "../include/kernels.cuh"
void run(float* x) {
    scale<float><<<1, 32>>>(x);
    apart<<<1, 32>>>(x);
    a::same<<<1, 1>>>(1);
}
int main() {
    LAUNCH(apart, x);
    RUN_SCALE(x);
    cudaMemcpyToSymbol(weights, w, 64);
    cudaFuncSetAttribute(apart, A, 1);
    cudaLaunchKernel((void*)apart, g, b, args, 0, 0);
}
""",
    "/w/other/main.cu": """\
__device__ float twice(float x) { return x + x; }
__global__ void scale(float* x) { x[0] = twice(x[0]); }
void apart(float* x) { scale<<<1, 1>>>(x); }
""",
    "/w/third/launch.cu": "void far() { apart<<<1, 1>>>(nullptr); }\n",
}
TABLE = table_of(FILES)
MAIN, HEADER, APART, OTHER = "/w/src/main.cu", "/w/include/kernels.cuh", "/w/src/apart.cu", "/w/other/main.cu"


@pytest.mark.parametrize(
    ("key", "mark", "expected"),
    [
        (MAIN, "sca|le<float>", [f"{HEADER}:6 scale", f"{HEADER}:7 scale<double>"]),
        (MAIN, "|apart<<<", [f"{APART}:3 apart"]),
        (MAIN, "apart|<<<", [f"{APART}:3 apart"]),
        (MAIN, "LAUNCH(apa|rt", [f"{APART}:3 apart"]),
        (MAIN, "RUN_SC|ALE", [f"{HEADER}:6 scale", f"{HEADER}:7 scale<double>"]),
        (MAIN, "ToSymbol(wei|ghts", [f"{APART}:2 weights"]),
        (MAIN, "Attribute(ap|art", [f"{APART}:3 apart"]),
        (MAIN, "(void*)ap|art", [f"{APART}:3 apart"]),
        (MAIN, "a::sa|me", [f"{APART}:4 a::same"]),
        (HEADER, "= twi|ce(x", [f"{HEADER}:5 twice"]),
        (APART, "= twi|ce(1", [f"{HEADER}:5 twice"]),
        (OTHER, "sca|le<<<", [f"{OTHER}:2 scale"]),
        (OTHER, "= twi|ce(", [f"{OTHER}:1 twice"]),
        (HEADER, "void apa|rt", [f"{APART}:3 apart"]),
        (HEADER, "* wei|ghts", [f"{APART}:2 weights"]),
        ("/w/third/launch.cu", "apa|rt", [f"{APART}:3 apart"]),
        (MAIN, "ru|n(float", []),
        (MAIN, "LAUN|CH", []),
        (MAIN, "|int main", []),
    ],
)
def test_definition(key: str, mark: str, expected: list[str]) -> None:
    assert shown(FILES, meant_at(TABLE, key, at(FILES, key, mark))) == expected


def test_what_no_file_around_it_declares_is_the_nearest_kernel_of_that_name() -> None:
    files = {"/w/a/k.cu": "__global__ void k() {}", "/w/b/k.cu": "__global__ void k() {}",
             "/w/b/c/main.cu": "void f() { k<<<1, 1>>>(); g(k); }"}  # fmt: skip
    table = table_of(files)
    assert shown(files, meant_at(table, "/w/b/c/main.cu", at(files, "/w/b/c/main.cu", "k|<<<"))) == ["/w/b/k.cu:1 k"]
    assert meant_at(table, "/w/b/c/main.cu", at(files, "/w/b/c/main.cu", "g(k|")) == (), "that may be anything"


def test_a_part_that_is_included_sees_what_its_includer_has() -> None:
    files = {"/w/main.cu": '__constant__ int n;\n#include "part.cu"\n',
             "/w/part.cu": "__global__ void k(int* x) { x[0] = n; }"}  # fmt: skip
    table = table_of(files)
    assert shown(files, meant_at(table, "/w/part.cu", at(files, "/w/part.cu", "= n|"))) == ["/w/main.cu:1 n"]


def test_headers_that_include_each_other() -> None:
    files = {"/w/a.cuh": '#include "b.cuh"\n__device__ int a() { return b(); }',
             "/w/b.cuh": '#include "a.cuh"\n__device__ int b() { return 1; }'}  # fmt: skip
    assert shown(files, meant_at(table_of(files), "/w/a.cuh", at(files, "/w/a.cuh", "b|()"))) == ["/w/b.cuh:2 b"]


def references(key: str, mark: str) -> list[str]:
    targets = meant_at(TABLE, key, at(FILES, key, mark))
    return sorted(f"{file}:{line(FILES, file, one.span)}" for file, one in mentions_of(TABLE, targets))


def test_references() -> None:
    places = [4, 8, 11, 12]
    assert references(APART, "apa|rt(float") == [f"{MAIN}:{number}" for number in sorted(places, key=str)] + [
        "/w/third/launch.cu:1"
    ]
    assert references(HEADER, "void sca|le(T") == [f"{HEADER}:3", f"{MAIN}:3"]
    assert references(OTHER, "void sca|le(") == [f"{OTHER}:3"], "of the same name, another kernel"
    assert references(HEADER, "float twi|ce(") == [f"{HEADER}:6", f"{APART}:3"]
    assert references(APART, "wei|ghts") == [f"{HEADER}:6", f"{MAIN}:10"]


def test_declarations_of_what_is_referred_to() -> None:
    targets = meant_at(TABLE, MAIN, at(FILES, MAIN, "|apart<<<"))
    assert shown(FILES, declarations_of(TABLE, targets)) == [f"{HEADER}:8 apart", f"{APART}:3 apart"]


def calls(found: Sequence[object], key: str) -> dict[str, list[int]]:
    return {one.other.definition.name: [line(FILES, key or one.other.key, span) for span in one.spans] for one in found}  # type: ignore[attr-defined]


def test_who_launches_a_kernel() -> None:
    (kernel,) = callables_at(TABLE, MAIN, at(FILES, MAIN, "|apart<<<"))
    assert calls(callers(TABLE, kernel), "") == {"run": [4], "main": [8, 12], "far": [1]}
    template, _ = callables_at(TABLE, MAIN, at(FILES, MAIN, "sca|le<float>"))
    assert calls(callers(TABLE, template), "") == {"run": [3], "main": [9]}, "in a macro's place who uses it"


def test_what_a_function_launches_and_a_kernel_calls() -> None:
    (run,) = callables_at(TABLE, MAIN, at(FILES, MAIN, "ru|n(float"))
    assert calls(callees(TABLE, run), MAIN) == {"scale": [3], "apart": [4], "same": [5]}
    assert callers(TABLE, run) == ()
    (main,) = callables_at(TABLE, MAIN, at(FILES, MAIN, "int ma|in"))
    assert calls(callees(TABLE, main), MAIN) == {"apart": [8, 12], "scale": [9]}
    template, _ = callables_at(TABLE, MAIN, at(FILES, MAIN, "sca|le<float>"))
    assert calls(callees(TABLE, template), HEADER) == {"twice": [6]}
    assert callables_at(TABLE, APART, at(FILES, APART, "wei|ghts")) == ()


def test_names() -> None:
    def found(query: str) -> list[str]:
        return [one.definition.qualified for one in named(TABLE, query, 100)]

    assert found("scale") == ["scale", "scale<double>", "scale"]
    assert found("SCA")[:3] == found("scale")
    assert found("a::same") == ["a::same"]
    assert found("wgts") == ["weights"]
    assert found("nothing") == []
    assert sorted(found("")) == sorted(["apart", "a::same", "b::same", *found("scale"), "twice", "twice", "weights"])
    assert len(named(TABLE, "", 2)) == 2


PARTS = [*FILES.values(), "", "__global__ void k() {}", "void f() { k<<<1, 1>>>(); }", '#include "kernels.cuh"']
CHANGES = st.lists(st.tuples(st.sampled_from(list(FILES)), st.none() | st.sampled_from(PARTS)), max_size=12)


@given(CHANGES)
def test_a_table_after_changes_is_one_that_was_made_at_once(changes: list[tuple[str, str | None]]) -> None:
    files: dict[str, str] = {}
    table = Table()
    for key, text in changes:
        if text is None:
            files.pop(key, None)
            table.drop(key)
        else:
            files[key] = text
            table.put(key, pack(read_facts(text.encode())))
        _everything(table, files)  # what was asked before must not be answered from what was
    assert _everything(table, files) == _everything(table_of(files), files)


def _everything(table: Table, files: dict[str, str]) -> object:
    answers = [
        (key, one.name, shown(files, meant_at(table, key, one.span.start)))
        for key in sorted(files)
        for one in table.facts(key).mentions
    ]
    return len(table), sorted(table.names), answers, shown(files, named(table, "", 1000))
