"""The child's side of a conversation: one loop, its limits, and an end when the parent ends."""

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable

from agent.execution import leaving, wire
from agent.execution.wire import Channel, Frame


def serve(handle: Callable[[Channel], None], memory: int | None = None) -> None:
    """Call ``handle`` for one conversation after the other, for as long as the parent lives.

    ``memory`` caps the address space in bytes where the platform can. Whatever native code prints to standard output
    goes to standard error instead: the pipe carries frames only.
    """
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    limit(memory)
    frames: queue.Queue[Frame] = queue.Queue(maxsize=2)
    threading.Thread(target=_read, args=(frames,), daemon=True).start()
    channel = Channel(frames.get, sink)
    while True:
        handle(channel)


def _read(frames: "queue.Queue[Frame]") -> None:
    """Read ahead in a thread of its own, so that the end of the parent ends us also in the midst of work."""
    try:
        while (frame := wire.read_frame(sys.stdin.buffer)) is not None:
            frames.put(frame)
    finally:
        with contextlib.suppress(Exception):
            leaving.leave_nothing()
        os._exit(0)


def limit(memory: int | None) -> None:
    """No core files; at most ``memory`` bytes of address space."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))


def allow_cpu(seconds: float) -> None:
    """Let this process use ``seconds`` more of processor time, then end it: the parent's clock is not the only one."""
    if sys.platform == "win32":
        return
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(usage.ru_utime + usage.ru_stime + seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
