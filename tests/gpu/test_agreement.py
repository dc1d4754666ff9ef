"""The emulator and a card run the same PTX, made by the same NVRTC, to the same bytes.

Compiled with ``--fmad=false``, so that no contraction differs between PTX and machine code. Every operation that IEEE
754 defines must then agree to the bit; ``.approx`` operations are only bounded (PTX ISA, "Floating Point Instructions":
ex2, lg2, sin, cos and rsqrt are within 2 to 4 units in the last place or 2^-21 absolute), and errors grow on the way.
"""

import re
from typing import Any

import numpy as np
import pytest

from agent.execution.compiler import Options
from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu
from agent.workload import dtypes
from tests.fixtures.cases import CASES, Case
from tests.fixtures.running import Opened, opened, request

pytestmark = pytest.mark.gpu

APPROXIMATE = re.compile(r"\.approx\b|\b(atom|red)\.[\w.]*add\.[\w.]*f(16|32|64)")
"""Operations whose result PTX bounds but does not define, and sums whose order it leaves open."""


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "unoptimised"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_emulator_and_the_card_agree(case: Case, optimised: bool, card: Gpu) -> None:
    fixture = opened(case.file, case.kernel)
    inputs = case.inputs(np.random.default_rng(11), case.small)
    asked = request(fixture, case.small, inputs, Options(arch=card.arch, fmad=False, optimised=optimised))
    emulated, real = Emulator().run(asked), card.run(asked)
    assert (emulated.status, emulated.message) == ("ok", "")
    assert (real.status, real.message) == ("ok", "")
    exact = not APPROXIMATE.search(asked.build.ptx)
    for name in asked.outputs:
        mine, its = (
            _values(fixture, case, name, emulated.outputs[name]),
            _values(fixture, case, name, real.outputs[name]),
        )
        if exact or np.issubdtype(mine.dtype, np.integer):
            assert np.array_equal(mine.view(np.uint8), its.view(np.uint8)), f"{name}: {_first_difference(mine, its)}"
        else:
            scale = np.abs(its[np.isfinite(its)]).max(initial=1e-30)
            assert np.allclose(mine, its, rtol=2e-5, atol=2e-6 * scale, equal_nan=True), _first_difference(mine, its)


def _values(fixture: Opened, case: Case, name: str, raw: Any) -> Any:
    buffer = next(buffer for buffer in fixture.at(case.small).buffers if buffer.name == name)
    return np.ascontiguousarray(raw).view(dtypes.numpy_dtype(dtypes.base(buffer.dtype)[0]))


def _first_difference(mine: Any, its: Any) -> str:
    different = np.flatnonzero(mine.view(f"u{mine.itemsize}") != its.view(f"u{its.itemsize}"))
    at = int(different[0])
    return f"{different.size} of {mine.size} differ, first [{at}]: emulated {mine[at]!r}, card {its[at]!r}"
