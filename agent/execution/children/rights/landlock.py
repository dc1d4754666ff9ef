"""Which files a thread, and what it starts, may read; and that it changes none. landlock(7), Linux 5.13 or newer."""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHANGE = _EXECUTE | _WRITE | sum(1 << bit for bit in range(4, 13))
_LATER = ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
"""Rights that came with later versions: linking elsewhere, cutting short, controlling devices."""

_CONNECT = 0b11
"""TCP: to listen and to connect; version 4."""


def version() -> int:
    """That of the kernel; 0 where there is none."""
    try:
        return max(0, _call(_CREATE, None, 0, _VERSION))
    except (OSError, AttributeError):
        return 0


def change_nothing() -> None:
    """No file is written, made or taken away from now on. Raises OSError."""
    there = version()
    rights = _CHANGE | sum(right for least, right in _LATER if there >= least)
    _restrict(rights, _CONNECT if there >= 4 else 0, ())


def read_only(places: Iterable[Path]) -> None:
    """Nothing is read from now on but what lies in these folders, and these files. Raises OSError."""
    _restrict(_READ | _LIST, 0, places)


def _restrict(files: int, network: int, places: Iterable[Path]) -> None:
    asked = struct.pack("=QQ", files, network) if network else struct.pack("=Q", files)
    rules = _call(_CREATE, asked, len(asked), 0)
    try:
        for place in places:
            _allow(rules, place)
        library = ctypes.CDLL(None, use_errno=True)
        if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        _call(_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, place: Path) -> None:
    """A place that is not there needs no rule."""
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ | _LIST if place.is_dir() else _READ
        _call(_ADD, rules, _BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: int | bytes | None) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    found = int(library.syscall(ctypes.c_long(number), *given))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
