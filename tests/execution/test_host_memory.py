"""Free memory of a machine and of a group in it, by what the system's files say."""

import math
from pathlib import Path

import pytest

from agent.execution.host_memory import free_bytes

MEMORY = "MemTotal:       24689832 kB\nMemFree:        13941220 kB\nMemAvailable:   20000000 kB\n"


@pytest.mark.parametrize(
    ("limit", "used", "free"),
    [
        ("max", "5000", 20_000_000 * 1024),
        ("8589934592", "4294967296", 4 << 30),
        ("99999999999999", "0", 20_000_000 * 1024),
        ("nonsense", "0", 20_000_000 * 1024),
    ],
)
def test_the_less_of_both_counts(limit: str, used: str, free: int, tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(MEMORY)
    (tmp_path / "memory.max").write_text(limit + "\n")
    (tmp_path / "memory.current").write_text(used + "\n")
    assert free_bytes(tmp_path / "meminfo", tmp_path) == free


@pytest.mark.parametrize("text", ["", "MemAvailable:\n", "MemAvailable: much kB\n"])
def test_where_nobody_says_there_is_no_limit(text: str, tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(text)
    assert free_bytes(tmp_path / "meminfo", tmp_path / "none") == math.inf
    assert free_bytes(tmp_path / "none", tmp_path / "none") == math.inf
