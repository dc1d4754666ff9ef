"""A candidate as what other evaluators take: a Python file with a ``ModelNew`` that compiles and launches its kernels.

Host code of ours, made from the bound plan: outputs and scratch are allocated as PyTorch does (unwritten memory holds
whatever stood there before), launches follow one another on one stream. In C++ (``model_new``), as such files are
written, which nvcc compiles for most of a minute; or in Python (``raw_module``), the kernels alone compiled, by NVRTC
through CuPy, which takes a second (and flushes denormals, as CuPy asks for). Beside it the reference, in PyTorch.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agent.source.document import Document
from agent.workload import dtypes
from agent.workload.binding import (
    Argument,
    Bound,
    BoundBuffer,
    BoundCopy,
    BoundFill,
    BoundLaunch,
    BoundStep,
    PointerArgument,
    Three,
    ValueArgument,
)
from agent.workload.workload import Access

_TORCH = {
    "f32": "Float32", "f64": "Float64", "f16": "Float16", "bf16": "BFloat16", "i32": "Int32", "u8": "UInt8",
    "i64": "Int64",
}  # fmt: skip
"""As C++ calls them behind a ``k``; Python in small letters."""

PRECISIONS = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
"""The element types that its evaluator casts every input to, one of them for a candidate."""

_POINTER = """struct Pointer {
    char* at;
    template <class T> operator T*() const { return reinterpret_cast<T*>(at); }
};
"""
"""Becomes whatever pointer the kernel's parameter is."""

_MODULE = """import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

module = load_inline(
    name={name!r},
    cpp_sources="torch::Tensor answer({parameters});",
    cuda_sources={source!r},
    functions=["answer"],
    verbose=False,
)


class ModelNew(nn.Module):
    def forward(self, {arguments}):
        return module.answer({arguments})
"""

_PRELUDE = """#ifndef INFINITY
#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
#endif
"""
"""What nvcc's headers define before the first line of a file, and NVRTC does not."""

_RAW = """import cupy
import numpy
import torch
import torch.nn as nn

module = cupy.RawModule(code={source!r}, options={options!r}, name_expressions={names!r})
module.compile()
kernels = {{name: module.get_function(name) for name in {names!r} or ()}}


class ModelNew(nn.Module):
    def forward(self, {arguments}):
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream) as stream:
            {lines}
        return {output}
"""

_REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, {arguments}):
        return {formula}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


class NotExpressible(Exception):
    """What a plan has that such a file cannot say."""


def model_new(text: str, bound: Bound, name: str) -> str:
    """The candidate's file, in C++. Raises NotExpressible."""
    given, output = _inputs(bound), _output(bound)
    body = [_made(buffer) for buffer in bound.buffers if buffer not in given]
    parameters = ", ".join(f"torch::Tensor {buffer.name}_" for buffer in given)
    body += [f"Pointer {b.name}{{static_cast<char*>({b.name}_.data_ptr())}};" for b in bound.buffers]
    body += [_step(step, bound) for step in bound.steps]
    lines = "\n    ".join((*body, f"return {output.name}_;"))
    host = f"torch::Tensor answer({parameters}) {{\n    {lines}\n}}\n"
    source = f"#include <torch/extension.h>\n{text}\n{_POINTER}\n{host}"
    return _MODULE.format(name=name, parameters=parameters, source=source, arguments=_listed(given))


def raw_module(document: Document, bound: Bound, includes: Sequence[Path] = ()) -> str:
    """The candidate's file, in Python; ``includes`` are CUDA's folders of headers. Raises NotExpressible."""
    given, output = _inputs(bound), _output(bound)
    body = [_raw_made(buffer) for buffer in bound.buffers if buffer not in given]
    body += [_raw_step(step, bound, document) for step in bound.steps]
    launches = (step for step in bound.steps if isinstance(step, BoundLaunch))
    names = tuple(dict.fromkeys(_expression(step, bound, document) for step in launches))
    return _RAW.format(
        source=_PRELUDE + document.text.decode(),
        options=("-std=c++17", *(f"-I{folder}" for folder in includes)),
        names=names or None,
        arguments=_listed(given),
        lines="\n            ".join(body),
        output=output.name,
    )


def reference(formula: str, bound: Bound) -> str:
    """The original's file: ``formula`` over the inputs by name; contents as such benchmarks have them, normal, or
    uniform where that is declared. Raises NotExpressible."""
    given = _inputs(bound)
    inputs = ", ".join(_contents(buffer) for buffer in given)
    return _REFERENCE.format(arguments=_listed(given), formula=formula, inputs=inputs)


def precision(bound: Bound) -> str:
    """What the evaluator must cast inputs to, as PyTorch calls it. Raises NotExpressible."""
    found = sorted({buffer.dtype for buffer in _inputs(bound)})
    if len(found) != 1 or found[0] not in PRECISIONS:
        raise NotExpressible(f"its inputs are of type {', '.join(found)}: the evaluator casts all to one type of float")
    return PRECISIONS[found[0]]


def _inputs(bound: Bound) -> list[BoundBuffer]:
    return [buffer for buffer in bound.buffers if buffer.access is Access.IN and not buffer.scratch]


def _listed(buffers: Sequence[BoundBuffer]) -> str:
    return ", ".join(buffer.name for buffer in buffers)


