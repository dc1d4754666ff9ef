"""How we talk to our own child processes, and how results are kept on disk: JSON for structure, raw bytes beside it.

A frame is ``>I`` (length of the header), the header as JSON, then the blobs, one after the other. The header names the
message's class, so that a reader says which classes it expects and nothing else is ever built (no pickle).
"""

import io
import json
import struct
import threading
from collections.abc import Callable
from typing import Any, Protocol

import cattrs
from attrs import has

_LENGTH = struct.Struct(">I")
_LARGEST_HEADER = 1 << 28


class WireError(Exception):
    """What arrived is no message of ours: cut short, damaged, or of an unexpected class."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Writable(Protocol):
    def write(self, data: bytes, /) -> Any: ...
    def flush(self) -> Any: ...


class _Blobs(threading.local):
    """The blobs of the message that this thread packs or unpacks."""

    def __init__(self) -> None:
        self.items: list[bytes] = []


_blobs = _Blobs()


def _pack_bytes(data: bytes) -> int:
    _blobs.items.append(data)
    return len(_blobs.items) - 1


def _unpack_bytes(index: Any, _: Any) -> bytes:
    return _blobs.items[int(index)]


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter()
    converter.register_unstructure_hook(bytes, _pack_bytes)
    converter.register_structure_hook(bytes, _unpack_bytes)
    converter.register_structure_hook(int | float, lambda value, _: value)
    return converter


_converter = _make_converter()


def send(value: object, sink: Writable) -> None:
    """Write one attrs value as a frame. Raises OSError when the other side is gone."""
    assert has(type(value))
    _blobs.items = []
    body = _converter.unstructure(value)
    blobs, _blobs.items = _blobs.items, []
    header = json.dumps({"class": type(value).__name__, "body": body, "blobs": [len(blob) for blob in blobs]}).encode()
    sink.write(_LENGTH.pack(len(header)) + header)
    for blob in blobs:
        sink.write(blob)
    sink.flush()


Frame = tuple[str, Any, list[bytes]]


def read_frame(source: Readable) -> Frame | None:
    """The next frame, not yet turned into a value; None at a clean end. Raises WireError when it is cut short."""
    start = source.read(_LENGTH.size)
    if not start:
        return None
    if len(start) < _LENGTH.size:
        raise WireError("the message was cut short")
    (length,) = _LENGTH.unpack(start)
    if length > _LARGEST_HEADER:
        raise WireError("the message is damaged (impossible length)")
    try:
        header = json.loads(_exactly(source, length))
        return str(header["class"]), header["body"], [_exactly(source, int(size)) for size in header["blobs"]]
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"the message is damaged ({error})") from error


def open_frame(frame: Frame, *classes: type[Any]) -> Any:
    """The frame's value, which must be of one of ``classes``. Raises WireError."""
    name, body, blobs = frame
    for cls in classes:
        if cls.__name__ == name:
            _blobs.items = blobs
            try:
                return _converter.structure(body, cls)
            except Exception as error:
                raise WireError(f"a {name} message that cannot be read ({error})") from error
            finally:
                _blobs.items = []
    raise WireError(f"an unexpected message: {name}")


def _exactly(source: Readable, size: int) -> bytes:
    data = source.read(size) if size else b""
    if len(data) != size:
        raise WireError("the message was cut short")
    return data


class Channel:
    """Both directions of a conversation. ``receive`` raises EOFError when the other side has gone."""

    def __init__(self, next_frame: Callable[[], Frame | None], sink: Writable) -> None:
        self._next_frame = next_frame
        self._sink = sink

    def send(self, value: object) -> None:
        send(value, self._sink)

    def receive(self, *classes: type[Any]) -> Any:
        frame = self._next_frame()
        if frame is None:
            raise EOFError("the other side has gone")
        return open_frame(frame, *classes)


def encode(value: object) -> bytes:
    """One value as bytes (for files)."""
    parts = _Parts()
    send(value, parts)
    return b"".join(parts.parts)


def decode(data: bytes, *classes: type[Any]) -> Any:
    """The value that :func:`encode` wrote. Raises WireError."""
    frame = read_frame(io.BytesIO(data))
    if frame is None:
        raise WireError("nothing there")
    return open_frame(frame, *classes)


class _Parts:
    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes, /) -> None:
        self.parts.append(data)

    def flush(self) -> None:
        pass
