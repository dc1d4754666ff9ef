"""The self-test as a whole: survivors call for more inputs, and inputs without influence are found."""

import pytest

from agent.evaluation import runs
from agent.evaluation.contracts.selftest import selftest
from agent.evaluation.oracles.truth import Truth, truth
from agent.evaluation.prepare import Prepared, prepare
from tests.evaluation.kernels import original, setting

CLAMP = """
// cuda-lsp: workload
//   size     n = 5000
//   buffer   x: f32[n] in
//   buffer   unused: f32[n] in
//   buffer   y: f32[n] out
//   launch   clamp<<<(n + 255) / 256, 256>>>(x, unused, y, n)
__global__ void clamp(const float* x, const float* unused, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = fminf(x[i], 1000.0f);
}
"""


def prepared() -> Prepared:
    program, workload = original(CLAMP)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared)
    return found


def test_an_input_that_influences_nothing_is_reported() -> None:
    assert prepared().selftest.silent == ("unused",)


COUNTS = """
// cuda-lsp: workload
//   size     n = 600
//   buffer   x: f32[n] in
//   buffer   c: i32[n + 7] inout integers(0, 9)
//   buffer   y: f32[n] out
//   launch   count<<<(n + 255) / 256, 256>>>(x, c, y, n)
__global__ void count(const float* x, int* c, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) { y[i] = x[i] + 1.0f; CHANGE; }
}
"""


@pytest.mark.parametrize(
    ("change", "silent"),
    [("c[i] += 1", ()), ("c[i] = 2 * c[i + 1 - 1]", ()), ("c[i] = i", ("c",)), ("if (i < 0) c[i] += 1", ("c",))],
)
def test_what_a_buffer_held_influences_what_is_made_of_it(change: str, silent: tuple[str, ...]) -> None:
    program, workload = original(COUNTS.replace("CHANGE", change))
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared), found
    assert found.selftest.silent == silent


def at(side: Prepared, family: str) -> Truth:
    found = truth(side.bench, runs.case({"n": 384}, family, 5))
    assert isinstance(found, Truth)
    return found


def test_more_inputs_are_asked_for_while_a_mutant_survives() -> None:
    """Below 1000 the kernel copies x, and the copy is no mutant; of the other input it is one."""
    side = prepared()
    asked: list[str] = []

    def more() -> Truth | None:
        asked.append("more")
        return None

    found, held = selftest(side.bench, [at(side, "normal")], more, ["normal"])
    assert found.not_applicable == ("y: copy of x",)
    assert not asked
    assert len(held) == 1
    assert "y: copy of unused" in found.killed
    assert len(found.killed) == 9


def test_a_survivor_is_named_when_there_are_no_more_inputs() -> None:
    side = prepared()
    known = at(side, "normal")
    wide = [Truth(known.case, known.before, tuple(_wide(item) for item in known.expected), known.written, known.answer)]
    left = [at(side, "uniform")]
    found, held = selftest(side.bench, wide, lambda: left.pop() if left else None, ["normal"])
    assert len(held) == 2
    assert found.families == ("normal", "uniform")
    assert not found.survived
    alone, _ = selftest(side.bench, wide, lambda: None, ["normal"])
    assert "y: zeros" in alone.survived


def _wide(item: object) -> object:
    from attrs import evolve

    return evolve(item, tolerance=1e12)  # type: ignore[type-var]
