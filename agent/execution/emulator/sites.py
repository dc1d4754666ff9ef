"""A place in the code that can fault or is counted: one PTX instruction of one kernel, with its source line."""

from attrs import define

from agent.execution.emulator.addresses import FIRST_BUFFER
from agent.execution.emulator.instruction import Instruction


@define(eq=False)
class Site:
    """``tag`` remembers which buffer the last access went to (only a guess, always checked)."""

    index: int
    instruction: Instruction
    kernel: str
    file: str
    line: int
    tag: int = FIRST_BUFFER
