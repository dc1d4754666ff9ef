"""Matching parentheses and braces of a whole file in one pass, forgiving what ``#if`` branches leave open."""

import re
from bisect import bisect_right

from attrs import frozen

_BRACKET = re.compile(rb"[(){}]")
_BEFORE_BODY = re.compile(rb"(?:\)|\]|\b(?:const|noexcept|override|try|else|do|mutable))\s*\Z")


@frozen
class Brackets:
    """``closing`` maps the offset of an opening bracket to that of its closing one. ``changes`` are the offsets at
    which the text enters (even places) or leaves (odd places) function bodies, in order."""

    closing: dict[int, int]
    changes: tuple[int, ...]

    def in_code(self, offset: int) -> bool:
        """True inside a function body, False among declarations."""
        return bisect_right(self.changes, offset) % 2 == 1


def match_brackets(code: bytes) -> Brackets:
    """``code`` has no comments, strings or directives (see ``lexing.scan``). Linear in its length."""
    closing: dict[int, int] = {}
    changes: list[int] = []
    stack: list[tuple[int, bool]] = []  # offset of the bracket, and whether it is a brace
    braces = 0
    body = 0  # how many braces are open at the outermost function body; 0 outside
    previous = 0
    for match in _BRACKET.finditer(code):
        at = match.start()
        character = code[at]
        if character == 0x28:
            stack.append((at, False))
        elif character == 0x29:
            if stack and not stack[-1][1]:
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
        previous = at
    return Brackets(closing, tuple(changes))
