"""Contents made by our kernel against those that NumPy makes: equal to the bit."""

import numpy as np
import pytest

from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu
from agent.workload.binding import BoundBuffer
from agent.workload.dtypes import size_of
from agent.workload.forms import form
from agent.workload.generators import recipe
from agent.workload.workload import Access, Domain
from tests.execution.gpu.making import FIRST, LAST, buffers, door, made

SEED = 0x1234_5678_9ABC_DEF
CASES = list(buffers())


def name(case: tuple[BoundBuffer, str]) -> str:
    buffer, family = case
    return f"{buffer.dtype} {buffer.domain.kind}({buffer.low}, {buffer.high}) {family}"


def check(case: tuple[BoundBuffer, str], device: object, build: object) -> None:
    buffer, family = case
    found = form(buffer, family)
    assert found is not None and found.nbytes == buffer.nbytes
    size = size_of(found.scalar)
    mine = made(device, build, found, SEED)  # type: ignore[arg-type]
    its = recipe(buffer, family, SEED)(FIRST * size, LAST * size)
    apart = np.flatnonzero((mine != its).reshape(-1, size).any(axis=1))
    assert not len(apart), f"{len(apart)} differ, first {FIRST + apart[0]}"


@pytest.mark.parametrize("part", range(8))
def test_the_kernel_in_the_emulator(part: int) -> None:
    device, build = Emulator(), door("sm_90")
    for case in CASES[part::8]:
        try:
            check(case, device, build)
        except AssertionError as error:
            raise AssertionError(f"{name(case)}: {error}") from error


@pytest.mark.gpu
def test_the_kernel_on_the_card(gpu: Gpu) -> None:
    build = door(gpu.arch)
    for case in CASES[::3]:
        try:
            check(case, gpu, build)
        except AssertionError as error:
            raise AssertionError(f"{name(case)}: {error}") from error


def test_structs_of_unknown_members_have_no_form() -> None:
    assert form(BoundBuffer("x", "b12", 4, 48, Access.IN, Domain("unknown"), None, None), "uniform") is None


def test_row_pointers_that_would_fall_have_no_form() -> None:
    assert form(BoundBuffer("x", "i32", 4, 16, Access.IN, Domain("offsets"), 5, 2), "uniform") is None
