"""``ldmatrix``, ``stmatrix`` and ``movmatrix`` by inline PTX, against the PTX ISA's figure of a tile (9.7.14.5.15)."""

import numpy as np
import pytest

from tests.execution.emulator.building import build, launch, run

CHECKS = frozenset({"races", "initialised", "barriers"})


def source(count: int, turned: bool, stores: bool = False, pitch: int = 8, lanes: str = "true") -> str:
    """Tiles of 8 x 8 numbers from ``x`` through shared memory, a row each ``pitch`` halves: every lane's registers go
    to ``y`` (with ``stores`` the other way round)."""
    name = f"sync.aligned.m8n8.x{count}{'.trans' if turned else ''}.shared.b16"
    slots = ", ".join(f"%{k}" for k in range(count))
    outs = ", ".join(f'"=r"(r[{k}])' for k in range(count))
    ins = ", ".join(f'"r"(r[{k}])' for k in range(count))
    moved = (
        f'asm volatile("stmatrix.{name} [%{count}], {{{slots}}};" :: {ins}, "r"(p) : "memory");'
        if stores
        else f'asm volatile("ldmatrix.{name} {{{slots}}}, [%{count}];" : {outs} : "r"(p) : "memory");'
    )
    size = count * 8
    begin = (
        f"for (int k = 0; k < {count}; k++) r[k] = x[t * {count} + k];"
        if stores
        else f"""
        for (int i = t; i < {size} * 4; i += 32) ((unsigned*)(s + i / 4 * {pitch}))[i % 4] = x[i]; __syncwarp();"""
    )
    end = (
        f"""__syncwarp();
        for (int i = t; i < {size} * 4; i += 32) y[i] = ((unsigned*)(s + i / 4 * {pitch}))[i % 4];"""
        if stores
        else f"""
        for (int k = 0; k < {count}; k++) y[t * {count} + k] = r[k];"""
    )
    return f"""extern "C" __global__ void k(const unsigned* x, unsigned* y) {{
        __shared__ alignas(16) unsigned short s[{size * pitch}];
        int t = threadIdx.x; unsigned r[4] = {{}};
        {begin}
        unsigned p = (unsigned)__cvta_generic_to_shared(s + t % {size} * {pitch});
        if ({lanes}) {{
        {moved}
        }}
        {end}
    }}"""


def held(tiles: np.ndarray, turned: bool) -> np.ndarray:
    """What each lane holds of tiles ``(count, 8, 8)``: of row ``lane / 4`` column ``lane % 4 * 2`` and the next."""
    result = np.zeros((32, len(tiles), 2), np.uint16)
    for lane in range(32):
        for j in range(2):
            row, column = lane // 4, lane % 4 * 2 + j
            result[lane, :, j] = tiles[:, column, row] if turned else tiles[:, row, column]
    return result


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "turned over"])
@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
def test_tiles_come_from_shared_memory_and_go_back(count: int, turned: bool, options: tuple[str, ...]) -> None:
    tiles = np.random.default_rng(count).integers(0, 1 << 16, (count, 8, 8)).astype(np.uint16)
    wanted = held(tiles, turned)
    words = np.ascontiguousarray(wanted).view(np.uint32).reshape(-1)
    step, zeros = launch("k", 1, 32, "x", "y"), np.zeros(32 * count, np.uint32)
    answer, out = run(
        build(source(count, turned), *options), step, {"x": tiles.view(np.uint32), "y": zeros}, checks=CHECKS
    )
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], words)
    built = build(source(count, turned, stores=True), *options)
    answer, out = run(built, step, {"x": words, "y": zeros}, checks=CHECKS)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"].view(np.uint16).reshape(tiles.shape), tiles)


@pytest.mark.parametrize(("pitch", "passes"), [(8, 4), (16, 8), (64, 32), (72, 4)])
def test_bank_passes_of_four_tiles(pitch: int, passes: int) -> None:
    """Eight rows of 16 bytes fill the banks once where they are dense or 16 bytes apart beside a whole line."""
    built = build(source(4, False, pitch=pitch))
    x = np.zeros(128, np.uint32)
    answer, _ = run(built, launch("k", 1, 32, "x", "y"), {"x": x, "y": x}, count=True)
    assert answer.status == "ok", answer
    counts = answer.counters[0].lines
    (line,) = [line for line, one in counts.items() if one.shared_requests and one.instructions < 4 and line > 6]
    assert counts[line].wavefronts == passes and counts[line].shared_requests == 1


def test_what_goes_wrong_is_told() -> None:
    x = np.zeros(128, np.uint32)
    buffers, step = {"x": x, "y": x}, launch("k", 1, 32, "x", "y")
    early = source(4, False).replace("__syncwarp();", "", 1)
    answer, _ = run(build(early), step, buffers, checks=CHECKS)
    assert {fault.kind for fault in answer.faults} == {"shared-memory race"} and "reads" in answer.faults[0].message
    answer, _ = run(build(source(4, False).replace("% 32 * 8", "% 32 * 8 + 4")), step, buffers, checks=CHECKS)
    assert "misaligned access" in {fault.kind for fault in answer.faults}
    answer, _ = run(build(source(4, False).replace("% 32 * 8", "% 32 * 8 + 8")), step, buffers, checks=CHECKS)
    assert {fault.kind for fault in answer.faults} == {"out-of-bounds read"}
    answer, _ = run(build(source(4, False).replace("i < 32 * 4", "i < 31 * 4")), step, buffers, checks=CHECKS)
    assert {fault.kind for fault in answer.faults} == {"uninitialised read"}
    answer, _ = run(build(source(4, False, lanes="t < 20")), step, buffers, checks=CHECKS)
    (fault,) = answer.faults
    assert fault.kind == "incomplete warp" and fault.count == 20


def test_a_tile_is_turned_over_between_registers() -> None:
    built = build("""extern "C" __global__ void k(const unsigned* x, unsigned* y) {
        unsigned r; asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x[threadIdx.x]));
        y[threadIdx.x] = r; }""")
    tiles = np.random.default_rng(1).integers(0, 1 << 16, (2, 8, 8)).astype(np.uint16)
    answer, out = run(built, launch("k", 1, 64, "x", "y"), {"x": tiles.view(np.uint32), "y": np.zeros(64, np.uint32)})
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"].view(np.uint16).reshape(2, 8, 8), tiles.swapaxes(1, 2))
