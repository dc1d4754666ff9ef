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
