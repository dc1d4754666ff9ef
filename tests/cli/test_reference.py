"""``--reference``: a PyTorch function of the user's beside the judge; it runs at his word and never without."""

import importlib.util
from pathlib import Path

import pytest

from tests.cli.running import run, run_json

KERNEL = """\
// cuda-lsp: workload
//   size     rows = 64, cols = 96
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows] out
//   launch   total<<<rows, 32>>>(x, y, cols)
//   reference refs.py:total
__global__ void total(const float* x, float* y, int cols) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32) sum += x[blockIdx.x * cols + i];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
"""
REFERENCE = """\
from pathlib import Path

def total(x, rows, cols):
    Path(__file__).with_name("ran").write_text("")
    return x.view(rows, cols).sum(dim=1)
"""
torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old.cu", tmp_path / "new.cu"
    old.write_text(KERNEL)
    new.write_text(KERNEL.replace("d /= 2", "d >>= 1"))
    (tmp_path / "refs.py").write_text(REFERENCE)
    return old, new


@torch
def test_it_stands_for_the_truth(files: tuple[Path, Path]) -> None:
    code, told = run_json("verify", str(files[0]), str(files[1]), "--reference")
    verdict = told["verdict"]
    assert code == 0 and verdict["correctness"]["state"] == "right" and verdict["precision"]["state"] == "same"
    assert not any("refs.py" in line for line in verdict["evidence"]["not_checked"])
    assert files[0].with_name("ran").exists()


@torch
def test_an_original_that_does_something_else(files: tuple[Path, Path]) -> None:
    files[0].with_name("refs.py").write_text(REFERENCE.replace(".sum(dim=1)", ".abs().sum(dim=1)"))
    done = run("verify", str(files[0]), str(files[1]), "--reference")
    assert done.returncode == 5
    assert "does not compute what refs.py:total does: y[" in done.stdout + done.stderr


def test_it_does_not_run_unasked(files: tuple[Path, Path]) -> None:
    code, told = run_json("verify", str(files[0]), str(files[1]))
    assert code == 0 and not files[0].with_name("ran").exists()
    assert "against refs.py:total, which was not run" in told["verdict"]["evidence"]["not_checked"]
    done = run("verify", str(files[0]), str(files[1]))
    assert "refs.py:total is not run, as it is Python: --reference lets it" in done.stdout + done.stderr


def test_none_is_named(files: tuple[Path, Path]) -> None:
    files[0].write_text(KERNEL.replace("//   reference refs.py:total\n", ""))
    done = run("optimize", str(files[0]), "--reference")
    assert done.returncode == 2 and "the workload of total names none" in done.stderr
