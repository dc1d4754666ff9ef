"""NumPy's compiled loops by address: where a rule calls ``np.sin``, compiled code calls the same machine code, so that
the last bit is the same.

The fields read are those of ``PyUFuncObject`` in NumPy's public header ``ufuncobject.h``, whose layout is part of its
stable binary interface. What is read there is tried out before it is used.
"""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

_HEADER = object.__basicsize__  # reference count and type
_FUNCTIONS, _DATA, _TYPES = _HEADER + 16, _HEADER + 24, _HEADER + 32
_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_WORD = 8


@lru_cache(maxsize=64)
def address_of_loop(name: str, types: str) -> tuple[int, int] | None:
    """Address and data of the loop of the ufunc ``name`` for ``types`` (``d->d``), None where it cannot be had."""
    ufunc = getattr(np, name, None)
    if (
        not isinstance(ufunc, np.ufunc)
        or types not in ufunc.types
        or ufunc.nin != 1
        or ctypes.sizeof(ctypes.c_void_p) != _WORD
    ):
        return None
    base = id(ufunc)
    counts = (ctypes.c_int * 3).from_address(base + _HEADER)
    if tuple(counts) != (ufunc.nin, ufunc.nout, ufunc.nargs):
        return None
    if ctypes.c_int.from_address(base + _TYPES).value != ufunc.ntypes:
        return None
    index = ufunc.types.index(types) * _WORD
    loops, data = (_word(base + place) for place in (_FUNCTIONS, _DATA))
    if not loops:
        return None
    found = _word(loops + index), _word(data + index) if data else 0
    return found if _works(ufunc, types, *found) else None


def _word(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def _works(ufunc: Any, types: str, function: int, data: int) -> bool:
    source = np.array([-2.5, -0.0, 0.3, 1.0, 7.25, 1e30], types[0])
    result = np.empty(1, types[-1])
    steps, count = (ctypes.c_ssize_t * 2)(source.itemsize, result.itemsize), ctypes.c_ssize_t(1)
    with np.errstate(all="ignore"):
        wanted = ufunc(source)
    for index in range(len(source)):
        pointers = (ctypes.c_void_p * 2)(source.ctypes.data + index * source.itemsize, result.ctypes.data)
        _LOOP(function)(ctypes.addressof(pointers), ctypes.addressof(count), ctypes.addressof(steps), data)
        if not np.array_equal(result[0], wanted[index], equal_nan=True):
            return False
    return True
