"""The letters of PTX: comments, numbers, names, and where an error is."""

import re
import struct

from agent.execution.emulator.ptx.instruction import Immediate

NAME = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)"

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.S)
_NOT_NEWLINE = re.compile(r"[^\n]+")
_INTEGER = re.compile(r"([-+~]?)\s*(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|(0[0-7]*)|([1-9]\d*))U?")
_F32 = re.compile(r"(-?)0[fF]([0-9a-fA-F]{8})")
_F64 = re.compile(r"(-?)0[dD]([0-9a-fA-F]{16})")
_DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
_LONGEST_NUMBER = 80
_MASK64 = (1 << 64) - 1


class PtxError(ValueError):
    """PTX that cannot be read. ``line`` is 1-based in the PTX text (0 where no line is to blame)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"PTX line {line}: {message}" if line else f"PTX: {message}")
        self.message = message
        self.line = line


def blank_comments(text: str) -> str:
    """The same text with every comment replaced by as many blanks; newlines stay, so offsets and lines do too."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found[0] == '"' else _NOT_NEWLINE.sub(lambda part: " " * len(part.group()), found)

    return _COMMENT.sub(blank, text)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def integer(text: str) -> int | None:
    """The value of an integer literal (decimal, hexadecimal, octal, binary), or None where ``text`` is none."""
    match = _INTEGER.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
    if match is None:
        return None
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if hexadecimal:
        value = int(hexadecimal, 16)
    elif binary:
        value = int(binary, 2)
    else:
        value = int(octal, 8) if octal else int(decimal)
    return -value if sign == "-" else ~value if sign == "~" else value


def number(text: str) -> Immediate | None:
    """The literal ``text`` as an immediate, or None where it is no literal."""
    if text == "WARP_SZ":
        return Immediate(32, "int")
    value = integer(text)
    if value is not None:
        return Immediate(value & _MASK64, "int")
    match = _F32.fullmatch(text)
    if match:
        return Immediate(int(match[2], 16) ^ (0x80000000 if match[1] else 0), "f32")
    match = _F64.fullmatch(text)
    if match:
        return Immediate(int(match[2], 16) ^ (1 << 63 if match[1] else 0), "f64")
    if len(text) <= _LONGEST_NUMBER and _DECIMAL.fullmatch(text):
        return Immediate(int.from_bytes(struct.pack("<d", float(text)), "little"), "f64")
    return None


def split_list(text: str) -> list[str]:
    """Split at the commas that stand in no bracket; blanks around the parts are dropped. An empty text has no parts."""
    if "{" not in text and "(" not in text and "[" not in text:
        return [part.strip() for part in text.split(",")] if text.strip() else []
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[\[\](){},]", text):
        mark = match.group()
        if mark == ",":
            if depth == 0:
                parts.append(text[start : match.start()].strip())
                start = match.end()
        else:
            depth += 1 if mark in "[({" else -1
    parts.append(text[start:].strip())
    return parts
