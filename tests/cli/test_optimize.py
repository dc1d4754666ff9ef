"""``optimize`` from end to end on small kernels: diff, apply, interruption."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, ROW_SUMS, TRANSPOSED, run, run_json


@pytest.fixture
def transposed(tmp_path: Path) -> Path:
    file = tmp_path / "scale.cu"
    file.write_text(TRANSPOSED)
    return file


def test_the_diff_applies_and_the_result_verifies(transposed: Path, tmp_path: Path) -> None:
    done = run("optimize", str(transposed), "--diff", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    old = tmp_path / "old.cu"
    old.write_text(TRANSPOSED)
    patch = done.stdout.replace(f"a{transposed}", "a/scale.cu").replace(f"b{transposed}", "b/scale.cu")
    subprocess.run(["patch", str(transposed)], input=patch, text=True, check=True, capture_output=True)
    code, answer = run_json("verify", str(old), str(transposed))
    assert code == 0, answer
    assert answer["verdict"]["correctness"]["state"] == "right"
    assert answer["verdict"]["speed"]["state"] == "estimated"
    assert answer["verdict"]["speed"]["ratio"] > 1.5


def test_apply_writes_kernel_and_launch_and_nothing_else(transposed: Path) -> None:
    named = "    dim3 block(32, 8);\n    dim3 grid((height + 31) / 32, (width + 7) / 8);\n"
    launch = "<<<dim3((height + 31) / 32, (width + 7) / 8), dim3(32, 8)>>>"
    before = TRANSPOSED.replace(named, "").replace("<<<grid, block>>>", launch)
    transposed.write_text(before)
    transposed.chmod(0o640)
    done = run("optimize", str(transposed), "--apply", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    text = transposed.read_text()
    assert text != before
    exchanged = "<<<dim3((width + 7) / 8, (height + 31) / 32), dim3(8, 32)>>>"
    assert text.split("int main()")[1] == before.split("int main()")[1].replace(launch, exchanged)
    assert transposed.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in transposed.parent.iterdir() if path.suffix == ".tmp"] == []


def test_a_read_only_file_is_left_alone(transposed: Path) -> None:
    transposed.chmod(0o444)
    done = run("optimize", str(transposed), "--apply", "--rounds", "1")
    assert done.returncode == 3
    assert "read-only" in done.stderr
    assert transposed.read_text() == TRANSPOSED


def test_nothing_to_gain_is_an_answer(tmp_path: Path) -> None:
    file = tmp_path / "add.cu"
    file.write_text(
        "__global__ void add(const float* a, float* b, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) b[i] = a[i] + 1.0f;\n}\n"
        "int main() {\n    const int n = 1 << 24;\n    float *a, *b;\n    cudaMalloc(&a, n * sizeof(float));\n"
        "    cudaMalloc(&b, n * sizeof(float));\n    add<<<(n + 255) / 256, 256>>>(a, b, n);\n}\n"
    )
    done = run("optimize", str(file))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "result" in done.stdout


def test_ctrl_c_keeps_what_was_judged(tmp_path: Path, state: Path) -> None:
    """The first Ctrl-C ends with 130 and no traceback; the same command then goes on from the trace."""
    file = tmp_path / "rows.cu"
    file.write_text(ROW_SUMS)
    process = subprocess.Popen(
        [*COMMAND, "optimize", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 200
    while not _judged(state) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    again = run("optimize", str(file))
    assert again.returncode in (0, 1)
    assert "going on from an interrupted search" in again.stderr


def _judged(state: Path) -> bool:
    return any('"judged"' in path.read_text() for path in state.rglob("*.jsonl"))


def test_no_diff_is_said_with_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "set.cu"
    file.write_text(
        "__global__ void one(int* x) { *x = 1; }\nint main() { int* x; cudaMalloc(&x, 4); one<<<1, 1>>>(x); }\n"
    )
    done = run("optimize", str(file), "--diff", "--rounds", "1")
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("result  "), done.stderr
