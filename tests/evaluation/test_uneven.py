"""An estimate counts some blocks: where the others do more, there is none."""

import pytest

from tests.attacks.entry import Control, verdict

BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"
SPIN = (
    "int w = 0; if (blockIdx.x == 3) for (int k = 0; k < 2000; k++) "
    f'asm volatile("add.s32 %0, %0, 1;" : "+r"(w)); if (w >= 0) {BODY}'
)
EVEN = SPIN.replace("blockIdx.x == 3", "i >= 0").replace("2000", "200")


@pytest.mark.parametrize(("body", "state"), [(SPIN, "none"), (EVEN, "estimated")])
def test_work_where_nobody_counts_is_no_speed(body: str, state: str) -> None:
    found = verdict(Control("spins", "scale", ((BODY, body),)))
    assert found.correctness.state == "right"
    assert found.speed.state == state
    assert found.speed.ratio is None or found.speed.ratio < 1.0
    assert ("not counted do more" in found.speed.note) == (state == "none")
