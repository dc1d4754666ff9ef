"""Contents made by our kernel against those that NumPy makes: equal to the bit."""

import numpy as np
import pytest

from agent.evaluation import runs
from agent.execution.compiler import Build
from agent.execution.device import Device, Image, Poison, Request
from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu, support
from agent.workload.binding import BoundBuffer, BoundLaunch, PointerArgument, ValueArgument
from agent.workload.dtypes import size_of
from agent.workload.forms import NUMBERS, form
from agent.workload.generators import recipe
from agent.workload.workload import Access, Domain
from tests.execution.gpu.making import FIRST, LAST, buffers, door, made

SEED = 0x1234_5678_9ABC_DEF
CASES = list(buffers())


def name(case: tuple[BoundBuffer, str]) -> str:
    buffer, family = case
    return f"{buffer.dtype} {buffer.domain.kind}({buffer.low}, {buffer.high}) {family}"


def check(cases: list[tuple[BoundBuffer, str]], device: Device, build: Build) -> None:
    asked = [form(buffer, family) for buffer, family in cases]
    known = [item for item in asked if item is not None]
    assert len(known) == len(cases)
    for case, item, mine in zip(cases, known, made(device, build, known, SEED), strict=True):
        size = size_of(item.scalar)
        its = recipe(*case, SEED)(FIRST * size, LAST * size)
        apart = np.flatnonzero((mine != its).reshape(-1, size).any(axis=1))
        assert item.nbytes == case[0].nbytes
        assert not len(apart), f"{name(case)}: {len(apart)} differ, first {FIRST + apart[0]}"


@pytest.mark.parametrize("part", range(8))
def test_the_kernel_in_the_emulator(part: int) -> None:
    check(CASES[part::8], Emulator(), door("sm_90"))


@pytest.mark.gpu
@pytest.mark.parametrize("part", range(8))
def test_the_kernel_on_the_card(part: int, gpu: Gpu) -> None:
    check(CASES[part::8], gpu, door(gpu.arch))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_one_unit_in_the_last_place(dtype: str) -> None:
    """Every special value there is, and random bits; against the same step done by NumPy."""
    size = size_of(dtype)
    edges = [0, 1, 2, 3]
    for exponent in range(8 * size - 1):
        edges += [2**exponent - 1, 2**exponent]
    infinity = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F80_0000, "f64": 0x7FF0_0000_0000_0000}[dtype]
    edges += [infinity - 2, infinity - 1, infinity, infinity + 1]
    edges += [bits | 1 << (8 * size - 1) for bits in edges]
    data = np.array(edges, f"<u{size}").view(np.uint8)
    seed, image = 77, Image("x", len(data), data)
    step = BoundLaunch(
        "nudge", (1, 1, 1), (256, 1, 1), 0,
        (PointerArgument("x"), ValueArgument("u64", len(edges)), ValueArgument("i32", NUMBERS[dtype]),
         ValueArgument("u64", seed)),
    )  # fmt: skip
    built = support.support("sm_90")
    assert isinstance(built, Build)
    answer = Emulator().run(Request(built, (step,), (image,), ("x",)))
    assert answer.status == "ok", answer.message
    assert np.array_equal(answer.outputs["x"], runs._nudge(data, dtype, 0, seed))


def test_floats_as_doubles() -> None:
    values = np.array([0.0, -0.0, 1.5, -1e-45, 3.4e38, np.inf, -np.inf], np.float32)
    images = (Image("x", values.nbytes, values.view(np.uint8)), Image("y", 2 * values.nbytes, Poison()))
    arguments = (PointerArgument("x"), PointerArgument("y"), ValueArgument("u64", len(values)))
    built = support.support("sm_90")
    assert isinstance(built, Build)
    step = BoundLaunch("widen", (1, 1, 1), (32, 1, 1), 0, arguments)
    answer = Emulator().run(Request(built, (step,), images, ("y",)))
    assert answer.outputs["y"].tobytes() == values.astype(np.float64).tobytes()


def test_structs_of_unknown_members_have_no_form() -> None:
    assert form(BoundBuffer("x", "b12", 4, 48, Access.IN, Domain("unknown"), None, None), "uniform") is None


def test_row_pointers_that_would_fall_have_no_form() -> None:
    assert form(BoundBuffer("x", "i32", 4, 16, Access.IN, Domain("offsets"), 5, 2), "uniform") is None
