"""Variable and parameter declarations of PTX, with what they hold before the program runs."""

import re
import struct

from agent.execution.emulator.ptx.instruction import Symbol, Variable
from agent.execution.emulator.ptx.scope import REGISTER_FILES
from agent.execution.emulator.ptx.text import NAME, PtxError, integer, number, split_list

SPACES = ("global", "const", "shared", "local", "param", "tex")
# handles to textures and the like are 64-bit values
_OPAQUE = ("texref", "samplerref", "surfref")
_MOST_INITIAL_BYTES = 1 << 28
_ATTRIBUTE = re.compile(
    r"\s*\.(?:align\s+(?P<align>\d{1,6})|v(?P<lanes>[248])\b|attribute\s*\([^()]*\)|ptr\b|(?P<space>global|const|shared|local|param|tex)\b"
    r"|(?P<type>\w+))"
)
_DECLARATOR = re.compile(rf"\s*({NAME})\s*((?:\[[^\]]*\]\s*)*)(?:=\s*(.*))?", re.S)
_RELOCATION = re.compile(rf"(?:(0[xX][fF0]+)\s*\(\s*)?(?:generic\s*\(\s*)?({NAME})\s*\)?\s*(?:([-+])\s*(\d\w*)\s*)?\)?")


def declared(space: str, text: str, external: bool = False) -> tuple[Variable, ...]:
    """The variables of one declaration: ``text`` is all that follows ``.shared`` and the like, without the semicolon.

    Raises PtxError. An array without a size is external (dynamic shared memory) and has 0 bytes.
    """
    align, lanes, kind, position, pointer = 0, 1, "", 0, False
    while match := _ATTRIBUTE.match(text, position):
        if kind and not pointer and not match["type"] and not match["align"] and match.group().strip() == ".ptr":
            pointer = True
        elif match["align"] and not pointer:
            align = int(match["align"])
        elif match["lanes"]:
            lanes = int(match["lanes"])
        elif match["type"]:
            kind = match["type"]
        position = match.end()
    size = 8 if kind in _OPAQUE else _size(kind)
    declarators = split_list(text[position:])
    if not declarators:
        raise PtxError(f"the .{space} declaration has no name")
    return tuple(_variable(space, part, kind, size, lanes, align, external) for part in declarators)


def _size(kind: str) -> int:
    if kind == "b8" or kind in ("u8", "s8"):
        return 1
    file = REGISTER_FILES.get(kind)
    if file is None or file == "pred":
        raise PtxError(f"variables of type .{kind} are not known")
    return int(file[1:]) // 8


def _variable(space: str, text: str, kind: str, size: int, lanes: int, align: int, external: bool) -> Variable:
    match = _DECLARATOR.fullmatch(text)
    if match is None:
        raise PtxError(f"the declaration '{text[:60]}' is not understood")
    name, dimensions, initialiser = match.groups()
    count, unsized = lanes, False
    for dimension in re.findall(r"\[([^\]]*)\]", dimensions):
        length = integer(dimension.strip()) if dimension.strip() else 0
        if length is None or length < 0:
            raise PtxError(f"the size of '{name}' is not understood")
        unsized = unsized or length == 0
        count *= max(length, 1) if initialiser and not length else length
    if align & (align - 1):
        raise PtxError(f"the alignment {align} of '{name}' is no power of two")
    initial, relocations = _contents(initialiser, kind, size, name) if initialiser else (None, {})
    if initial is not None:
        count = max(count, len(initial) // size) if unsized else count
        if len(initial) > count * size or count * size > _MOST_INITIAL_BYTES:
            raise PtxError(f"the initial value of '{name}' does not fit")
        initial = initial + bytes(count * size - len(initial))
    elif external and space == "shared":
        count = 0 if unsized else count
    return Variable(
        name=name,
        space="global" if space == "tex" else space,
        nbytes=count * size,
        alignment=align or size * lanes,
        initial=initial,
        external=external,
        relocations=relocations,
    )


def _contents(text: str, kind: str, size: int, name: str) -> tuple[bytes, dict[int, Symbol]]:
    """The bytes of an initialiser and the addresses in it. Braces only group: PTX fills in order."""
    if kind in _OPAQUE:
        return bytes(8), {}
    parts = split_list(text.replace("{", " ").replace("}", " "))
    out, relocations = bytearray(), {}
    for part in parts:
        literal = number(part)
        if literal is not None:
            out += _encode(literal.bits, literal.kind, kind, size)
            continue
        match = _RELOCATION.fullmatch(part)
        if match is None:
            raise PtxError(f"the initial value '{part[:60]}' of '{name}' is not understood")
        mask, symbol, sign, offset = match.groups()
        if mask is None or int(mask, 16) == 0xFF:
            distance = (integer(offset) or 0) if offset else 0
            relocations[len(out)] = Symbol(symbol, -distance if sign == "-" else distance)
        out += bytes(size)
    return bytes(out), relocations


def _encode(bits: int, literal: str, kind: str, size: int) -> bytes:
    if kind in ("f32", "f64") and literal != kind:
        if literal == "int":
            value = float(bits - (1 << 64) if bits >> 63 else bits)
        else:
            value = struct.unpack(
                "<f" if literal == "f32" else "<d", bits.to_bytes(4 if literal == "f32" else 8, "little")
            )[0]
        try:
            return struct.pack("<f" if kind == "f32" else "<d", value)
        except OverflowError:
            return struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return (bits & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
