"""Device memory as the host sees it: one array of bytes for each buffer, filled at once or page by page on demand."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from agent.execution.device import Bytes, Image, Poison, Recipe
from agent.execution.emulator.addresses import TAG_BITS, Array

PAGE_BITS = 16
PAGE = 1 << PAGE_BITS
# smaller contents are made whole: a page test on every access would cost more, unless few blocks run
EAGER, EAGER_OF_FEW = 1 << 24, 1 << 20
UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
MARK = {width: UNSIGNED[width](int("01" * width, 16)) for width in UNSIGNED}


@define(eq=False, slots=False)
class Buffer:
    """``start <= offset < stop`` from ``base`` (a 256-byte boundary) is the buffer; ``views`` see all of it by width.

    ``written`` marks bytes that the run wrote (None: nobody asked). ``poisoned``: what is not written is uninitialised.
    ``present``/``make`` are set while pages are still missing.
    """

    name: str
    tag: int
    start: int
    stop: int
    data: Bytes
    writable: bool = True
    poisoned: bool = False
    written: Bytes | None = None
    present: Array | None = None
    make: Callable[[int, int], Bytes] | None = None
    views: dict[int, Array] = field(factory=dict)
    marks: dict[int, Array] = field(factory=dict)

    @property
    def base(self) -> int:
        return self.tag << TAG_BITS

    @property
    def address(self) -> int:
        return self.base + self.start

    @property
    def nbytes(self) -> int:
        return self.stop - self.start

    def watch(self) -> None:
        """Keep a mark for each byte written from now on."""
        if self.written is None:
            self.written = np.zeros(len(self.data), np.uint8)
            self.marks = {width: self.written.view(kind) for width, kind in UNSIGNED.items()}

    def ensure(self, offsets: Array) -> None:
        """Make the pages that ``offsets`` (all inside the buffer) fall in."""
        if self.present is None:
            return
        pages = (offsets >> offsets.dtype.type(PAGE_BITS)).reshape(-1)
        missing = pages[~self.present[pages]]
        if missing.size:
            self._fill(np.unique(missing))

    def ensure_all(self) -> None:
        if self.present is not None:
            self._fill(np.flatnonzero(~self.present))

    def _fill(self, pages: Array) -> None:
        assert self.present is not None and self.make is not None
        for run in np.split(pages, np.flatnonzero(np.diff(pages.astype(np.int64)) != 1) + 1):
            if not len(run):
                continue
            first = max(int(run[0]) << PAGE_BITS, self.start)
            last = min((int(run[-1]) + 1) << PAGE_BITS, self.stop)
            self.data[first:last] = self.make(first - self.start, last - self.start)
        self.present[pages] = True
        if self.present.all():
            self.present = None

    def contents(self) -> Bytes:
        """The bytes of the buffer; of one too large to be made whole, pages never touched are zero."""
        return self.data[self.start : self.stop]


def new_buffer(name: str, tag: int, nbytes: int, start: int = 0, *, writable: bool = True) -> Buffer:
    """Zeroed memory; the operating system gives it only where it is touched."""
    data = np.zeros(-(-(start + max(nbytes, 1)) // 64) * 64, np.uint8)
    views = {width: data.view(kind) for width, kind in UNSIGNED.items()}
    return Buffer(name, tag, start, start + nbytes, data, writable, views=views)


def fill_from(buffer: Buffer, image: Image, eager: int = EAGER) -> None:
    """Give ``buffer`` the contents of ``image``, cut or left zero where the sizes differ."""
    contents, size = image.contents, min(buffer.nbytes, image.nbytes)
    if isinstance(contents, Poison):
        buffer.poisoned = True
        byte = contents.byte
        _lay(buffer, size, eager, lambda start, stop: np.full(stop - start, byte, np.uint8))
    elif isinstance(contents, Recipe):
        _lay(buffer, min(size, contents.nbytes), eager, contents.make)
    else:
        flat = np.ascontiguousarray(contents).reshape(-1).view(np.uint8)[:size]
        buffer.data[buffer.start : buffer.start + len(flat)] = flat


def _lay(buffer: Buffer, size: int, eager: int, make: Callable[[int, int], Bytes]) -> None:
    if size <= eager:
        if size:
            buffer.data[buffer.start : buffer.start + size] = make(0, size)
        return
    buffer.present = np.zeros(-(-len(buffer.data) // PAGE), bool)
    buffer.make = lambda start, stop: _padded(make, start, stop, size)


def _padded(make: Callable[[int, int], Bytes], start: int, stop: int, size: int) -> Bytes:
    if stop <= size:
        return make(start, stop)
    part = np.zeros(stop - start, np.uint8)
    if start < size:
        part[: size - start] = make(start, size)
    return part
