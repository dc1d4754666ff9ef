"""One name in several scopes: that one is meant in which C++ finds it first."""

import pytest

from agent.source.index.calls import callees, callers
from agent.source.index.facts import Found
from agent.source.index.resolving import meant_at, mentions_of
from tests.source.index.workspace import at, line, shown, table_of

FILES = {
    "/w/all.cuh": """\
__global__ void step(int*) {}
namespace a { __global__ void step(int*) {}
namespace inner { __global__ void step(int*) {} } }
namespace b { __global__ void step(int*) {}
__global__ void only(int*) {} }
namespace c { __global__ void only(int*) {} }
""",
    "/w/main.cu": """\
#include "all.cuh"
namespace a {
void in_a() { step<<<1, 1>>>(0); }
namespace inner { void deep() { step<<<1, 1>>>(0); } }
namespace other { void beside() { step<<<1, 1>>>(0); inner::step<<<1, 2>>>(0); } }
}
void at_top() { step<<<1, 3>>>(0); b::step<<<1, 1>>>(0); only<<<1, 1>>>(0); }
namespace b { void in_b(); }
void b::in_b() { step<<<1, 4>>>(0); }
""",
    "/w/used.cu": """\
#include "all.cuh"
using namespace c;
void uses() { only<<<1, 1>>>(0); step<<<1, 1>>>(0); }
""",
    "/w/borrowed.cu": """\
#include "all.cuh"
void borrows() { using b::only; only<<<1, 1>>>(0); }
""",
    "/w/split.cu": """\
namespace a { __global__ void apart(int); }
namespace b { __global__ void apart(int); }
namespace a { void launch() { apart<<<1, 1>>>(0); } }
""",
    "/w/split_a.cu": "namespace a { __global__ void apart(int) {} }\n",
    "/w/split_b.cu": "namespace b { __global__ void apart(int) {} }\n",
}
TABLE = table_of(FILES)
ALL, MAIN = "/w/all.cuh", "/w/main.cu"


@pytest.mark.parametrize(
    ("key", "mark", "expected"),
    [
        (MAIN, "in_a() { st|ep", [f"{ALL}:2 a::step"]),
        (MAIN, "deep() { st|ep", [f"{ALL}:3 a::inner::step"]),
        (MAIN, "beside() { st|ep", [f"{ALL}:2 a::step"]),
        (MAIN, "inner::st|ep<<<1, 2", [f"{ALL}:3 a::inner::step"]),
        (MAIN, "at_top() { st|ep", [f"{ALL}:1 step"]),
        (MAIN, "b::st|ep", [f"{ALL}:4 b::step"]),
        (MAIN, "in_b() { st|ep", [f"{ALL}:4 b::step"]),
        ("/w/used.cu", "uses() { on|ly", [f"{ALL}:6 c::only"]),
        ("/w/used.cu", "st|ep", [f"{ALL}:1 step"]),
        ("/w/borrowed.cu", "on|ly<<<", [f"{ALL}:5 b::only"]),
        ("/w/split.cu", "ap|art<<<", ["/w/split_a.cu:1 a::apart"]),
        # nothing says which: all that bear the name
        (MAIN, "on|ly<<<", [f"{ALL}:5 b::only", f"{ALL}:6 c::only"]),
    ],
)
def test_definition(key: str, mark: str, expected: list[str]) -> None:
    assert shown(FILES, meant_at(TABLE, key, at(FILES, key, mark))) == expected


def test_references_are_those_of_the_one() -> None:
    def places(mark: str) -> list[str]:
        targets = meant_at(TABLE, ALL, at(FILES, ALL, mark))
        return sorted(f"{key}:{line(FILES, key, one.span)}" for key, one in mentions_of(TABLE, targets))

    assert places("|step(int*) {}\nnamespace a") == [f"{MAIN}:7", "/w/used.cu:3"]
    assert places("a { __global__ void |step") == [f"{MAIN}:3", f"{MAIN}:5"]
    assert places("b { __global__ void |step") == [f"{MAIN}:7", f"{MAIN}:9"]


def test_a_call_by_the_name_alone_is_marked() -> None:
    def named(name: str) -> Found:
        facts = TABLE.facts(MAIN)
        return next(Found(MAIN, one) for one in facts.definitions if one.name == name)

    told = {call.other.definition.qualified: call.sure for call in callees(TABLE, named("at_top"))}
    assert told == {"step": True, "b::step": True, "b::only": False, "c::only": False}
    (kernel,) = meant_at(TABLE, ALL, at(FILES, ALL, "c { __global__ void |only"))
    found = {call.other.definition.name: call.sure for call in callers(TABLE, kernel)}
    assert found == {"at_top": False, "uses": True}
