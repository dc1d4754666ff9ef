"""A hundred jobs whose processes are killed, crashed, stopped, starved of disk and cut off (``tests/chaos``).

``python -m tests.benchmarks chaos``; ``CUDA_LSP_CHAOS`` is another number, ``CUDA_LSP_SEED`` another seed,
``CUDA_LSP_CHAOS_AT_ONCE`` how many jobs run side by side (2). On a card where there is one, else in the emulator. The
jobs come in storms of twenty-five, after each of which everything is looked at; ``CUDA_LSP_SHARDS`` and
``CUDA_LSP_SECONDS``: see ``tests/gpu/shards.py``. Ends with exit code 1 where anything went wrong.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agent.execution.gpu import open_gpu
from tests.chaos.storm import Toll, storm
from tests.gpu import shards
from tests.gpu.shards import Row

JOBS = int(os.environ.get("CUDA_LSP_CHAOS", "100"))
SEED = int(os.environ.get("CUDA_LSP_SEED", "20240607"))
AT_ONCE = int(os.environ.get("CUDA_LSP_CHAOS_AT_ONCE", "2"))
SECONDS = {"emulator": 20.0, "gpu": 25.0}
GRACE = 10.0
STORM = 25
"""Jobs of one storm."""

MEMORY_SLACK = 16 << 20
"""Bytes that the card's driver may keep for itself."""

FOLDERS = ("agent", "cuda_lsp", "tests/chaos")


def main() -> None:
    card = open_gpu()
    name = card.name if card is not None else "the emulator"
    shard = shards.opened("chaos", FOLDERS)
    for first in range(0, JOBS, STORM):
        key = f"{name}, seed {SEED}, jobs {first} to {min(JOBS, first + STORM) - 1}"
        if key not in shard.rows and not shard.over:
            shard.add(key, _storm(card is not None, min(STORM, JOBS - first), SEED + first))
        if key in shard.rows:
            row = shard.rows[key]
            print(f"  {key}: {row['seconds']:.0f} s, faults: {_listed(Counter(row['faults'])) or 'none'}", flush=True)
    rows = list(shard.rows.values())
    faults = report(name, rows)
    if faults:
        sys.exit(f"chaos: {faults}")


def _storm(on_card: bool, count: int, seed: int) -> Row:
    device = "gpu" if on_card else "emulator"
    roles = ("worker", "compiler", "runner") if on_card else ("worker", "compiler")
    before = _free() if on_card else 0
    with tempfile.TemporaryDirectory() as folder:
        toll = storm(Path(folder), count, seed, device, SECONDS[device], GRACE, roles, AT_ONCE)
    return row_of(toll, before - _free() if on_card else 0)


def row_of(toll: Toll, lost: int) -> Row:
    """A storm in numbers. ``lost``: bytes of the card that are not free any more; ``faults``: what must not be."""
    faults = {
        "wrong verdicts": sum(one.wrong for one in toll.told),
        "jobs lost or told twice": sum(one.ends != 1 for one in toll.told),
        "jobs that ended without a word": sum(not one.message for one in toll.told),
        "calm verdicts that are not as they should be": sum(
            one.reason != ("right" if one.change.right else "wrong") for one in toll.after
        ),
        "processes left": len(toll.left),
        "temporary files left": len(toll.files),
        "bytes of the card kept": lost if lost > MEMORY_SLACK else 0,
    }
    return {
        "seconds": toll.seconds,
        "jobs": len(toll.told),
        "struck": [(one.blow.kind, one.blow.role, one.reason) for one in toll.told if one.struck and one.blow],
        "ends": dict(toll.counts),
        "messages": [one.message for one in toll.told if one.reason not in ("right", "wrong")],
        "after": [one.reason for one in toll.after],
        "parts": toll.parts,
        "lost": lost,
        "faults": {name: count for name, count in faults.items() if count},
    }


def report(name: str, rows: Sequence[Row]) -> str:
    """Print all storms as one; what must not be, in words."""
    jobs = sum(row["jobs"] for row in rows)
    print(f"chaos on {name}: {jobs} jobs, {sum(row['seconds'] for row in rows):.0f} s")
    struck = [tuple(one) for row in rows for one in row["struck"]]
    ends = sum((Counter(row["ends"]) for row in rows), Counter[str]())
    print(f"  {len(struck)} struck, the others had ended by then; ends: {_listed(ends)}")
    for kind, role in dict.fromkeys(one[:2] for one in struck):
        these = [reason for *blow, reason in struck if tuple(blow) == (kind, role)]
        print(f"  {kind:12} {role:9} {len(these):3}   {_listed(Counter(these))}")
    for message in dict.fromkeys(message for row in rows for message in row["messages"]):
        print(f"  said: {message[:150]}")
    after = Counter(reason for row in rows for reason in row["after"])
    print(f"  then, in calm weather: {_listed(after)}; halves of files in caches: {sum(row['parts'] for row in rows)}; "
          f"the card keeps at most {max((row['lost'] for row in rows), default=0)} bytes")  # fmt: skip
    faults = sum((Counter(row["faults"]) for row in rows), Counter[str]())
    print(f"  faults: {_listed(faults) or 'none'}")
    return _listed(faults)


def _free() -> int:
    """Free bytes of the card, asked by a process that is gone when this returns."""
    ask = "from cupy.cuda import runtime; print(runtime.memGetInfo()[0])"
    return int(subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout)


def _listed(counts: "Counter[str]") -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
