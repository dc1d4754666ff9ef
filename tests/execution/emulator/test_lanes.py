"""Lanes as sets: whatever is parted, joined, gathered and scattered agrees with plain index arrays."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.execution.emulator.lanes import Lanes, all_lanes, union


@st.composite
def parted(draw: st.DrawFn) -> tuple[list[Lanes], int, int, np.random.Generator]:
    """Disjoint lanes of a batch that cover all of it, made by repeated splits on conditions of every shape."""
    blocks, threads = draw(st.integers(1, 5)), draw(st.sampled_from([1, 3, 31, 32, 33, 64, 70]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    parts = [all_lanes(blocks, threads)]
    for _ in range(draw(st.integers(0, 5))):
        lanes = parts.pop(draw(st.integers(0, len(parts) - 1)))
        height, width = lanes.shape
        shape = draw(st.sampled_from([(1, 1), (1, width), (height, 1), (height, width)]))
        parts += [part for part in lanes.split(rng.random(shape) < 0.5) if part is not None]
        if len(parts) > 1 and draw(st.booleans()):
            first, second = parts.pop(0), parts.pop(0)
            parts.append(union([first, second]))
    return parts, blocks, threads, rng


@settings(max_examples=150, deadline=None)
@given(parted())
def test_parts_cover_the_batch_once(case: tuple[list[Lanes], int, int, np.random.Generator]) -> None:
    parts, blocks, threads, _ = case
    flat = np.concatenate([part.flat for part in parts])
    np.testing.assert_array_equal(np.sort(flat), np.arange(blocks * threads))
    for part in parts:
        assert part.count == len(part.flat) and (np.diff(part.flat) > 0).all()
        warps = {(lane // threads, lane % threads // 32) for lane in part.flat.tolist()}
        assert part.warps == len(warps) == part.warp_slot[1]
    assert union(parts).whole


@settings(max_examples=150, deadline=None)
@given(parted(), st.data())
def test_gather_and_scatter_are_indexing(
    case: tuple[list[Lanes], int, int, np.random.Generator], data: st.DataObject
) -> None:
    parts, blocks, threads, rng = case
    shapes = [(1, 1), (1, threads), (blocks, 1), (blocks, threads)]
    value = rng.integers(0, 1000, data.draw(st.sampled_from(shapes)))
    model = np.broadcast_to(value, (blocks, threads)).reshape(-1).copy()
    for part in parts:
        seen = part.gather(value)
        np.testing.assert_array_equal(np.broadcast_to(seen, part.shape).reshape(-1), model[part.flat])
        height, width = part.shape
        new = rng.integers(1000, 2000, data.draw(st.sampled_from([(1, 1), (1, width), (height, 1), (height, width)])))
        before = value.copy()
        value_after = part.scatter(value, new)
        np.testing.assert_array_equal(value, before)
        model[part.flat] = np.broadcast_to(new, part.shape).reshape(-1)
        np.testing.assert_array_equal(np.broadcast_to(value_after, (blocks, threads)).reshape(-1), model)
        value = value_after
