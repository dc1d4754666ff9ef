"""Which process runs what: one for each program, fresh ones for timing, none when idle."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import define

from agent.execution.children.gpu_messages import Card
from agent.execution.gpu import runners
from agent.execution.gpu.runners import IDLE_SECONDS, KEPT, Runners
from agent.execution.process import ChildDied


@define(eq=False)
class Process:
    """A child that only knows whether it lives and whether its first message was read."""

    alive: bool = True
    greeted: bool = False
    dies: bool = False
    stopped: bool = False
    missing: str = ""

    @property
    def usable(self) -> bool:
        return self.alive and not self.stopped

    def converse(self, talk: Callable[[Any], Any], seconds: float) -> Card:
        if self.dies:
            self.alive = False
            raise ChildDied("gone")
        self.greeted = True
        return Card("a card", 90, 132, 1 << 36, 12000, missing=self.missing)

    def close(self) -> None:
        self.alive = False


@define(eq=False)
class Timer:
    """The timer of :mod:`threading`, wound by hand."""

    seconds: float
    rings: Callable[[], None]
    daemon: bool = False
    waits: bool = False

    def start(self) -> None:
        self.waits = True

    def cancel(self) -> None:
        self.waits = False


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[Timer]:
    made: list[Timer] = []

    def wound(seconds: float, rings: Callable[[], None]) -> Timer:
        made.append(Timer(seconds, rings))
        return made[-1]

    monkeypatch.setattr(runners.threading, "Timer", wound)
    return made


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    made: list[Process] = []

    def start() -> Process:
        made.append(Process())
        return made[-1]

    monkeypatch.setattr(runners, "_start", start)
    return made


def test_a_program_keeps_its_process(started: list[Process]) -> None:
    pool = Runners()
    child, fresh = pool.of("a")
    pool.keep("a", child)
    assert fresh and pool.of("a") == (child, False)


def test_two_programs_never_share_one(started: list[Process]) -> None:
    pool = Runners()
    child, _ = pool.of("a")
    pool.keep("a", child)
    other, fresh = pool.of("b")
    assert fresh and other is not child


@pytest.mark.parametrize("end", [{"alive": False}, {"stopped": True}], ids=["died", "was stopped"])
def test_one_that_cannot_be_used_is_replaced(end: dict[str, bool], started: list[Process]) -> None:
    pool = Runners()
    child, _ = pool.of("a")
    pool.keep("a", child)
    for name, value in end.items():
        setattr(started[0], name, value)
    other, fresh = pool.of("a")
    assert fresh and other is not child and not started[0].alive


def test_those_used_longest_ago_go_first(started: list[Process]) -> None:
    pool = Runners()
    for key in "abcde":
        pool.keep(key, pool.of(key)[0])
    assert [process.alive for process in started] == [False] * (5 - KEPT) + [True] * KEPT
    assert pool.count == KEPT


def test_two_runs_of_one_program_at_once_leave_one_process(started: list[Process]) -> None:
    pool = Runners()
    one, other = pool.of("a")[0], pool.of("a")[0]
    pool.keep("a", one)
    pool.keep("a", other)
    assert pool.count == 1 and pool.of("a") == (other, False)
    assert [process.alive for process in started] == [False, True]


def test_who_times_gets_a_process_that_ran_nothing(started: list[Process]) -> None:
    pool = Runners()
    pool.keep("a", pool.of("a")[0])
    child = pool.fresh()
    assert child is started[1] and started[1].greeted


def test_those_that_are_ready_are_started_at_once_and_used_first(started: list[Process]) -> None:
    pool = Runners()
    pool.ready(3)
    assert len(started) == 3 and all(process.greeted for process in started)
    assert {id(pool.fresh()) for _ in range(3)} == {id(process) for process in started}
    pool.ready(1)
    assert len(started) == 4


def test_those_that_come_meanwhile_are_there_before_anything_is_timed(started: list[Process]) -> None:
    pool = Runners()
    pool.begin(2)
    assert len(started) == 2 and not any(process.greeted for process in started) and pool.count == 2
    pool.ready(1)
    assert len(started) == 2 and all(process.greeted for process in started)
    pool.begin(3)
    assert {id(pool.fresh()) for _ in range(3)} == {id(process) for process in started} and len(started) == 3
    pool.begin(1)
    pool.close()
    assert not started[3].alive and not pool.count


def test_a_program_takes_one_that_comes_already(started: list[Process]) -> None:
    pool = Runners()
    pool.begin(2)
    assert pool.of("a") == (started[0], True) and pool.of("b") == (started[1], True) and len(started) == 2
    pool.ready(1)
    assert pool.of("c") == (started[2], False) and len(started) == 3


def test_as_many_programs_as_asked_keep_theirs(started: list[Process]) -> None:
    pool = Runners(5)
    for key in "abcdef":
        pool.keep(key, pool.of(key)[0])
    assert [process.alive for process in started] == [False] + [True] * 5


def test_one_that_finds_no_card_is_not_ready(started: list[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    pool, lost = Runners(), Process(missing="out of memory")
    monkeypatch.setattr(runners, "_start", lambda: lost)
    pool.ready(1)
    assert pool.count == 0 and not lost.alive


def test_one_that_dies_on_the_way_is_not_counted(started: list[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Runners()
    monkeypatch.setattr(runners, "_start", lambda: Process(dies=True))
    pool.ready(2)
    assert pool.count == 0


def test_programs_are_let_go_before_a_timing(started: list[Process]) -> None:
    pool = Runners()
    pool.keep("a", pool.of("a")[0])
    pool.release()
    assert not started[0].alive and pool.count == 0


def test_all_are_let_go_when_idle(started: list[Process], timers: list[Timer]) -> None:
    pool = Runners()
    pool.keep("a", pool.of("a")[0])
    pool.ready(1)
    pool.rest()
    (idle,) = timers
    assert idle.waits and idle.seconds == IDLE_SECONDS and pool.count
    idle.rings()
    assert not pool.count and not any(process.alive for process in started)


def test_work_keeps_them_from_being_idle(started: list[Process], timers: list[Timer]) -> None:
    pool = Runners()
    pool.keep("a", pool.of("a")[0])
    pool.rest()
    child, fresh = pool.of("a")
    assert not fresh and child.alive and not any(timer.waits for timer in timers)
    pool.close()


def test_one_waits_for_the_next_job(started: list[Process]) -> None:
    pool = Runners()
    pool.rest()
    assert pool.count == 1
    pool.rest()
    assert len(started) == 1 and pool.of("a") == (started[0], True)
    pool.close()
