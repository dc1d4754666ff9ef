"""Names in PTX: which register, variable or number a piece of operand text stands for.

A block ``{ }`` has names of its own. Registers get their slot when they are first used, so that a function that
declares ``%r<100000>`` and uses four of them needs four slots.
"""

import re

from attrs import define, field

from agent.execution.emulator.ptx.instruction import (
    Address,
    Immediate,
    Label,
    Operand,
    Register,
    Special,
    Symbol,
    Vector,
)
from agent.execution.emulator.ptx.text import NAME, PtxError, integer, number, split_list

REGISTER_FILES = {
    "pred": "pred",
    "b8": "b16", "u8": "b16", "s8": "b16", "b16": "b16", "u16": "b16", "s16": "b16", "f16": "b16", "bf16": "b16",
    "b32": "b32", "u32": "b32", "s32": "b32", "f32": "b32", "f16x2": "b32", "bf16x2": "b32", "tf32": "b32",
    "b64": "b64", "u64": "b64", "s64": "b64", "f64": "b64", "f32x2": "b64",
    "b128": "b128",
}  # fmt: skip

_SPECIALS = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyzw]"
    r"|laneid|warpid|nwarpid|smid|nsmid|gridid|is_explicit_cluster|cluster_ctarank|cluster_nctarank"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|pm\d(?:_64)?|envreg\d+|globaltimer(?:_lo|_hi)?"
    r"|reserved_smem_offset_(?:begin|end|cap|\d)|total_smem_size|aggr_smem_size|dynamic_smem_size|current_graph_exec)"
)
_NUMBERED = re.compile(r"(.*?\D)(0|[1-9]\d{0,8})")
_ADDRESS = re.compile(rf"\[\s*({NAME}|[-+~]?\s*\d\w*)\s*(?:\+?\s*([-+]?\s*\d\w*)\s*)?\]")
_SYMBOL = re.compile(rf"({NAME})\s*(?:\+?\s*([-+]?\s*\d\w*)\s*)?")


@define(eq=False)
class Slots:
    """How many slots each register file of a function needs so far."""

    counts: dict[str, int] = field(factory=lambda: {"pred": 0, "b16": 0, "b32": 0, "b64": 0})

    def take(self, name: str, file: str) -> Register:
        slot = self.counts.get(file, 0)
        self.counts[file] = slot + 1
        return Register(name, file, slot)


@define(eq=False)
class Scope:
    """The names of one block. ``symbols`` maps a variable's name here to its name in the whole function."""

    parent: "Scope | None"
    slots: Slots
    files: dict[str, str] = field(factory=dict)
    ranges: dict[str, tuple[int, str]] = field(factory=dict)
    symbols: dict[str, str] = field(factory=dict)
    labels: dict[str, int] = field(factory=dict)
    tables: dict[str, tuple[str, ...]] = field(factory=dict)
    _registers: dict[str, Register] = field(factory=dict)
    _operands: dict[str, Operand] = field(factory=dict)

    def declare_registers(self, kind: str, declarators: str) -> None:
        """``.reg`` of type ``kind``: ``declarators`` is ``%r<10>, %SP, p``. Raises PtxError."""
        file = REGISTER_FILES.get(kind)
        if file is None:
            raise PtxError(f"registers of type .{kind} are not known")
        for part in split_list(declarators):
            match = re.fullmatch(rf"({NAME}|%)\s*(?:<\s*(\d{{1,9}})\s*>)?", part)
            if match is None:
                raise PtxError(f"the register declaration '{part}' is not understood")
            if match[2]:
                self.ranges[match[1]] = (int(match[2]), file)
            else:
                self.files[match[1]] = file
        self._operands.clear()

    def declare_symbol(self, name: str, unique: str) -> None:
        self.symbols[name] = unique
        self._operands.clear()

    def register(self, name: str) -> Register | None:
        """The register of that name, innermost block first; None where none was declared."""
        found = self._registers.get(name)
        if found is not None:
            return found
        file = self.files.get(name)
        if file is None and self.ranges:
            match = _NUMBERED.fullmatch(name)
            if match:
                count, of = self.ranges.get(match[1], (0, ""))
                file = of if int(match[2]) < count else None
        if file is not None:
            found = self._registers[name] = self.slots.take(name, file)
            return found
        return self.parent.register(name) if self.parent and name not in self.symbols else None

    def symbol(self, name: str) -> str | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.symbols:
                return scope.symbols[name]
            scope = scope.parent
        return None

    def label(self, name: str) -> int | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None

    def table(self, name: str) -> tuple[str, ...] | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.tables:
                return scope.tables[name]
            scope = scope.parent
        return None

    def operand(self, text: str) -> Operand:
        """What ``text`` stands for. Raises PtxError where it is nothing that was declared."""
        found = self._operands.get(text)
        if found is None:
            found = self._operands[text] = self._parse(text)
        return found

    def _parse(self, text: str) -> Operand:
        register = self.register(text)
        if register is not None:
            return register
        first = text[:1]
        if first == "[":
            return self._address(text)
        if first == "{" or first == "(":
            return self._vector(text)
        literal = number(text)
        if literal is not None:
            return literal
        if text == "_":
            return Vector((None,))
        match = _SYMBOL.fullmatch(text)
        if match:
            unique = self.symbol(match[1])
            if unique is not None:
                return Symbol(unique, _offset(match[2], text))
        if _SPECIALS.fullmatch(text):
            return Special(text[1:])
        if match:
            kind = "register" if first == "%" else "name"
            raise PtxError(f"the {kind} '{match[1]}' was not declared")
        raise PtxError(f"the operand '{text[:60]}' is not understood")

    def _vector(self, text: str) -> Vector:
        if text[-1:] != ("}" if text[0] == "{" else ")") or text[1:-1].count(text[0]):
            raise PtxError(f"the operand '{text[:60]}' is not understood")
        parts = split_list(text[1:-1])
        return Vector(tuple(None if part == "_" else self.operand(part) for part in parts))

    def _address(self, text: str) -> Operand:
        match = _ADDRESS.fullmatch(text)
        if match is None:
            if text[-1:] == "]" and text[1:].count("[") == 0 and len(text) > 2:
                return Vector(tuple(self.operand(part) for part in split_list(text[1:-1])))
            raise PtxError(f"the address '{text[:60]}' is not understood")
        name, offset = match[1], _offset(match[2], text)
        absolute = integer(name)
        if absolute is not None:
            return Address(None, absolute + offset)
        base = self.operand(name)
        if not isinstance(base, Register | Symbol):
            raise PtxError(f"the address '{text[:60]}' is not understood")
        return Address(base, offset)


def _offset(text: str | None, whole: str) -> int:
    if not text:
        return 0
    value = integer(text.replace(" ", ""))
    if value is None:
        raise PtxError(f"the offset in '{whole[:60]}' is not a number")
    return value


def immediate(text: str) -> Immediate:
    """The literal ``text``. Raises PtxError where it is none."""
    found = number(text)
    if found is None:
        raise PtxError(f"'{text[:60]}' is not a number")
    return found


def label_of(scope: Scope, name: str) -> Label:
    """The label that ``name`` means when seen from ``scope``. Raises PtxError."""
    target = scope.label(name)
    if target is None:
        raise PtxError(f"the label '{name[:60]}' was not declared")
    return Label(name, target)
