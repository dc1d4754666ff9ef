"""``verify``: the user's own edit through the same gates."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.running import ROW_SUMS, run, run_json

WRONG = {
    "one thread short": ("if (t < stride)", "if (t < stride - 1)"),
    "a race": ("        __syncthreads();\n    }", "    }"),
    "reads past the row": ("i < cols", "i <= cols"),
    "writes zero": ("y[blockIdx.x] = s[0]", "y[blockIdx.x] = 0.0f * s[0]"),
    "right for this size only": ("i < cols", "i < 384"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_edit_is_refused(name: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old.cu", tmp_path / "new.cu"
    old.write_text(ROW_SUMS)
    new.write_text(ROW_SUMS.replace(*WRONG[name]))
    assert new.read_text() != ROW_SUMS
    done = run("verify", str(old), str(new))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "wrong" in done.stdout


def test_against_git(tmp_path: Path) -> None:
    """The committed text is the original, the file the rewrite."""
    file = tmp_path / "rows.cu"
    file.write_text(ROW_SUMS)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(tmp_path)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    file.write_text(ROW_SUMS.replace("int t = threadIdx.x;", "const unsigned t = threadIdx.x;"))
    code, answer = run_json("verify", str(file), "--against", "HEAD")
    assert (code, answer["verdict"]["correctness"]["state"]) == (0, "right")
    assert answer["verdict"]["precision"]["state"] == "same"
    assert run("verify", str(file), "--against", "nonsense").returncode == 3
    assert run("verify", str(file), "--against", "-x").returncode == 2


NEGATIVE = """
// cuda-lsp: workload
//   size     n = 3000
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   clip<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void clip(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
"""


@pytest.mark.parametrize(("policy", "code", "state"), [("report", 0, "right"), ("refuse", 1, "wrong")])
def test_a_lost_nan_is_reported_or_refused(policy: str, code: int, state: str, tmp_path: Path) -> None:
    """``fmaxf`` drops a NaN that the comparison lets through. It is never called passed."""
    old, new = tmp_path / "old.cu", tmp_path / "new.cu"
    old.write_text(NEGATIVE)
    new.write_text(NEGATIVE.replace("x[i] < 0.0f ? 0.0f : x[i]", "fmaxf(x[i], 0.0f)"))
    found, answer = run_json("verify", str(old), str(new), "--special", policy)
    assert (found, answer["verdict"]["correctness"]["state"]) == (code, state)
    gate = next(item for item in answer["verdict"]["gates"] if item["gate"] == "special values")
    assert gate["outcome"] == {"report": "differs", "refuse": "failed"}[policy]
    assert "is 0 where the original gives nan" in gate["reason"]


RACE = ("        __syncthreads();\n    }", "    }")
BROKEN = ROW_SUMS.replace(*RACE)
MENDED = {
    "the barrier is back": (ROW_SUMS, "Run alone, the rewrite keeps its own contract (in bounds, free of races"),
    "a read past the array": (
        BROKEN.replace("if (t < stride)", "if (t <= stride)"),
        "Run alone, the rewrite is broken too: out-of-bounds read in row_sums: line 12",
    ),
    "does not compile": (
        ROW_SUMS.replace("t < stride", "u < stride"),
        "Whether the rewrite keeps its own contract is not known: the rewrite does not compile",
    ),
}


@pytest.mark.parametrize("name", MENDED)
def test_a_change_to_a_broken_original_is_run_alone(name: str, tmp_path: Path) -> None:
    """What mends a fault cannot be compared with the faulty text: what can be said of it alone is said."""
    old, new = tmp_path / "old.cu", tmp_path / "new.cu"
    old.write_text(BROKEN)
    text, words = MENDED[name]
    new.write_text(text)
    done = run("verify", str(old), str(new))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "the original is itself broken" in done.stderr and "shared-memory race in row_sums: line 12" in done.stderr
    assert words in done.stderr
