"""The reader of PTX on pieces written by hand: every construct, and what it makes of it."""

import numpy as np
import pytest

from agent.execution.emulator.ptx.decode import PtxError, decode
from agent.execution.emulator.ptx.instruction import (
    Address,
    Function,
    Guard,
    Immediate,
    Instruction,
    Label,
    Module,
    Register,
    Special,
    Symbol,
    Vector,
)

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .f64 %fd<9>;\n"
)


def module(text: str) -> Module:
    return decode(HEAD + text)


def body(text: str) -> Function:
    return module(".visible .entry k(.param .u64 a, .param .u32 n) {\n" + REGISTERS + text + "\n}\n").functions["k"]


def one(text: str) -> Instruction:
    (found,) = body(text).instructions
    return found


def test_head() -> None:
    found = decode("\n// made by hand\n.version 9.5 // newer\n.target sm_120a, debug\n.address_size 64\n\0")
    assert (found.version, found.target) == ("9.5", "sm_120a")


def test_opcode_is_taken_apart() -> None:
    found = one("ld.global.L1::no_allocate.L2::128B.nc.v4.f32 {%f1, %f2, %f3, _}, [%rd1+-16];")
    assert found.base == "ld" and found.types == ("f32",)
    assert found.modifiers == ("global", "L1::no_allocate", "L2::128B", "nc", "v4")
    vector, address = found.destinations[0], found.sources[0]
    assert isinstance(vector, Vector) and [e and e.name for e in vector.elements] == ["%f1", "%f2", "%f3", None]  # type: ignore[union-attr]
    assert isinstance(address, Address) and isinstance(address.base, Register)
    assert (address.base.name, address.offset) == ("%rd1", -16)
    assert one("cvt.rn.ftz.sat.f16.f32 %rs1, %f1;").types == ("f16", "f32")


def test_guards_and_negated_predicates() -> None:
    found = one("@!%p1 setp.lt.and.s32 %p2|%p3, %r1, -7, !%p4;")
    assert isinstance(found.guard, Guard) and found.guard.negated and found.guard.register.name == "%p1"
    assert [register.name for register in found.destinations] == ["%p2", "%p3"]  # type: ignore[union-attr]
    assert found.negated == (2,) and found.sources[1] == Immediate((1 << 64) - 7, "int")
    assert isinstance(found.sources[2], Register) and found.sources[2].name == "%p4"


@pytest.mark.parametrize(
    ("text", "bits", "kind"),
    [
        ("0", 0, "int"),
        ("-1", 2**64 - 1, "int"),
        ("0xFFU", 255, "int"),
        ("0x8000000000000000", 1 << 63, "int"),
        ("017", 15, "int"),
        ("0b101", 5, "int"),
        ("4294967295U", 2**32 - 1, "int"),
        ("0f3F800000", 0x3F800000, "f32"),
        ("-0f3F800000", 0xBF800000, "f32"),
        ("0dBFF0000000000000", 0xBFF0000000000000, "f64"),
        ("0.5", int(np.float64(0.5).view(np.uint64)), "f64"),
        ("-1.25e-3", int(np.float64(-1.25e-3).view(np.uint64)), "f64"),
        ("WARP_SZ", 32, "int"),
    ],
)
def test_literals(text: str, bits: int, kind: str) -> None:
    assert one(f"mov.b64 %rd1, {text};").sources == (Immediate(bits, kind),)


def test_special_registers_and_symbols() -> None:
    found = body(".shared .align 8 .b8 s[32]; mov.u32 %r1, %ctaid.y; mov.u64 %rd1, s+8; mov.u64 %rd2, %clock64;")
    assert [i.sources[0] for i in found.instructions] == [Special("ctaid.y"), Symbol("s", 8), Special("clock64")]
    assert one("ld.param.u32 %r1, [n];").sources == (Address(Symbol("n"), 0),)
    assert one("st.global.u32 [4096], %r1;").sources[0] == Address(None, 4096)


def test_destinations() -> None:
    counts = {
        "st.global.v2.f32 [%rd1], {%f1, %f2};": 0,
        "bar.sync 0;": 0,
        "bar.red.popc.u32 %r1, 0, %p1;": 1,
        "barrier.sync.aligned 1, 64;": 0,
        "red.global.add.u32 [%rd1], %r1;": 0,
        "atom.global.add.u32 %r1, [%rd1], 1;": 1,
        "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;": 2,
        "match.all.sync.b32 %r1|%p1, %r2, -1;": 2,
        "mbarrier.init.shared.b64 [%rd1], 1;": 0,
        "mbarrier.arrive.shared.b64 %rd1, [%rd2];": 1,
        "mbarrier.arrive.shared.b64 _, [%rd2];": 1,
        "cp.async.ca.shared.global [%r1], [%rd1], 16;": 0,
        "cp.async.wait_group 0;": 0,
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2}, {%r1,%r2}, {%r5,%r6}, {%f5,%f6};": 1,
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, %r1;": 0,
        "vote.sync.ballot.b32 %r1, !%p1, -1;": 1,
        "nanosleep.u32 100;": 0,
        "ret;": 0,
        "membar.gl;": 0,
    }  # fmt: skip
    assert {text: len(one(text).destinations) for text in counts} == counts


