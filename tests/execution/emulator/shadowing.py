"""Kernels run with their float64 shadow, for tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from agent.evaluation.values import to_floats
from agent.execution.device import ShadowLine
from tests.execution.emulator.building import build, launch, run, with_headers

HALVES = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\n"
Floats = npt.NDArray[np.float64]


@frozen(eq=False)
class Shadowed:
    """What output ``y`` holds, and what it would hold without rounding; marks; lines by their number."""

    own: Floats
    value: Floats
    flags: npt.NDArray[np.uint8]
    lines: dict[int, ShadowLine]


def shadowed(
    source: str,
    arguments: Sequence[Any],
    buffers: dict[str, np.ndarray],
    grid: int = 1,
    block: int = 32,
    kind: str = "f32",
    options: Sequence[str] = (),
) -> Shadowed:
    """Run kernel ``k``; the shadow must not change what the program does."""
    built = with_headers(source) if "#include" in source else build(source, *options)
    step = launch("k", grid, block, *arguments)
    plain, _ = run(built, step, buffers)
    answer, _ = run(built, step, buffers, shadow=True)
    assert answer.status == plain.status == "ok", answer.message
    assert plain.shadows is None and answer.shadows is not None
    for name in buffers:
        np.testing.assert_array_equal(answer.outputs[name], plain.outputs[name])
    assert answer.thread_instructions == plain.thread_instructions
    own = to_floats(answer.outputs["y"], kind)
    found = answer.shadows.outputs.get("y")
    value, flags = found.numbers(kind, own) if found else (own, np.zeros(len(own), np.uint8))
    return Shadowed(own, value, flags, {line.line: line for line in answer.shadows.lines})


def within(found: Shadowed, truth: Floats, relative: float = 1e-13) -> None:
    """The shadow is the truth, but for float64's own rounding, and nothing is marked."""
    assert not found.flags.any()
    scale = np.abs(truth).max()
    np.testing.assert_allclose(found.value, truth, rtol=0, atol=relative * scale)
