"""What the emulator runs of PTX and what it refuses, found by asking it: base opcodes, and forms of those it knows."""

from attrs import frozen

from agent.execution.emulator import clusters, kernel
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.kernel import prepare
from agent.execution.emulator.ptx.decode import PtxError, decode
from agent.execution.emulator.semantics.table import bases
from agent.execution.emulator.values import LOWERERS

_REGISTERED = (clusters, kernel)  # imported for what they register

#: Every base opcode of the PTX ISA (9.0, section 9.7), by the section's titles.
ISA: dict[str, str] = {
    "integer arithmetic": "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi "
    "bmsk szext dp4a dp2a",
    "extended precision": "addc subc madc",
    "floating point": "testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh",
    "comparison and selection": "set setp selp slct",
    "logic and shift": "and or xor not cnot lop3 shf shl shr",
    "data movement and conversion": "mov shfl prmt ld ldu st multimem prefetch prefetchu isspacep cvta cvt mapa "
    "getctarank applypriority discard createpolicy cp tensormap",
    "texture and surface": "tex tld4 txq suld sust sured suq istypep",
    "control flow": "bra brx call ret exit",
    "synchronisation and communication": "bar barrier membar fence atom red vote match activemask redux griddepcontrol "
    "elect mbarrier clusterlaunchcontrol",
    "matrices": "wmma mma ldmatrix stmatrix movmatrix wgmma tcgen05",
    "stack": "stacksave stackrestore alloca",
    "video": "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 "
    "vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
    "miscellaneous": "brkpt nanosleep pmevent trap setmaxnreg",
}
_FLOW = frozenset("bra brx call ret exit trap".split())  # noqa: SIM905

#: Forms of known opcodes that may or may not run: one statement each, over the registers of ``_HEAD``.
FORMS = (
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, {%r0,%r1}, {%r2,%r3}, "
    "{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7};",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2,%r3}, "
    "{%f0,%f1,%f2,%f3}, %r4, 0x0;",
    "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m3.e2m3.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
    "{%f0,%f1,%f2,%f3};",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%d0];",
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%d0], [%d1, {%r0, %r1}], [%d2];",
    "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [%d1], %r0, %h0;",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%d0], [%d1], %r0, [%d2];",
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %r1, [%r2];",
    "redux.sync.min.f32 %f0, %f1, %r0;",
    "ld.global.b128 %q0, [%d0];",
    "mov.b128 %q0, {%d0, %d1};",
    "atom.global.cas.b128 %q0, [%d0], %q1, %q2;",
    "cvt.rs.f16x2.f32 %r0, %f0, %f1, %r1;",
    "cvt.rn.satfinite.e2m1x2.f32 %h0, %f0, %f1;",
    "barrier.cluster.arrive;",
    "mapa.shared::cluster.u32 %r0, %r1, 0;",
    "tex.level.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%d0, {%f4,%f5}], %f6;",
    "tex.grad.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%d0, {%f4,%f5}], {%f6,%f7}, {%f6,%f7};",
    "tex.cube.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%d0, {%f4,%f5,%f6,%f7}];",
    "tex.acube.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%d0, {%r0,%f4,%f5,%f6}];",
    "tex.2dms.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%d0, {%r0,%r1,%r2,%r3}];",
    "tld4.r.a2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%d0, {%r0,%f4,%f5,%f6}];",
    "txq.num_mipmap_levels.b32 %r0, [%d0];",
)
_HEAD = (
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b16 %h<4>; .reg .b32 %r<8>; "
    ".reg .f32 %f<8>; .reg .b64 %d<4>; .reg .b128 %q<4>; .reg .pred %p<4>;\n"
)


@frozen
class Form:
    """One form of an instruction; ``why`` is empty where it runs."""

    text: str
    why: str


def runs(base: str) -> bool:
    """Whether any form of the base opcode is known."""
    return base in LOWERERS or base in bases() or base in _FLOW


def refused() -> dict[str, list[str]]:
    """Base opcodes of which no form runs, by section."""
    found = {section: [base for base in names.split() if not runs(base)] for section, names in ISA.items()}
    return {section: names for section, names in found.items() if names}


def forms() -> tuple[Form, ...]:
    """The forms of ``FORMS``, each tried."""
    return tuple(Form(text.partition(" ")[0], _tried(text)) for text in FORMS)


def _tried(text: str) -> str:
    try:
        module = decode(f"{_HEAD}{text}\nret; }}")
        prepare(module, module.functions["k"], {})
    except (PtxError, Refused) as error:
        return str(error)
    return ""
