"""Fewer rights for this process, by whatever the system has for that."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from attrs import frozen

import agent
from agent.execution.children.rights import landlock, seccomp

T = TypeVar("T")

SECCOMP, LANDLOCK = "seccomp", "Landlock"

KEEP = "CUDA_LSP_KEEP_RIGHTS"
"""Set by a user whose driver or libraries cannot do without some right: nothing is given up."""

_STACK = 64 << 20
"""Bytes: compilers go deep."""

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store")
_SINGLE = (
    "/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
)  # fmt: skip


@frozen
class Fewer:
    """What holds from now on (names of mechanisms), and why others do not, in words."""

    by: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def give_up(host_bytes: int | None = None, landlocked: bool = True) -> Fewer:
    """No network, no other process or program, no file made, changed or taken away, for good; as far as the system
    can. ``host_bytes``: so much more memory may this process take. ``landlocked``: by Landlock as well, which also
    keeps from files that other processes hold open."""
    if os.environ.get(KEEP):
        return Fewer((), (f"{KEEP} is set",))
    if sys.platform != "linux":
        return Fewer((), ("Linux has seccomp and Landlock, this system has neither",))
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if host_bytes is not None:
        _cap(host_bytes)
    by, missing = list[str](), list[str]()
    if landlocked:
        try:
            landlock.change_nothing()
            by.append(LANDLOCK)
        except OSError as error:
            missing.append(f"{LANDLOCK}: {error.strerror}")
    problem = seccomp.install()
    if problem:
        missing.append(f"{SECCOMP}: {problem}")
    else:
        by.insert(0, SECCOMP)
    return Fewer(tuple(by), tuple(missing))


def _cap(more: int) -> None:
    """Private memory that is written to; what the driver lays out on top of that without touching it does not count."""
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        held = int(next(line for line in lines if line.startswith("VmData:")).split()[1]) * 1024
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        allowed = held + more if hard == resource.RLIM_INFINITY else min(held + more, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


def reading_only(folders: Iterable[str], action: Callable[[], T]) -> T:
    """Do it in a thread that can read nothing but these folders, the system's libraries and our own; as it is where
    there is no Landlock. Raises what it raises."""
    if sys.platform != "linux" or os.environ.get(KEEP) or not landlock.version():
        return action()
    places = [Path(place) for place in (*folders, *_SYSTEM, *_SINGLE, *_programs())]
    found: list[T] = []
    failed: list[BaseException] = []

    def alone() -> None:
        try:
            landlock.read_only(places)
            found.append(action())
        except BaseException as error:
            failed.append(error)

    before = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=alone, name="cuda-lsp reading only")
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def _programs() -> list[str]:
    """Where Python, its packages and CUDA's libraries lie."""
    named = [os.environ.get(name, "") for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "VIRTUAL_ENV")]
    searched = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    packages = [place for place in sys.path if Path(place).name in ("site-packages", "dist-packages")]
    ours = str(Path(agent.__file__).parent)
    return [
        place for place in dict.fromkeys((*named, *searched, sys.prefix, sys.base_prefix, *packages, ours)) if place
    ]
