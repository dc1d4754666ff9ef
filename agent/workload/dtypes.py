"""Element types: what buffers and scalars carry (``f32``, ``i64``, ``f32x4``, ``b12``), and C's names for them.

A scalar is one of ``f16 bf16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool``. ``f32x4`` is a vector, or a struct whose
members all have that one type; the number of lanes is free. ``b12`` is twelve raw bytes: a struct of mixed members.
Widths are those of nvcc on Linux: ``long`` has 64 bits.
"""

import re

import numpy as np
import numpy.typing as npt

_SIZES = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i16": 2, "u16": 2,
    "i32": 4, "u32": 4, "i64": 8, "u64": 8, "bool": 1,
}  # fmt: skip

SCALARS = tuple(_SIZES)
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})

_NUMPY = {
    "f16": "<f2", "bf16": "<u2", "f32": "<f4", "f64": "<f8", "i8": "<i1", "u8": "<u1", "i16": "<i2", "u16": "<u2",
    "i32": "<i4", "u32": "<u4", "i64": "<i8", "u64": "<u8", "bool": "<u1",
}  # fmt: skip

_NAMED = {
    "float": "f32", "double": "f64", "half": "f16", "__half": "f16", "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16",
    "bool": "bool", "size_t": "u64", "ssize_t": "i64", "ptrdiff_t": "i64",
    "uint": "u32", "ushort": "u16", "uchar": "u8",
    "ulong": "u64", "uintptr_t": "u64", "intptr_t": "i64", "clock_t": "i64", "half2": "f16x2", "__half2": "f16x2",
    "__nv_bfloat162": "bf16x2", "nv_bfloat162": "bf16x2",
    "cuComplex": "f32x2", "cuFloatComplex": "f32x2", "cufftComplex": "f32x2", "cuDoubleComplex": "f64x2",
    "cufftDoubleComplex": "f64x2", "cufftReal": "f32", "cufftDoubleReal": "f64", "complex<float>": "f32x2",
    "complex<double>": "f64x2",
}  # fmt: skip
_NAMED |= {f"int{8 * n}_t": f"i{8 * n}" for n in (1, 2, 4, 8)} | {f"uint{8 * n}_t": f"u{8 * n}" for n in (1, 2, 4, 8)}

_VECTOR_BASES = {
    "char": "i8", "uchar": "u8", "short": "i16", "ushort": "u16", "int": "i32", "uint": "u32", "long": "i64",
    "ulong": "u64", "longlong": "i64", "ulonglong": "u64", "float": "f32", "double": "f64",
}  # fmt: skip

_INTEGER_WORDS = frozenset({"unsigned", "signed", "char", "short", "int", "long"})
_QUALIFIERS = re.compile(r"\b(const|volatile|__restrict__|__restrict|restrict|struct|enum|typename|static|constexpr)\b")


def from_c_type(text: str) -> str | None:
    """The element type that C spells ``text`` (no stars), or None when it is not a known scalar or vector."""
    words = _QUALIFIERS.sub(" ", text).replace("std::", "").replace("thrust::", "").replace("cuda::", "").split()
    if words and set(words) <= _INTEGER_WORDS:
        return _integer(words)
    name = "".join(words)
    if name in _NAMED:
        return _NAMED[name]
    vector = re.fullmatch(r"([a-z]+)([1-4])", name)
    if vector and vector[1] in _VECTOR_BASES:
        scalar = _VECTOR_BASES[vector[1]]
        return scalar if vector[2] == "1" else f"{scalar}x{vector[2]}"
    return None


def _integer(words: list[str]) -> str:
    sign = "u" if "unsigned" in words else "i"
    bits = 8 if "char" in words else 16 if "short" in words else 64 if "long" in words else 32
    return f"{sign}{bits}"


_C_NAMES = {
    "f16": "half", "bf16": "__nv_bfloat16", "f32": "float", "f64": "double", "i8": "char", "u8": "unsigned char",
    "i16": "short", "u16": "unsigned short", "i32": "int", "u32": "unsigned int", "i64": "long long", "u64": "size_t",
    "bool": "bool",
}  # fmt: skip


def c_name(dtype: str) -> str:
    """How C spells a scalar type; vectors and raw bytes keep their own name."""
    return _C_NAMES.get(dtype, dtype)


def is_dtype(text: str) -> bool:
    scalar, lanes = _split(text)
    return lanes > 0 and (scalar in _SIZES or scalar == "b")


def base(dtype: str) -> tuple[str, int]:
    """Scalar type and number of lanes: ``f32x4`` gives ``("f32", 4)``, ``b12`` gives ``("u8", 12)``.

    Raises ValueError for what is no element type.
    """
    scalar, lanes = _split(dtype)
    if lanes <= 0 or (scalar not in _SIZES and scalar != "b"):
        raise ValueError(
            f"`{dtype}` is not an element type; expected one of {', '.join(SCALARS)}, f32x4, or b12 for raw bytes"
        )
    return ("u8" if scalar == "b" else scalar), lanes


def _split(dtype: str) -> tuple[str, int]:
    raw = re.fullmatch(r"b([1-9]\d{0,4})", dtype)
    if raw:
        return "b", int(raw[1])
    vector = re.fullmatch(r"([a-z]+\d*)x([1-9]\d{0,3})", dtype)
    return (vector[1], int(vector[2])) if vector else (dtype, 1)


def size_of(dtype: str) -> int:
    """Bytes of one element."""
    scalar, lanes = base(dtype)
    return _SIZES[scalar] * lanes


def is_float(dtype: str) -> bool:
    return base(dtype)[0] in FLOATS and not is_raw(dtype)


def is_scalar(dtype: str) -> bool:
    """Whether it is one number: no vector, no struct."""
    return base(dtype)[1] == 1 and not is_raw(dtype)


def is_raw(dtype: str) -> bool:
    """Whether the elements are bytes of a struct whose members have no one type."""
    return _split(dtype)[0] == "b"


def numpy_dtype(dtype: str) -> npt.DTypeLike:
    """The NumPy type of one *lane* (``f32x4`` gives float32). NumPy has no bf16: its bits come as uint16, raw bytes as
    uint8."""
    return np.dtype(_NUMPY[base(dtype)[0]])


def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer scalar type."""
    if dtype == "bool":
        return 0, 1
    bits = 8 * _SIZES[dtype]
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
