"""Traits are read from hand-written PTX, so that each pattern is known by construction."""

import pytest

from agent.evaluation.ptx import traits

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def module(body: str, variables: str = "") -> str:
    return f"{HEAD}{variables}\n.visible .entry k(.param .u64 k_param_0)\n{{\n.reg .b64 %rd<9>;\n{body}\nret;\n}}\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mov.u32 %r1, %clock;", "reads a clock"),
        ("mov.u64 %rd1, %clock64;", "reads a clock"),
        ("mov.u64 %rd1, %globaltimer;", "reads a clock"),
        ("mov.u32 %r1, %smid;", "asks which multiprocessor or warp slot it runs on"),
        ("mov.u32 %r1, %warpid;", "asks which multiprocessor or warp slot it runs on"),
        ("mov.u32 %r1, %nsmid;", "asks which multiprocessor or warp slot it runs on"),
        ("createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;", "gives cache-policy or persisting hints"),
        ("ld.global.L2::cache_hint.f32 %f1, [%rd1], %rd2;", "gives cache-policy or persisting hints"),
        ("applypriority.global.L2::evict_normal [%rd1], 128;", "gives cache-policy or persisting hints"),
        ("@%p1 trap;", "stops the program"),
        ("brkpt;", "stops the program"),
        ("nanosleep.u32 100;", "sleeps"),
    ],
)
def test_suspect_instructions(line: str, words: str) -> None:
    assert traits(module(line)).features == {words}


def test_ordinary_code_and_comments_are_not_suspect() -> None:
    body = (
        "// mov.u32 %r1, %clock;\nmov.u32 %r1, %tid.x;\nld.global.nc.f32 %f1, [%rd1];\n"
        "prefetch.global.L2 [%rd1];\nshfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;"
    )
    found = traits(module(body))
    assert not found.features
    assert not found.externals


def test_external_functions() -> None:
    variables = ".extern .func  (.param .b32 func_retval0) vprintf\n(\n.param .b64 a,\n.param .b64 b\n)\n;"
    assert traits(module("", variables)).externals == {"vprintf"}


COUNTER = ".visible .global .align 4 .u32 counter;\n.global .align 4 .b8 table[16] = {1,2,3,4};"


def test_a_table_that_is_only_read_is_not_state() -> None:
    body = "mov.u64 %rd1, table;\nadd.s64 %rd2, %rd1, 8;\nld.global.u32 %r1, [%rd2];"
    assert traits(module(body, COUNTER)).mutable == frozenset()


@pytest.mark.parametrize(
    "body",
    [
        "st.global.u32 [counter], %r1;",
        "mov.u64 %rd1, counter;\natom.global.add.u32 %r1, [%rd1], 1;",
        "mov.u64 %rd1, counter;\ncvta.global.u64 %rd2, %rd1;\nadd.s64 %rd3, %rd2, 4;\n@%p1 st.u32 [%rd3+8], %r1;",
        "mov.u64 %rd1, counter;\n{ .param .b64 p0;\nst.param.b64 [p0], %rd1;\ncall.uni f, (p0);\n}",
        "$L1:\nmov.u64 %rd1, counter;\nred.global.add.u32 [%rd1], 1;",
        "mov.u64 %rd1, counter;\nmov.b64 {%r1, %r2}, %rd1;\nmov.b64 %rd2, {%r1, %r2};\nst.global.u32 [%rd2], 1;",
    ],
)
def test_a_variable_whose_address_reaches_a_write_is_state(body: str) -> None:
    assert traits(module(body, COUNTER)).mutable == {"counter"}


def test_a_value_loaded_from_a_variable_does_not_carry_its_address() -> None:
    body = "mov.u64 %rd1, table;\nld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd5], %r1;"
    assert traits(module(body, COUNTER)).mutable == frozenset()


@pytest.mark.parametrize("space", ["const", "global"])
@pytest.mark.parametrize(
    "body",
    [
        "ld.{space}.u64 %rd1, [where];\nst.u32 [%rd1], %r1;",
        "mov.u64 %rd1, where;\nld.{space}.v2.u64 {{%rd2, %rd3}}, [%rd1];\nred.global.add.u32 [%rd3], 1;",
    ],
)
def test_an_address_that_a_variable_was_initialised_with_is_followed(space: str, body: str) -> None:
    variables = f"{COUNTER}\n.visible .{space} .align 8 .u64 where[2] = {{0, generic(counter)}};"
    assert traits(module(body.format(space=space), variables)).mutable == {"counter"}


def test_a_table_of_addresses_that_are_only_read_is_not_state() -> None:
    variables = f"{COUNTER}\n.visible .const .align 8 .u64 where = generic(table);"
    body = "ld.const.u64 %rd1, [where];\nld.u32 %r1, [%rd1];\nst.global.u32 [%rd5], %r1;"
    assert traits(module(body, variables)).mutable == frozenset()


@pytest.mark.parametrize(
    "body",
    [
        "{ .global .u32 hidden; red.global.add.u32 [hidden], 1; }",
        ".global .u32 seen, hidden;\nred.global.add.u32 [hidden], 1;",
        ".global .align 4 .u32 seen[2] = {1, 2}, hidden;\nred.global.add.u32 [hidden], 1;",
        '.pragma "/*";\n.global .u32 hidden;\n.pragma "*/";\nred.global.add.u32 [hidden], 1;',
    ],
)
def test_a_variable_declared_inside_a_function_is_state(body: str) -> None:
    assert traits(module(body)).mutable == {"hidden"}


@pytest.mark.parametrize(
    "body",
    [
        '.pragma "/*";\nmov.u32 %r1, %clock;\n.pragma "*/";',
        '.pragma "//"; mov.u32 %r1, %clock;',
        '.pragma "\\"; mov.u32 %r1, %clock; .pragma "nounroll";',
        'ld.global.u32 %r1, [%rd1]; // "\nmov.u32 %r1, %clock; // "',
    ],
)
def test_strings_that_look_like_comments_hide_nothing(body: str) -> None:
    assert traits(module(body)).features == {"reads a clock"}


def test_a_parameter_that_points_to_global_memory_is_no_variable() -> None:
    text = f"{HEAD}.visible .entry k(.param .u64 .ptr .global .align 4 counter)\n{{\nst.u32 [counter], %r1;\nret;\n}}\n"
    assert traits(text).mutable == frozenset()
