"""The card's lock: many may run, who times is alone."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.execution.gpu import lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no shared file locks there")


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(lock, "folder", lambda: tmp_path)
    return "0000:0A:00.0"


def test_runs_share_the_card(address: str) -> None:
    with lock.held(address, alone=False) as one, lock.held(address, alone=False) as other:
        assert (one, other) == ("", "")


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_who_times_is_alone(address: str, first: bool, second: bool) -> None:
    entered, leave = threading.Event(), threading.Event()
    order: list[str] = []

    def hold() -> None:
        with lock.held(address, alone=first):
            entered.set()
            leave.wait(60)
            order.append("first leaves")

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(60)
    threading.Timer(0.1, leave.set).start()
    with lock.held(address, alone=second):
        order.append("second enters")
    thread.join()
    assert order == ["first leaves", "second enters"]


def test_who_waited_long_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock: nobody waits here."""
    times = iter([100.0, 112.4])
    monkeypatch.setattr(lock, "time", SimpleNamespace(sleep=time.sleep, monotonic=lambda: next(times)))
    with lock.held(address, alone=True) as note:
        assert note == "waited 12 s for another process that had the card"


HOLDER = """
import sys
from pathlib import Path
from agent.execution.gpu import lock
lock.folder = lambda: Path(sys.argv[1])
with lock.held("0000:0A:00.0", alone=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_with_other_environments_go_by_one_lock(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two editors are, of two users: who dies lets it go."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "other"), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        looks = iter([False] * 3)
        with pytest.raises(lock.LockCancelled), lock.held(address, False, lambda: next(looks, True)):
            pass
        other.kill()
        with lock.held(address, alone=True) as note:
            assert "cannot be opened" not in note


@pytest.mark.skipif(sys.platform != "linux", reason="one folder for temporary files there")
def test_the_lock_is_where_everybody_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lock.tempfile, "gettempdir", lambda: str(tmp_path))
    assert lock.place("0000:0A:00.0") == Path("/tmp/cuda-lsp-gpu-0000-0A-00-0.lock")


def test_waiting_can_be_cancelled(address: str) -> None:
    with lock.held(address, alone=True):
        began = time.monotonic()
        with pytest.raises(lock.LockCancelled), lock.held(address, False, lambda: time.monotonic() > began + 0.1):
            pass


def test_a_folder_that_cannot_be_written_is_said(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "folder", lambda: Path("/nonexistent"))
    with lock.held(address, alone=True) as note:
        assert "cannot be opened" in note


def test_runs_that_come_later_wait_behind_who_wants_to_be_alone(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a card on which others run all the time would never be timed on."""
    order: list[str] = []
    first_may_go = threading.Event()
    waiting: set[int | None] = set()

    def sleep(seconds: float) -> None:
        waiting.add(threading.current_thread().ident)
        time.sleep(seconds)

    monkeypatch.setattr(lock, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))

    def hold(word: str, alone: bool, until: threading.Event | None = None) -> threading.Thread:
        def body() -> None:
            with lock.held(address, alone):
                order.append(word)
                if until is not None:
                    until.wait(60)

        thread = threading.Thread(target=body)
        thread.start()
        while word not in order and thread.ident not in waiting:
            time.sleep(0.01)
        return thread

    threads = [hold("runs", False, first_may_go), hold("times", True), hold("runs later", False)]
    assert order == ["runs"]
    first_may_go.set()
    for thread in threads:
        thread.join(60)
    assert order == ["runs", "times", "runs later"]
