"""Builds and requests for emulator tests: real kernels compiled by the real NVRTC, without slicing."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, Options
from agent.execution.device import Answer, Image, Poison, Request
from agent.execution.emulator import Emulator
from agent.workload.binding import BoundLaunch, BoundStep, PointerArgument, ValueArgument
from tests.execution.slices import HandSlice

DTYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
          "float16": "f16", "uint8": "u8", "int8": "i8", "int16": "i16", "uint16": "u16"}  # fmt: skip


@lru_cache(maxsize=256)
def build(source: str, *options: str) -> Build:
    """Every ``extern "C"`` kernel of ``source``; ``-G`` among the options gives unoptimised PTX."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    program = nvrtc.createProgram(source, "test.cu", (), ())
    flags = ["--gpu-architecture=compute_90", "-default-device"]
    flags += ["--generate-line-info"] if "-G" not in options else []
    try:
        nvrtc.compileProgram(program, [*flags, *options])
    except nvrtc.NVRTCError:
        raise AssertionError(nvrtc.getProgramLog(program)) from None
    ptx = nvrtc.getPTX(program)
    ptx = ptx.decode() if isinstance(ptx, bytes) else ptx
    return of_ptx(ptx)


@lru_cache(maxsize=64)
def with_headers(source: str, optimised: bool = True) -> Build:
    """The kernel ``k`` of ``source``, which includes CUDA's own headers."""
    built = compile_slice(HandSlice(source, ("k",)), Options(optimised=optimised))
    assert isinstance(built, Build), built
    return built


def of_ptx(ptx: str) -> Build:
    key = hashlib.sha256(ptx.encode()).hexdigest()
    return Build(ptx, b"", {}, {}, {}, "sm_90", "nvrtc", (), key)


def launch(
    kernel: str,
    grid: int | tuple[int, int, int],
    block: int | tuple[int, int, int],
    *arguments: Any,
    shared: int = 0,
) -> BoundLaunch:
    """Arguments: a name for a buffer, a NumPy scalar for a value (a plain int is i32, a float f32)."""
    return BoundLaunch(kernel, _three(grid), _three(block), shared, tuple(_argument(one) for one in arguments))


def _three(size: int | tuple[int, int, int]) -> tuple[int, int, int]:
    return (size, 1, 1) if isinstance(size, int) else size


def _argument(value: Any) -> PointerArgument | ValueArgument:
    if isinstance(value, str):
        return PointerArgument(value)
    if isinstance(value, np.generic):
        return ValueArgument(DTYPES[value.dtype.name], value.item())
    return ValueArgument("i32" if isinstance(value, int) else "f32", value)


def run(
    built: Build,
    steps: BoundStep | Sequence[BoundStep],
    buffers: Mapping[str, np.ndarray | int | Image],
    back_end: str = "numpy",
    **options: Any,
) -> tuple[Answer, dict[str, np.ndarray]]:
    """Run with these buffers (an int is that many poisoned bytes); every array comes back in its own type."""
    images = tuple(_image(name, value) for name, value in buffers.items())
    steps = tuple(steps) if isinstance(steps, Sequence) else (steps,)
    answer = Emulator(back_end).run(Request(built, steps, images, tuple(buffers), **options))
    outputs = {}
    for name, value in buffers.items():
        if name in answer.outputs:
            data = answer.outputs[name]
            outputs[name] = data.view(value.dtype).reshape(value.shape) if isinstance(value, np.ndarray) else data
    return answer, outputs


def _image(name: str, value: np.ndarray | int | Image) -> Image:
    if isinstance(value, Image):
        return value
    if isinstance(value, int):
        return Image(name, value, Poison())
    return Image(name, value.nbytes, np.ascontiguousarray(value).reshape(-1).view(np.uint8).copy())
