"""Matching parentheses and braces of a whole file in one pass, forgiving what ``#if`` branches leave open."""

import re
from bisect import bisect_right

from attrs import frozen

_BRACKET = re.compile(rb"[(){}]")
_BEFORE_BODY = re.compile(rb"(?:\)|\]|\b(?:const|noexcept|override|try|else|do|mutable))\s*\Z")


@frozen
class Brackets:
    """``closing`` maps the offset of an opening bracket to that of its closing one. ``changes`` are the offsets at
    which the text enters (even places) or leaves (odd places) function bodies, in order. ``left`` tells of each bracket
    that is still open at the end whether it is a brace; ``stray``: one closes that was never opened."""

    closing: dict[int, int]
    changes: tuple[int, ...]
    left: tuple[bool, ...] = ()
    stray: bool = False

    def in_code(self, offset: int) -> bool:
        """True inside a function body, False among declarations."""
        return bisect_right(self.changes, offset) % 2 == 1


def match_brackets(code: bytes, start: int = 0, end: int | None = None) -> Brackets:
    """``code`` has no comments, strings or directives (see ``lexing.scan``). Linear in its length. A part of it, from
    ``start`` among declarations, is read as if nothing were open there."""
    closing: dict[int, int] = {}
    changes: list[int] = []
    stack: list[tuple[int, bool]] = []  # offset of the bracket, and whether it is a brace
    braces = 0
    body = 0  # how many braces are open at the outermost function body; 0 outside
    previous = start
    stray = False
    for match in _BRACKET.finditer(code, start, len(code) if end is None else end):
        at = match.start()
        character = code[at]
        if character == 0x28:
            stack.append((at, False))
        elif character == 0x29:
            if not stack:
                stray = True
            elif not stack[-1][1]:
                closing[stack.pop()[0]] = at
        elif character == 0x7B:
            stack.append((at, True))
            braces += 1
            if not body and _BEFORE_BODY.search(code, max(previous, at - 200), at):
                body = braces
                changes.append(at)
        elif braces:
            while not stack[-1][1]:
                stack.pop()
            closing[stack.pop()[0]] = at
            if braces == body:
                body = 0
                changes.append(at)
            braces -= 1
        else:
            stray = True
        previous = at
    return Brackets(closing, tuple(changes), tuple(brace for _, brace in stack), stray)
