"""Where a warp stops for loads, counted by hand in small kernels."""

import pytest

from tests.execution.emulator.test_counters import F, counted

START = 'extern "C" __global__ void k('


def waits(source: str, *arguments: object, **buffers: object) -> int:
    return counted(source, 1, 64, *arguments, **buffers).total("waits")  # type: ignore[arg-type]


def test_independent_loads_of_straight_code_wait_together() -> None:
    source = START + "const float* x, float* y) { int i = threadIdx.x; y[i] = x[i] + x[i + 64] + x[i + 128]; }"
    assert waits(source, "x", "y", x=F, y=F) == 2  # two warps, once each


def test_an_address_that_was_loaded_waits_for_itself() -> None:
    source = START + "const int* p, float* y, const float* x) { int i = threadIdx.x; y[i] = x[p[i] & 63]; }"
    assert waits(source, "x", "y", "x", x=F, y=F) == 4


@pytest.mark.parametrize(("kept", "expected"), [("", 8), ("__restrict__", 2)])
def test_loads_do_not_overtake_a_store_that_may_change_them(kept: str, expected: int) -> None:
    """Four sums into memory, one after the other: four waits a warp, unless the pointers are known to differ."""
    body = " ".join(f"y[{64 * k} + i] += x[{64 * k} + i];" for k in range(4))
    source = START + f"const float* {kept} x, float* {kept} y) {{ int i = threadIdx.x; {body} }}"
    assert waits(source, "x", "y", x=F, y=F) == expected


def test_a_sum_through_memory_waits_each_turn_and_one_in_a_register_does_not() -> None:
    loop = START + "const float* x, float* y, int n) {{ int i = threadIdx.x; {} }}"
    through = loop.format("for (int k = 0; k < n; k++) y[i] += x[k * 64 + i];")
    register = loop.format("float s = y[i]; for (int k = 0; k < n; k++) s += x[k * 64 + i]; y[i] = s;")
    assert waits(through, "x", "y", 16, x=F, y=F) == 2 * (1 + 16)  # y[i] is loaded once, and stored each turn
    assert waits(register, "x", "y", 16, x=F, y=F) <= 2 * (16 // 4 + 1)
