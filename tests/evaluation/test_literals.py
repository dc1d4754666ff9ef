"""Numbers that a rewrite compares with are found in its compiled code, and tried."""

import math

import numpy as np
import pytest

from agent.evaluation.contents.literals import Literals, literals
from agent.evaluation.contents.planting import alike, planted, rare, small
from agent.execution.compiler import build
from agent.execution.compiler.result import Build
from agent.workload.binding import BoundBuffer
from agent.workload.workload import Access, Domain
from tests.evaluation.kernels import original, rewrite, setting
from tests.evaluation.test_judge import SCALE


def both(factor: str) -> Literals:
    """What a rewrite with another factor than ``1.5f`` has beyond its original."""
    program, _ = original(SCALE)
    text = SCALE.replace("y[i] = 1.5f", f"y[i] = {factor}")
    sides = [build(rewrite(item, program.plan), setting().options) for item in (text, SCALE)]
    assert all(isinstance(side, Build) for side in sides), sides
    new, old = (literals(side.ptx) for side in sides if isinstance(side, Build))
    return new.beyond(old)


def compared(condition: str) -> tuple[frozenset[int], frozenset[float]]:
    found = both(f"({condition}) ? 0.0f : 1.5f")
    return found.whole, found.real


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("n == 77777", 77777),
        ("n > 1000 && n < 2000", 2000),
        ("n > 1000 && n < 2000", 1001),
        ("(n ^ 0x5a5a) == 1234", 0x5A5A ^ 1234),
        ("3 * n + 7 == 3007", 1000),
        ("(n >> 4) == 4000", 64000),
        ("(long long)n * 1000 == 5000000LL", 5000),
        ("(unsigned short)i == 777", 777),
        ("min(n, 12345) == n", 12345),
        ("n * n == 7654321 * 4", 5533),
    ],
)
def test_whole_numbers(condition: str, value: int) -> None:
    whole, _ = compared(condition)
    assert whole & {value - 1, value, value + 1}


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("x[i] == 3.5f", 3.5),
        ("2.0f * x[i] + 1.0f == 5.5f", 2.25),
        ("x[i] - 10.0f > 2.0f", 12.0),
        ("__float_as_int(x[i]) == 0x40600000", 3.5),
        ("fabsf(x[i]) >= 1234.5f", 1234.5),
        ("(double)x[i] == 0.1875", 0.1875),
        ("x[i] * x[i] == 10.5625f", -3.25),
        ("fma((double)x[i], (double)x[i], -10.5625) == 0.0", 3.25),
    ],
)
def test_real_numbers(condition: str, value: float) -> None:
    assert value in compared(condition)[1]


@pytest.mark.parametrize(
    ("condition", "residue"),
    [
        ("n % 1013 == 7", (1013, 7)),
        ("(unsigned)n % 77u == 5u", (77, 5)),
        ("(n & 63) == 37", (64, 37)),
        ("n % 64 == 37", (64, 37)),
        ("(3 * n + 1) % 100 == 7", (100, 7)),
    ],
)
def test_remainders(condition: str, residue: tuple[int, int]) -> None:
    assert residue in both(f"({condition}) ? 0.0f : 1.5f").residues


@pytest.mark.parametrize(
    ("factor", "value"),
    [
        ("(float)((__popc(n ^ 12347) + 31) / 32) *", 12347),
        ("(float)((__popc(n - 12347) + 31) / 32) *", 12347),
        ("(float)((n / 12347) * (12347 / n)) *", 12347),
        ("(1.0f - expf(-1e30f * (x[i] - 3.25f) * (x[i] - 3.25f))) *", 3.25),
    ],
)
def test_numbers_that_nothing_is_compared_with(factor: str, value: float) -> None:
    found = both(f"{factor} 1.5f")
    assert value in {*found.faint, *found.faint_real, *found.whole, *found.real}


def test_bits_that_are_no_number_are_none() -> None:
    """Indices are compared with numbers whose bits are those of a NaN or of infinity."""
    for bits in ("0xffc00001u", "0x7f800000u"):
        whole, real = compared(f"(unsigned)n > {bits}")
        assert whole and all(map(math.isfinite, real))


