"""Runners that die: what was run is run once more, and only a death that nobody else caused counts against it."""

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from agent.execution.children import gpu_messages as say
from agent.execution.children import runner
from agent.execution.children.timing_messages import Calibrated, Measured
from agent.execution.compiler.result import Build
from agent.execution.device import Image, Poison, Request
from agent.execution.gpu import Gpu, device, lock
from agent.execution.process import ChildDied
from agent.execution.timing import Entry, Figures, Race
from agent.workload.binding import Bound
from tests.execution.gpu.fake import FakeCard

BUILD = Build("", b"\x7fELF", {}, {}, {}, "sm_90", "NVRTC", (), "key")
REQUEST = Request(BUILD, (), (Image("y", 2, Poison()),), ("y",))
CARD = say.Card("a card", 90, 13000, 1 << 40, 232448)
KILLED, CRASHED = ChildDied("it was ended by SIGKILL", True), ChildDied("it was ended by SIGSEGV")


@define(eq=False)
class Process:
    """Answers one conversation after the other from its script."""

    script: list[Any]
    alive: bool = True

    def converse(self, talk: Any, seconds: float, cancelled: Any = None) -> Any:
        said = self.script.pop(0)
        if isinstance(said, Exception):
            self.alive = False
            raise said
        return said

    def close(self) -> None:
        self.alive = False


@define(eq=False)
class Processes:
    """One process of each script, in turn."""

    scripts: list[list[Any]]
    lent: list[Process] = field(factory=list)
    kept: list[Process] = field(factory=list)
    count: int = 0

    def fresh(self) -> Process:
        self.lent.append(Process(self.scripts.pop(0)))
        return self.lent[-1]

    def of(self, key: str) -> tuple[Process, bool]:
        return self.fresh(), False

    def keep(self, key: str, child: Process) -> None:
        self.kept.append(child)

    def rest(self) -> None: ...

    def close(self) -> None: ...


def good() -> list[Any]:
    return [say.Prepared(), say.Ran("", "", "", 0.1), ({"y": np.array([1, 2], np.uint8)}, {})]


def gpu(monkeypatch: pytest.MonkeyPatch, *scripts: list[Any]) -> tuple[Gpu, Processes]:
    monkeypatch.setattr(device, "support", lambda arch: BUILD)
    monkeypatch.setattr(lock, "folder", lambda: Path("/nowhere"))
    made, processes = Gpu(CARD), Processes(list(scripts))
    made.runners = processes  # type: ignore[assignment]
    return made, processes


@pytest.mark.parametrize("place", [0, 1, 2], ids=["while it is laid out", "while it runs", "while it is fetched"])
@pytest.mark.parametrize("death", [KILLED, CRASHED], ids=["killed", "crashed"])
def test_what_a_dead_runner_ran_is_run_once_more(death: ChildDied, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    card, processes = gpu(monkeypatch, [*good()[:place], death], good())
    answer = card.run(REQUEST)
    assert answer.status == "ok" and answer.outputs["y"].tolist() == [1, 2]
    assert [child.alive for child in processes.lent] == [False, True] and processes.kept == processes.lent[1:]


@pytest.mark.parametrize(("last", "status"), [(KILLED, "unavailable"), (CRASHED, "crashed")], ids=["killed", "crashed"])
def test_two_deaths_are_an_answer(last: ChildDied, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    card, processes = gpu(monkeypatch, [CRASHED], [last])
    answer = card.run(REQUEST)
    assert answer.status == status and str(last) in answer.message and not processes.kept
    assert not any(child.alive for child in processes.lent)


def test_a_timing_whose_process_dies_is_made_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    side = Entry(BUILD, Bound({}, (), ()))
    race = Race((side, side), "normal", 1)
    card, processes = gpu(monkeypatch, [KILLED], [Measured("", "", cold=((1.0, 1.0, 1.0, 1.0),))], [KILLED], [KILLED])
    card._figures = Figures("a card", "", "", 1.0, 1.0, 1.0, 0, 0)
    assert card.race(race).status == "ok"
    assert card.race(race).status == "crashed"
    assert not any(child.alive for child in processes.lent)


def test_a_card_is_measured_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Calibrated("", 1.0, 1.0, 1.0, 0, 1)
    card, _ = gpu(monkeypatch, [KILLED], [good], [KILLED], [CRASHED])
    assert card._calibrated(None, lambda: False) == good  # type: ignore[arg-type]
    assert "SIGSEGV" in card._calibrated(None, lambda: False).problem  # type: ignore[arg-type]


def test_a_card_that_could_not_be_asked_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = [[KILLED], [CRASHED], [KILLED], [CARD]]
    monkeypatch.setattr(device, "Child", lambda module: Process(scripts.pop(0)))
    monkeypatch.setattr(device, "_driver_there", lambda: True)
    monkeypatch.setattr(device, "_found", None)
    assert "SIGSEGV" in (device.why_no_gpu() or "")
    assert device.why_no_gpu() is None and device.open_gpu() is not None and not scripts


# --- outputs by way of shared memory ---------------------------------------------------------------------------------

LARGE = (1 << 20) + 3


@define
class Runner:
    """The other end of a channel, on a card of ordinary memory; ``blind``: it may not open the memory it is shown."""

    card: FakeCard
    address: int
    blind: bool = False
    asked: list[say.Read] = field(factory=list)

    def send(self, request: say.Read) -> None:
        self.asked.append(request)

    def receive(self, *kinds: type) -> say.Chunk:
        request = self.asked[-1]
        if self.blind and request.path:
            request = say.Read(request.region, request.start, request.nbytes, "/nowhere/at all")
        return runner._read(self.card, self.address + request.start, request)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="Linux only")
@pytest.mark.parametrize("blind", [False, True], ids=["shared", "may not be opened"])
def test_a_large_output_comes_whole_and_leaves_no_file(blind: bool) -> None:
    card, data = FakeCard({}), np.random.default_rng(1).integers(0, 256, LARGE).astype(np.uint8)
    other = Runner(card, card.malloc(LARGE), blind)
    ctypes.memmove(other.address, data.tobytes(), LARGE)
    before = len(list(Path("/proc/self/fd").iterdir()))
    found = device._download(other, "y", LARGE)  # type: ignore[arg-type]
    assert np.array_equal(found, data) and found.flags.writeable
    assert [bool(request.path) for request in other.asked] == ([True, False] if blind else [True])
    del found
    assert len(list(Path("/proc/self/fd").iterdir())) == before
