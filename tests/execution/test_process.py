"""Children: scrubbed, limited, killed with all they started, and gone when we are gone."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from agent.execution import leaving, process
from agent.execution.children.messages import AskCompiler, Compiled, CompilerIs
from agent.execution.process import Child, ChildCancelled, ChildDied, ChildTimeout
from agent.execution.wire import Channel

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and /proc")

# A child of our own making: what it does depends on the name in the question's place.
MODULE = """
import os, subprocess, sys, time
from agent.execution.children.messages import AskCompiler, Compiled
from agent.execution.children.serve import serve

def handle(channel):
    channel.receive(AskCompiler)
    {body}

if __name__ == "__main__":
    serve(handle, {memory})
"""


def child(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str, memory: int | None = None) -> Child:
    (folder / "odd_child.py").write_text(MODULE.format(body=textwrap.indent(body, "    ").strip(), memory=memory))
    monkeypatch.syspath_prepend(str(folder))
    return Child("odd_child")


def ask(channel: Channel) -> Compiled:
    channel.send(AskCompiler())
    reply: Compiled = channel.receive(Compiled)
    return reply


def answer(expression: str) -> str:
    return f"channel.send(Compiled('', str({expression}), b'', b'', ()))"


def test_a_child_knows_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234")
    monkeypatch.setenv("SECRET_TOKEN", "sk-1234")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:sk-1234@proxy")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    one = child(tmp_path, monkeypatch, answer("dict(os.environ)"))
    told = one.converse(ask, 60).log
    one.close()
    assert "sk-1234" not in told and "CUDA_VISIBLE_DEVICES" in told


def test_what_native_code_prints_does_not_disturb_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = child(tmp_path, monkeypatch, "os.write(1, b'noise on stdout'); print('more')\n" + answer("'quiet'"))
    assert one.converse(ask, 60).log == "quiet"
    assert one.converse(ask, 60).log == "quiet"
    one.close()


def test_a_slow_child_is_killed_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = child(tmp_path, monkeypatch, "time.sleep(60)")
    start = time.monotonic()
    with pytest.raises(ChildTimeout):
        one.converse(ask, 0.5)
    assert time.monotonic() - start < 50
    assert not one.alive


def test_a_cancelled_child_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = child(tmp_path, monkeypatch, "time.sleep(60)")
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(ChildCancelled):
        one.converse(ask, 60, stop.is_set)
    assert not one.alive


@posix
def test_a_crash_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = child(tmp_path, monkeypatch, "os.kill(os.getpid(), 11)")
    with pytest.raises(ChildDied, match="SIGSEGV"):
        one.converse(ask, 60)
    two = child(tmp_path, monkeypatch, "os._exit(3)")
    with pytest.raises(ChildDied, match="exit code 3"):
        two.converse(ask, 60)


@posix
def test_grandchildren_die_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "p = subprocess.Popen(['sleep', '300'])\n" + answer("p.pid")
    one = child(tmp_path, monkeypatch, body)
    pid = int(one.converse(ask, 60).log)
    one.close()
    assert gone(pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="found by /proc")
def test_also_those_that_lead_sessions_of_their_own_and_look_after_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = "import subprocess, sys, time; " + "".join(
        (
            "p = subprocess.Popen(['sleep', '300'], start_new_session=True); ",
            "print(p.pid, flush=True); time.sleep(300)",
        )
    )
    body = (
        f"p = subprocess.Popen([sys.executable, '-c', {nested!r}], stdout=subprocess.PIPE, start_new_session=True)\n"
        "below = int(p.stdout.readline())\n"
    )
    one = child(tmp_path, monkeypatch, body + answer("f'{p.pid} {below}'"))
    pids = [int(pid) for pid in one.converse(ask, 60).log.split()]
    assert not any(gone(pid, 0) for pid in pids)
    assert leaving.descendants(one.pid) == tuple(pids)
    os.kill(pids[0], signal.SIGSTOP)  # as good as one that hangs
    one.close()
    assert all(gone(pid, 30) for pid in pids), "they would end by themselves in five minutes"
    assert leaving.descendants(one.pid) == ()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="found by /proc")
@pytest.mark.parametrize("ended", ["while it was asked", "while nobody asked"])
def test_stopped_processes_of_one_that_died_by_itself_are_ended(
    ended: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their parent is gone, so nobody could tell whose they are, and they cannot notice it themselves."""
    code = "import time; print(flush=True); time.sleep(600)"
    start = f"s = subprocess.Popen([sys.executable, '-c', {code!r}], stdout=subprocess.PIPE, start_new_session=True)\n"
    runs = "s.stdout.readline()\n"  # one that is still being started has no environment to be known by
    one = child(tmp_path, monkeypatch, start + runs + answer("s.pid"))
    sleeper = int(one.converse(ask, 60).log)
    os.kill(sleeper, signal.SIGSTOP)
    os.kill(one.pid, signal.SIGKILL)
    if ended == "while it was asked":
        with pytest.raises(ChildDied, match="SIGKILL") as death:
            one.converse(ask, 60)
        assert death.value.killed
    else:
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
    assert not one.alive
    one.close()
    assert gone(sleeper)


@posix
@pytest.mark.parametrize("body", ["time.sleep(300)", answer("0")])
def test_the_end_of_the_parent_is_the_end_of_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    child(tmp_path, monkeypatch, body).close()  # writes the module
    parent = f"""
import sys, threading
sys.path.insert(0, {str(tmp_path)!r})
from agent.execution.process import Child
from agent.execution.children.messages import AskCompiler
one = Child("odd_child")
one.post(AskCompiler())
print(one.pid, flush=True)
threading.Event().wait()
"""
    root = Path(process._OURS)
    started = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, cwd=root)
    assert started.stdout is not None
    pid = int(started.stdout.readline())
    time.sleep(0.5)
    assert not gone(pid, 0)
    started.kill()
    started.wait()
    assert gone(pid)


@posix
def test_memory_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "try:\n    bytearray(4 << 30)\nexcept MemoryError:\n    " + answer("'enough'")
    one = child(tmp_path, monkeypatch, body, memory=2 << 30)
    assert one.converse(ask, 60).log == "enough"
    one.close()


def test_a_reply_of_another_kind_is_a_dead_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = child(tmp_path, monkeypatch, answer("0"))

    def mistaken(channel: Channel) -> CompilerIs:
        channel.send(AskCompiler())
        reply: CompilerIs = channel.receive(CompilerIs)
        return reply

    with pytest.raises(ChildDied):
        one.converse(mistaken, 60)
    assert not one.alive


def test_our_own_mistakes_are_raised_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = child(tmp_path, monkeypatch, answer("0"))

    def mistaken(channel: Channel) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        one.converse(mistaken, 60)
    assert not one.alive


def gone(pid: int, seconds: float = 30.0) -> bool:
    """Whether a process ends (or is a zombie that only its new parent has still to bury) within ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
