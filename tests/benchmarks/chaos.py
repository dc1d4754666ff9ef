"""A hundred jobs whose processes are killed, crashed, stopped, starved of disk and cut off (``tests/chaos``).

``python -m tests.benchmarks chaos``; ``CUDA_LSP_CHAOS`` is another number, ``CUDA_LSP_SEED`` another seed,
``CUDA_LSP_CHAOS_AT_ONCE`` how many jobs run side by side (2). On a card where there is one, else in the emulator. Ends
with exit code 1 where anything went wrong.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from agent.execution.gpu import open_gpu
from tests.chaos.storm import Toll, storm

JOBS = int(os.environ.get("CUDA_LSP_CHAOS", "100"))
SEED = int(os.environ.get("CUDA_LSP_SEED", "20240607"))
AT_ONCE = int(os.environ.get("CUDA_LSP_CHAOS_AT_ONCE", "2"))
SECONDS = {"emulator": 20.0, "gpu": 25.0}
GRACE = 10.0
MEMORY_SLACK = 16 << 20
"""Bytes that the card's driver may keep for itself."""


def main() -> None:
    card = open_gpu()
    device = "emulator" if card is None else "gpu"
    roles = ("worker", "compiler") if card is None else ("worker", "compiler", "runner")
    before = _free() if card is not None else 0
    with tempfile.TemporaryDirectory() as folder:
        toll = storm(Path(folder), JOBS, SEED, device, SECONDS[device], GRACE, roles, AT_ONCE)
    lost = before - _free() if card is not None else 0
    print(
        f"chaos on {card.name if card is not None else 'the emulator'}: {JOBS} jobs, seed {SEED}, {toll.seconds:.0f} s"
    )
    faults = report(toll, lost)
    if faults:
        sys.exit(f"chaos: {faults}")


def report(toll: Toll, lost: int) -> str:
    """Print it; what must not be, in words."""
    struck = [one for one in toll.told if one.struck]
    print(f"  {len(struck)} struck, the others had ended by then; ends: {_listed(toll.counts)}")
    for name in dict.fromkeys((one.blow.kind, one.blow.role) for one in struck if one.blow):
        these = [one for one in struck if one.blow and (one.blow.kind, one.blow.role) == name]
        print(f"  {name[0]:12} {name[1]:9} {len(these):3}   {_listed(Counter(one.reason for one in these))}")
    for message in dict.fromkeys(one.message for one in toll.told if one.reason not in ("right", "wrong")):
        print(f"  said: {message[:150]}")
    after = ", ".join(one.reason for one in toll.after)
    print(f"  then, in calm weather: {after}; halves of files in caches: {toll.parts}; the card keeps {lost} bytes")
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
    print("  " + ", ".join(f"{name} {count}" for name, count in faults.items()))
    return ", ".join(f"{name} {count}" for name, count in faults.items() if count)


def _free() -> int:
    """Free bytes of the card, asked by a process that is gone when this returns."""
    ask = "from cupy.cuda import runtime; print(runtime.memGetInfo()[0])"
    return int(subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout)


def _listed(counts: "Counter[str]") -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
