"""Element types and C's names for them."""

import numpy as np
import pytest

from agent.source.document import parse
from agent.workload import dtypes, types


@pytest.mark.parametrize(
    ("text", "dtype", "size"),
    [
        ("float", "f32", 4), ("const float", "f32", 4), ("unsigned char", "u8", 1), ("uint8_t", "u8", 1),
        ("char", "i8", 1), ("unsigned", "u32", 4), ("long long int", "i64", 8), ("unsigned long long", "u64", 8),
        ("size_t", "u64", 8), ("std::size_t", "u64", 8), ("half", "f16", 2), ("__half", "f16", 2),
        ("__nv_bfloat16", "bf16", 2), ("float4", "f32x4", 16), ("float3", "f32x3", 12), ("int2", "i32x2", 8),
        ("uchar4", "u8x4", 4), ("double2", "f64x2", 16), ("float1", "f32", 4), ("bool", "bool", 1),
        ("short", "i16", 2), ("ulonglong2", "u64x2", 16), ("half2", "f16x2", 4), ("volatile unsigned int", "u32", 4),
        ("long", "i64", 8), ("long double", None, 0), ("Foo", None, 0), ("float5", None, 0),
        ("float*", None, 0), ("", None, 0),
    ],
)  # fmt: skip
def test_c_types(text: str, dtype: str | None, size: int) -> None:
    assert dtypes.from_c_type(text) == dtype
    assert dtype is None or dtypes.size_of(dtype) == size


@pytest.mark.parametrize("dtype", dtypes.SCALARS)
def test_sizes_agree_with_numpy(dtype: str) -> None:
    assert np.dtype(dtypes.numpy_dtype(dtype)).itemsize == dtypes.size_of(dtype)


@pytest.mark.parametrize("dtype", ["f33", "x4", "f32x0", "b0", "", "f32x", "float"])
def test_what_is_no_element_type_is_refused(dtype: str) -> None:
    assert not dtypes.is_dtype(dtype)
    with pytest.raises(ValueError, match="not an element type"):
        dtypes.base(dtype)


# Sizes as `sizeof` gives them under nvcc on x86-64 (System V ABI; CUDA's vector types align to their size).
STRUCTS = b"""
typedef float real;
#define TYPE double
using vec = float4;
struct P3 { float x, y, z; };
struct Mixed { char tag; float value; };
struct Wide { double a; int b; };
typedef struct { real m[3]; } M;
struct __align__(16) A3 { float x, y, z; };
struct V { float a; float4 v; };
struct HasPointer { float* p; };
struct Two { P3 a; P3 b; }; struct Both { P3 a; int b; };
struct HasMethod { float x; float get() { return x; } };
"""


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("real", "f32"), ("TYPE", "f64"), ("vec", "f32x4"), ("P3", "f32x3"), ("struct P3", "f32x3"), ("Mixed", "b8"),
        ("Wide", "b16"), ("M", "f32x3"), ("A3", "b16"), ("V", "b32"), ("HasPointer", None), ("HasMethod", "f32"),
        ("Two", "f32x6"), ("Both", "b16"), ("Unknown", None),
    ],
)  # fmt: skip
def test_types_of_a_file(name: str, dtype: str | None) -> None:
    assert types.c_dtype(parse(STRUCTS), name) == dtype
