"""ncu around a runner: the real one on a card; without one, a program of the test's own in its place."""

import sys
from pathlib import Path

import numpy as np
import pytest

from agent.execution.compiler import Build, Options, compile_slice
from agent.execution.device import Image, Request
from agent.execution.gpu import Gpu, profiler
from agent.execution.nsight import METRICS, of_kernel
from agent.workload.binding import BoundLaunch, PointerArgument
from tests.execution.slices import HandSlice

SOURCE = """
__global__ void columns(const float* x, float* y) {
    __shared__ float s[32];
    s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    y[threadIdx.x * 8] = s[31 - threadIdx.x];
}
"""


def request(arch: str) -> Request:
    """Four blocks of a warp: each reads 128 bytes in a row, and writes 32 sectors of one number each."""
    build = compile_slice(HandSlice(SOURCE, ("columns",)), Options(arch=arch))
    assert isinstance(build, Build), build
    step = BoundLaunch("columns", (4, 1, 1), (32, 1, 1), 0, (PointerArgument("x"), PointerArgument("y")))
    images = tuple(Image(name, 4096, np.zeros(4096, np.uint8)) for name in "xy")
    return Request(build, (step, step), images, (), seconds=60.0)


@pytest.mark.gpu
def test_the_card_counts_what_is_counted_by_hand(gpu: Gpu) -> None:
    found = gpu.counters(request(gpu.arch))
    if found in (profiler.MISSING, profiler.FORBIDDEN):
        pytest.skip(str(found))
    assert not isinstance(found, str), found
    launches = of_kernel(found, "columns")
    assert len(launches) == 2
    for one in launches:
        assert (one.grid, one.block) == ("(4, 1, 1)", "(32, 1, 1)")
        assert (one.loads, one.load_sectors, one.stores, one.store_sectors) == (4, 16, 4, 128)
        assert one.wavefronts == 8, "one pass for each warp's store and load"
        assert one.seconds is not None and one.seconds > 0


def stand_in(place: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """A program that leaves ``said`` as its log and becomes the process that it was to watch."""
    (place / "said").write_text(said)
    program = place / "ncu"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\ngiven = sys.argv[1:]\n"
        f"open(given[given.index('--log-file') + 1], 'w').write(open({str(place / 'said')!r}).read())\n"
        f"os.execv({sys.executable!r}, given[given.index({sys.executable!r}):])\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(profiler, "tool", lambda name: program)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a first line")
@pytest.mark.parametrize(
    ("said", "why"), [("==ERROR== ERR_NVGPUCTRPERM\n", "run as root"), ("==PROF== Connected\n", "")]
)
def test_why_nothing_was_counted_is_said(said: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a card: the real one is tried")
    stand_in(tmp_path, monkeypatch, said)
    found = profiler.profiled(request("sm_90"), 60.0)
    assert isinstance(found, str) and found and why in found, "a runner without a card says what it lacks"


def test_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler, "tool", lambda name: None)
    assert profiler.profiled(request("sm_90"), 60.0) == profiler.MISSING


def test_no_setting_of_the_card_is_touched() -> None:
    asked = profiler.command(Path("/bin/ncu"), Path("log"))
    assert asked[asked.index("--clock-control") + 1] == "none"
    assert asked[asked.index("--metrics") + 1].split(",") == list(METRICS)
