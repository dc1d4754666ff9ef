"""A runner on a real card: its rights are gone before anything of a user is loaded, and all that it does still goes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from agent.execution.compiler import Build, Options, compile_slice
from agent.execution.device import Image, Poison, Request
from agent.execution.gpu import Gpu
from agent.workload.binding import BoundLaunch, PointerArgument
from tests.execution.slices import HandSlice
from tests.gpu.racing import SUM, entry, race

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")]

LARGE = 8 << 20
SOURCE = "__global__ void fill(int* c) { c[blockIdx.x * 256 + threadIdx.x] = 7; }"


def test_a_runner_has_given_up_its_rights_and_hands_its_outputs_over(gpu: Gpu) -> None:
    built = compile_slice(HandSlice(SOURCE, ("fill",)), Options(arch=gpu.arch))
    assert isinstance(built, Build)
    step = BoundLaunch("fill", (LARGE // 4 // 256, 1, 1), (256, 1, 1), 0, (PointerArgument("c"),))
    for _ in range(2):
        answer = gpu.run(Request(built, (step,), (Image("c", LARGE, Poison()),), ("c",)))
        assert answer.status == "ok", answer.message
        assert (answer.outputs["c"].view(np.int32) == 7).all()
    told = Path(f"/proc/{gpu.runners._kept[built.key].pid}/status").read_text()
    assert "\nSeccomp:\t2\n" in told and "\nNoNewPrivs:\t1\n" in told


def test_clocks_are_watched_all_the_same(gpu: Gpu) -> None:
    one, family = entry(SUM.replace("BODY", "2 * x[i]"), gpu)
    asked = race(one, one, family)
    timed = gpu.race(asked)
    assert (timed.status, timed.unwatched) == ("ok", ""), timed
    assert len(timed.clocks) == 4 and gpu.alone(asked, timed).status == "ok"
