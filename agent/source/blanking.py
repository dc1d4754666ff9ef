"""Equal-length blanking of what the grammar does not know.

The parser reads a text of the same length with the same line ends, so every offset holds in both. What was blanked is
kept in a side table, because its values matter (``__align__(16)``, ``__maxnreg__(64)``, launch bounds).
Time is linear in the text: every search consumes what it read, and brackets are matched once for the whole file.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property

from attrs import frozen

from agent.source.brackets import Brackets, match_brackets
from agent.source.lexing import Directive, Macro, macro_of, scan, spaces
from agent.source.macros import KNOWN_PRAGMA, KNOWN_SPECIFIER, control_macros, pragma_macros, specifier_macros
from agent.source.misread import misread
from agent.source.span import Span
from agent.source.splitting import split_groups


@frozen
class Blank:
    """One thing the parser did not see.

    ``kind``: ``attribute`` (``__align__(16)``), ``specifier`` (a macro such as ``HD``), ``lambda``
    (``[=] __device__``), ``pragma`` (``_Pragma``, unroll macros, ``#pragma`` in places that break the grammar),
    ``statement`` (a macro used as a statement without a semicolon), ``braces`` (``<<<{n, 1}, 64>>>``), ``typename``
    (in front of a value, ``typename T::U{}``), ``operator`` (``and`` in an ``#if``), ``type`` (as a macro's argument),
    ``conditional`` (an ``#if`` group that cuts a construct in two: its directives and all branches but one).
    ``name`` is the word, ``value`` what stands in its parentheses, ``expansion`` what a macro defined here stands for.
    """

    span: Span
    kind: str
    name: str
    value: str = ""
    expansion: str = ""


def blanks_in(blanks: Sequence[Blank], start: int, end: int) -> Sequence[Blank]:
    """Those of ``blanks`` (in text order, as ``Document.blanks`` is) that begin at ``start <= offset < end``."""
    first = bisect_left(blanks, start, key=_start)
    return blanks[first : bisect_left(blanks, end, lo=first, key=_start)]


def _start(found: Blank) -> int:
    return found.span.start


@frozen
class Blanked:
    """``code`` is what ``lexing.scan`` says is code, ``brackets`` those in it."""

    text: bytes
    blanks: tuple[Blank, ...]
    macros: tuple[Macro, ...]
    code: bytes
    brackets: "LazyBrackets"


@frozen
class _Change:
    blank: Blank
    # (start, end, replacement of the same length); the rest of the blank's span stays as it is
    pieces: tuple[tuple[int, int, bytes], ...]


_ATTRIBUTES = (
    b"__align__ alignas __launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ __annotate__ __nv_pure__ "
    b"__inline_hint__ __restrict C10_LAUNCH_BOUNDS_0 C10_LAUNCH_BOUNDS_1 C10_LAUNCH_BOUNDS_2"
).split()
_TAKES_ARGUMENTS = frozenset(_ATTRIBUTES) - {b"__nv_pure__", b"__inline_hint__", b"__restrict"}
_PRAGMAS = (b"_Pragma", b"__pragma", b"DO_PRAGMA")
_WORD = re.compile(rb"\w+")
_LONGEST = 64  # of a word that may be a known macro
_LAMBDA = re.compile(rb"\]\s*((?:__(?:host|device|forceinline|noinline)__\s*)+)[({]")
_CANDIDATE = rb"\s*([A-Z_][A-Z0-9_]{2,})[ \t]*(\(|\r?\n)"
_STATEMENT, _FIRST_STATEMENT = re.compile(rb"[;{}):]" + _CANDIDATE), re.compile(_CANDIDATE)
_NEXT_LINE = re.compile(rb"[ \t]*(?:\r?\n\s*([A-Za-z_}]?)|\Z)")
_SPACE = re.compile(rb"\s*")
_CONFIGURATION = re.compile(rb"[({,;]|>>>|>\s*>>|>>\s*>")
_LAUNCH = re.compile(rb"<<<\s*|<\s*<<\s*|<<\s*<\s*")
_WORD_END = re.compile(rb"[A-Za-z_]\w*\s*\Z")
_BODY_FOLLOWS = (b"else", b"do")


def blank(text: bytes) -> Blanked:
    """The text that the parser reads, and what is missing in it."""
    scanned = scan(text)
    macros = tuple(macro for directive in scanned.directives if (macro := macro_of(directive)))
    brackets = LazyBrackets(scanned.code)
    part = Part(text, scanned.code, scanned.directives, macros, brackets, 0, len(text))
    blanked, blanks = blank_part(part)
    return Blanked(blanked, blanks, macros, scanned.code, brackets)


class LazyBrackets:
    """The brackets of the code, matched when first asked for: many files never need them."""

    def __init__(self, code: bytes) -> None:
        self._code = code

    @cached_property
    def found(self) -> Brackets:
        return match_brackets(self._code)


@frozen
class Part:
    """A stretch of a text, from among declarations to the end of a function (or of the text), with all that decides how
    it is blanked. Offsets are those of the text; ``code`` is that of the whole text."""

    text: bytes
    code: bytes
    directives: tuple[Directive, ...]
    macros: tuple[Macro, ...]
    brackets: "LazyBrackets | Brackets"
    start: int
    end: int

    @property
    def closing(self) -> dict[int, int]:
        return self._matched.closing

    @property
    def left(self) -> tuple[bool, ...]:
        return self._matched.left

    @property
    def changes(self) -> tuple[int, ...]:
        return self._matched.changes

    def in_code(self, offset: int) -> bool:
        return self._matched.in_code(offset)

    @property
    def _matched(self) -> Brackets:
        return self.brackets if isinstance(self.brackets, Brackets) else self.brackets.found


class ReachesOut(Exception):
    """How a part is blanked depends on what follows it."""


def blank_part(part: Part) -> tuple[bytes, tuple[Blank, ...]]:
    """The part as the parser reads it, and what is missing in it. Raises ReachesOut, but not for a whole text."""
    changes = sorted(_changes(part), key=lambda change: change.blank.span)
    kept: list[_Change] = []
    # what stands inside another's parentheses is told apart by its pieces: a statement macro keeps its inside
    taken = 0
    pieces: list[bytes] = []
    at = part.start
    edits: list[tuple[int, int, bytes]] = []
    for change in changes:
        if change.pieces[0][0] < taken:
            continue
        kept.append(change)
        taken = change.pieces[0][1]
        edits += change.pieces
    for start, end, replacement in sorted(edits):
        if start < at:
            continue
        pieces += (part.text[at:start], replacement)
        at = end
    pieces.append(part.text[at : part.end])
    return b"".join(pieces), tuple(change.blank for change in kept)


def _changes(part: Part) -> Iterator[_Change]:
    yield from _words(part)
    yield from _lambdas(part)
    yield from _misplaced_pragmas(part)
    yield from _statements(part)
    yield from _brace_configurations(part)
    for kind, span, replacement in misread(part):
        word = part.text[span.start : span.end].decode("utf-8", "replace")
        yield _Change(Blank(span, kind, word), ((span.start, span.end, replacement),))
    for span, hidden in split_groups(part):
        pieces = tuple((each.start, each.end, spaces(part.text[each.start : each.end])) for each in hidden)
        yield _Change(Blank(span, "conditional", "#if"), pieces)


@frozen
class _Word:
    kind: str
    # None where arguments are taken if there are any
    arguments: bool | None
    expansion: str = ""
    # a word that is only probably a specifier must be followed by more of a declaration
    guessed: bool = False


def _words(part: Part) -> Iterator[_Change]:
    """Attributes, specifier macros and unroll macros, wherever they stand."""
    text, code = part.text, part.code
    known = _known_words(frozenset(_WORD.findall(code, part.start, part.end)), part.macros)
    if not known:
        return
    words = re.compile(rb"(?:" + b"|".join(sorted(known, reverse=True)) + rb")(?!\w)")
    for match in words.finditer(code, part.start, part.end):
        word, start, end = known[match.group()], match.start(), match.end()
        if _is_word_character(code, start - 1):
            continue
        value = ""
        if word.arguments is not False:
            opening = _SPACE.match(code, end).end()  # type: ignore[union-attr]
            closing = part.closing.get(opening) if code[opening : opening + 1] == b"(" else None
            if closing is not None:
                value, end = text[opening + 1 : closing].decode("utf-8", "replace"), closing + 1
            elif word.arguments:
                continue
        if word.guessed and not _introduces(code, end):
            continue
        replacement = spaces(text[start:end])
        if "void" in word.expansion.split():
            if len(replacement) < 4 or b"\n" in replacement:
                continue
            replacement = b"void" + replacement[4:]
        found = Blank(Span(start, end), word.kind, match.group().decode(), value, word.expansion)
        yield _Change(found, ((start, end, replacement),))


def _known_words(present: frozenset[bytes], macros: tuple[Macro, ...]) -> dict[bytes, _Word]:
    """Which of the words in the text are blanked, and how."""
    defined = {macro.name.encode() for macro in macros}
    called = {macro.name.encode() for macro in macros if macro.parameters is not None}
    known: dict[bytes, _Word] = {}
    for word in present - defined:
        if len(word) < _LONGEST and (word.isupper() or word.startswith(b"__")):
            if KNOWN_SPECIFIER.fullmatch(word):
                known[word] = _Word("specifier", False, guessed=True)
            elif KNOWN_PRAGMA.fullmatch(word):
                known[word] = _Word("pragma", None)
    known |= {word: _Word("attribute", word in _TAKES_ARGUMENTS) for word in present.intersection(_ATTRIBUTES)}
    known |= {word: _Word("pragma", True) for word in present.intersection(_PRAGMAS)}
    pragmas, specifiers = pragma_macros(macros), specifier_macros(macros)
    known |= {word: _Word("pragma", word in called, pragmas[word]) for word in present & pragmas.keys()}
    known |= {word: _Word("specifier", word in called, specifiers[word]) for word in present & specifiers.keys()}
    return known


def _introduces(code: bytes, end: int) -> bool:
    """A specifier is followed by more of a declaration; a constant of the same name is not."""
    after = _SPACE.match(code, end).end()  # type: ignore[union-attr]
    return _is_word_character(code, after) or code[after : after + 1] in (b"~", b"[")


def _is_word_character(code: bytes, at: int) -> bool:
    return 0 <= at < len(code) and (code[at : at + 1].isalnum() or code[at] == 0x5F)


def _lambdas(part: Part) -> Iterator[_Change]:
    text = part.text
    for match in _LAMBDA.finditer(part.code, part.start, part.end):
        start, end = match.span(1)
        words = " ".join(text[start:end].decode("utf-8", "replace").split())
        yield _Change(Blank(Span(start, end), "lambda", words), ((start, end, spaces(text[start:end])),))


def _misplaced_pragmas(part: Part) -> Iterator[_Change]:
    """``#pragma`` between ``else`` or ``for (...)`` and its statement, which the grammar takes for the statement."""
    end, before = max(part.start - 1, 0), b""
    for directive in part.directives:
        between = part.code[end : directive.span.start].rstrip()
        before = between[-8:] or before
        end = directive.span.end
        if directive.keyword != "pragma":
            continue
        word = _WORD_END.search(before)
        if before.endswith(b")") or (word and word.group().strip() in _BODY_FOLLOWS):
            value = directive.text.decode("utf-8", "replace").split("pragma", 1)[1].strip()
            piece = (directive.span.start, directive.span.end, spaces(directive.text))
            yield _Change(Blank(directive.span, "pragma", "#pragma", value), (piece,))


def _statements(part: Part) -> Iterator[_Change]:
    """Macros used as statements without a semicolon. In functions the argument stays (``CHECK(cudaMalloc(...))``)."""
    text, code = part.text, part.code
    controls = control_macros(part.macros)
    first = _FIRST_STATEMENT.match(code) if part.start == 0 else None
    # what stands first in a part follows the brace that ends the part before
    for match in (*([first] if first else ()), *_STATEMENT.finditer(code, max(part.start - 1, 0), part.end)):
        start, name = match.start(1), match.group(1)
        if name in controls:
            continue
        in_code = part.in_code(start)
        if match.group(2) != b"(":
            following = _NEXT_LINE.match(code, match.end(1))
            if in_code and following and _is_word_character(following.group(1) or b"", 0):
                span = Span(start, match.end(1))
                yield _Change(
                    Blank(span, "statement", name.decode()), ((span.start, span.end, spaces(text[start : span.end])),)
                )
            continue
        closing = part.closing.get(match.start(2))
        following = _NEXT_LINE.match(code, closing + 1) if closing is not None else None
        if closing is None or following is None or following.group(1) == b"":
            continue
        opening = match.start(2)
        inside = code[opening + 1 : closing]
        keep = in_code and b"(" in inside
        head = (start, opening + 1 if keep else closing, spaces(text[start : opening + 1 if keep else closing]))
        tail = (closing, closing + 1, b";" if in_code else b" ")
        value = text[opening + 1 : closing].decode("utf-8", "replace")
        yield _Change(Blank(Span(start, closing + 1), "statement", name.decode(), value), (head, tail))


def _brace_configurations(part: Part) -> Iterator[_Change]:
    """``<<<{n, 1}, {64}>>>``: parentheses in place of the braces parse as comma expressions."""
    text, code, brackets = part.text, part.code, part
    for match in _LAUNCH.finditer(code, part.start, part.end):
        at, argument = match.end(), 0
        for _ in range(32):
            if code[at : at + 1] == b"{" and (closing := brackets.closing.get(at)) is not None:
                empty = not code[at + 1 : closing].strip()
                pieces = ((at, at + 1, b"0" if empty else b"("), (closing, closing + 1, b" " if empty else b")"))
                value = text[at + 1 : closing].decode("utf-8", "replace")
                yield _Change(Blank(Span(at, closing + 1), "braces", str(argument), value), pieces)
                at = closing + 1
            found = _CONFIGURATION.search(code, at, at + 2000)
            if (found.start() if found else at + 2000) >= part.end < len(code):
                raise ReachesOut
            if found is None or found.group().startswith((b">", b";")):
                break
            if found.group() == b",":
                argument += 1
                at = _SPACE.match(code, found.end()).end()  # type: ignore[union-attr]
            elif (skipped := brackets.closing.get(found.start())) is not None:
                at = skipped + 1
            else:
                break
