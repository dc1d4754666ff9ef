"""LLVM as a service: a module of instructions becomes machine code for this processor."""

from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm
from attrs import frozen
from llvmlite import ir


@frozen(eq=False)
class Native:
    """Machine code; it lives as long as ``engine``."""

    address: int
    engine: Any


@lru_cache(maxsize=1)
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(llvm.get_host_cpu_name(), features, opt=2, jit=True)


def translate(module: ir.Module, name: str) -> Native:
    """The function ``name`` of ``module`` as machine code. Floating point stays what the instructions say: nothing is
    contracted or reordered, since no instruction allows it."""
    machine = _target()
    module.triple = machine.triple
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    # the engine takes the machine with it
    engine = llvm.create_mcjit_compiler(parsed, _new_machine())
    engine.finalize_object()
    return Native(engine.get_function_address(name), engine)


def _new_machine() -> Any:
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(llvm.get_host_cpu_name(), features, opt=2, jit=True)
