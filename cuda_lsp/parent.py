"""Noticing that the editor is gone: a killed editor sends no ``exit``, and its pipe may be held open by others."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

EVERY = 1.0


def watch(process: int | None, gone: Callable[[], None]) -> None:
    """Call ``gone``, in a thread, once a process has ended. A process that is not seen now is not watched: it may be
    on another machine, or outside our container."""
    if process is None or process <= 0 or not is_alive(process):
        return
    parent = os.getppid()
    mine = parent == process

    def look() -> None:
        while is_alive(process) and not (mine and os.getppid() != parent):
            pause.wait(EVERY)
        gone()

    pause = threading.Event()
    threading.Thread(target=look, name="cuda-lsp parent", daemon=True).start()


def is_alive(process: int) -> bool:
    """Whether a process with this id exists. A zombie counts as one."""
    if sys.platform == "win32":
        return _is_alive_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _is_alive_on_windows(process: int) -> bool:
    import ctypes

    synchronize, timeout = 0x00100000, 0x102
    kernel32 = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel32.OpenProcess(synchronize, False, process)
    if not handle:
        return False
    try:
        return bool(kernel32.WaitForSingleObject(handle, 0) == timeout)
    finally:
        kernel32.CloseHandle(handle)
