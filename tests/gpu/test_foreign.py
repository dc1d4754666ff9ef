"""Somebody else computes on the card while we time: equal code is not faster, what is faster is not slower, and the
same card alone is as good as before."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent.evaluation.measures.statistics import decide, interval
from agent.execution.gpu import Gpu
from agent.execution.timing import Timed
from tests.gpu.racing import SPIN, entry, race

pytestmark = pytest.mark.gpu

OTHER = """
import sys, threading, time
import cupy
spin = cupy.RawKernel(r'''extern "C" __global__ void spin(long long ticks) {
    long long start = clock64(); while (clock64() - start < ticks) {} }''', "spin")
spin((1,), (32,), (1000,))
cupy.cuda.runtime.deviceSynchronize()
ends = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ends.set()), daemon=True).start()
print("works", flush=True)
while not ends.is_set():
    spin((cupy.cuda.Device().attributes["MultiProcessorCount"],), (256,), (4_000_000,))
    cupy.cuda.runtime.deviceSynchronize()
    time.sleep(0.001)
"""


@contextmanager
def at_work() -> Iterator[None]:
    """Another user of the card: a kernel on all multiprocessors for some two milliseconds, a pause, and so on."""
    with subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == b"works\n"
        try:
            yield
        finally:
            other.stdin.close()
            other.wait(60)


def timed(card: Gpu, old: int, new: int) -> Timed:
    one, family = entry(SPIN.replace("TICKS", str(old)), card)
    two, _ = entry(SPIN.replace("TICKS", str(new)), card)
    found = card.race(race(one, two, family))
    assert found.status == "ok", found.message
    return found


def test_nothing_is_called_faster_for_what_others_do(card: Gpu) -> None:
    with at_work():
        control, same, half = (timed(card, 600_000, ticks) for ticks in (600_000, 600_000, 300_000))
    own = interval([control.cold], control.sets)
    assert decide(interval([same.cold], same.sets), own) == "same"
    assert decide(interval([half.cold], half.sets), own) != "slower"
    quiet = timed(card, 600_000, 600_000)
    assert interval([quiet.cold], quiet.sets).half_width < 0.02
    widths = [interval([one.cold], one.sets).half_width for one in (same, quiet)]
    print(f"half-width {widths[0]:.4f} beside another process, {widths[1]:.4f} alone; others seen: {same.foreign}")
