"""Where things live: one address layout for every buffer and window, so that no two are ever near each other.

Each buffer has an address space of its own: bases are 2**40 bytes apart and an offset of up to 2**39 bytes in either
direction still leads back to the buffer it started from. A generic pointer to shared, local or parameter memory is the
window's base plus the offset within that space. Address 0 and its surroundings belong to nothing.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

TAG_BITS = 40
HALF = 1 << (TAG_BITS - 1)
NULL, SHARED, LOCAL, PARAM, FUNCTIONS, GRID = 0, 1, 2, 3, 4, 5
FIRST_BUFFER = 16

WINDOWS = {"shared": SHARED << TAG_BITS, "local": LOCAL << TAG_BITS, "param": PARAM << TAG_BITS}


def tag_of(address: int) -> int:
    """Which buffer or window ``address`` was derived from."""
    return ((address + HALF) & 0xFFFF_FFFF_FFFF_FFFF) >> TAG_BITS


def tags_of(addresses: Array) -> Array:
    """The same for an array of 64-bit addresses."""
    return (addresses + np.uint64(HALF)) >> np.uint64(TAG_BITS)
