"""Secret numbers: from the operating system's source, or again from a root that a proof record reveals.

What a verdict draws comes from two roots of 128 bits each, the original's and the candidate's, which nobody can know
before the verdict is there. Inside ``drawing`` the numbers follow from root, stage and count alone, so that whoever is
told the root draws them again. A stage has a stream of its own: one that ran out of time moves no other's numbers.
"""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from attrs import define

ROOT_BYTES = 16


@define
class _Stream:
    key: bytes
    stage: str
    drawn: int = 0

    def next(self) -> int:
        """128 bits: a keyed hash (RFC 7693) of the stage and the count."""
        told = f"{self.stage}\0{self.drawn}".encode()
        self.drawn += 1
        return int.from_bytes(hashlib.blake2b(told, digest_size=16, key=self.key).digest(), "big")


_STREAM: ContextVar[_Stream | None] = ContextVar("stream", default=None)


def fresh_root() -> str:
    """A root that nobody could know before, as hexadecimal digits."""
    return secrets.token_hex(ROOT_BYTES)


@contextmanager
def drawing(root: str, stage: str) -> Iterator[None]:
    """Numbers drawn inside are those of ``stage`` under ``root``, from its first on. Raises ValueError for a root that
    is no hexadecimal number."""
    token = _STREAM.set(_Stream(bytes.fromhex(root), stage))
    try:
        yield
    finally:
        _STREAM.reset(token)


def draw_seed() -> int:
    """A seed of 63 bits."""
    stream = _STREAM.get()
    return secrets.randbits(63) if stream is None else stream.next() >> 65


def draw_between(low: int, high: int) -> int:
    """A number ``low <= n <= high``."""
    stream, count = _STREAM.get(), high - low + 1
    return low + (secrets.randbelow(count) if stream is None else stream.next() % count)
