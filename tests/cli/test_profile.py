"""``cuda-lsp profile``, as a user sees it."""

from pathlib import Path

import jsonschema
import pytest

from cuda_lsp.terminal.exits import CommandError
from cuda_lsp.terminal.main import group
from cuda_lsp.terminal.profile_totals import MEASURES
from cuda_lsp.terminal.schema import schema
from tests.cli.running import TRANSPOSED, run, run_json

CONFLICTS = """\
// A name in another script: 転置, and a tab:\tx
__global__ void turn(const float* x, float* y, int n) {
    __shared__ float tile[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    tile[ty][tx] = x[(blockIdx.y * 32 + ty) * n + blockIdx.x * 32 + tx];   // \x1b[31mred
    __syncthreads();
    if (ty < n)
        y[(blockIdx.x * 32 + ty) * n + blockIdx.y * 32 + tx] = tile[tx][ty];
}

int main() {
    const int n = 64;
    float *x, *y;
    cudaMalloc(&x, n * n * sizeof(float));
    cudaMalloc(&y, n * n * sizeof(float));
    turn<<<dim3(2, 2), dim3(32, 32)>>>(x, y, n);
    return 0;
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "turn.cu"
    path.write_text(CONFLICTS)
    return path


def row(output: str, number: int) -> str:
    return next(line for line in output.splitlines() if line.split()[:1] == [str(number)])


def test_each_line_stands_beside_what_it_costs(file: Path) -> None:
    done = run("profile", str(file), env={"COLUMNS": ""})
    assert done.returncode == 0 and done.stderr == ""
    assert "\x1b" not in done.stdout, "neither colours in a pipe, nor what the source says to a terminal"
    assert (
        "counted    in the emulator, not measured: all 4 blocks of 32x32 threads at n=64; PTX of NVRTC" in done.stdout
    )
    assert row(done.stdout, 8).split("!")[0].split()[-1] == "32-way"
    assert "tile[tx][ty];" in row(done.stdout, 8)
    assert row(done.stdout, 5).split("│")[0].split()[-2:] == ["128", "1-way"]  # 4 blocks of 32 warps, a pass each
    assert "line 8     32 passes per shared access (1 would do)" in done.stdout
    assert "shared     256 accesses, 4.2k passes, 16.5-way" in done.stdout
    assert "global     128 loads of 4 sectors" in done.stdout
    estimate = next(line for line in done.stdout.splitlines() if line.startswith("estimate"))
    assert "us on H200, limited by launch overhead" in estimate
    assert estimate.endswith("from what was counted in the emulator at n=64, not measured")


def test_a_narrow_terminal_without_unicode_gets_all_of_it_in_more_lines(file: Path) -> None:
    narrow = {"COLUMNS": "72", "PYTHONIOENCODING": "ascii"}
    done = run("profile", file.name, "--ptx", cwd=file.parent, env=narrow)
    lines = done.stdout.splitlines()
    assert done.stdout.isascii() and max(map(len, lines)) <= 72
    said = " ".join(done.stdout.split())
    assert "32-way" in said and "not measured" in said and "4.1k passes" in said
    assert any("st.global.f32" in line for line in lines) and any("bar.sync" in line for line in lines)


def test_json_holds_against_the_schema(file: Path) -> None:
    code, answer = run_json("profile", str(file), "--target", "A100", "--ptx")
    jsonschema.validate(answer, schema())
    profile = answer["profile"]
    assert code == 0 and profile["target"] == "A100" and profile["arch"] == "sm_80"
    assert "not measured" in answer["provenance"]
    (line,) = [one for one in profile["lines"] if one["number"] == 8]
    assert line["facts"]["shared"] == {"requests": 128, "passes": 32 * 128, "ideal_passes": 128}
    assert line["facts"]["stores"] == {"requests": 128, "sectors": 512, "ideal_sectors": 512}
    assert any(one["text"].startswith("st.global") for one in line["ptx"])
    assert set(profile["launches"][0]["terms"]) - set(MEASURES) == {"latency"}, "each term is a line's doing"
    assert profile["launches"][0]["seconds"] > 0 and answer["sass"] == {}


@pytest.mark.parametrize(
    ("changed", "arguments", "code", "words"),
    [
        (("float* y, int n)", "float** y, int n)"), (), 3, "no workload.*pointer to pointers"),
        (("", ""), ("--kernel", "twist"), 3, "it has turn"),
        (("", ""), ("--size", "m=3"), 2, "it has n"),
        (("", ""), ("--size", "n=many"), 2, "NAME=VALUE"),
        (("", ""), ("--size", "n=9999999"), 3, "elements"),
        (("", ""), ("--target", "GTX 9999"), 2, "Known are"),
        (("__syncthreads();", "while (n) __syncthreads();"), ("--seconds", "0.2"), 3, "--seconds"),
        (("__syncthreads();", 'asm volatile("brkpt;");'), (), 3, "brkpt"),
        (("__syncthreads();", "nothing();"), (), 3, "nothing"),
    ],
)  # fmt: skip
def test_bad_input_says_what_is_wrong(
    changed: tuple[str, str], arguments: tuple[str, ...], code: int, words: str, file: Path
) -> None:
    file.write_text(CONFLICTS.replace(*changed) if changed[0] else CONFLICTS)
    with pytest.raises(CommandError, match=words) as said:
        group.main(["profile", str(file), *arguments], standalone_mode=False)
    assert said.value.code == code


def test_a_kernel_that_nothing_launches_is_counted_on_a_launch_that_is_made_up(file: Path) -> None:
    file.write_text(CONFLICTS[: CONFLICTS.index("int main")])
    done = run("profile", file.name, cwd=file.parent)
    said = " ".join(done.stdout.split())
    assert done.returncode == 0 and "made up: nothing states what this kernel runs on" in said and "32-way" in said
    larger = run("profile", file.name, "--size", "n=4096", cwd=file.parent)
    assert larger.returncode == 2 and "made up" in larger.stderr
    refused = run("optimize", file.name, "--seconds", "1", cwd=file.parent)
    assert refused.returncode == 3 and "no workload to run on" in refused.stderr


def test_counts_at_another_size_are_scaled_to_its_grid(tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(TRANSPOSED)
    done = run("profile", str(path), "--size", "height=64", "--size", "width=96", env={"COLUMNS": ""})
    assert "9 of 24 blocks of 32x8 threads at height=64 width=96, scaled to all blocks" in done.stdout
