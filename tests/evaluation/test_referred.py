"""A function of the user as the oracle. Here it is NumPy in float64; tests/execution/test_reference.py has PyTorch."""

from collections.abc import Callable

import numpy as np
import pytest
from attrs import define, field

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Failure, Prepared, prepare
from tests.evaluation.kernels import original, rewrite, setting

TEXT = """
// cuda-lsp: workload
//   size     rows = 64, cols = 96
//   const    scale = 0.5
//   buffer   x: f32[rows * cols] in normal
//   buffer   keep: i32[rows] in integers(0, 2)
//   buffer   y: f32[rows] out
//   launch   total<<<rows, 32>>>(x, keep, y, cols, scale)
//   reference refs.py:total
__global__ void total(const float* x, const int* keep, float* y, int cols, float scale) {
    int row = blockIdx.x;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32) sum += x[row * cols + i];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) y[row] = keep[row] ? scale * sum : 0.0f;
}
"""


@define
class Function:
    """Answers as the user's function would; ``asked`` holds what it was given."""

    compute: Callable[..., dict[str, np.ndarray] | str]
    asked: list[dict[str, object]] = field(factory=list)

    def answer(self, tensors, numbers, outputs, cancelled, seconds):  # type: ignore[no-untyped-def]
        self.asked.append({**numbers, **tensors})
        found = self.compute(**numbers, **tensors)
        return found if isinstance(found, str) else {name: found[name] for name in outputs if name in found}


def honest(x, keep, rows, cols, scale, **_):  # type: ignore[no-untyped-def]
    return {"y": np.where(keep != 0, scale * x.reshape(rows, cols).sum(axis=1), 0.0)}


def prepared(function: Function, text: str = TEXT) -> Prepared | Failure:
    program, workload = original(text)
    return prepare(program, workload, setting(reference=function))


def test_it_is_the_oracle() -> None:
    function = Function(honest)
    found = prepared(function)
    assert isinstance(found, Prepared) and not found.contract.broken
    assert found.oracle == "refs.py:total in PyTorch, float64"
    first = function.asked[0]
    assert first["scale"] == 0.5 and first["x"].dtype == np.float64 and first["keep"].dtype == np.int32
    program, _ = original(TEXT)
    same = judge(found, rewrite(TEXT.replace("d /= 2", "d >>= 1"), program.plan))
    assert (same.correctness.state, same.precision.state) == ("right", "same")
    rough = TEXT.replace("float sum = 0.0f", "__half h; float sum = 0.0f").replace(
        "sum += x[row * cols + i]", "{ h = __float2half(sum + x[row * cols + i]); sum = __half2float(h); }"
    )
    less = judge(found, rewrite("#include <cuda_fp16.h>\n" + rough, program.plan))
    assert less.precision.state == "less"


@pytest.mark.parametrize("factor", [1.5, 1.0001])
def test_an_original_that_computes_something_else_is_reported_first(factor: float) -> None:
    def other(**given):  # type: ignore[no-untyped-def]
        found = honest(**given)
        return {"y": found["y"] * factor}

    found = prepared(Function(other))
    assert isinstance(found, Prepared) and found.contract.broken
    assert found.contract.summary.startswith("it does not compute what refs.py:total does: y[")


def test_rounding_is_no_difference() -> None:
    def rounded(**given):  # type: ignore[no-untyped-def]
        return {"y": honest(**given)["y"].astype(np.float32).astype(np.float64)}

    found = prepared(Function(rounded))
    assert isinstance(found, Prepared) and not found.contract.broken


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda **_: "refs.py:total: ValueError: no", "refs.py:total: ValueError: no"),
        (lambda **_: {"z": np.zeros(3)}, "refs.py:total gives none of the outputs that are floats (y)"),
    ],
)
def test_a_function_without_an_answer(compute: Callable[..., dict[str, np.ndarray] | str], words: str) -> None:
    found = prepared(Function(compute))
    assert isinstance(found, Failure) and (found.kind, found.message) == ("reference", words)


def test_half_outputs_have_it_too() -> None:
    text = """#include <cuda_fp16.h>
// cuda-lsp: workload
//   size     n = 512
//   buffer   x: f16[n] in normal
//   buffer   y: f16[n] out
//   launch   twice<<<(n + 63) / 64, 64>>>(x, y, n)
//   reference refs.py:twice
__global__ void twice(const __half* x, __half* y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = __float2half(__half2float(x[i]) * 3.0f);
}
"""
    found = prepared(Function(lambda x, n: {"y": 3.0 * x}), text)
    assert isinstance(found, Prepared) and not found.contract.broken
    assert found.cache.truths and all(truth.oracle for truth in found.cache.truths.values())
