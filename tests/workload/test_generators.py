"""Contents: any split gives the same bytes, bounds hold, and each family is what its name says."""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.workload import dtypes, generators, random
from agent.workload.binding import BoundBuffer
from agent.workload.errors import WorkloadError
from agent.workload.statements import read_statements
from agent.workload.workload import Access, Domain, Origin


def buffer(dtype: str, count: int, kind: str, low: float | None = None, high: float | None = None) -> BoundBuffer:
    nbytes = count * dtypes.size_of(dtype)
    return BoundBuffer("x", dtype, count, nbytes, Access.IN, Domain(kind, given=True), low, high)


def contents(held: BoundBuffer, family: str = "uniform", seed: int = 1) -> npt.NDArray[np.generic]:
    found = generators.recipe(held, family, seed)(0, held.nbytes)
    assert found.dtype == np.uint8 and len(found) == held.nbytes
    if dtypes.base(held.dtype)[0] == "bf16":
        return (found.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return found.view(dtypes.numpy_dtype(held.dtype))


KINDS = st.sampled_from(
    [
        ("f32", "normal"), ("f16", "uniform"), ("bf16", "normal"), ("f64", "normal"), ("f32x4", "normal"),
        ("i32", "index"), ("u8", "integers"), ("i64", "offsets"), ("i32", "permutation"), ("f32", "image"),
        ("u8", "image"), ("b12", "bytes"), ("i32", "iota"), ("bool", "integers"), ("f32", "bytes"),
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(KINDS, st.sampled_from([*generators.FAMILIES, generators.SPECIAL]), st.integers(0, 2**40), st.data())
def test_any_split_gives_the_same_bytes(kind: tuple[str, str], family: str, seed: int, data: st.DataObject) -> None:
    count = data.draw(st.sampled_from([1, 2, 97, 40_000]))
    held = buffer(kind[0], count, kind[1], *((0, 50) if kind[1] in ("index", "offsets") else (None, None)))
    make = generators.recipe(held, family, seed)
    whole = make(0, held.nbytes)
    start = data.draw(st.integers(0, held.nbytes))
    stop = data.draw(st.integers(start, held.nbytes))
    assert np.array_equal(make(start, stop), whole[start:stop])
    assert np.array_equal(np.concatenate([make(0, start), make(start, held.nbytes)]), whole)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["f16", "bf16", "f32", "f64"]),
    st.sampled_from(generators.FAMILIES),
    st.floats(-1000, 1000, width=16),
    st.floats(0, 1000, width=16),
    st.integers(0, 99),
)
def test_float_bounds_hold_in_every_family(dtype: str, family: str, low: float, span: float, seed: int) -> None:
    found = contents(buffer(dtype, 2000, "uniform", low, low + span), family, seed).astype(np.float64)
    # bf16 has 8 significant bits: a narrow interval may hold none of its numbers, and then the nearest must do
    step = 2.0**-7 * max(abs(low), abs(low + span)) if dtype == "bf16" else 0.0
    assert found.min() >= low - step and found.max() <= low + span + step


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["i8", "u8", "i16", "u32", "i64"]),
    st.sampled_from(generators.FAMILIES),
    st.sampled_from(["integers", "index", "uniform", "sorted", "image"]),
    st.integers(0, 90),
    st.integers(1, 30),
)
def test_integer_bounds_hold_in_every_family(dtype: str, family: str, kind: str, low: int, span: int) -> None:
    found = contents(buffer(dtype, 3000, kind, low, low + span), family).astype(np.int64)
    assert found.min() >= low and found.max() < low + span


def test_families_are_what_their_names_say() -> None:
    free = buffer("f32", 200_000, "normal")
    told = {family: contents(free, family).astype(np.float64) for family in generators.FAMILIES}
    assert abs(told["normal"].mean()) < 0.02 and abs(told["normal"].std() - 1.0) < 0.02
    assert abs(told["uniform"].mean()) < 0.02 and abs(told["uniform"].std() - 1 / np.sqrt(3)) < 0.01
    assert told["large-mean"].mean() > 200 * told["large-mean"].std()
    assert np.quantile(np.abs(told["spikes"]), 0.9) < 0.1 and np.abs(told["spikes"]).max() > 50
    assert len(np.unique(told["ties"])) == 4
    assert (np.diff(told["sorted"]) >= 0).all() and told["sorted"][0] < told["sorted"][-1]
    assert (
        len(np.unique(told["constant-rows"])) == 8
        and (told["constant-rows"][:25_000] == told["constant-rows"][0]).all()
    )
    zeros = contents(free, "signed-zeros")
    assert {bool(sign) for sign in np.signbit(zeros[zeros == 0])} == {False, True}
    denormal = np.abs(told["denormals"])
    assert ((denormal > 0) & (denormal < 2.0**-126)).mean() > 0.4
    assert (told["all-negative"] < 0).all()
    assert np.isfinite(told["large-magnitude"]).all() and np.abs(told["large-magnitude"]).max() > 1e14
    assert (told["large-negative"] < -1e14).all()
    small = told["small-integers"]
    assert (small == np.round(small)).all() and np.abs(small).max() <= 8 and len(np.unique(small)) == 17
    special = contents(free, generators.SPECIAL).astype(np.float64)
    assert np.isnan(special).any() and (special == np.inf).any() and (special == -np.inf).any()
    assert np.isfinite(special).mean() > 0.9


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_every_family_is_finite_in_every_type(dtype: str) -> None:
    for family in generators.FAMILIES:
        assert np.isfinite(contents(buffer(dtype, 5000, "normal"), family)).all(), family


