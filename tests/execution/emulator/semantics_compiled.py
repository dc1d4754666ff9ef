"""The cases of ``semantics_cases`` run by compiled code that comes from the table of semantics."""

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir

from agent.execution.emulator.compiled.loops import I64, NotLowered, cast, type_of
from agent.execution.emulator.compiled.machine import translate
from agent.execution.emulator.compiled.symbolic import Lane
from agent.execution.emulator.ptx.instruction import Immediate
from agent.execution.emulator.semantics import constant, dtype_of, flatten, lower
from tests.execution.emulator.semantics_cases import Case, width
from tests.execution.emulator.semantics_inputs import Bits
from tests.execution.emulator.semantics_running import instructions

_WORD = np.dtype(np.uint64)
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def compiled(cases: Iterable[tuple[Case, Bits]]) -> dict[str, Bits | str]:
    """By the text of a case: what compiled code makes of its sources, one row of 64-bit patterns per result; or why it
    has no compiled form. All cases go into one module, since that takes LLVM less time."""
    module, found, written = ir.Module(), dict[str, Bits | str](), list[tuple[str, Case, Bits]]()
    for number, (case, rows) in enumerate(cases):
        name = f"case{number}"
        reason = lowered(module, name, case)
        if reason:
            found[case.text] = reason
        else:
            written.append((name, case, np.ascontiguousarray(rows)))
    if written:
        native = translate(module, written[0][0])
        for name, case, rows in written:
            results = np.zeros((len(case.results), rows.shape[1]), np.uint64)
            address = native.engine.get_function_address(name)
            _RUN(address)(rows.ctypes.data, results.ctypes.data, rows.shape[1])
            found[case.text] = results
    return found


def lowered(module: ir.Module, name: str, case: Case) -> str:
    """Write the case as a function; why that cannot be done, or nothing."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 3), name)
    try:
        _write(function, case)
    except NotLowered as reason:
        function.blocks.clear()  # left as one that is never called
        return str(reason)
    return ""


def _write(function: ir.Function, case: Case) -> None:
    entry, body, end = (function.append_basic_block(name) for name in ("entry", "body", "end"))
    builder = ir.IRBuilder(entry)
    source, target, count = function.args
    builder.branch(body)
    builder.position_at_end(body)
    lane = builder.phi(I64)
    lane.add_incoming(I64(0), entry)
    for index, result in enumerate(_apply(builder, case, source, count, lane)):
        builder.store(result, _place(builder, target, count, lane, index))
    following = builder.add(lane, I64(1))
    lane.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, count), body, end)
    builder.position_at_end(end)
    builder.ret_void()


def _place(builder: ir.IRBuilder, base: ir.Value, count: ir.Value, lane: ir.Value, row: int) -> ir.Value:
    index = builder.add(builder.mul(count, I64(row)), lane)
    return builder.gep(builder.inttoptr(base, I64.as_pointer()), [index])


def _apply(builder: ir.IRBuilder, case: Case, source: ir.Value, count: ir.Value, lane: ir.Value) -> list[ir.Value]:
    held: dict[str, Lane] = {}
    for index, kind in enumerate(case.sources):
        word = builder.load(_place(builder, source, count, lane, index))
        dtype = np.dtype(bool) if kind == "pred" else np.dtype(f"u{max(width(kind), 16) // 8}")
        held[f"s{index}"] = Lane(builder, dtype, cast(builder, word, _WORD, dtype))
    carry = Lane(builder, bool, ir.IntType(1)(0))
    for instruction in instructions(case):
        operation = lower(instruction)
        sources: list[Any] = [
            constant(operand, kind) if isinstance(operand, Immediate) else held[operand.name].copy()
            for operand, kind in zip(flatten(instruction.sources), operation.sources, strict=True)
        ]
        results = list(operation.apply([*sources, carry] if operation.reads_carry else sources))
        if operation.writes_carry:
            carry = results.pop()
        for operand, kind, result in zip(flatten(instruction.destinations), operation.results, results, strict=True):
            held[operand.name] = result if isinstance(result, Lane) else _fixed(builder, kind, result)
    return [cast(builder, (one := held[f"d{index}"]).value, one.dtype, _WORD) for index in range(len(case.results))]


def _fixed(builder: ir.IRBuilder, kind: str, value: Any) -> Lane:
    dtype = dtype_of(kind)
    return Lane(builder, dtype, type_of(dtype)(np.asarray(value).item()))
