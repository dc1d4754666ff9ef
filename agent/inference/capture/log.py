"""The recorder's logs -> launches. The program that was recorded had the folder open: nothing in there is trusted.

A folder holds ``PID.log`` for each process (``PID.1.log`` where it replaced itself by another program) and the contents
of buffers in ``PID-NUMBER.raw``. All numbers are little-endian. A log begins with ``CLSPCAP1`` and the process id
(u32). Then come records: kind and length of the body (u32 each), the body, and the check sum of all that (u32, CRC-32).

====  =========  =====================================================================================================
kind  record     body
====  =========  =====================================================================================================
1     launch     u64 serial, u64 number, text name, i32 device, u32 context, u32 cooperative, u32 layout, u32[3] grid,
                 u32[3] block, u32[3] cluster, u32 shared, u32 count of arguments: (u64 offset, text bytes, memory),
                 u32 count of symbols: (text name, memory)
2     after      u64 serial, u32 count: memory
3     trouble    text
4     kernel     text name, text readable name; once, before its first launch
5     goodbye    u64 launches of graphs, u64 launches in a capture, u64 calls of old, u64 beyond, u32 count of kernels:
                 (text name, u64 launches, u64 recorded)
====  =========  =====================================================================================================

A text is its length (u32) and its bytes; a memory u64 base, u64 extent, u64 offset, u32 kind, u32 managed, i32 device,
u32 held, u32 code, u64 number of its file (0: none).
"""

import contextlib
import os
import stat
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, evolve, field, frozen

from agent.inference.capture.errors import CaptureError
from agent.inference.capture.launches import (
    HELD,
    KEPT,
    KINDS,
    Argument,
    Capture,
    Count,
    Launch,
    Memory,
    Process,
    Symbol,
)

MAGIC = b"CLSPCAP1"
LARGEST_LOG = 64 << 20
MOST_LOGS = 1024
LONGEST_TEXT = 1 << 16
"""Bytes of a name, or of one parameter (CUDA's own limit on all of them is 32,764)."""
MOST = 1 << 16
"""Arguments of a launch, symbols, and kernels of a process that are read."""

_LAYOUTS = ("driver", "file", "unknown")
_MEMORY = struct.Struct("<QQQIIiIIQ")
_HEAD = struct.Struct("<II")
_SUM = struct.Struct("<I")

T = TypeVar("T")


class _Torn(Exception):
    """The bytes end, or are none that the recorder writes."""


