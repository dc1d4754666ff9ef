"""How many atomics queue in one sector, and which sectors are written partly, worked out by hand."""

import numpy as np
import pytest

from tests.execution.emulator.test_counters import F, counted

N = np.zeros(1 << 10, np.int32)


@pytest.mark.parametrize(
    ("kind", "value", "operations"),
    [("float", "1.0f", 128), ("int", "1", 4)],
    ids=["floats, one by one", "whole numbers, once a warp"],
)
def test_all_threads_to_one_address(kind: str, value: str, operations: int) -> None:
    source = f'extern "C" __global__ void k({kind}* y) {{ atomicAdd(y + 5, {value}); }}'
    found = counted(source, 2, 64, "y", y=N if kind == "int" else F)
    assert (found.queued, found.queued_at_one) == ({"y": operations}, {"y": operations})


def test_each_block_to_an_address_of_its_own_shares_nothing() -> None:
    source = 'extern "C" __global__ void k(float* y) { atomicAdd(y + blockIdx.x * 8, 1.0f); }'
    found = counted(source, 2, 64, "y", y=F)
    assert (found.queued, found.queued_at_one) == ({"y": 128}, {"y": 0})


def test_words_of_a_sector_go_in_one_request() -> None:
    """32 lanes on 8 words of one sector: four lanes on each word, one after the other."""
    source = 'extern "C" __global__ void k(int* y) { atomicAdd(y + threadIdx.x % 8, 1); }'
    assert counted(source, 1, 32, "y", y=N).queued_at_one == {"y": 4}


def test_idle_lanes_do_not_queue() -> None:
    source = 'extern "C" __global__ void k(float* y) { if (threadIdx.x % 32 < 3) atomicAdd(y, 1.0f); }'
    assert counted(source, 1, 64, "y", y=F).queued_at_one == {"y": 6}


@pytest.mark.parametrize(
    ("index", "lines", "partial", "masked"),
    [
        ("i", 1, 0, 0),
        ("i + 1", 2, 2, 2),  # 31 words of one line and a word of the next: the first and the last sector are not whole
        ("3 * i", 3, 12, 3),  # 384 bytes: 12 sectors, none whole
        ("32 * i", 32, 32, 32),
        ("8 * (i / 8) * 4 + i % 8", 4, 0, 0),  # four whole sectors on four lines
        ("i < 8 ? i : 36 + i", 3, 2, 2),  # words 0 to 7, and 44 to 67: half a sector at both ends, on two lines
        ("0", 1, 1, 1),
    ],
)
def test_lines_and_partial_sectors_of_a_store(index: str, lines: int, partial: int, masked: int) -> None:
    source = f'extern "C" __global__ void k(float* y) {{ int i = threadIdx.x; y[{index}] = 1.0f; }}'
    found = counted(source, 1, 32, "y", y=F)
    assert (found.total("cache_lines"), found.total("partial_sectors")) == (lines, partial)
    assert found.total("partial_lines") == masked


def test_divisions_are_counted_by_opcode() -> None:
    source = """extern "C" __global__ void k(float* y, int n) { int i = threadIdx.x;
        y[i] = y[i + 32] / y[i + 64] + i / n; }"""
    assert counted(source, 1, 64, "y", 3, y=F).compound == {"div.rn.f32": 2, "div.s32": 2}
