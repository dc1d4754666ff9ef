"""Precision in ``cuda-lsp profile``: which lines lose it, and what is off in the end."""

from pathlib import Path

import pytest

from tests.cli.running import run, run_json

VARIANCE = """\
// cuda-lsp: workload
//   size     rows = 64, cols = 96
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows] out
//   launch   variance<<<(rows + 31) / 32, 32>>>(x, y, rows, cols)
__global__ void variance(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= rows) return;
    float sum = 0, squares = 0;
    for (int i = 0; i < cols; ++i) {
        float v = x[row * cols + i] + 1000.0f;
        sum += v;
        squares += v * v;
    }
    float mean = sum / cols;
    y[row] = squares / cols - mean * mean;
}
"""
LAST = 16


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("precision") / "variance.cu"
    path.write_text(VARIANCE)
    return path


def test_a_one_pass_variance_loses_its_digits_on_its_last_line(file: Path) -> None:
    done = run("profile", str(file), env={"COLUMNS": ""})
    assert done.returncode == 0 and done.stderr == ""
    assert "error" in done.stdout.splitlines()[4] and "in ulp" in done.stdout.splitlines()[5]
    said = done.stdout[done.stdout.index("\nprecision  y: at most") :].splitlines()
    assert "over 64 elements" in said[1]
    assert said[2].split("line ")[1].startswith(f"{LAST}: the error grows from")


def test_the_figures_as_json(file: Path) -> None:
    found = run_json("profile", str(file))[1]["profile"]["precision"]
    (output,) = found["outputs"]
    assert output["name"] == "y" and output["compared"] == 64 and not output["parted"] and not output["lost"]
    lines = {line["number"]: line for line in found["lines"]}
    worst = max(found["lines"], key=lambda line: line["largest"])
    assert worst["number"] == LAST
    # a variance of about 1 from squares of a million: the last place of a million is 2**19 of its own
    assert 2**14 < worst["rms"] < 2**23 and worst["brought"] < 100
    assert lines[12]["largest"] < 100 and lines[13]["largest"] < 100
    assert output["largest"] >= output["rms"] > 2**12


def test_a_kernel_of_whole_numbers_has_no_precision_to_lose(tmp_path: Path) -> None:
    path = tmp_path / "whole.cu"
    path.write_text(
        "// cuda-lsp: workload\n//   size     n = 64\n//   buffer   x: i32[n] in\n//   buffer   y: i32[n] out\n"
        "//   launch   twice<<<2, 32>>>(x, y)\n"
        "__global__ void twice(const int* x, int* y) {\n"
        "    int i = blockIdx.x * 32 + threadIdx.x;\n    y[i] = 2 * x[i];\n}\n"
    )
    done = run("profile", str(path), env={"COLUMNS": ""})
    assert done.returncode == 0 and "\nprecision" not in done.stdout and "in ulp" not in done.stdout
    assert run_json("profile", str(path))[1]["profile"]["precision"] is None
