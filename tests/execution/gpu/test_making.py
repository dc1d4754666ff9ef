"""Contents made by our kernel against those that NumPy makes: equal to the bit."""

import numpy as np
import pytest

from agent.execution.compiler import Build
from agent.execution.device import Device
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


def test_structs_of_unknown_members_have_no_form() -> None:
    assert form(BoundBuffer("x", "b12", 4, 48, Access.IN, Domain("unknown"), None, None), "uniform") is None


def test_row_pointers_that_would_fall_have_no_form() -> None:
    assert form(BoundBuffer("x", "i32", 4, 16, Access.IN, Domain("offsets"), 5, 2), "uniform") is None