def test_what_the_original_compares_with_is_no_secret() -> None:
    assert compared("0") == (frozenset(), frozenset())


def test_what_the_original_alone_compares_with_is_found_by_the_other_difference() -> None:
    program, _ = original(SCALE)
    text = SCALE.replace("y[i] = 1.5f", "y[i] = (n == 77777 || n % 1013 == 7 || x[i] == 3.5f) ? 0.0f : 1.5f")
    sides = [build(rewrite(item, program.plan), setting().options) for item in (text, SCALE)]
    rich, poor = (literals(side.ptx) for side in sides if isinstance(side, Build))
    assert poor.beyond(rich).whole.isdisjoint({77777, 7}) and not poor.beyond(rich).floats
    dropped = rich.beyond(poor)
    assert 77777 in dropped.whole and (1013, 7) in dropped.residues and 3.5 in dropped.floats


def test_floats_that_are_tested_for_equality_are_told_from_those_that_are_not() -> None:
    assert both("(x[i] == 3.5f) ? 0.0f : 1.5f").equal == {3.5}
    assert 2.25 in both("(2.0f * x[i] + 1.0f != 5.5f) ? 1.0f : 1.5f").equal
    assert not both("(x[i] > 3.5f) ? 0.0f : 1.5f").equal


@pytest.mark.parametrize(
    ("rounding", "way", "value"),
    [
        ("rintf(x[i])", "rni", -1.5),
        ("floorf(x[i] + 0.5f)", "rmi", 1.0),
        ("(float)(int)(4.0f * x[i])", "rzi", 0.625),
        ("ceilf(x[i])", "rpi", 2.5),
        ("rintf(x[i] * 2.0f)", "rni", 0.75),
    ],
)
def test_halves_of_what_is_rounded(rounding: str, way: str, value: float) -> None:
    assert (way, value) in both(f"{rounding} + 1.5f").ties


def test_an_edge_has_a_side_however_the_comparison_is_written() -> None:
    upper, lower = (
        both("(x[i] * 2.0f - 0.5f >= 1.0f) ? 1.0f : 1.5f").edges,
        both("(x[i] * 2.0f - 0.5f > 1.0f) ? 1.0f : 1.5f").edges,
    )
    assert (True, 0.75) in upper - lower and (False, 0.75) in lower - upper
    assert both("(3.5f < x[i]) ? 1.0f : 1.5f").edges == both("!(x[i] <= 3.5f) ? 1.0f : 1.5f").edges == {(False, 3.5)}


def test_text_that_is_no_ptx_has_none() -> None:
    assert literals("nothing") == literals("")


def buffer(dtype: str, domain: Domain, low: float | None = None, high: float | None = None) -> BoundBuffer:
    size = {"f32": 4, "i32": 4, "u8": 1, "bf16": 2, "b12": 12}[dtype]
    return BoundBuffer("x", dtype, 1000, 1000 * size, Access.IN, domain, low, high)


def test_half_of_the_elements_hold_what_was_planted() -> None:
    plain = np.full(1000, -1.0, np.float32)
    found = planted(buffer("f32", Domain("normal")), plain.view(np.uint8), (3.5,), 7).view(np.float32)
    assert 400 < (found != -1.0).sum() < 600
    assert {np.float32(3.5), np.float32(7.0), np.float32(1.75)} < set(found.tolist())
    assert np.nextafter(np.float32(3.5), np.float32(4.0)) in found


