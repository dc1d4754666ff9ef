"""A filter of system calls: what needs the network, another process or a change to a file is refused.

seccomp(2), in the language of the Berkeley packet filter. Refused calls fail with EPERM; those whose arguments a filter
cannot see (they lie in memory) are said not to exist, so that libraries take the older ones.
"""

import ctypes
import errno
import os
import struct

from attrs import define, field

from agent.execution.children.rights.system_calls import Calls, calls

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _PROCESSOR, _ARGUMENTS = 0, 4, 16
_FILTER, _ALL_THREADS, _NO_SLOWER = 1, 1, 4
_NO_NEW_PRIVILEGES = 38

_THREAD = 0x10000
_MAKES_OR_CUTS = os.O_CREAT | os.O_TRUNC


@define
class _Text:
    """A program that is being written: jumps name where they lead."""

    lines: list[tuple[int, str, str, int]] = field(factory=list)
    places: dict[str, int] = field(factory=dict)

    def add(self, code: int, k: int, then: str = "", otherwise: str = "") -> None:
        self.lines.append((code, then, otherwise, k))

    def place(self, name: str) -> None:
        self.places[name] = len(self.lines)

    def packed(self) -> bytes:
        def far(name: str, line: int) -> int:
            return self.places[name] - line - 1 if name else 0

        return b"".join(
            struct.pack("<HBBI", code, far(then, line), far(otherwise, line), k)
            for line, (code, then, otherwise, k) in enumerate(self.lines)
        )


def program(known: Calls, own: int) -> bytes:
    """The filter for the process ``own``."""
    text = _Text()
    text.add(_LOAD, _PROCESSOR)
    text.add(_EQUAL, known.audit, otherwise="refuse")
    text.add(_LOAD, _NUMBER)
    if known.least_foreign:
        text.add(_AT_LEAST, known.least_foreign, "refuse")
    for number in known.never:
        text.add(_EQUAL, number, "refuse")
    for name in ("clone3", "openat2"):
        text.add(_EQUAL, known.number[name], "unknown")
    _where(text, known, "open", 1, [(_ANY_BIT, _MAKES_OR_CUTS, "refuse", "allow")])
    _where(text, known, "openat", 2, [(_ANY_BIT, _MAKES_OR_CUTS, "refuse", "allow")])
    _where(text, known, "clone", 0, [(_ANY_BIT, _THREAD, "allow", "refuse")])
    _where(text, known, "tgkill", 0, [(_EQUAL, own, "allow", "refuse")])
    _where(text, known, "prlimit64", 0, [(_EQUAL, 0, "allow", ""), (_EQUAL, own, "allow", "refuse")])
    for name, answer in (
        ("allow", _ALLOW), ("refuse", _FAIL | errno.EPERM), ("unknown", _FAIL | errno.ENOSYS),
    ):  # fmt: skip
        text.place(name)
        text.add(_RETURN, answer)
    return text.packed()


def _where(text: _Text, known: Calls, name: str, argument: int, tests: list[tuple[int, int, str, str]]) -> None:
    """What becomes of one call by the low half of one of its arguments."""
    if name not in known.number:
        return
    text.add(_EQUAL, known.number[name], otherwise=f"after {name}")
    text.add(_LOAD, _ARGUMENTS + 8 * argument)
    for code, k, then, otherwise in tests:
        text.add(code, k, then, otherwise)
    text.place(f"after {name}")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install() -> str:
    """For all threads of this process and for good. Why it cannot be, or nothing."""
    known = calls()
    if known is None:
        return "system calls of this processor are not known"
    text = program(known, os.getpid())
    held = ctypes.create_string_buffer(text, len(text))
    asked = _Program(len(text) // 8, ctypes.addressof(held))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return os.strerror(ctypes.get_errno())
    flags = _ALL_THREADS | _NO_SLOWER
    answer = library.syscall(known.number["seccomp"], _FILTER, flags, ctypes.byref(asked))
    if answer == 0:
        return ""
    return os.strerror(ctypes.get_errno()) if answer < 0 else "a thread has a filter of its own"
