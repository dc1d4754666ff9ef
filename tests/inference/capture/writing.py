"""Logs written by hand, from the description in ``agent/inference/capture/log.py`` and by nothing of its code."""

import struct
import zlib
from pathlib import Path

SAXPY = ("_Z5saxpyifPKfPf", "saxpy(int, float, float const*, float*)")


def log(*records: bytes, pid: int = 42) -> bytes:
    return b"CLSPCAP1" + struct.pack("<I", pid) + b"".join(records)


def record(kind: int, body: bytes) -> bytes:
    whole = struct.pack("<II", kind, len(body)) + body
    return whole + struct.pack("<I", zlib.crc32(whole))


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(raw)) + raw


def memory(
    base: int = 0, extent: int = 0, offset: int = 0, kind: int = 2, managed: int = 0, device: int = 0, held: int = 1,
    code: int = 0, file: int = 0,
) -> bytes:  # fmt: skip
    return struct.pack("<QQQIIiIIQ", base, extent, offset, kind, managed, device, held, code, file)


NOWHERE = memory(held=0)


def argument(offset: int, data: bytes, place: bytes = NOWHERE) -> bytes:
    return struct.pack("<Q", offset) + text(data) + place


def launch(
    *arguments: bytes, serial: int = 1, number: int = 1, name: str = SAXPY[0], grid: tuple[int, int, int] = (4, 1, 1),
    block: tuple[int, int, int] = (256, 1, 1), cluster: tuple[int, int, int] = (1, 1, 1), shared: int = 0,
    cooperative: int = 0, layout: int = 0, symbols: tuple[bytes, ...] = (),
) -> bytes:  # fmt: skip
    body = struct.pack("<QQ", serial, number) + text(name) + struct.pack("<iIII", 0, 1, cooperative, layout)
    body += struct.pack("<10I", *grid, *block, *cluster, shared)
    body += struct.pack("<I", len(arguments)) + b"".join(arguments)
    return record(1, body + struct.pack("<I", len(symbols)) + b"".join(symbols))


def kernel(name: str, readable: str) -> bytes:
    return record(4, text(name) + text(readable))


def goodbye(*counts: tuple[str, int, int], graphs: int = 0, captures: int = 0, old: int = 0, beyond: int = 0) -> bytes:
    body = struct.pack("<QQQQI", graphs, captures, old, beyond, len(counts))
    return record(5, body + b"".join(text(name) + struct.pack("<QQ", many, some) for name, many, some in counts))


def saxpy(folder: Path, x: bytes, y: bytes, n: int = 1000, a: float = 2.0) -> bytes:
    """One launch of saxpy whose buffers hold ``x`` and ``y``."""
    (folder / "42-1.raw").write_bytes(x)
    (folder / "42-2.raw").write_bytes(y)
    return launch(
        argument(0, struct.pack("<i", n)),
        argument(4, struct.pack("<f", a)),
        argument(8, struct.pack("<Q", 0x7000), memory(0x7000, len(x), file=1)),
        argument(16, struct.pack("<Q", 0x9000), memory(0x9000, len(y), file=2)),
    )
