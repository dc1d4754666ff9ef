"""How an engine meets the table: what it is told, what it may pass, and what is refused."""

import numpy as np
import pytest

from agent.execution.emulator.ptx.instruction import Immediate, Register, Special
from agent.execution.emulator.semantics import ENGINE, Unsupported, constant, dtype_of, flatten, lower
from tests.execution.emulator.semantics_cases import Case, cases
from tests.execution.emulator.semantics_inputs import inputs
from tests.execution.emulator.semantics_lowering import instruction
from tests.execution.emulator.semantics_running import instructions

SINGLE = [case for case in cases() if case.text.count(";") == 1]


@pytest.fixture(autouse=True)
def quiet() -> object:
    with np.errstate(all="ignore"):
        yield


def sources_of(case: Case) -> list[np.ndarray]:
    (found,) = instructions(case)
    operation, rows = lower(found), inputs(case.sources)
    named = {f"s{index}": rows[index] for index in range(len(rows))}
    return [
        constant(operand, kind) if isinstance(operand, Immediate) else named[operand.name].astype(dtype_of(kind))
        for operand, kind in zip(flatten(found.sources), operation.sources, strict=True)
        if isinstance(operand, Immediate | Register)
    ]


@pytest.mark.parametrize("first", range(0, len(SINGLE), 100))
def test_into_is_apply_even_over_its_own_sources(first: int) -> None:
    for case in SINGLE[first : first + 100]:
        operation, sources = lower(instructions(case)[0]), sources_of(case)
        before = [source.copy() for source in sources]
        results = operation.apply(sources)
        assert all(np.array_equal(one, two) for one, two in zip(before, sources, strict=True)), case.text
        lanes = inputs(case.sources).shape[1]
        outs = [np.zeros(lanes, dtype_of(kind)) for kind in operation.results]
        operation.into(sources, outs)
        for out, result in zip(outs, results, strict=True):
            assert out.dtype == np.asarray(result).dtype and np.array_equal(out, result), case.text
        for index, source in enumerate(sources):
            if len(outs) == 1 and source.shape == outs[0].shape and source.dtype == outs[0].dtype:
                own = [one.copy() for one in sources]
                operation.into(own, [own[index]])
                assert np.array_equal(own[index], outs[0]), (case.text, index)


@pytest.mark.parametrize("first", range(0, len(SINGLE), 100))
def test_one_lane_and_rows_of_lanes_agree_with_many(first: int) -> None:
    for case in SINGLE[first : first + 100]:
        operation, sources = lower(instructions(case)[0]), sources_of(case)
        results = operation.apply(sources)
        # a single value for all lanes, and a batch of blocks with one value per block
        alone = operation.apply([source if source.ndim == 0 else source[7].reshape(()) for source in sources])
        blocks = operation.apply([source if source.ndim == 0 else source.reshape(16, 16) for source in sources])
        mixed = operation.apply(
            [s if s.ndim == 0 else s.reshape(16, 16)[:, :1] if i else s.reshape(16, 16) for i, s in enumerate(sources)]
        )
        flat = operation.apply(
            [s if s.ndim == 0 else np.repeat(s[::16], 16) if i else s for i, s in enumerate(sources)]
        )
        for many, one, block, some, same in zip(results, alone, blocks, mixed, flat, strict=True):
            assert np.asarray(one) == many[7], case.text
            assert np.array_equal(np.ravel(block), many), case.text
            # a permutation of bytes may not depend on every source
            assert np.array_equal(np.broadcast_to(some, (16, 16)).ravel(), np.broadcast_to(same, 256)), case.text


def test_no_lanes_at_all() -> None:
    for case in SINGLE:
        operation = lower(instructions(case)[0])
        results = operation.apply([source if source.ndim == 0 else source[:0] for source in sources_of(case)])
        assert all(np.size(result) == 0 for result in results), case.text


def test_operands_are_flattened() -> None:
    found = instruction("mov.b64 {%r1, _}, %d2;")
    assert [getattr(operand, "name", None) for operand in flatten(found.destinations)] == ["%r1", None]
    operation = lower(found)
    assert operation.sources == ("b64",) and operation.results == ("b32", "b32")
    low, high = operation.apply([np.array([0x1122334455667788], np.uint64)])
    assert (low[0], high[0]) == (0x55667788, 0x11223344)


def test_carry_is_one_more_operand() -> None:
    first, second = lower(instruction("add.cc.u32 %r1, %r2, %r3;")), lower(instruction("addc.u32 %r1, %r2, %r3;"))
    assert (first.reads_carry, first.writes_carry, second.reads_carry, second.writes_carry) == (
        False,
        True,
        True,
        False,
    )
    total, carry = first.apply([np.array([0xFFFFFFFF, 1], np.uint32), np.array([2, 3], np.uint32)])
    assert total.tolist() == [1, 4] and carry.tolist() == [True, False]
    (high,) = second.apply([np.array([5, 5], np.uint32), np.array([0, 0], np.uint32), carry])
    assert high.tolist() == [6, 5]


def test_a_negated_predicate_is_complemented() -> None:
    operation = lower(instruction("setp.lt.and.s32 %p1, %r1, %r2, !%p2;"))
    one, two = np.array([1, 1, 9], np.uint32), np.array([5, 5, 5], np.uint32)
    assert operation.apply([one, two, np.array([False, True, False])])[0].tolist() == [True, False, False]


