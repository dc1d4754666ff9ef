"""How long after a cancel the last process of a job is gone: a real server, a real search, its worker and compilers.

Run ``python -m tests.benchmarks cancelling``. Each time a search is cancelled at another moment: while the kernel is
read, while the original is run, while candidates are compiled and judged. Half of the times every process of the job
was stopped before (SIGSTOP), so that none can end by itself. Linux only: processes are looked for in ``/proc``.
"""

import asyncio
import os
import random
import signal
import statistics
import tempfile
import time
from pathlib import Path

from tests.server.connected import REAL, ROOT, Connected, connect, descendants

TIMES = 20
SEED = 7
LATEST = 12.0
"""Seconds after which the last cancel comes."""
WANTED = 1.0


def main() -> None:
    if not Path("/proc/self/stat").exists():
        print("cancelling: needs /proc")
        return
    dice, found = random.Random(SEED), list[tuple[float, int]]()
    for number in range(TIMES):
        found.append(_once(LATEST * dice.random(), stopped=number % 2 == 1))
        print(f"  {found[-1][0] * 1000:6.0f} ms for {found[-1][1]} processes", flush=True)
    taken = [seconds for seconds, _ in found]
    print(
        f"cancel to the last process gone, {TIMES} searches: median {statistics.median(taken) * 1000:.0f} ms, "
        f"max {max(taken) * 1000:.0f} (wanted: under {WANTED * 1000:.0f})"
    )


def _once(after: float, stopped: bool) -> tuple[float, int]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_cancelled(Path(folder), after, stopped))


async def _cancelled(folder: Path, after: float, stopped: bool) -> tuple[float, int]:
    text = (ROOT / "fixtures" / "transpose.cu").read_text()
    file = folder / "transpose.cu"
    file.write_text(text)
    async with connect(file, text, folder / "state", server=REAL) as client:
        job = await client.command("optimize", await client.kernel("transpose"), {"rounds": 2, "candidates": 8})
        began = time.monotonic()
        await client.until(lambda: time.monotonic() - began >= after and len(_job(client)) > 0, 300)
        pids = _job(client)
        for pid in pids if stopped else ():
            os.kill(pid, signal.SIGSTOP)
        began = time.perf_counter()
        assert await client.command("cancel", job) is True
        while not all(map(_gone, pids)):
            time.sleep(0.001)
        return time.perf_counter() - began, len(pids)


def _job(client: Connected) -> list[int]:
    """The worker that has something to do, and what it started."""
    workers = [pid for pid in client.workers() if b"cuda_lsp.worker" in _command(pid)]
    return [pid for worker in workers if (below := descendants(worker)) for pid in (worker, *below)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


if __name__ == "__main__":
    main()
