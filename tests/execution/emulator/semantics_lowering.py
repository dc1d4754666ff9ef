"""One line of PTX as a decoded instruction, for tests of the table of semantics."""

from agent.execution.emulator.ptx.decode import decode
from agent.execution.emulator.ptx.instruction import Instruction

_HEAD = (
    ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
    ".reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<10>; .reg .b64 %d<10>;\n"
)


def instruction(text: str) -> Instruction:
    """``text`` may use ``%p0`` to ``%p9`` (predicates), ``%h`` (16 bits), ``%r`` (32) and ``%d`` (64)."""
    (found,) = decode(_HEAD + text + "\n}").functions["k"].instructions
    return found
