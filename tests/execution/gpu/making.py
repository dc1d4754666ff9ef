"""Every form of contents that there is, and our kernel run on any device to make it."""

from collections.abc import Iterator

import numpy as np

from agent.execution.compiler import Build, Options, compile_slice
from agent.execution.device import Bytes, Device, Image, Poison, Request
from agent.execution.gpu import support
from agent.workload import forms
from agent.workload.binding import BoundBuffer, BoundLaunch, PointerArgument, ValueArgument
from agent.workload.dtypes import size_of
from agent.workload.floats import FAMILIES
from agent.workload.workload import Access, Domain
from tests.execution.slices import HandSlice

# The kernel takes its form by value; a test's launch can only pass scalars and pointers.
_DOOR = """
extern "C" __global__ void door(const Form* f, const double* normal, const float* single, const float* slopes,
                                unsigned char* out, u64 first, u64 last) {
    Tables tables = {normal, single, slopes};
    fill(*f, tables, out, first, last);
}
"""
COUNT, FIRST, LAST = 1003, 5, 1001


def door(arch: str) -> Build:
    built = compile_slice(HandSlice(support.text() + _DOOR, ("door",)), Options(arch=arch, fmad=False))
    assert isinstance(built, Build), built
    return built


def buffers() -> Iterator[tuple[BoundBuffer, str]]:
    """Each scalar type in each family and domain, without bounds, with two, and with one."""
    families = (*FAMILIES, "small-integers", "nan-inf")
    for scalar in ("f16", "bf16", "f32", "f64"):
        for low, high in ((None, None), (-0.3, 1.7), (0.1, None), (None, -0.7), (0.0, 8.0)):
            for kind in ("normal", "uniform"):
                yield from ((_buffer(scalar, kind, low, high), family) for family in families)
            for kind in ("sorted", "constant", "zeros", "ones", "integers", "image", "bytes"):
                yield _buffer(scalar, kind, low, high), "uniform"
    for scalar in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool"):
        for low, high in ((None, None), (-3, 90), (5, 6)):
            if scalar[0] in "ub" and low == -3:
                low = 0
            for family in ("uniform", "ties", "sorted", "constant-rows", "small-integers", "spikes", "normal"):
                yield _buffer(scalar, "integers", low, high), family
    for kind in ("index", "sorted", "constant", "zeros", "ones", "image", "iota", "permutation", "offsets"):
        for family in ("uniform", "spikes", "constant-rows", "small-integers"):
            yield _buffer("i32", kind, 0, 70_000), family
    yield _buffer("u64", "integers", 0, 2**40), "uniform"
    yield _buffer("b12", "bytes", None, None), "uniform"
    yield _buffer("f32x4", "normal", None, None), "normal"


def _buffer(dtype: str, kind: str, low: float | None, high: float | None) -> BoundBuffer:
    size = size_of(dtype)
    return BoundBuffer("x", dtype, COUNT, COUNT * size, Access.IN, Domain(kind), low, high)


def made(device: Device, build: Build, asked: list[forms.Form], seed: int) -> list[Bytes]:
    """The scalars ``FIRST <= i < LAST`` of each form as the kernel makes them, all in one run."""
    tables = dict(zip(("normal", "single", "slopes"), forms.tables(), strict=True))
    texts = {**tables, **{f"form{number}": form.packed(seed) for number, form in enumerate(asked)}}
    images = [Image(name, len(data), np.frombuffer(data, np.uint8)) for name, data in texts.items()]
    names = [f"out{number}" for number in range(len(asked))]
    sizes = [size_of(form.scalar) * (LAST - FIRST) for form in asked]
    images += [Image(name, size, Poison()) for name, size in zip(names, sizes, strict=True)]
    launches = tuple(_launch(f"form{number}", *tables, name) for number, name in enumerate(names))
    answer = device.run(Request(build, launches, tuple(images), tuple(names)))
    assert answer.status == "ok", answer.message
    return [answer.outputs[name] for name in names]


def _launch(*names: str) -> BoundLaunch:
    pointers = tuple(PointerArgument(name) for name in names)
    scalars = (ValueArgument("u64", FIRST), ValueArgument("u64", LAST))
    return BoundLaunch("door", (3, 1, 1), (128, 1, 1), 0, (*pointers, *scalars))