def test_registers_wider_than_the_type() -> None:
    # cvt reads the low part of a wide register and extends into a wide one
    (result,) = lower(instruction("cvt.s32.s8 %r1, %r2;")).apply([np.array([0x1FF, 0x7F], np.uint32)])
    assert result.tolist() == [0xFFFFFFFF, 0x7F] and result.dtype == np.uint32
    (result,) = lower(instruction("cvt.u8.u32 %h1, %r2;")).apply([np.array([0x1FF], np.uint32)])
    assert result.tolist() == [0xFF] and result.dtype == np.uint16
    (result,) = lower(instruction("cvt.s8.s32 %r1, %r2;")).apply([np.array([0x180], np.uint32)])
    assert result.tolist() == [0xFFFFFF80]


@pytest.mark.parametrize(
    ("immediate", "kind", "wanted"),
    [
        (Immediate((1 << 64) - 1, "int"), "s32", np.uint32(0xFFFFFFFF)),
        (Immediate((1 << 64) - 3, "int"), "s16", np.uint16(0xFFFD)),
        (Immediate(0x3F800000, "f32"), "f32", np.uint32(0x3F800000)),
        (Immediate(0x3F800000, "f32"), "b32", np.uint32(0x3F800000)),
        (Immediate(0x3F800000, "f32"), "f64", np.uint64(0x3FF0000000000000)),
        (Immediate(0x3FF8000000000000, "f64"), "f32", np.uint32(0x3FC00000)),
        (Immediate(0x3FF8000000000000, "f64"), "f64", np.uint64(0x3FF8000000000000)),
        (Immediate(0x3C00, "int"), "f16", np.uint16(0x3C00)),
        (Immediate(1, "int"), "pred", np.bool_(True)),
    ],
)
def test_constants(immediate: Immediate, kind: str, wanted: np.generic) -> None:
    found = constant(immediate, kind)
    assert found.ndim == 0 and found.dtype == wanted.dtype and found == wanted


@pytest.mark.parametrize(
    ("text", "opcode"),
    [
        ("add.rs.f32 %r1, %r2, %r3;", "add.rs.f32"),
        ("vabsdiff.u32.u32.u32 %r1, %r2, %r3, %r4;", "vabsdiff.u32.u32.u32"),
        ("cvt.rna.f32.f64 %r1, %d2;", "cvt.rna.f32.f64"),
        ("add.f32.f16 %r1, %h1, %r2;", "add.f32.f16"),
        ("add.s32 %r1, %r2;", "add.s32"),
        ("frobnicate.u32 %r1, %r2;", "frobnicate.u32"),
        ("lop3.b32 %r1, %r2, %r3, %r4, %r5;", "lop3.b32"),
        ("mul.lo.f32 %r1, %r2, %r3;", "mul.lo.f32"),
        ("setp.lt.gt.s32 %p1, %r2, %r3;", "setp.lt.gt.s32"),
    ],
)
def test_what_is_not_known_is_refused_by_its_full_name(text: str, opcode: str) -> None:
    with pytest.raises(Unsupported, match=opcode.replace(".", r"\.")) as caught:
        lower(instruction(text))
    assert caught.value.opcode == opcode


def test_the_engines_own_are_no_rules() -> None:
    for base in ENGINE:
        with pytest.raises(Unsupported):
            lower(instruction(f"{base}.b32 %r1, %r2;") if base not in ("bra", "brx", "call") else instruction("ret;"))


def test_a_special_register_has_the_type_of_the_instruction() -> None:
    found = instruction("mov.u32 %r1, %tid.x;")
    assert flatten(found.sources) == (Special("tid.x"),) and lower(found).sources == ("u32",)


def test_pairs_of_singles_are_singles() -> None:
    random = np.random.default_rng(3)
    rows = random.integers(0, 2**64, (3, 500), dtype=np.uint64)
    for base, mode in (("add", "rn"), ("mul", "rm.ftz"), ("fma", "rn"), ("fma", "rz.ftz")):
        count = 3 if base == "fma" else 2
        sources = list(rows[:count])
        names = ", ".join(f"%{{0}}{index}" for index in range(count + 1))
        (pair,) = lower(instruction(f"{base}.{mode}.f32x2 {names.format('d')};")).apply(sources)
        single = lower(instruction(f"{base}.{mode}.f32 {names.format('r')};"))
        (low,) = single.apply([source.astype(np.uint32) for source in sources])
        (high,) = single.apply([(source >> np.uint64(32)).astype(np.uint32) for source in sources])
        assert np.array_equal(pair, low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32))


def test_many_lanes_are_cut_into_pieces_and_one_source_is_not() -> None:
    operation = lower(instruction("fma.rn.f64 %d1, %d2, %d3, %d4;"))
    random = np.random.default_rng(4)
    a, c = random.standard_normal((2, 20_001)).view(np.uint64)
    b = np.array(1.0 / 3.0).view(np.uint64)
    (whole,) = operation.apply([a, b, c])
    pieces = [operation.apply([a[lane : lane + 7], b, c[lane : lane + 7]])[0] for lane in range(0, 20_001, 7)]
    assert np.array_equal(whole, np.concatenate(pieces))


def test_a_product_that_vanishes_keeps_the_sign_of_its_sum() -> None:
    # 2**-1074 * (1/2 + a little) - 2**-1074 is less than nothing, and rounds to minus zero
    sources = [np.array([bits], np.uint64) for bits in (1, 0x3FE0000000000001, 0x8000000000000001)]
    (result,) = lower(instruction("fma.rn.f64 %d1, %d2, %d3, %d4;")).apply(sources)
    assert result[0] == np.uint64(1 << 63)
