"""A candidate as what other evaluators take: a Python file with a ``ModelNew`` that compiles and launches its kernels.

Host code of ours, made from the bound plan: outputs and scratch are allocated as PyTorch does (unwritten memory holds
whatever stood there before), launches follow one another on the default stream. Beside it the reference, in PyTorch.
"""

from agent.workload.binding import (
    Bound,
    BoundBuffer,
    BoundCopy,
    BoundFill,
    BoundLaunch,
    BoundStep,
    PointerArgument,
    Three,
)
from agent.workload.workload import Access

_TORCH = {
    "f32": "torch::kFloat32", "f64": "torch::kFloat64", "f16": "torch::kFloat16", "i32": "torch::kInt32",
    "u8": "torch::kUInt8", "i64": "torch::kInt64",
}  # fmt: skip

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
    """The candidate's file. Raises NotExpressible."""
    given, output = _inputs(bound), _output(bound)
    body = [_made(buffer) for buffer in bound.buffers if buffer not in given]
    parameters = ", ".join(f"torch::Tensor {buffer.name}_" for buffer in given)
    body += [f"Pointer {b.name}{{static_cast<char*>({b.name}_.data_ptr())}};" for b in bound.buffers]
    body += [_step(step, bound) for step in bound.steps]
    lines = "\n    ".join((*body, f"return {output.name}_;"))
    host = f"torch::Tensor answer({parameters}) {{\n    {lines}\n}}\n"
    source = f"#include <torch/extension.h>\n{text}\n{_POINTER}\n{host}"
    arguments = ", ".join(buffer.name for buffer in given)
    return _MODULE.format(name=name, parameters=parameters, source=source, arguments=arguments)


def reference(formula: str, bound: Bound) -> str:
    """The original's file: ``formula`` over the inputs by name; contents as such benchmarks have them, normal."""
    given = _inputs(bound)
    inputs = ", ".join(f"torch.randn({buffer.count})" for buffer in given)
    return _REFERENCE.format(arguments=", ".join(b.name for b in given), formula=formula, inputs=inputs)


def _inputs(bound: Bound) -> list[BoundBuffer]:
    return [buffer for buffer in bound.buffers if buffer.access is Access.IN and not buffer.scratch]


def _output(bound: Bound) -> BoundBuffer:
    found = [buffer for buffer in bound.buffers if buffer.access is not Access.IN and not buffer.scratch]
    if len(found) != 1 or found[0].access is not Access.OUT or any(buffer.symbol for buffer in bound.buffers):
        raise NotExpressible("only plans with one pure output and without module variables are written as such files")
    return found[0]


def _made(buffer: BoundBuffer) -> str:
    if buffer.dtype not in _TORCH:
        raise NotExpressible(f"{buffer.name} has elements of type {buffer.dtype}")
    make = "zeros" if buffer.zeroed else "empty"
    options = f"torch::dtype({_TORCH[buffer.dtype]}).device(torch::kCUDA)"
    return f"torch::Tensor {buffer.name}_ = torch::{make}({{{buffer.count}}}, {options});"


def _step(step: BoundStep, bound: Bound) -> str:
    sizes = {buffer.name: buffer.nbytes for buffer in bound.buffers}
    if isinstance(step, BoundFill):
        return f"cudaMemsetAsync({step.buffer}.at, {step.byte}, {sizes[step.buffer]});"
    if isinstance(step, BoundCopy):
        return f"cudaMemcpyAsync({step.target}.at, {step.source}.at, {sizes[step.target]}, cudaMemcpyDeviceToDevice);"
    return _launch(step)


def _launch(step: BoundLaunch) -> str:
    arguments = ", ".join(
        f"Pointer{{{item.buffer}.at + {item.offset}}}" if isinstance(item, PointerArgument) else repr(item.value)
        for item in step.arguments
    )
    return f"{step.kernel}<<<{_three(step.grid)}, {_three(step.block)}, {step.shared}>>>({arguments});"


def _three(sizes: Three) -> str:
    return f"dim3({', '.join(map(str, sizes))})"