@pytest.mark.parametrize("family", ["uniform", "spikes", "constant-rows", "normal"])
@pytest.mark.parametrize(("rows", "total"), [(1, 5), (7, 0), (100, 3), (1000, 32_000), (33, 1_000_003)])
def test_offsets_are_row_pointers(family: str, rows: int, total: int) -> None:
    found = contents(buffer("i32", rows + 1, "offsets", 0, total), family).astype(np.int64)
    assert found[0] == 0 and found[-1] == total and (np.diff(found) >= 0).all()
    if (family, rows, total) == ("uniform", 1000, 32_000):
        assert len(np.unique(np.diff(found))) > 20


@pytest.mark.parametrize("count", [1, 2, 3, 64, 1000, 65_537])
def test_permutations_hold_every_index_once(count: int) -> None:
    found = contents(buffer("i32", count, "permutation"))
    assert np.array_equal(np.sort(found), np.arange(count))
    if count >= 1000:
        assert (found != np.arange(count)).mean() > 0.9


def test_indices_cover_their_range() -> None:
    assert set(contents(buffer("i32", 5000, "index", 0, 37))) == set(range(37))
    assert (contents(buffer("i32", 500, "index", 0, 1)) == 0).all()
    signed = contents(buffer("i32", 5000, "integers", -3, 3))
    assert set(signed) == {-3, -2, -1, 0, 1, 2}


def test_plain_kinds() -> None:
    assert (contents(buffer("f32", 9, "zeros")) == 0).all() and (contents(buffer("i32", 9, "ones")) == 1).all()
    assert (contents(buffer("f32", 9, "constant", 2.5, 2.5)) == 2.5).all()
    assert (contents(buffer("i16", 9, "constant", -2, -2)) == -2).all()
    assert contents(buffer("i32", 9, "iota")).tolist() == list(range(9))


def test_seeds_and_names_matter_and_nothing_else() -> None:
    held = buffer("f32", 1000, "normal")
    assert np.array_equal(contents(held, "normal", 5), contents(held, "normal", 5))
    assert not np.array_equal(contents(held, "normal", 5), contents(held, "normal", 6))


def test_hash_is_splitmix64() -> None:
    # The first outputs for seed 1234567, as published with the reference implementation (Vigna, splitmix64.c).
    found = random.words(1234567, np.arange(3, dtype=np.uint64))
    assert found.tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_structs_need_a_word_from_the_user() -> None:
    with pytest.raises(WorkloadError, match="structs of 12 bytes"):
        generators.recipe(buffer("b12", 3, "unknown"), "uniform", 1)
    with pytest.raises(WorkloadError, match="no input family"):
        generators.recipe(buffer("f32", 3, "normal"), "gaussian", 1)
    with pytest.raises(WorkloadError, match="`index` is no domain"):
        generators.recipe(buffer("f32", 3, "index", 0, 3), "uniform", 1)


def families(buffers: str) -> tuple[str, ...]:
    return generators.families(read_statements(f"size n = 64\n{buffers}", "k", Origin("directive")))


def test_families_lie_inside_the_domains() -> None:
    assert set(families("buffer x: f32[n] in normal\nbuffer y: f32[n] out")) == set(generators.FAMILIES)
    positive = families("buffer x: f32[n] in uniform(5, 30)")
    assert not {"signed-zeros", "denormals", "all-negative", "large-magnitude"} & set(positive)
    assert {"uniform", "normal", "ties", "small-integers"} <= set(positive)
    assert families("buffer x: i32[n] in index(n)") == (
        "uniform",
        "spikes",
        "ties",
        "sorted",
        "constant-rows",
        "small-integers",
    )
    assert families("buffer y: f32[n] out") == ("uniform",)
    assert families("buffer p: b12[n] in bytes") == ("uniform",)
    special = read_statements("buffer x: f32[4] in normal", "k", Origin("directive"))
    assert generators.special(special)
    assert not generators.special(read_statements("buffer x: f32[4] in uniform(0, 1)", "k", Origin("directive")))


def test_uniform_floats_are_made_fast() -> None:
    held = buffer("f32", 1 << 24, "uniform")
    make = generators.recipe(held, "uniform", 3)
    make(0, 1 << 20)
    best = min(_seconds(make, held.nbytes) for _ in range(3))
    assert held.count / best > 50e6 / 4  # fifty million a second on a quiet core; a quarter of it on a busy one


def _seconds(make: Callable[[int, int], generators.Bytes], nbytes: int) -> float:
    started = time.process_time()
    make(0, nbytes)
    return time.process_time() - started
