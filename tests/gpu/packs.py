"""Launches made ready on one machine and repeated on another: a program, its buffers, and what the emulator said.

A pack is a file. It holds the machine code that NVRTC made together with the PTX that was emulated, so that a card runs
the very program, and the outputs byte by byte.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from agent.execution import wire
from agent.execution.compiler import Build
from agent.execution.device import Answer, Image, Poison, Request
from agent.workload.binding import BoundStep

SUFFIX = ".pack"


@frozen
class Stored:
    """A buffer before the launch (compressed; empty: nothing was written to it) and, where it is an output, after."""

    name: str
    nbytes: int
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    symbol: bool
    dtype: str


@frozen
class Pack:
    """``inexact`` are the opcodes whose results PTX does not define to the bit (see ``Answer.inexact``). ``reached`` is
    the part of the code's basic blocks that ran."""

    repository: str
    file: str
    kernel: str
    sizes: Mapping[str, int]
    build: Build
    steps: tuple[BoundStep, ...]
    buffers: tuple[Stored, ...]
    inexact: tuple[str, ...]
    reached: float
    blocks: int

    def request(self) -> Request:
        """The same launches for any device; every buffer that was an output is one."""
        images = tuple(Image(one.name, one.nbytes, _contents(one), symbol=one.symbol) for one in self.buffers)
        return Request(self.build, self.steps, images, tuple(one.name for one in self.buffers if one.after))


def _contents(one: Stored) -> npt.NDArray[np.uint8] | Poison:
    return np.frombuffer(zlib.decompress(one.before), np.uint8).copy() if one.before else Poison()


def stored(image: Image, answer: Answer, dtype: str) -> Stored:
    """``image`` as it was asked for, and what ``answer`` says of it."""
    before = b"" if isinstance(image.contents, Poison) else _squeezed(_bytes(image))
    after = _squeezed(answer.outputs[image.name]) if image.name in answer.outputs else b""
    return Stored(image.name, image.nbytes, before, after, image.symbol, dtype)


def after(one: Stored) -> npt.NDArray[np.uint8]:
    return np.frombuffer(zlib.decompress(one.after), np.uint8)


def _bytes(image: Image) -> npt.NDArray[np.uint8]:
    made = image.contents
    assert not isinstance(made, Poison)
    return made if isinstance(made, np.ndarray) else made.make(0, made.nbytes)


def _squeezed(data: npt.NDArray[np.uint8]) -> bytes:
    return zlib.compress(np.ascontiguousarray(data).tobytes(), 6)


def write(pack: Pack, path: Path) -> None:
    path.write_bytes(wire.encode(pack))


def read(path: Path) -> Pack:
    found: Pack = wire.decode(path.read_bytes(), Pack)
    return found
