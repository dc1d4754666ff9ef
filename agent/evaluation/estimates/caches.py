"""A small cache model over counted 32-byte sectors: how many of them cross from level 2 and from DRAM.

Of one launch, counts of the blocks that ran are scaled to the whole grid. Loads only, unless said otherwise:

    T   distinct sectors of each block, summed           F   what source lines ask for, each line at most T
    S   distinct sectors of all blocks that ran, scaled (and stores)
    R   all sectors asked for
    C   distinct sectors, at most all of each buffer (and stores): what must cross DRAM once (compulsory)
    W   all sectors stored; P the 128-byte lines of which a request writes some sector only partly

    hit rates, 1 while the working set fits, 0 from twice the cache on:
      near  L1 - shared memory against resident warps x 128-byte lines that their loads have in use   one line's own
            neighbours (strided walks); L1 keeps whole lines, of which a strided walk uses a sector at a time
      l1    L1 - shared memory against resident blocks x T per block         a block reads again what another line read
      l2    L2 against min(C, resident blocks on the card x T per block, stores included)

    L2 sectors    T + (F - T)(1 - l1) + (R - F)(1 - near) + M + (W - M) / 2
    L2 slots      T + (F - T)(1 - l1) + (R - F)(1 - near) + W + P
    DRAM sectors  C + (S - C)(1 - l2) + (F - T)(1 - l1)(1 - l2), and (F - T)(1 - l2) for stores

L1 writes through, one packet for each line of a request. What several requests write of a sector (W, distinct by block:
M) is put together where they are close in time: on an H200 two fifths to two thirds of it crossed by itself
(``lts__t_sectors_srcunit_tex`` of five kernels with strided stores; from one launch to the next of one of them between
37 % and 88 %), so half is taken. A packet that fills its sectors is data alone; one that does not has to say which
bytes it means, one bit for each of 128, which takes a slot of 32 bytes beside the data: P. Time is counted in slots of
the worst case, in which nothing is put together. Atomics of which nothing comes back read nothing. L2 does
not read a sector to write a part of it: it keeps the mask of the bytes that it was given, puts further parts in, and
fetches the rest only when somebody reads what is not there (Khairy, Shen, Aamodt and Rogers, "Accel-Sim", ISCA 2020:
write granularity of one byte, "lazy fetch on read", found by microbenchmarks on Volta). What neighbouring requests fill
together reaches DRAM once. Not modelled: that memory with error correction has to read a sector which was evicted
before it was full.

Local memory is each thread's own, and L1 writes it back: what is resident of it (threads x bytes of the stack frame)
is in L1 as far as it fits, then in L2, and all that is not there crosses. Not modelled: what the assembler spills,
which no PTX shows, and what local and global memory take from each other.
"""

from collections.abc import Mapping
from math import ceil, prod

from attrs import frozen

from agent.execution.device import LaunchCounters

SECTOR = 32
LINE = 128
APART = 0.5
"""Of the sectors that stores write again, how many cross by themselves."""


@frozen
class Moved:
    """32-byte sectors of the whole grid: ``asked`` of L1 by loads, ``loaded`` from L2, all that cross to ``l2`` and the
    slots that this takes there (``l2_slots``), those read from DRAM, all that cross to ``dram``, and what must
    (``compulsory``). ``local_l2`` and ``local_dram`` are those of local memory among them."""

    asked: float
    loaded: float
    l2: float
    l2_slots: float
    dram_read: float
    dram: float
    compulsory: float
    local_l2: float = 0.0
    local_dram: float = 0.0