def test_rare_values_stand_as_they_are_in_fewer_than_one_element_in_a_hundred() -> None:
    plain = np.full(40_000, -1.0, np.float32).view(np.uint8)
    side = BoundBuffer("x", "f32", 40_000, 160_000, Access.IN, Domain("uniform", given=True), -4, 4)
    found = rare(side, plain, (3.5, 0.5, 12.0), 7).view(np.float32)
    assert set(found.tolist()) == {-1.0, 3.5, 0.5}
    assert 0 < (found != -1.0).sum() < 400
    assert (rare(side, plain, (12.0,), 7) == plain).all()
    whole = np.zeros(1000, np.int32).view(np.uint8)
    assert (rare(buffer("i32", Domain("integers")), whole, (3.0,), 7) == whole).all()
    bits = np.zeros(4_000, np.uint16).view(np.uint8)
    halved = BoundBuffer("x", "bf16", 4_000, 8_000, Access.IN, Domain("normal"), None, None)
    assert set(rare(halved, bits, (1.5,), 7).view(np.uint16).tolist()) == {0, 0x3FC0}


def test_values_are_planted_among_bf16_and_in_structs_of_any_bytes() -> None:
    plain = np.full(1000, 0x3F80, np.uint16).view(np.uint8)
    found = planted(buffer("bf16", Domain("normal")), plain, (776.0,), 7).view(np.uint16)
    floats = (found.astype(np.uint32) << 16).view(np.float32)
    assert {776.0, 772.0, 780.0, 388.0, 1552.0, 1.0} <= set(floats.tolist())
    bounded = planted(buffer("bf16", Domain("uniform", given=True), 0, 800), plain, (776.0,), 7).view(np.uint16)
    assert (bounded.astype(np.uint32) << 16).view(np.float32).max() <= 800
    words = planted(buffer("b12", Domain("bytes")), np.zeros(12000, np.uint8), (12345.0, 0.5), 7).view(np.uint32)
    assert set(words.tolist()) == {0, 12345, 0x4640E400, 0x3F000000}


def test_nothing_is_planted_outside_the_domain() -> None:
    plain = np.zeros(1000, np.int32).view(np.uint8)
    inside = planted(buffer("i32", Domain("integers", given=True), 0, 10), plain, (9.0, 11.0), 7).view(np.int32)
    assert set(inside.tolist()) == {0, 8, 9}
    rows = planted(buffer("i32", Domain("offsets", given=True), 0, 10), plain, (9.0,), 7)
    assert not rows.any()
    floats = planted(buffer("f32", Domain("uniform", given=True), 0, 4), plain, (3.5,), 7).view(np.float32)
    assert floats.max() < 4 and (floats == 3.5).any()


def test_alike_repeats_the_least_element_or_the_largest() -> None:
    data = np.arange(-500, 500, dtype=np.int32).view(np.uint8)
    assert (alike(buffer("i32", Domain("integers")), data, False).view(np.int32) == -500).all()
    assert (alike(buffer("i32", Domain("integers")), data, True).view(np.int32) == 499).all()
    assert (alike(buffer("i32", Domain("permutation")), data, True) == data).all()
    pairs = np.array([1.0, -2.0, 3.0, 0.5], np.float32).view(np.uint8)
    assert (alike(buffer("f32", Domain("normal")), pairs, True).view(np.float32) == 3.0).all()


def test_small_floats_stay_inside_the_domain() -> None:
    plain = np.array([1.0, -3.0, 0.5, 0.0], np.float32)
    assert (small(buffer("f32", Domain("normal")), plain.view(np.uint8)).view(np.float32) == plain / 1024).all()
    for domain, low, high in (("uniform", 0.25, 4.0), ("sorted", None, None)):
        kept = small(buffer("f32", Domain(domain, given=True), low, high), plain.view(np.uint8)).view(np.float32)
        assert (kept == plain).all()
    whole = np.arange(4, dtype=np.int32)
    assert (small(buffer("i32", Domain("integers")), whole.view(np.uint8)).view(np.int32) == whole).all()


def test_alike_elements_of_bf16_are_the_least_and_the_largest_number() -> None:
    bits = np.array([0x3F80, 0xC040, 0x0000, 0x4000], np.uint16).view(np.uint8)  # 1, -3, 0, 2
    side = buffer("bf16", Domain("normal"))
    assert set(alike(side, bits, True).view(np.uint16).tolist()) == {0x4000}
    assert set(alike(side, bits, False).view(np.uint16).tolist()) == {0xC040}
