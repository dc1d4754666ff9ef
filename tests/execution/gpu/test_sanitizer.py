"""compute-sanitizer around a runner: the real one on a card; without one, a program of the test's own in its place."""

import sys
from pathlib import Path

import pytest

from agent.execution.compiler import Build, Options, compile_slice
from agent.execution.device import Image, Poison, Request
from agent.execution.gpu import Gpu, sanitizer
from agent.execution.sanitizing import TOOLS, Sanitized
from agent.workload.binding import BoundLaunch, PointerArgument
from tests.execution.slices import HandSlice

SOURCE = """
__global__ void honest(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void stray(float* y) { y[threadIdx.x + 1] = 1.0f; }
__global__ void racy(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void unset(float* y) { y[threadIdx.x] += 1.0f; }
__global__ void parted(float* y) {
    if (threadIdx.x < 40) __syncthreads();
    y[threadIdx.x] = 1.0f;
}
"""
NAMES = ("honest", "stray", "racy", "unset", "parted")
# the tool names the write of a race first; lines count the empty one before the first kernel
FOUND = {
    "stray": ("memcheck", "out-of-bounds write", 8),
    "racy": ("racecheck", "shared-memory race", 11),
    "unset": ("initcheck", "uninitialised read", 14),
    "parted": ("synccheck", "divergent barrier", 16),
}


def request(build: Build, kernel: str) -> Request:
    step = BoundLaunch(kernel, (1, 1, 1), (64, 1, 1), 0, (PointerArgument("y"),))
    return Request(build, (step,), (Image("y", 256, Poison(0xCB)),), (), seconds=60.0)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", NAMES)
def test_each_tool_finds_its_own(gpu: Gpu, kernel: str) -> None:
    build = compile_slice(HandSlice(SOURCE, NAMES), Options(arch=gpu.arch))
    assert isinstance(build, Build), build
    for tool in TOOLS if kernel == "honest" else (FOUND[kernel][0],):
        found = gpu.sanitize(request(build, kernel), tool)
        if found.message == sanitizer.MISSING:
            pytest.skip(found.message)
        assert found.status == "ok", found
        if kernel == "honest":
            assert found.faults == ()
        else:
            assert [(one.kind, one.where.line) for one in found.faults][:1] == [FOUND[kernel][1:]]
            assert found.faults[0].kernel == kernel


STAND_IN = """#!{python}
import os, sys
given = sys.argv[1:]
log = given[given.index("--log-file") + 1]
with open(log, "w") as file:
    file.write("========= COMPUTE-SANITIZER\\n========= ERROR SUMMARY: 0 errors\\n")
at = given.index({python!r})
os.execv({python!r}, given[at:])
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "compute-sanitizer"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setattr(sanitizer, "sanitizer", lambda: program)
    return program


@pytest.fixture(scope="module")
def build() -> Build:
    made = compile_slice(HandSlice(SOURCE, NAMES), Options(arch="sm_90"))
    assert isinstance(made, Build), made
    return made


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a first line")
def test_why_it_did_not_run_is_said(stand_in: Path, build: Build) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a card: the real one is tried")
    found = sanitizer.sanitized(request(build, "honest"), "memcheck", 60.0)
    assert found.status == "unavailable" and found.message, "a runner without a card says what it lacks"


def test_it_is_missing(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizer, "sanitizer", lambda: None)
    found = sanitizer.sanitized(request(build, "honest"), "memcheck", 60.0)
    assert found == Sanitized("unavailable", message=sanitizer.MISSING)
    assert "pip install nvidia-cuda-sanitizer-api" in found.message
