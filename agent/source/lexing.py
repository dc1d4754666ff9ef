"""The few lexical facts that blanking and slicing need: what is code, and what is comment, string or directive.

One regular expression finds the parts that are not code. Each of its branches consumes what it looked at, so that
time is linear in the text whatever the text is.
"""

import re

from attrs import frozen

from agent.source.span import Span

_STRING = rb'[^"\\\n]*(?:\\(?:\r\n|[\s\S])[^"\\\n]*)*"?'
_LINE_COMMENT = rb"/[^\n\\]*(?:\\(?:\r\n|[\s\S])[^\n\\]*)*"
_BLOCK_COMMENT = rb"\*[\s\S]*?(?:\*/|\Z)"
_DIRECTIVE = (
    rb"(?:[^\n/\\\"]+|\\(?:\r\n|[\s\S])?|/" + _BLOCK_COMMENT + rb"|/" + _LINE_COMMENT + rb'|"' + _STRING + rb"|/)*"
)

# The first character is tried against one set, which the regular expression engine does fast; the rest looks back.
_HIDDEN = re.compile(
    rb"[\n\"'/R](?:"
    rb"(?<=\n)[ \t\f\v]*(?P<directive>#" + _DIRECTIVE + rb")"
    rb"|(?<=/)(?P<comment>" + _LINE_COMMENT + rb"|" + _BLOCK_COMMENT + rb")"
    rb'|(?<=")(?P<string>' + _STRING + rb")"
    # not a digit separator; bounded, because an unclosed quote must not be searched again from every quote after it
    rb"|(?:(?<=[^0-9A-Za-z_]')|(?<=[^0-9A-Za-z_][uUL]'))(?P<character>(?:[^'\\\n]|\\[\s\S]){1,12}')"
    rb"|(?:(?<=[^0-9A-Za-z_]R)|(?<=[^0-9A-Za-z_][uUL]R)|(?<=u8R))"
    rb'(?P<raw>"(?P<mark>[^()\\\s"]{0,16})\([\s\S]*?(?:\)(?P=mark)"|\Z))'
    rb")"
)

_SPACES = bytes(c if c in b"\r\n" else 0x20 for c in range(256))
_QUOTES = bytes(c if c in b"\r\n" else 0x22 for c in range(256))
_CONTINUATION = re.compile(rb"\\\r?\n")
_COMMENT = re.compile(rb'"' + _STRING + rb"|/" + _LINE_COMMENT + rb"|/" + _BLOCK_COMMENT)
_DEFINE = re.compile(rb"#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([^()]*\))?")
WORD = re.compile(rb"[A-Za-z_]\w*")


@frozen
class Directive:
    """A preprocessor directive with its continuation lines, from ``#`` to the end of its last line."""

    span: Span
    text: bytes

    @property
    def keyword(self) -> str:
        found = WORD.search(self.text)
        return found.group().decode() if found else ""


@frozen
class Macro:
    """``#define name(parameters) body``; ``parameters`` is None for an object-like macro."""

    name: str
    parameters: str | None
    body: str


@frozen
class Scan:
    """``code`` is the text with comments and directives as spaces and string contents as quotes; same length."""

    code: bytes
    directives: tuple[Directive, ...]


def word_set(words: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(words.split())


def spaces(piece: bytes) -> bytes:
    """As many spaces as ``piece`` has bytes, its line ends kept."""
    return piece.translate(_SPACES)


def scan(text: bytes) -> Scan:
    """Tell code from comments, strings and directives. Linear in ``len(text)``."""
    found = scan_part(text, 0, len(text))
    assert found is not None, "nothing reaches past the end"
    return found


def scan_part(text: bytes, start: int, end: int) -> Scan | None:
    """The part of ``scan(text)`` from ``start`` to ``end``: its code alone, directives with the offsets of the text.

    ``start`` is 0 or follows a character of code. None where a comment, a string or a directive reaches past ``end``.
    """
    # a line end in front makes the first line like any other; a byte order mark is no code
    padded = b"\n" + (b"   " + text[3:] if text.startswith(b"\xef\xbb\xbf") else text)
    pieces: list[bytes] = []
    directives: list[Directive] = []
    first = at = start + 1 if start else 0
    for match in _HIDDEN.finditer(padded, first):
        kind = match.lastgroup if match.lastgroup != "mark" else "raw"
        begin, stop = match.span()
        if begin > end:
            break
        if stop > end + 1:
            return None
        pieces.append(padded[at:begin])
        piece = padded[begin:stop]
        if kind == "directive":
            hash_at = match.start("directive") - 1
            directives.append(Directive(Span(hash_at, stop - 1), match.group("directive")))
        pieces.append(piece.translate(_SPACES if kind in ("directive", "comment") else _QUOTES))
        at = stop
    pieces.append(padded[at : end + 1])
    code = b"".join(pieces)
    return Scan(code if start else code[1:], tuple(directives))


def without_comments(piece: bytes) -> bytes:
    """``piece`` with comments as spaces, strings kept, and continued lines joined."""
    joined = _CONTINUATION.sub(b" ", piece)
    return _COMMENT.sub(lambda m: m.group() if m.group().startswith(b'"') else spaces(m.group()), joined)


def macro_of(directive: Directive) -> Macro | None:
    """The macro that a ``#define`` defines, or None for another directive."""
    if directive.keyword != "define":
        return None
    clean = without_comments(directive.text)
    match = _DEFINE.match(clean)
    if match is None:
        return None
    parameters = match.group(2)
    return Macro(
        match.group(1).decode(),
        None if parameters is None else parameters[1:-1].decode("utf-8", "replace"),
        clean[match.end() :].decode("utf-8", "replace").strip(),
    )
