"""Probed extents: an original that goes beyond one is not broken, the extent is too small; a rewrite is wrong.

Where the originals go follows from their text, at the sizes that each test names.
"""

import pytest

from agent.evaluation.contracts.probed import ShortExtent
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Failure, Prepared, prepare
from tests.evaluation.kernels import original, rewrite, setting

I = "blockIdx.x * blockDim.x + threadIdx.x"  # noqa: E741
COPY = "y[i] = x[i];"


def kernel(body: str, n: str = "65536", extent: str = "n", probed: str = "probed ") -> str:
    return f"""
// cuda-lsp: workload
//   size     n = {n}
//   buffer   x: f32[{extent}] {probed}in normal
//   buffer   y: f32[n] {probed}out
//   launch   k<<<ceil_div(n, 128), 128>>>(x, y, n)
__global__ void k(const float* x, float* y, int n) {{
    int i = {I};
    {body}
}}
"""


def guarded(body: str, **more: str) -> str:
    return kernel(f"if (i < n) {{ {body} }}", **more)


def prepared(text: str, **more: object) -> Prepared | Failure:
    return prepare(*original(text), setting(**more))


SHORT = {
    "at every size": (guarded(COPY, extent="n - 1"), "n="),
    # 2 i is beyond 262144 from i = 131072 on: the middle and the end of the grid, and no small size
    "at the declared size": (guarded("y[i] = x[i < 100000 ? i : 2 * i];", n="262144"), "n=262144"),
    # of one value in some two thousand
    "for some values": (guarded("float v = x[i]; if (v > 3.5f) v += x[i + n]; y[i] = v;"), "n="),
}


@pytest.mark.parametrize("where", SHORT)
def test_an_original_beyond_a_probed_extent_asks_for_the_extent(where: str) -> None:
    text, size = SHORT[where]
    found = prepared(text)
    assert isinstance(found, Failure) and found.kind == "workload"
    assert f"the probed extent of `x` is too small at {size}" in found.message
    assert "state it in a directive above the kernel (buffer x: f32[...] in)" in found.message


def test_beyond_a_stated_extent_it_is_broken() -> None:
    found = prepared(guarded(COPY, extent="n - 1", probed=""))
    assert isinstance(found, Prepared) and found.contract.broken
    beside = guarded(COPY, extent="n - 1").replace("probed in", "in")
    found = prepared(beside)
    assert isinstance(found, Prepared) and found.contract.broken, "another buffer was probed"


def test_another_fault_of_the_original_stays_one() -> None:
    found = prepared(kernel("if (i < n) y[0] = x[i];"))
    assert isinstance(found, Prepared) and found.contract.broken
    assert "race" in found.contract.summary


ONE_BLOCK = guarded("y[i] = x[n > 20000 && i == n / 4 ? n : i];")
"""One thread of a block that is not among those that are sampled, at sizes that only run whole in a screen."""
ABOVE = guarded("y[i] = x[i < 70000 ? i : 2 * i];")
"""Nowhere up to the declared size."""


@pytest.mark.parametrize("text, depth", [(ONE_BLOCK, "screen"), (ONE_BLOCK, "full"), (ABOVE, "full")])
def test_a_verdict_ends_where_it_first_shows_in_one(text: str, depth: str) -> None:
    found = prepared(text, depth=depth)
    assert isinstance(found, Prepared) and not found.contract.broken
    candidate = rewrite(text.replace("y[i] = x[", "y[i] = 1.0f * x["), found.original.plan)
    with pytest.raises(ShortExtent, match=r"the probed extent of `x` is too small at n=\d+"):
        judge(found, candidate)


def test_a_rewrite_beyond_a_probed_extent_is_wrong_where_the_original_keeps_within() -> None:
    text = guarded(COPY)
    found = prepared(text)
    assert isinstance(found, Prepared) and not found.contract.broken
    far = judge(found, rewrite(text.replace(COPY, "y[i] = x[i] + 0.0f * x[i + 1];"), found.original.plan))
    assert far.correctness.state == "wrong" and "out-of-bounds read" in far.correctness.reason


def test_a_form_of_multiples_need_not_hold_between_them() -> None:
    found = prepared(kernel(COPY, n="65536 multiple 128"))
    assert isinstance(found, Prepared) and not found.contract.broken, found
    assert found.contract.rules["n"].multiple == 128
