"""Contents for buffers: input families inside a buffer's domain, computed from a seed and the element's index alone.

``recipe`` gives a function from a byte range to its bytes; any split of a buffer gives the same bytes. Which families
make sense for a workload is asked of ``families``.
"""

import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from agent.workload import data, dtypes, floats, integers, random
from agent.workload.binding import BoundBuffer
from agent.workload.errors import WorkloadError
from agent.workload.workload import Access, Buffer, Domain, Workload

Bytes = npt.NDArray[np.uint8]

# What one step makes at a time: small enough for the second-level cache.
_CHUNK = 1 << 15

DOMAINS = frozenset({*floats.DOMAINS, *integers.DOMAINS, "bytes", "data"})
FAMILIES = (*floats.FAMILIES, "small-integers")
SPECIAL = "nan-inf"
CAPTURED = "captured"
"""Where every input holds what was captured, there is one family alone."""


def recipe(buffer: BoundBuffer, family: str, seed: int) -> Callable[[int, int], Bytes]:
    """``make(start, stop)``: the bytes ``start <= i < stop`` of the buffer in this family.

    A family that means nothing to this buffer (``denormals`` to indices) falls back to the buffer's own domain, so
    that one family name serves all buffers of a workload. Raises WorkloadError for an unknown family or domain, and
    for a struct of mixed members whose domain is not stated as ``bytes``.
    """
    if family not in (*FAMILIES, SPECIAL, CAPTURED, *DOMAINS):
        raise WorkloadError(f"`{family}` is no input family; families are {', '.join((*FAMILIES, SPECIAL))}")
    values = _values(buffer, family, random.key(seed, zlib.crc32(buffer.name.encode())))
    size = dtypes.size_of(dtypes.base(buffer.dtype)[0])

    def make(start: int, stop: int) -> Bytes:
        start, stop = max(0, start), min(stop, buffer.nbytes)
        if stop <= start:
            return np.empty(0, np.uint8)
        out = np.empty(stop - start, np.uint8)
        for first in range(start // size, -(-stop // size), _CHUNK):
            last = min(first + _CHUNK, -(-stop // size))
            piece = values(first, last).view(np.uint8)
            begin, end = max(start, first * size), min(stop, last * size)
            out[begin - start : end - start] = piece[begin - first * size : end - first * size]
        return out

    return make


def _values(buffer: BoundBuffer, family: str, key: int) -> Callable[[int, int], npt.NDArray[np.generic]]:
    scalar, lanes = dtypes.base(buffer.dtype)
    if buffer.domain.kind == "data":
        return _captured(buffer, scalar)
    if dtypes.is_raw(buffer.dtype):
        if buffer.domain.kind != "bytes":
            raise WorkloadError(
                f"the elements of `{buffer.name}` are structs of {lanes} bytes and nobody said what they may hold; "
                "state `bytes` in a directive if any bytes will do"
            )
        return integers.values(scalar, buffer.count * lanes, "integers", None, None, family, key)
    kind = buffer.domain.kind
    if kind == "bytes":
        return _random_bytes(scalar, key)
    make = floats.values if scalar in dtypes.FLOATS else integers.values
    known = floats.DOMAINS if scalar in dtypes.FLOATS else integers.DOMAINS
    if kind not in known:
        raise WorkloadError(
            f"`{kind}` is no domain for `{buffer.name}` ({buffer.dtype}); domains are {', '.join(known)}"
        )
    return make(scalar, buffer.count * lanes, kind, buffer.low, buffer.high, family, key)


def _captured(buffer: BoundBuffer, scalar: str) -> Callable[[int, int], npt.NDArray[np.generic]]:
    """What was captured, whatever family and seed."""
    held, size = data.load(buffer.domain.data, buffer.name), dtypes.size_of(scalar)

    def make(first: int, last: int) -> npt.NDArray[np.generic]:
        return held[first * size : last * size]

    return make


def _random_bytes(scalar: str, key: int) -> Callable[[int, int], npt.NDArray[np.generic]]:
    size = dtypes.size_of(scalar)

    def make(first: int, last: int) -> npt.NDArray[np.generic]:
        index = np.arange(first * size, last * size, dtype=np.uint64)
        return random.words(key, index).astype(np.uint8)

    return make


def families(workload: Workload) -> tuple[str, ...]:
    """The families that lie inside the domains: those that at least one input can hold. Never ``nan-inf``, which
    ``special`` answers for."""
    inputs = [buffer for buffer in workload.buffers if buffer.access is not Access.OUT]
    if inputs and all(buffer.domain.kind == "data" for buffer in inputs):
        return (CAPTURED,)
    found = [family for family in FAMILIES if any(_possible(buffer, family, workload) for buffer in inputs)]
    return tuple(found) or ("uniform",)


def special(workload: Workload) -> bool:
    """Whether NaN and infinities are inside the domain of some input, to be tried on a line of their own."""
    return any(_possible(buffer, SPECIAL, workload) for buffer in workload.buffers if buffer.access is not Access.OUT)


def _possible(buffer: Buffer, family: str, workload: Workload) -> bool:
    from agent.workload.bind import environment

    if dtypes.is_raw(buffer.dtype) or buffer.domain.kind in ("bytes", "data"):
        return family == "uniform"
    names = environment(workload, workload.plan)
    low, high = (
        None if limit is None else float(limit.evaluate(names)) for limit in (buffer.domain.low, buffer.domain.high)
    )
    module = floats if dtypes.is_float(buffer.dtype) else integers
    return bool(module.possible(family, buffer.domain.kind, low, high))


def default_domain(dtype: str) -> Domain:
    """What a buffer may hold when nobody said: assumed, never ``given``."""
    if dtypes.is_raw(dtype):
        return Domain("unknown")
    return Domain("normal" if dtypes.is_float(dtype) else "integers")
