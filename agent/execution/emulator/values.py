"""Values and steps: how the operands of an instruction become numbers in one list, and an instruction a function.

Everything an instruction reads is an entry of one list per batch: registers, literals, special registers, parameters. A
*step* is a function of that list and the batch; it says which entries it reads and writes, so that flow analysis and
the gathering of a part of the lanes need not know what it does.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from attrs import define, field, frozen

from agent.execution.emulator.addresses import WINDOWS, Array
from agent.execution.emulator.flow import Frame, Item, Refused
from agent.execution.emulator.ptx.instruction import Address, Immediate, Instruction, Operand, Register, Special, Symbol
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

FILE_TYPES: dict[str, Any] = {"pred": np.bool_, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64}
WIDE_FILE = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}

Values = list[Array]
Run = Callable[[Values, "Batch"], None]


class Step(NamedTuple):
    run: Run
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@frozen
class Initial:
    """What an entry holds when a batch starts. ``kind``: ``zero``, ``literal``, ``special``, ``parameter``."""

    kind: str
    dtype: Any = None
    literal: Array | None = None
    name: str = ""
    offset: int = 0
    width: int = 0
    signed: bool = False


@define(eq=False)
class Entries:
    """Numbers the entries of one kernel."""

    numbers: dict[object, int] = field(factory=dict)
    initial: list[Initial] = field(factory=list)

    def number(self, key: object, initial: Initial) -> int:
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.initial)
            self.initial.append(initial)
        return found

    def register(self, frame: Frame, register: Register) -> int:
        dtype = FILE_TYPES.get(register.file)
        if dtype is None:
            raise Refused(f"{register.file} register {register.name}")
        return self.number((frame.number, register.file, register.slot), Initial("zero", dtype))

    def literal(self, bits: int, file: str) -> int:
        dtype = FILE_TYPES[file]
        width = 8 * np.dtype(dtype).itemsize
        value = dtype(bool(bits)) if file == "pred" else dtype(bits & ((1 << width) - 1))
        return self.number(("literal", file, int(value)), Initial("literal", literal=np.array([[value]])))

    def special(self, name: str, file: str) -> int:
        return self.number(("special", name, file), Initial("special", FILE_TYPES[file], name=name))

    def parameter(self, offset: int, width: int, signed: bool, file: str) -> int:
        key = ("parameter", offset, width, signed, file)
        return self.number(key, Initial("parameter", FILE_TYPES[file], offset=offset, width=width, signed=signed))

    def scratch_named(self, name: str, frame: int, file: str) -> int:
        """An entry of the emulator's own (the carry flag)."""
        return self.number((name, frame), Initial("zero", FILE_TYPES[file]))

    def scratch(self, file: str) -> int:
        """A sink for results that nobody takes."""
        return self.number(("scratch", file), Initial("zero", FILE_TYPES[file]))


@define(eq=False)
class Lowering:
    """What a lowering function needs: the entries so far, and the site of the item at hand."""

    entries: Entries
    site: Site
    item: Item

    @property
    def instruction(self) -> Instruction:
        return self.item.instruction

    @property
    def frame(self) -> Frame:
        return self.item.frame

    def refuse(self, why: str = "") -> Refused:
        instruction = self.instruction
        detail = f" ({why})" if why else ""
        return Refused(
            f"the instruction {instruction.opcode} at line {self.site.line} of {self.site.kernel} is not known to this "
            f"emulator{detail}: '{instruction.text}'"
        )

    def destination(self, operand: Operand) -> int:
        if isinstance(operand, Register):
            return self.entries.register(self.frame, operand)
        elements = getattr(operand, "elements", None)
        if elements == (None,):
            return self.entries.scratch_named("sink", self.frame.number, "b64")
        raise self.refuse("destination")

    def source(self, operand: Operand | None, file: str) -> int:
        """The entry of an operand; a literal takes the type of ``file``."""
        if isinstance(operand, Register):
            return self.entries.register(self.frame, operand)
        if isinstance(operand, Immediate):
            return self.entries.literal(literal_bits(operand, file), file)
        if isinstance(operand, Symbol):
            return self.entries.literal(self.place(operand)[1], file)
        if isinstance(operand, Special) and operand.name.split("_")[0] not in ("clock", "clock64", "globaltimer"):
            return self.entries.special(operand.name, file)
        raise self.refuse("operand")

    def place(self, symbol: Symbol) -> tuple[str, int]:
        """Space and address of a symbol."""
        found = self.frame.symbols.get(symbol.name)
        if found is None:
            raise self.refuse(f"the variable {symbol.name} has no address")
        return found[0], found[1] + symbol.offset

    def address(self, operand: Operand, file: str = "b64") -> tuple[int, int, str]:
        """Entry, byte offset and, where the base is a symbol, the symbol's space."""
        if isinstance(operand, Symbol | Register | Immediate):
            operand = Address(operand, 0) if not isinstance(operand, Immediate) else Address(None, operand.bits)
        if not isinstance(operand, Address):
            raise self.refuse("address")
        if isinstance(operand.base, Register):
            return self.entries.register(self.frame, operand.base), operand.offset, ""
        if isinstance(operand.base, Symbol):
            space, value = self.place(operand.base)
            return self.entries.literal(value + operand.offset, file), 0, space
        return self.entries.literal(operand.offset, file), 0, ""

    def generic(self, symbol: Symbol) -> int:
        """The generic address of a symbol."""
        space, value = self.place(symbol)
        return WINDOWS.get(space, 0) + value


def literal_bits(literal: Immediate, file: str) -> int:
    """The literal's bits as a register of ``file`` holds them: a double given for a single is rounded."""
    if literal.kind == "f64" and file == "b32":
        return int(np.array(literal.bits, np.uint64).view(np.float64).astype(np.float32).view(np.uint32))
    return literal.bits


Lowerer = Callable[[Lowering], Step]
LOWERERS: dict[str, Lowerer] = {}


def lowers(*bases: str) -> Callable[[Lowerer], Lowerer]:
    """Register a function for the base opcodes that it turns into steps."""

    def register(function: Lowerer) -> Lowerer:
        for base in bases:
            LOWERERS[base] = function
        return function

    return register


def width_of(kind: str) -> int:
    """Bytes of a PTX type: ``f32`` has 4."""
    digits = "".join(c for c in kind.split("x")[0] if c.isdigit())
    lanes = int(kind.split("x")[1]) if "x" in kind else 1
    return max(int(digits) * lanes // 8, 1)


def file_of(kind: str) -> str:
    """The register file that holds a PTX type."""
    return "pred" if kind == "pred" else WIDE_FILE[width_of(kind)]