def moved(
    counted: LaunchCounters,
    scale: float,
    buffers: Mapping[str, int],
    resident: int,
    here: int,
    l1_bytes: int,
    l2: int,
    frame: int = 0,
) -> Moved:
    """``scale``: blocks of the grid over blocks that ran. ``resident`` blocks on an SM, ``here`` on the card;
    ``l1_bytes`` are what shared memory leaves of an SM's L1, ``l2`` the card's, ``frame`` a thread's stack, in bytes.
    """
    ran = max(1, counted.blocks_run)
    own = float(sum(counted.block_touched.values()))
    asked, stored = float(counted.total("load_sectors")), float(counted.total("store_sectors"))
    own_loads = min(asked, _own(counted, counted.touched_read))  # atomics touch without a load
    own_stores = min(stored, _own(counted, counted.touched_written))
    must_read = _compulsory(counted.touched_read, scale, buffers)
    must_write = _compulsory(counted.touched_written, scale, buffers)
    loads = _by_lines(counted, "load_sectors", own_loads)
    stores = _by_lines(counted, "store_sectors", own_stores)
    near = fits(l1_bytes, _in_use(counted, resident))
    hit1 = fits(l1_bytes, resident * own_loads / ran * SECTOR)
    hit2 = fits(l2, min(must_read + must_write, here * own / ran) * SECTOR)
    missed = (loads - own_loads) * (1 - hit1) * scale
    loaded = own_loads * scale + missed + max(0.0, asked - loads) * (1 - near) * scale
    apart_read = max(0.0, sum(counted.touched_read.values()) * scale - must_read)
    apart_write = max(0.0, sum(counted.touched_written.values()) * scale - must_write)
    read = must_read + (apart_read + missed) * (1 - hit2)
    written = must_write + (apart_write + (stores - own_stores) * scale) * (1 - hit2)
    local_l2, local_dram = _local(counted, scale, frame, resident, here, l1_bytes, l2)
    return Moved(
        asked=asked * scale,
        loaded=loaded,
        l2=loaded + _put_together(counted, stored, own_stores) * scale + local_l2,
        l2_slots=loaded + (stored + counted.total("partial_lines")) * scale + local_l2,
        dram_read=read,
        dram=read + written + local_dram,
        compulsory=must_read + must_write,
        local_l2=local_l2,
        local_dram=local_dram,
    )


def _put_together(counted: LaunchCounters, stored: float, own: float) -> float:
    """Sectors that cross for ``stored`` ones; each atomic crosses by itself."""
    atomic = float(sum(line.store_sectors for line in counted.lines.values() if line.atomics))
    plain = stored - atomic
    once = min(own, plain)
    return atomic + once + (plain - once) * APART


def _local(
    counted: LaunchCounters, scale: float, frame: int, resident: int, here: int, l1_bytes: int, l2: int
) -> tuple[float, float]:
    """Sectors of local memory that cross to L2, and to DRAM."""
    held = frame * prod(counted.block)
    beyond_l1 = counted.total("local_sectors") * scale * (1 - fits(l1_bytes, resident * held))
    return beyond_l1, beyond_l1 * (1 - fits(l2, here * held))


def _own(counted: LaunchCounters, touched: Mapping[str, int]) -> float:
    """Distinct sectors of each block, summed, of the buffers that were touched that way."""
    return float(sum(count for name, count in counted.block_touched.items() if touched.get(name)))


def _by_lines(counted: LaunchCounters, kind: str, own: float) -> float:
    """Sectors by source lines, each at most ``own``; no less than ``own`` where that many were asked for."""
    asked = float(counted.total(kind))
    by_lines = float(sum(min(getattr(line, kind), own) for line in counted.lines.values()))
    return min(max(own, by_lines), max(own, asked))


def _compulsory(touched: Mapping[str, int], scale: float, buffers: Mapping[str, int]) -> float:
    return sum(
        min(count * scale, ceil(buffers[name] / SECTOR)) if name in buffers else count * scale
        for name, count in touched.items()
    )


def _in_use(counted: LaunchCounters, resident: int) -> float:
    """Bytes of L1 that the lines take which the loads of all resident warps touch at once, one request for each source
    line that loads."""
    warps = resident * ceil(counted.block[0] * counted.block[1] * counted.block[2] / 32)
    each = sum(line.cache_lines / line.requests for line in counted.lines.values() if line.load_sectors)
    return warps * each * LINE


def fits(capacity: float, needed: float) -> float:
    """A hit rate: all while the working set fits, none from twice the capacity on (a walk in circles over more than an
    LRU cache holds never hits; real caches are not quite LRU), straight in between."""
    return min(1.0, max(0.0, 2 * capacity / needed - 1)) if needed > 0 else 1.0
