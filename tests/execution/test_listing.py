"""PTX by source line, read off a listing whose answer was worked out by hand."""

from agent.execution.compiler.result import Build
from agent.execution.listing import ptx, under_lines

PTX = """\
//
.version 9.0
.target sm_90
.address_size 64
.func  (.param .b32 func_retval0) _Z4halff(
\t.param .b32 _Z4halff_param_0
)
{
\t.reg .f32 %f<3>;
\t.loc\t1 1 30
\tld.param.f32 %f1, [_Z4halff_param_0];
\tret;
}
\t// .globl\t_Z1aPf
.visible .entry _Z1aPf(
\t.param .u64 _Z1aPf_param_0
)
.maxntid 128, 1, 1
{
\t.reg .b64 %rd<3>;
\t.loc\t1 3 5
\tld.param.u64 %rd1, [_Z1aPf_param_0];
\t.loc\t2 70 9, function_name $L__info_string0, inlined_at 1 4 7
\tmov.u32 %r1, %tid.x;
\t.loc\t2 71 9
\tadd.s32 %r2, %r1, 1;
\t{
\tcall.uni (retval0), _Z4halff, (param0);
\t}
$L__BB0_2:
\tret;
}
.visible .entry _Z1bPf(
\t.param .u64 _Z1bPf_param_0
)
{
\tret;
}
.file\t1 "/home/user/a.cu"
.file\t2 "/usr/include/other.h"
"""


def test_instructions_of_one_kernel_under_their_lines() -> None:
    build = Build(PTX, b"", {"a": "_Z1aPf", "b": "_Z1bPf"}, {}, {}, "sm_90", "NVRTC", (), "key")
    code = list(ptx(build, ["a"], "a.cu"))
    assert code == [
        (1, "ld.param.f32 %f1, [_Z4halff_param_0];"),
        (1, "ret;"),
        (3, "ld.param.u64 %rd1, [_Z1aPf_param_0];"),
        (4, "mov.u32 %r1, %tid.x;"),
        (4, "add.s32 %r2, %r1, 1;"),
        (4, "call.uni (retval0), _Z4halff, (param0);"),
        (4, "$L__BB0_2:"),
        (4, "ret;"),
    ]
    listed = list(under_lines(code[3:], ["one", "two", "three", "  four  "]))
    assert listed[:2] == ["//    4 |   four", "        mov.u32 %r1, %tid.x;"] and "$L__BB0_2:" in listed
    assert list(ptx(build, ["b"], "a.cu"))[-1] == (0, "ret;")
    assert list(under_lines([(9, "ret;")], ["one"])) == ["        ret;"], "a line that is not there"