def _output(bound: Bound) -> BoundBuffer:
    found = [buffer for buffer in bound.buffers if buffer.access is not Access.IN and not buffer.scratch]
    if any(buffer.symbol for buffer in bound.buffers):
        raise NotExpressible("its plan sets a variable of the module")
    if len(found) != 1:
        raise NotExpressible(f"it has {len(found)} outputs ({_listed(found)}): a model gives back one tensor here")
    if found[0].access is not Access.OUT and not _zeroed(found[0]):
        raise NotExpressible(f"{found[0].name} is read and written: a model's inputs are not its outputs here")
    return found[0]


def _zeroed(buffer: BoundBuffer) -> bool:
    return buffer.zeroed or (buffer.access is Access.INOUT and buffer.domain.kind == "zeros")


def _type(buffer: BoundBuffer) -> str:
    if buffer.dtype not in _TORCH:
        raise NotExpressible(f"{buffer.name} has elements of type {buffer.dtype}")
    return _TORCH[buffer.dtype]


def _contents(buffer: BoundBuffer) -> str:
    if buffer.domain.kind == "normal":
        return f"torch.randn({buffer.count})"
    if buffer.domain.kind == "uniform" and buffer.low is not None and buffer.high is not None:
        return f"torch.rand({buffer.count}) * {buffer.high - buffer.low!r} + {buffer.low!r}"
    raise NotExpressible(f"{buffer.name} holds contents of the kind {buffer.domain.kind}")


def _made(buffer: BoundBuffer) -> str:
    make = "zeros" if _zeroed(buffer) else "empty"
    options = f"torch::dtype(torch::k{_type(buffer)}).device(torch::kCUDA)"
    return f"torch::Tensor {buffer.name}_ = torch::{make}({{{buffer.count}}}, {options});"


def _raw_made(buffer: BoundBuffer) -> str:
    make = "zeros" if _zeroed(buffer) else "empty"
    return f"{buffer.name} = torch.{make}({buffer.count}, dtype=torch.{_type(buffer).lower()}, device='cuda')"


def _step(step: BoundStep, bound: Bound) -> str:
    sizes = {buffer.name: buffer.nbytes for buffer in bound.buffers}
    if isinstance(step, BoundFill):
        return f"cudaMemsetAsync({step.buffer}.at, {step.byte}, {sizes[step.buffer]});"
    if isinstance(step, BoundCopy):
        return f"cudaMemcpyAsync({step.target}.at, {step.source}.at, {sizes[step.target]}, cudaMemcpyDeviceToDevice);"
    return _launch(step)


def _raw_step(step: BoundStep, bound: Bound, document: Document) -> str:
    sizes, runtime = {buffer.name: buffer.nbytes for buffer in bound.buffers}, "cupy.cuda.runtime"
    if isinstance(step, BoundFill):
        return f"{runtime}.memsetAsync({step.buffer}.data_ptr(), {step.byte}, {sizes[step.buffer]}, stream.ptr)"
    if isinstance(step, BoundCopy):
        target, source, kind = f"{step.target}.data_ptr()", f"{step.source}.data_ptr()", "memcpyDeviceToDevice"
        return f"{runtime}.memcpyAsync({target}, {source}, {sizes[step.target]}, {runtime}.{kind}, stream.ptr)"
    kernel = f"kernels[{_expression(step, bound, document)!r}]"
    arguments = "".join(f"{_raw_argument(item)}, " for item in step.arguments)
    return f"{kernel}({step.grid}, {step.block}, ({arguments}), shared_mem={step.shared})"


def _launch(step: BoundLaunch) -> str:
    arguments = ", ".join(_argument(item) for item in step.arguments)
    return f"{step.kernel}<<<{_three(step.grid)}, {_three(step.block)}, {step.shared}>>>({arguments});"


def _argument(item: Argument) -> str:
    if isinstance(item, PointerArgument):
        return f"Pointer{{{item.buffer}.at + {item.offset}}}"
    return repr(_value(item).value)


def _raw_argument(item: Argument) -> str:
    if isinstance(item, PointerArgument):
        return f"{item.buffer}.data_ptr() + {item.offset}"
    return f"numpy.{np.dtype(dtypes.numpy_dtype(_value(item).dtype)).name}({_value(item).value!r})"


def _value(item: Argument) -> ValueArgument:
    if not isinstance(item, ValueArgument) or item.dtype == "bf16":
        raise NotExpressible("its launches pass more than pointers and numbers")
    return item


def _expression(step: BoundLaunch, bound: Bound, document: Document) -> str:
    """The kernel's name; where several have it, with the types that a caller's arguments have: C++ takes what fits them
    to the letter, and tensors give pointers to what is not constant."""
    if sum(kernel.qualified_name == step.kernel for kernel in document.kernels) < 2:
        return step.kernel
    types = {buffer.name: buffer.dtype for buffer in bound.buffers}
    given = ", ".join(
        f"{dtypes.c_name(types[item.buffer])}*"
        if isinstance(item, PointerArgument)
        else dtypes.c_name(_value(item).dtype)
        for item in step.arguments
    )
    return f"static_cast<void (*)({given})>({step.kernel})"


def _three(sizes: Three) -> str:
    return f"dim3({', '.join(map(str, sizes))})"
