"""Where members of structs lie: against ctypes, which lays them out as C does."""

import ctypes
from typing import Any

import pytest

from agent.analysis.file import file_facts
from agent.analysis.layouts import layout
from agent.source.document import parse

NUMBERS: dict[str, Any] = {
    "char": ctypes.c_char,
    "short": ctypes.c_short,
    "int": ctypes.c_int,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "long long": ctypes.c_longlong,
    "float*": ctypes.c_void_p,
}
STRUCTS = [
    (("float", "x"), ("double", "y"), ("char", "z")),
    (("char", "a"), ("short", "b"), ("int", "c"), ("char", "d")),
    (("size_t", "n"), ("float", "w")),
    (("float", "x"), ("float", "y"), ("float", "z")),
    (("float", "x"), ("float*", "p"), ("long long", "n"), ("float", "y")),
]


@pytest.mark.parametrize("members", STRUCTS)
@pytest.mark.parametrize("form", ["struct S {{ {} }};", "typedef struct {{ {} }} S;", "typedef struct T {{ {} }} S;"])
def test_members_lie_where_c_puts_them(members: tuple[tuple[str, str], ...], form: str) -> None:
    real = type("S", (ctypes.Structure,), {"_fields_": [(name, NUMBERS[kind]) for kind, name in members]})
    written = form.format(" ".join(f"{kind} {name};" for kind, name in members))
    found = file_facts(parse(written.encode())).structs["S"]
    assert (found.size, found.align) == (ctypes.sizeof(real), ctypes.alignment(real))
    offsets = [(name, getattr(real, name).offset, getattr(real, name).size) for _, name in members]
    assert [(one.name, one.offset, one.bytes) for one in found.members] == offsets


def test_structs_of_structs_and_arrays_whose_extent_has_a_name() -> None:
    text = b"#define N 3\nstruct Outer { Inner a; float b[N]; };\nstruct Inner { float4 p; int q; };\n"
    found = file_facts(parse(text)).structs
    assert found["Inner"].size == 32  # a float4 is aligned to 16 bytes
    assert (found["Outer"].size, found["Outer"].members[1].offset) == (48, 32)
    assert not found["Outer"].members[0].whole and not found["Outer"].members[1].whole


OTHER = (
    "struct S { int x : 4; };", "struct S : B { int x; };", "struct __align__(16) S { int x; };",
    "struct S { union { int x; float y; }; };", "struct S { int x; void f(); };", "struct S { int* x[]; };",
    "struct S { T x; };", "struct S { int x; }; struct S { float y; double z; };", "struct S { int x[M]; };",
)  # fmt: skip


@pytest.mark.parametrize("text", OTHER)
def test_of_others_nothing_is_known(text: str) -> None:
    assert "S" not in file_facts(parse(text.encode())).structs


def test_vectors() -> None:
    four, three = layout("const float4", {}), layout("float3", {})
    assert four is not None and (four.size, four.align) == (16, 16)
    assert three is not None and (three.size, three.align, three.members[2].offset) == (12, 4, 8)
    assert layout("Unknown", {}) is None


def test_another_name_for_a_type_lies_as_that_does() -> None:
    text = b"struct Pair { float x, y; };\ntypedef float2 fComplex;\ntypedef Pair Point;\ntypedef float* Address;\n"
    found = file_facts(parse(text)).structs
    assert (found["fComplex"].size, found["fComplex"].align) == (8, 8)
    assert (found["Point"].size, found["Point"].align) == (8, 4)
    assert "Address" not in found


def test_a_name_that_is_one_thing_or_another_is_neither() -> None:
    text = b"#ifdef __CUDACC__\ntypedef float2 fComplex;\n#else\ntypedef struct { float x, y; } fComplex;\n#endif\n"
    assert "fComplex" not in file_facts(parse(text)).structs


def test_a_number_whose_type_the_build_chooses_is_taken_for_a_float() -> None:
    text = b"#if HALF\ntypedef half floatX;\n#else\ntypedef float floatX;\n#endif\n#define D double\n"
    found = file_facts(parse(text + b"#if A\n#define V float2\n#else\n#define V float\n#endif\n")).structs
    assert (found["floatX"].size, found["D"].size) == (4, 8)
    assert "V" not in found
