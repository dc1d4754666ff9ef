"""Single words that the grammar does not know where they stand: found by what is around them."""

import re
from collections.abc import Iterator
from typing import Protocol

from agent.source.lexing import Directive, Macro, spaces
from agent.source.span import Span

_NAME = rb"\w+(?:\s*<[^<>;{}()]{0,200}>)?"
# in front of a value; what precedes it tells it from a declaration's
_TYPENAME = re.compile(
    rb"(?:[(,=?:&|+*/!{-]|\breturn)\s*(typename)\s+(?:::\s*)?(?:" + _NAME + rb"\s*::\s*(?:template\s+)?){1,8}"
    + _NAME + rb"\s*[{(](?!\s*[*&])"
)  # fmt: skip
_OPERATOR = re.compile(rb"\b(?:and|or|not)\b")
_OPERATORS = {b"and": b"&& ", b"or": b"||", b"not": b"!  "}
_CALL = re.compile(rb"\b([A-Z_][A-Z0-9_]*)\s*\(")
_TYPE = re.compile(
    rb"(?<=[(,])\s*((?:unsigned[ \t]+|signed[ \t]+)?"
    rb"(?:bool|char|short|int|long(?:[ \t]+long)?|float|double|void|unsigned))\s*(?=[,)])"
)


class PartLike(Protocol):
    """See :class:`agent.source.blanking.Part`."""

    @property
    def text(self) -> bytes: ...
    @property
    def code(self) -> bytes: ...
    @property
    def directives(self) -> tuple[Directive, ...]: ...
    @property
    def macros(self) -> tuple[Macro, ...]: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def closing(self) -> dict[int, int]: ...
    @property
    def changes(self) -> tuple[int, ...]: ...


def misread(part: PartLike) -> Iterator[tuple[str, Span, bytes]]:
    """Their kinds (see ``Blank``), where they stand, and what of the same length the parser reads in their place."""
    yield from _typenames(part)
    yield from _operators(part)
    yield from _types(part)


def _typenames(part: PartLike) -> Iterator[tuple[str, Span, bytes]]:
    """``f(typename T::Shape{})``: the grammar knows the word only in front of types."""
    if part.code.find(b"typename", part.start, part.end) < 0:
        return
    for match in _TYPENAME.finditer(part.code, part.start, part.end):
        span = Span(*match.span(1))
        yield "typename", span, spaces(part.text[span.start : span.end])


def _operators(part: PartLike) -> Iterator[tuple[str, Span, bytes]]:
    """``#if defined(A) and defined(B)``."""
    for directive in part.directives:
        if directive.keyword in ("if", "elif"):
            for match in _OPERATOR.finditer(directive.text):
                start = directive.span.start + match.start()
                yield "operator", Span(start, start + len(match.group())), _OPERATORS[match.group()]


def _types(part: PartLike) -> Iterator[tuple[str, Span, bytes]]:
    """``SWAP(int, a, b)``, where the file defines such a macro: a name of the same length is an argument."""
    called = frozenset(macro.name.encode() for macro in part.macros if macro.parameters is not None)
    end = part.start
    for call in _CALL.finditer(part.code, part.start, part.end) if called else ():
        closing = part.closing.get(call.end() - 1) if call.group(1) in called and call.start() >= end else None
        if closing is None:
            continue
        end = closing
        for match in _TYPE.finditer(part.code, call.end() - 1, closing + 1):
            span = Span(*match.span(1))
            yield "type", span, b"_" * (span.end - span.start)
