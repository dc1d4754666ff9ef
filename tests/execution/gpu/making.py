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


def made(device: Device, build: Build, form: forms.Form, seed: int) -> Bytes:
    """The scalars ``FIRST <= i < LAST`` as the kernel makes them."""
    size = size_of(form.scalar)
    texts = {"form": form.packed(seed), **dict(zip(("normal", "single", "slopes"), forms.tables(), strict=True))}
    images = [Image(name, len(data), np.frombuffer(data, np.uint8)) for name, data in texts.items()]
    images.append(Image("out", size * (LAST - FIRST), Poison()))
    arguments = (*(PointerArgument(image.name) for image in images), ValueArgument("u64", FIRST))
    launch = BoundLaunch("door", (3, 1, 1), (128, 1, 1), 0, (*arguments, ValueArgument("u64", LAST)))
    answer = device.run(Request(build, (launch,), tuple(images), ("out",)))
    assert answer.status == "ok", answer.message
    return answer.outputs["out"]
