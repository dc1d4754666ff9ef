"""How much memory of this machine is free, as far as its system says: for all, and for the group that we run in."""

import contextlib
import math
from pathlib import Path

_ALL = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def free_bytes(everything: Path = _ALL, group: Path = _GROUP) -> float:
    """Bytes; infinity where nobody says."""
    return min(_available(everything), _left(group))


def _available(path: Path) -> float:
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        lines = path.read_text().splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    return math.inf


def _left(group: Path) -> float:
    """Of control groups of the second version; no limit is written ``max``."""
    with contextlib.suppress(OSError, ValueError):
        limit = (group / "memory.max").read_text().strip()
        return float(int(limit) - int((group / "memory.current").read_text()))
    return math.inf