def test_labels_become_indices() -> None:
    found = body("bra.uni END;\nTOP: add.s32 %r1, %r1, 1;\n@%p1 bra TOP;\nEND:").instructions
    assert found[0].sources == (Label("END", 3),) and found[2].sources == (Label("TOP", 1),)


def test_inner_blocks_have_names_of_their_own() -> None:
    asm = "{ .reg .pred p; .reg .b32 %r1; LOOP: add.s32 %r1, %r1, %r2; @p bra LOOP; @p bra OUT; }\n"
    found = body("mov.u32 %r1, 0;\n" + asm + asm + "add.s32 %r1, %r1, 1;\nOUT: ret;")
    outer, first, second, last = (found.instructions[index].destinations[0] for index in (0, 1, 4, 7))
    assert len({outer, first, second}) == 3 and outer == last
    assert [found.instructions[index].sources[0] for index in (2, 5, 3, 6)] == [
        Label("LOOP", 1), Label("LOOP", 4), Label("OUT", 8), Label("OUT", 8),
    ]  # fmt: skip
    guards = {i.guard.register for i in found.instructions if i.guard}
    assert len(guards) == 2


def test_only_registers_in_use_take_a_slot() -> None:
    found = body(".reg .b32 %huge<999999999>; add.s32 %huge999999998, %huge0, %r3; add.s32 %huge0, %r3, %r3;")
    assert found.registers == {"pred": 0, "b16": 0, "b32": 3, "b64": 0}
    with pytest.raises(PtxError, match="'%r9' was not declared"):
        body("add.s32 %r9, %r1, %r2;")


def test_calls() -> None:
    found = module(
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        ".func (.param .align 8 .b8 out[16]) pair(.param .b32 x)\n{ st.param.b64 [out+8], 0; ret; }\n"
        ".entry k() {\n" + REGISTERS + "{ .param .b64 param0; .param .b64 param1; .param .b32 retval0;\n"
        "call.uni (retval0), \nvprintf, \n(\nparam0, \nparam1\n); }\n"
        "{ .param .b32 param0; .param .align 8 .b8 retval0[16]; call (retval0), pair, (param0); }\n"
        "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        "{ .param .b32 param0; .param .b32 retval0; call (retval0), %rd1, (param0), P; }\ncall pair;\n}"
    )
    assert list(found.functions) == ["pair", "k"] and list(found.externals) == ["vprintf"]
    assert [p.nbytes for p in found.externals["vprintf"].parameters] == [8, 8]
    assert (found.functions["pair"].returns[0].nbytes, found.functions["pair"].returns[0].alignment) == (16, 8)
    printf, pair, indirect, bare = found.functions["k"].instructions
    assert printf.destinations == (Symbol("retval0"),)
    assert printf.sources == (Symbol("vprintf"), Vector((Symbol("param0"), Symbol("param1"))))
    assert pair.sources == (Symbol("pair"), Vector((Symbol("param0#2"),)))
    assert isinstance(indirect.sources[0], Register) and indirect.sources[2] == Symbol("P")
    assert bare.destinations == () and bare.sources == (Symbol("pair"), Vector(()))
    assert {v.name: v.nbytes for v in found.functions["k"].variables}["retval0#2"] == 16


def test_branch_tables() -> None:
    found = body("brx.idx %r1, T;\nA: ret;\nB: ret;\nT: .branchtargets A, B, A;\n").instructions
    assert found[0].sources[1] == Vector((Label("A", 1), Label("B", 2), Label("A", 1)))


