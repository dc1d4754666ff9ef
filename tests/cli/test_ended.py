"""Commands that a signal ends: by that signal, with nothing of theirs left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.execution.leaving import descendants
from tests.cli.running import COMMAND, ROW_SUMS

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="signals, and processes found by /proc")

SECONDS = 200.0
PROGRAM = """
import subprocess, sys, threading, time
from pathlib import Path
from agent.execution.leaving import scratch
from cuda_lsp.terminal import ending, main

def work():
    with scratch() as folder:
        (folder / "file").touch()
        subprocess.Popen(["sleep", "300"], start_new_session=True).wait()

def command(**options):
    threading.Thread(target=work).start()
    work()

main.group.main = command
main.main()
"""


def ended(command: tuple[str, ...], number: int, begun: str, env: dict[str, str], folder: Path) -> int:
    """The exit code of a command that gets a signal once ``begun`` (a pattern) is in its folder for temporary files."""
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder), **env}, stderr=subprocess.PIPE) as running:
        try:
            until = time.monotonic() + SECONDS
            while not list(folder.glob(begun)) and running.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            while not (below := descendants(running.pid)) and running.poll() is None and time.monotonic() < until:
                time.sleep(0.02)  # what it starts comes a moment after the folder
            assert below and running.poll() is None, "it ended by itself"
            running.send_signal(number)
            _, said = running.communicate(timeout=SECONDS)
        finally:
            running.kill()
    assert b"Traceback" not in said and b"internal error" not in said
    while any(alive(pid) for pid in below) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(alive(pid) for pid in below)
    return running.returncode


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_folders_and_processes_of_every_thread_go_with_it(tmp_path: Path, name: str) -> None:
    number = getattr(signal, name)
    code = ended((sys.executable, "-c", PROGRAM), number, "cuda-lsp-*/file", {}, tmp_path)
    assert code == (130 if name == "SIGINT" else -number)
    assert list(tmp_path.iterdir()) == []


def test_a_verdict_in_the_midst_of_nvcc(tmp_path: Path) -> None:
    old, new, programs, temporary = (tmp_path / name for name in ("old.cu", "new.cu", "programs", "temporary"))
    old.write_text(ROW_SUMS)
    new.write_text(ROW_SUMS.replace("float sum = 0.0f;", "float sum = 0.0f;  // as before"))
    programs.mkdir()
    temporary.mkdir()
    compiler = programs / "nvcc"
    compiler.write_text('#!/bin/sh\ntouch "$TMPDIR/began"\nexec sleep 300\n')
    compiler.chmod(0o755)
    env = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = (*COMMAND, "verify", str(old), str(new), "--device", "emulator")
    assert ended(command, signal.SIGTERM, "cuda-lsp-*/began", env, temporary) == -signal.SIGTERM
    assert list(temporary.iterdir()) == []
