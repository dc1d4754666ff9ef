"""Pairs of programs, estimated: where they come from, what was measured of them, and how the order is counted."""

from pathlib import Path

import pytest

from tests.benchmarks import order
from tests.benchmarks.order import Row, between, chosen, given, recorded, row_of, summary
from tests.conftest import ROOT

PAGE = """
| idea | kernel | original | rewrite | speed-up | 95 % |
|---|---|---|---|---|---|
| `transposed-staging` | `turned` | 1.03 ms | 145 us | 7.13x | 7.12 to 7.15 |
| `vector-access` | `twice` | 1 ms | 1.2 ms | 0.82x (not called faster) | 0.74 to 0.93 |
| `vector-access` | `twice` | 1 ms | 1.1 ms | 0.92x | 0.74 to 0.93 |
"""

TURNED = """// cuda-lsp: workload
//   size     n = 512
//   buffer   x: f32[n * n] in
//   buffer   y: f32[n * n] out
//   launch   turned<<<(n / 32, n / 8), (32, 8)>>>(x, y, n)
__global__ void turned(const float* x, float* y, int n) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (col < n && row < n) y[col * n + row] = x[row * n + col];
}
"""


def test_what_was_measured_is_read_where_there_is_one_line_of_it() -> None:
    assert recorded(PAGE) == {("transposed-staging", "turned"): 7.13}
    known = recorded((ROOT / "docs" / "measured.md").read_text(encoding="utf-8"))
    assert len(known) >= 40 and all(ratio > 0 for ratio in known.values())


def test_pairs_of_a_folder_are_estimated_and_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "turned.cu").write_text(TURNED)
    (tmp_path / "pairs.txt").write_text(
        "turned.cu turned transposed-staging\nturned.cu turned block-histogram\ngone.cu turned vector-access\n"
    )
    monkeypatch.setenv("CUDA_LSP_ORDER", str(tmp_path))
    monkeypatch.setattr(order, "fixtures", lambda: iter(()))
    ((pair, before),) = chosen(None, recorded(PAGE))
    assert (pair.name, before) == ("turned: transposed-staging", 7.13)
    said = capsys.readouterr().out
    assert "block-histogram does not apply" in said and "gone.cu" in said
    row = row_of(pair, None, before)
    # 32 sectors a store become 4, and each of the partial ones no longer says which bytes it means
    assert row.estimated is not None and row.estimated > 1.2 and row.counts and row.right
    monkeypatch.delenv("CUDA_LSP_ORDER")
    assert list(given()) == []


def test_the_share_is_of_pairs_that_differ() -> None:
    rows = [
        Row("right", 2.0, 3.0), Row("right, slower", 0.9, 0.5), Row("wrong", 0.9, 1.4), Row("a tie", 1.004, 1.5),
        Row("too near", 0.5, 1.1), Row("not estimated", None, 4.0), Row("not measured", 3.0, None),
    ]  # fmt: skip
    first, _, second = summary(rows)
    assert "2 of 4 pairs" in first and "(50%)" in first and "wanted 85%" in first
    assert "1 without an estimate, 7 pairs in all" in second
    two = [
        Row("a: x", 4.0, 3.0),
        Row("a: y", 2.0, 1.0),
        Row("b: x", 9.0, 9.0),
        Row("a: z", 8.0, 2.0),
        Row("a: w", 4.0, 2.9),
    ]
    assert [(row.estimated, row.measured, row.right) for row in between(two) if row.counts] == [
        (2.0, 3.0, True), (0.5, 1.5, False), (0.25, 0.5, True), (0.5, 1 / 2.9, True), (2.0, 2 / 2.9, False),
    ]  # fmt: skip
    assert any("rewrites of one original that differ as much, 3 of 5" in line for line in summary(two))
    assert "0 of 0 pairs" in next(iter(summary([])))
