"""Child processes of our own: started with a scrubbed environment, spoken to in frames, killed with all they started.

Used for the compiler (NVRTC can crash) and for the GPU runners (a kernel can do worse). What runs in them is in
``agent.execution.children``.
"""

import contextlib
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import agent
from agent.execution import children, leaving, wire
from agent.execution.wire import Channel

T = TypeVar("T")

# What a child may know of our environment. Never keys, tokens or proxies: it works on text that we do not trust.
_KEPT = (
    "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "LANG", "LC_ALL",
    "SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES",
    "CUDA_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "CONDA_PREFIX",
    "VIRTUAL_ENV", "XDG_CACHE_HOME", "XDG_STATE_HOME", "CUDA_LSP_FAMILY", "CUDA_LSP_KEEP_RIGHTS",
)  # fmt: skip

_FAMILY = "CUDA_LSP_FAMILY"
"""In a child's environment: a mark of its own, after those of whoever started it. What it starts has them too."""

_START = (
    "import sys, json, runpy; sys.path[:] = json.loads(sys.argv[1]); runpy.run_module(sys.argv[2], run_name='__main__')"
)

_KILLS = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))

_OURS = str(Path(agent.__file__).parent.parent)


class ChildDied(Exception):
    """The process ended in mid-conversation; the message says how. ``killed``: by a signal that nobody sends himself,
    so by somebody else, or by the system for want of memory."""

    def __init__(self, message: str, killed: bool = False) -> None:
        super().__init__(message)
        self.killed = killed


class ChildTimeout(Exception):
    """It did not answer within its time and was killed."""


class ChildCancelled(Exception):
    """The caller no longer wants the answer; the process was killed."""


def twice(action: Callable[[], T]) -> T:
    """Do it, and once more where a process dies in it: that one may have died of something else, killed from outside,
    or short of memory for others' sake. Raises what it raises, ChildDied when the second dies too."""
    try:
        return action()
    except ChildDied:
        return action()


def never() -> bool:
    return False


class Child:
    """A running child process. After any exception from :meth:`converse` it has been killed."""

    def __init__(self, module: str, under: Sequence[str] = ()) -> None:
        """``under``: a program of the user's toolkit, with its arguments, that starts the process and watches it."""
        self._mark = secrets.token_hex(8)
        self._scratch = leaving.name_of_child()
        paths = dict.fromkeys(str(Path(path).absolute()) for path in [*sys.path, _OURS] if path)
        self._process = subprocess.Popen(
            [*under, sys.executable, "-I", "-c", _START, json.dumps(list(paths)), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **scrubbed(os.environ),
                _FAMILY: f"{os.environ.get(_FAMILY, '')} {self._mark}".strip(),
                leaving.SCRATCH: self._scratch,
            },
            # A folder that holds nothing but our own published source: relative paths lead nowhere of interest.
            cwd=Path(children.__file__).parent,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        source = self._process.stdout
        self._channel = Channel(lambda: wire.read_frame(source), self._process.stdin)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def usable(self) -> bool:
        """Whether it lives and nobody has stopped it, as far as the system says (/proc)."""
        if not self.alive:
            return False
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"T", b"t")
        return True

    def post(self, message: object) -> None:
        """Say one short thing without waiting for an answer. A dead process shows at the next conversation."""
        with contextlib.suppress(OSError):
            self._channel.send(message)

    def converse(self, talk: Callable[[Channel], T], seconds: float, cancelled: Callable[[], bool] = never) -> T:
        """Run ``talk`` over the channel. Raises ChildDied, ChildTimeout, ChildCancelled, or what ``talk`` raises."""
        outcome: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

        def speak() -> None:
            try:
                outcome.put((talk(self._channel), None))
            except BaseException as error:
                outcome.put((None, error))

        threading.Thread(target=speak, daemon=True, name="cuda-lsp child").start()
        deadline = time.monotonic() + seconds
        try:
            result, error = self._await(outcome, deadline, cancelled)
        except BaseException:
            self.close()
            raise
        if error is None:
            return result  # type: ignore[return-value]
        if isinstance(error, EOFError | OSError | wire.WireError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)  # it is ending by itself: let its own exit code be seen
            code = self._process.poll()
            self.close()
            raise ChildDied(_last_words(code), code is not None and -code in _KILLS) from error
        self.close()
        raise error

    def _await(
        self,
        outcome: "queue.SimpleQueue[tuple[T | None, BaseException | None]]",
        deadline: float,
        cancelled: Callable[[], bool],
    ) -> tuple[T | None, BaseException | None]:
        while True:
            with contextlib.suppress(queue.Empty):
                return outcome.get(timeout=max(0.0, min(0.05, deadline - time.monotonic())))
            if cancelled():
                raise ChildCancelled
            if time.monotonic() >= deadline:
                raise ChildTimeout(f"no answer in time from process {self.pid}")

    def finish(self, seconds: float) -> None:
        """Let it come to its own end, for so long at most; then as :meth:`close`."""
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            self._process.stdin.close()  # type: ignore[union-attr]
            self._process.wait(seconds)
        self.close()

    def close(self) -> None:
        """Kill the process and whatever it started, wait until it is gone, and clear up after it."""
        if self.alive:
            kill(self._process)
        else:
            _kill_orphans(self._mark)
        self._process.wait()
        leaving.discard(self._scratch)
        for stream in (self._process.stdin, self._process.stdout):
            # A thread may still be inside a read of this stream; the dead process has already ended that read.
            with contextlib.suppress(OSError, ValueError):
                stream.close()  # type: ignore[union-attr]


def _last_words(code: int | None) -> str:
    """How a process ended, from its exit code; None where it lived and only said nothing more."""
    if code is None:
        return "it stopped talking to us and was ended"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that children get: what finds libraries and the card, and nothing else."""
    return {name: value for name, value in environment.items() if name.upper() in _KEPT}


def keyless(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without keys, for the user's own programs that need the rest of it (git)."""
    return {name: value for name, value in environment.items() if not name.upper().endswith("_API_KEY")}


def wait(process: "subprocess.Popen[bytes]", seconds: float, cancelled: Callable[[], bool]) -> None:
    """Wait for a process to end. Raises ChildTimeout or ChildCancelled; killing it is then the caller's."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, min(0.05, deadline - time.monotonic())))
            return
        if cancelled():
            raise ChildCancelled
        if time.monotonic() >= deadline:
            raise ChildTimeout(f"process {process.pid} did not end in time")


def kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process that was started in a session of its own, with all that it started, in whatever sessions, at once.
    No harm if it has ended. Where there is no /proc, what it started in sessions of their own ends by itself when it
    finds its parent gone."""
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
            return
        os.killpg(process.pid, signal.SIGSTOP)  # so that it starts no more while we look
        below = leaving.descendants(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        for pid in below:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _kill_orphans(mark: str) -> None:
    """End what a process left behind that died by itself. Its children end when they find it gone, but for those that
    somebody had stopped, and by then the system no longer knows whose they were."""
    for pid in leaving.running():
        with contextlib.suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, signal.SIGKILL)
