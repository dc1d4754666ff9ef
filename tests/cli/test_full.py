"""Standard output that takes no more."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, ROW_SUMS

FULL = Path("/dev/full")
SAID = "cuda-lsp: the result cannot be written: No space left on device; free some room, or write elsewhere"


def said(arguments: tuple[str, ...], folder: Path) -> tuple[int, list[str]]:
    """Exit code and standard error of a command whose result goes to a full disk; it leaves no file behind."""
    source, temporary = folder / "k.cu", folder / "temporary"
    source.write_text(ROW_SUMS)
    temporary.mkdir()
    with FULL.open("w") as full:
        done = subprocess.run(
            [*COMMAND, *(str(source) if argument == "FILE" else argument for argument in arguments)],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=250, check=False,
            env={**os.environ, "TMPDIR": str(temporary)},
        )  # fmt: skip
    assert list(temporary.glob("*.log")) == []
    return done.returncode, done.stderr.splitlines()


@pytest.mark.skipif(not FULL.exists(), reason="no device that is full")
@pytest.mark.parametrize(
    "arguments",
    [
        ("hints", "FILE"),
        ("hints", "FILE", "--format", "sarif"),
        ("kernels", "FILE"),
        ("kernels", "missing.cu", "--json"),
        ("doctor",),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_one_line_and_no_internal_error(arguments: tuple[str, ...], tmp_path: Path) -> None:
    code, lines = said(arguments, tmp_path)
    assert code == 3
    assert lines == [SAID]


def test_a_reader_that_went_away_is_no_news(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(ROW_SUMS)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, "kernels", str(source)], stdout=writing, stderr=subprocess.PIPE, timeout=250, check=False
        )
    finally:
        os.close(writing)
    assert done.stderr == b""
