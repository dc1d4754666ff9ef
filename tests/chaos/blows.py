"""What befalls a process: killed, crashed, ended, stopped for a while or for good, out of disk, its pipe closed."""

import contextlib
import os
import random
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import frozen

from agent.execution.leaving import descendants
from agent.execution.process import Child

ROLES = {
    "worker": "tests.chaos.worker",
    "compiler": "agent.execution.children.nvrtc",
    "runner": "agent.execution.children.runner",
}
"""The module that each process runs; the referee of a card is the worker."""

_SIGNALS = {
    "kill": signal.SIGKILL, "crash": signal.SIGSEGV, "abort": signal.SIGABRT, "exit": signal.SIGTERM,
    "pause": signal.SIGSTOP, "hang": signal.SIGSTOP,
}  # fmt: skip
KINDS = (*_SIGNALS, "full disk", "closed pipe")


@frozen
class Blow:
    """``kind`` falls on a process of ``role``, ``delay`` seconds after its job said something for the ``after``-th
    time. A ``pause`` ends after ``pause`` seconds, a ``hang`` with the process."""

    kind: str
    role: str
    after: int
    delay: float
    pause: float


def drawn(seed: int, roles: tuple[str, ...]) -> Iterator[Blow]:
    """Blows without end: every kind on every role before any comes twice."""
    dice = random.Random(seed)
    while True:
        pairs = [(kind, role) for kind in KINDS for role in roles if kind != "closed pipe" or role == "worker"]
        dice.shuffle(pairs)
        for kind, role in pairs:
            yield Blow(kind, role, dice.randint(0, 7), dice.uniform(0, 0.2), dice.uniform(0.2, 2.0))


def strike(blow: Blow, workers: tuple[Child, ...], dice: random.Random) -> Callable[[], None] | None:
    """Let it fall on one process of that role below the ``workers``. What ends it, to be called later (for most blows,
    nothing to do); None where there is no such process now."""
    found = [pid for worker in workers for pid in (worker.pid, *descendants(worker.pid)) if role_of(pid) == blow.role]
    if not found:
        return None
    pid = dice.choice(found)
    with contextlib.suppress(ProcessLookupError):
        if blow.kind == "full disk":
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
        elif blow.kind == "closed pipe":
            _close(next(worker for worker in workers if worker.pid == pid))
        else:
            os.kill(pid, _SIGNALS[blow.kind])
            if blow.kind == "pause":
                return lambda: _signal(pid, signal.SIGCONT)
    return lambda: None


def role_of(pid: int) -> str:
    """By the module that a child was told to run, the last word of its command line; empty for others."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return next((role for role, module in ROLES.items() if words[-1] == module.encode()), "")
    return ""


def _close(worker: Child) -> None:
    """The pipe to it ends, while its process and whoever talks to it know nothing: the descriptor leads nowhere now."""
    assert worker._process.stdin is not None
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), worker._process.stdin.fileno())


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
