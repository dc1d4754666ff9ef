"""10,000 random interleavings of edits, jobs and accepts with a real server over its standard streams.

Run ``python -m tests.benchmarks interleaving``; ``CUDA_LSP_INTERLEAVINGS`` is another number, ``CUDA_LSP_SEED`` another
seed, and ``CUDA_LSP_CLIENTS=vscode,minimal`` leaves out the other clients with their shares. What each consists of and
what must hold: ``tests/server/interleaver.py``. Jobs are real processes that do what a script says; everything else is
what users have.
"""

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.server.interleaver import KINDS, Kind, played
from tests.server.observed import COMMAND
from tests.server.talk import talking

INTERLEAVINGS = int(os.environ.get("CUDA_LSP_INTERLEAVINGS", "10000"))
SEED = int(os.environ.get("CUDA_LSP_SEED", "20240607"))
SHARES = {"vscode": 0.4, "neovim": 0.3, "neovim-utf-32": 0.1, "minimal": 0.2}
CLIENTS = os.environ.get("CUDA_LSP_CLIENTS", ",".join(SHARES)).split(",")
TOLD = 20
MIB = 1 << 20


def main() -> None:
    faults = sum(_session(kind, round(INTERLEAVINGS * SHARES[kind.name])) for kind in KINDS if kind.name in CLIENTS)
    if faults:
        sys.exit(f"{faults} faults")


def _session(kind: Kind, total: int) -> int:
    """The number of faults of one client's server."""
    print(f"{kind.name}: {total} interleavings, seed {SEED}", flush=True)
    counts: Counter[str] = Counter()
    began, faults, samples = time.monotonic(), 0, []
    with tempfile.TemporaryDirectory() as name, talking(COMMAND, Path(name)) as talk:
        folder = Path(name)
        for number, play, fault in played(talk, kind, folder, SEED, range(total), counts):
            if fault is not None:
                faults += 1
                print(f"  FAULT in interleaving {number}: {fault}\n  after {', '.join(play.trace)}", flush=True)
            if (number + 1) * TOLD % total < TOLD:
                samples.append(talk.resident())
                print(f"  {100 * (number + 1) // total:3} % {samples[-1] / MIB:.1f} MiB, "
                      f"{time.monotonic() - began:.0f} s, {faults} faults", flush=True)  # fmt: skip
        log = (folder / "log").read_text(encoding="utf-8", errors="replace")
    early, late = samples[max(0, len(samples) // 5 - 1)], samples[-1]
    print(f"  memory: {early / MIB:.1f} MiB after 20 %, {late / MIB:.1f} at the end "
          f"({100 * (late - early) / early:+.1f} %), at most {max(samples) / MIB:.1f}")  # fmt: skip
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    if "Traceback" in log or "ERROR" in log:
        faults += 1
        print(f"  FAULT: the server's log holds errors: {log[-5000:]}")
    return faults


if __name__ == "__main__":
    main()