@frozen
class _Files:
    """Where the contents of a process's buffers lie."""

    folder: Path
    stem: str

    def of(self, number: int, extent: int) -> Path | None:
        """The file of that number, if it is one and holds just ``extent`` bytes. No link is followed."""
        path = self.folder / f"{self.stem}-{number}.raw"
        with contextlib.suppress(OSError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_size == extent:
                return path
        return None


@define
class _Cursor:
    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise _Torn
        self.at += count
        return self.data[self.at - count : self.at]

    def numbers(self, form: str) -> tuple[Any, ...]:
        layout = struct.Struct("<" + form)
        return layout.unpack(self.take(layout.size))

    def count(self) -> int:
        (count,) = self.numbers("I")
        if count > MOST:
            raise _Torn
        return int(count)

    def raw(self) -> bytes:
        (length,) = self.numbers("I")
        if length > LONGEST_TEXT:
            raise _Torn
        return self.take(length)

    def text(self) -> str:
        return self.raw().decode("utf-8", "replace")

    def many(self, read: Callable[[], T]) -> tuple[T, ...]:
        return tuple(read() for _ in range(self.count()))


@define
class _Told:
    """What was read of one process so far."""

    pid: int
    files: _Files
    launches: dict[int, Launch] = field(factory=dict)
    kernels: dict[str, str] = field(factory=dict)
    troubles: list[str] = field(factory=list)
    ended: dict[str, Any] = field(factory=dict)
    torn: bool = False


def read_capture(folder: Path) -> Capture:
    """Everything that was recorded into ``folder``. A log that ends in the middle (the program crashed, or the disk was
    full) gives what is whole. Raises CaptureError for a folder that cannot be read or holds too many logs."""
    try:
        logs = sorted((path for path in folder.iterdir() if path.suffix == ".log"), key=_order)
    except OSError as error:
        raise CaptureError(f"{folder} cannot be read: {error.strerror}", machine=False) from None
    if len(logs) > MOST_LOGS:
        raise CaptureError(
            f"the program ran in {len(logs)} processes that use CUDA; at most {MOST_LOGS} are read. Capture one of "
            "them alone",
            machine=False,
        )
    found = (read_log(path) for path in logs)
    return Capture(tuple(process for process in found if process is not None))


def _order(path: Path) -> tuple[int, ...]:
    """By process, and in each of them by the programs that it was."""
    return tuple(int(part) for part in path.stem.split(".") if part.isdecimal())


def read_log(path: Path) -> Process | None:
    """What one process recorded; None where the file is no log."""
    cursor = _Cursor(_content(path))
    with contextlib.suppress(_Torn):
        if cursor.take(len(MAGIC)) != MAGIC:
            return None
        (pid,) = cursor.numbers("I")
        told = _Told(pid, _Files(path.parent, path.stem))
        _records(cursor, told)
        return Process(
            told.pid, tuple(told.launches.values()), told.kernels, tuple(told.troubles),
            told.ended.pop("counts", None), torn=told.torn, **told.ended,
        )  # fmt: skip
    return None


def _content(path: Path) -> bytes:
    """The file, as far as a log may be long; nothing of what is no plain file."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return file.read(LARGEST_LOG)
    return b""


def _records(cursor: _Cursor, told: _Told) -> None:
    while cursor.at < len(cursor.data):
        try:
            head = cursor.take(_HEAD.size)
            kind, length = _HEAD.unpack(head)
            body = cursor.take(length)
            (checksum,) = _SUM.unpack(cursor.take(_SUM.size))
            if zlib.crc32(body, zlib.crc32(head)) != checksum or kind not in _RECORDS:
                raise _Torn
            _RECORDS[kind](_Cursor(body), told)
        except _Torn:
            told.torn = True
            return


def _memory(cursor: _Cursor, files: _Files) -> Memory | None:
    """None where an address is none that the driver knows."""
    base, extent, offset, kind, managed, device, held, code, number = _MEMORY.unpack(cursor.take(_MEMORY.size))
    if held == 0:
        return None
    word = HELD[held] if held < len(HELD) else HELD[-1]
    if word != HELD[-1] and (offset >= extent or base + extent > 2**64):
        raise _Torn
    file = files.of(number, extent) if word == KEPT else None
    if word == KEPT and file is None:
        word = "disk"
    return Memory(base, extent, offset, KINDS.get(kind, ""), bool(managed), device, word, code, file)


def _known(memory: Memory | None) -> Memory:
    if memory is None:
        raise _Torn
    return memory


def _launch(cursor: _Cursor, told: _Told) -> None:
    serial, number = cursor.numbers("QQ")
    name = cursor.text()
    device, context, cooperative, layout = cursor.numbers("iIII")
    sizes = cursor.numbers("10I")

    def argument() -> Argument:
        (offset,) = cursor.numbers("Q")
        return Argument(offset, cursor.raw(), _memory(cursor, told.files))

    def symbol() -> Symbol:
        return Symbol(cursor.text(), _known(_memory(cursor, told.files)))

    told.launches[serial] = Launch(
        told.pid, serial, number, name, told.kernels.get(name, name), device, context, bool(cooperative),
        _LAYOUTS[min(layout, 2)], sizes[0:3], sizes[3:6], sizes[6:9], sizes[9],
        cursor.many(argument), cursor.many(symbol),
    )  # fmt: skip


def _after(cursor: _Cursor, told: _Told) -> None:
    (serial,) = cursor.numbers("Q")
    found = cursor.many(lambda: _memory(cursor, told.files))
    if serial in told.launches:
        nothing = Memory(0, 0, 0, "", False, -1, "")
        after = tuple(nothing if memory is None else memory for memory in found)
        told.launches[serial] = evolve(told.launches[serial], after=after)


def _trouble(cursor: _Cursor, told: _Told) -> None:
    if len(told.troubles) < MOST:
        told.troubles.append(cursor.text())


def _kernel(cursor: _Cursor, told: _Told) -> None:
    name, readable = cursor.text(), cursor.text()
    if len(told.kernels) < MOST:
        told.kernels[name] = readable


def _goodbye(cursor: _Cursor, told: _Told) -> None:
    graphs, in_capture, old_calls, beyond = cursor.numbers("QQQQ")
    counts = dict(cursor.many(lambda: (cursor.text(), Count(*cursor.numbers("QQ")))))
    told.ended = {
        "graphs": graphs, "in_capture": in_capture, "old_calls": old_calls, "beyond": beyond, "counts": counts
    }  # fmt: skip


_RECORDS: Mapping[int, Callable[[_Cursor, _Told], None]] = {
    1: _launch, 2: _after, 3: _trouble, 4: _kernel, 5: _goodbye
}  # fmt: skip