def test_variables() -> None:
    found = module(
        ".const .align 4 .b8 c[8] = {0, 0, 128, 63};\n.visible .global .align 4 .u32 x = 0x10;\n"
        ".global .f32 f[2] = {0f3F800000, 0.5};\n.global .align 8 .u64 p[3] = {generic(x), x+4, 7};\n"
        ".global .align 8 .b8 q[16] = {1, 0xFF(x), 0xFF00(x), 0xFF0000(x)};\n.extern .shared .align 16 .b8 dyn[];\n"
        ".shared .v4 .f32 v[2];\n.global .s16 m[2][3] = {{1, 2, 3}, {-1}};\n.weak .global .b8 text[] = {104, 105, 0};\n"
    ).variables
    assert found["c"].initial == np.array([1.0, 0.0], np.float32).tobytes() and found["c"].space == "const"
    assert found["x"].initial == b"\x10\0\0\0" and found["x"].nbytes == 4
    assert found["f"].initial == np.array([1.0, 0.5], np.float32).tobytes()
    assert found["p"].relocations == {0: Symbol("x"), 8: Symbol("x", 4)}
    assert found["p"].initial == bytes(16) + b"\7" + bytes(7)
    assert found["q"].relocations == {1: Symbol("x")} and found["q"].initial == b"\1" + bytes(15)
    assert found["dyn"].external and (found["dyn"].nbytes, found["dyn"].alignment) == (0, 16)
    assert (found["v"].nbytes, found["v"].alignment, found["v"].initial) == (32, 16, None)
    assert found["m"].initial == np.array([1, 2, 3, -1, 0, 0], np.int16).tobytes()
    assert found["text"].initial == b"hi\0"


def test_parameters_and_launch_bounds() -> None:
    found = module(
        ".visible .entry k(\n\t.param .u64 .ptr .global .align 16 p,\n\t.param .align 8 .b8 s[24],\n"
        "\t.param .f32 x\n)\n"
        ".maxntid 256, 2, 1\n.minnctapersm 2\n{ ret; }\n.entry exact() .reqntid 128 { ret; }"
    ).functions
    assert [(p.name, p.nbytes, p.alignment) for p in found["k"].parameters] == [("p", 8, 8), ("s", 24, 8), ("x", 4, 4)]
    assert found["k"].max_threads == (256, 2, 1) and found["k"].required_threads is None
    assert found["exact"].max_threads == found["exact"].required_threads == (128, 1, 1)


def test_source_lines() -> None:
    found = module(
        '.file 1 "/a b/x.cu"\n.file 2 "C:\\\\y.h", 1, 2\n.entry k() {\n'
        + REGISTERS
        + ".loc 1 10 3\nret;\n.loc 2 5 1, function_name $L__info_string0, inlined_at 1 12 7\nret;\n"
        ".loc 2 9 2, function_name $L__info_string0+4, inlined_at 2 5 1\nret;\n.loc 1 13 0\nret;\n}\n"
        ".section .debug_str\n{\n$L__info_string0:\n.b8 97, 0\n}\n"
    )
    assert found.files == {1: "/a b/x.cu", 2: "C:\\y.h"}
    lines = [(i.file, i.line, i.inlined) for i in found.functions["k"].instructions]
    assert lines == [(1, 10, ()), (2, 5, ((1, 12),)), (2, 9, ((2, 5), (1, 12))), (1, 13, ())]


def test_comments_hide_nothing_in_strings() -> None:
    found = module('.file 1 "http://x/*y*/" /* .file 2 "no" */\n.entry k() { /* ret; */ ret; // ret;\n }')
    assert found.files == {1: "http://x/*y*/"} and len(found.functions["k"].instructions) == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "no PTX"),
        ("int main() {}", 1, "expected a directive"),
        (HEAD + ".entry k() {\n.reg .b32 %r<3>;\nadd.s32 %r1, %r2, %q;\n}", 6, "'%q' was not declared"),
        (HEAD + ".entry k() {\nbra NOWHERE;\n}", 5, "'NOWHERE' was not declared"),
        (HEAD + ".entry k() {\nret;\n", 5, "the text ends inside a function"),
        (HEAD + ".entry k() {\nA: ret;\nA: ret;\n}", 6, "declared twice"),
        (HEAD + ".entry k() { ret; }\n.entry k() { ret; }", 5, "declared twice"),
        (HEAD + ".global .u32 x = y z;", 4, "'y z'"),
        (HEAD + ".entry k() {\n.frame 3;\n}", 5, ".frame"),
        (HEAD + ".entry k(.reg .u32 a) { ret; }", 4, "only .param"),
        (HEAD + ".entry k() {\n.reg .b32 %r<2>;\n@%r1 ret;\n}", 6, "no predicate"),
        (HEAD + ".nonsense 3;", 4, ".nonsense"),
        (HEAD + ".global .align 3 .u32 x;", 4, "no power of two"),
        (HEAD + ".global .u32 x[2] = {1, 2, 3};", 4, "does not fit"),
        (HEAD + ".entry k() {\nadd.s32 , 3;\n}", 5, "not understood"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        decode(text)
    assert message in str(caught.value) and caught.value.line == line
