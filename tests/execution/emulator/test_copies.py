"""``cp.async`` of which only a part is read: what lies beyond it need not be there, and is zero."""

import numpy as np
import pytest

from tests.execution.emulator.building import build, launch, run

CHECKS = frozenset({"races", "initialised", "barriers"})

SOURCE = """extern "C" __global__ void k(const unsigned* x, unsigned* y, int n) {
    __shared__ alignas(16) unsigned s[128];
    unsigned to = (unsigned)__cvta_generic_to_shared(s + threadIdx.x * 4);
    int left = (n - (int)threadIdx.x * 16) < 0 ? 0 : n - (int)threadIdx.x * 16, size = left < 16 ? left : 16;
    COPY
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 4; i++) y[threadIdx.x * 4 + i] = s[threadIdx.x * 4 + i]; }"""
PART = """asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
    :: "r"(to), "l"(x + threadIdx.x * 4), "r"(size) : "memory");"""
HINTED = """unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;"
    :: "r"(to), "l"(x + threadIdx.x * 4), "r"(size), "l"(policy) : "memory");"""
IGNORED = """asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 16; cp.async.cg.shared.global [%0], [%1], 16, p; }"
    :: "r"(to), "l"(x + threadIdx.x * 4), "r"(size) : "memory");"""


@pytest.mark.parametrize("nbytes", [512, 500, 493, 256, 7])
@pytest.mark.parametrize("copy", [PART, HINTED], ids=["a part", "with a hint"])
def test_what_is_not_read_is_zero_and_need_not_be_there(copy: str, nbytes: int) -> None:
    x = np.random.default_rng(1).integers(0, 256, nbytes).astype(np.uint8)
    buffers = {"x": x, "y": np.zeros(128, np.uint32)}
    answer, out = run(build(SOURCE.replace("COPY", copy)), launch("k", 1, 32, "x", "y", nbytes), buffers, checks=CHECKS)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"].view(np.uint8), np.concatenate((x, np.zeros(512 - nbytes, np.uint8))))


def test_one_byte_more_than_there_is_is_a_fault() -> None:
    buffers = {"x": np.zeros(492, np.uint8), "y": np.zeros(128, np.uint32)}
    answer, _ = run(build(SOURCE.replace("COPY", PART)), launch("k", 1, 32, "x", "y", 493), buffers, checks=CHECKS)
    (fault,) = answer.faults
    assert fault.kind == "out-of-bounds read" and fault.where.thread == (30, 0, 0)


def test_a_source_that_is_ignored_is_not_read() -> None:
    x = np.random.default_rng(1).integers(0, 256, 496).astype(np.uint8)
    buffers = {"x": x, "y": np.zeros(128, np.uint32)}
    answer, out = run(build(SOURCE.replace("COPY", IGNORED)), launch("k", 1, 32, "x", "y", 496), buffers, checks=CHECKS)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"].view(np.uint8), np.concatenate((x, np.zeros(16, np.uint8))))
