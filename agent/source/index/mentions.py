"""Which names stand in a file's functions and launching macros, and how. What is declared around a place is left out.

Tokens are read off the text, in one pass; the tree is asked only for what is declared, so that a file with errors in it
says nearly as much as one without.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from agent.source.document import Document
from agent.source.index.facts import CALL, LAUNCH, MACRO, OUTSIDE, SYMBOL, USE, Definition, Mention
from agent.source.lexing import spaces
from agent.source.names import KEYWORDS
from agent.source.nodes import captured
from agent.source.span import Span

_TOKEN = re.compile(rb"(?<![\w.])(?<!->)[A-Za-z_]\w*|[()]")
_CALLED = re.compile(rb"\s*(?:<[\w\s:,*&<>]{0,200}>\s*)?\(")
_SCOPE = re.compile(rb"\s*::")
_QUALIFYING = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:"
_CHEVRONS = re.compile(rb"<<<|<\s*<<|<<\s*<")
_LAUNCHED = re.compile(rb"[A-Za-z_]\w*\Z")
_CONTINUED = re.compile(rb"\\\r?\n")
_PARAMETERS = re.compile(rb"#\s*define\s+\w+\(([^()]*)\)")
_LONGEST_QUALIFIER = 200
_LONGEST_NAME = 200
_LONGEST_ARGUMENTS = 2000
LAUNCHING = re.compile(r"cu(?:da)?Launch\w*\Z")
"""Functions of the runtime and of the driver that launch what they are given."""
# names of CUDA's interfaces and of C's library, which no workspace defines on the device
_FOREIGN = re.compile(
    rb"(?:cuda|cu|hip|CUDA_|CU_)[A-Z]\w*\Z|(?:std|dim3|size_t|printf|fprintf|malloc|free|memset|memcpy|exit|main)\Z"
)
_ELSEWHERE = frozenset({"std", "thrust", "cub", "at", "torch", "c10", "cg", "cooperative_groups", "nvcuda", "cuda"})
_DECLARED = """[
  (declaration declarator: (identifier) @name)
  (declaration declarator: (function_declarator declarator: (identifier) @name))
  (init_declarator declarator: (identifier) @name)
  (parameter_declaration declarator: (identifier) @name)
  (optional_parameter_declaration declarator: (identifier) @name)
  (pointer_declarator declarator: (identifier) @name)
  (array_declarator declarator: (identifier) @name)
  (reference_declarator (identifier) @name)
  (variadic_declarator (identifier) @name)
  (for_range_loop declarator: (identifier) @name)
  (structured_binding_declarator (identifier) @name)
  (type_parameter_declaration (type_identifier) @name)
  (optional_type_parameter_declaration name: (type_identifier) @name)
  (variadic_type_parameter_declaration (type_identifier) @name)
  (alias_declaration name: (type_identifier) @name)
  (type_definition declarator: (type_identifier) @name)
]"""

Declared = Mapping[bytes, int]
"""Names with the offset at which each is first declared."""


@frozen
class _Token:
    name: bytes
    start: int
    how: str
    within: bytes

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + len(self.name))


def mentions_of(
    document: Document, code: bytes, definitions: Sequence[Definition]
) -> tuple[tuple[Mention, ...], frozenset[int]]:
    """The mentions in text order, and which of the definitions launch what they are given. ``code`` as ``lexing.scan``
    has it."""
    bodies = [at for at, one in enumerate(definitions) if one.whole and one.kind not in (MACRO, SYMBOL)]
    ends = [definitions[at].extent for at in bodies]
    declared = _declared(document, ends)
    named = {one.span.start for one in definitions}
    prototypes = [one.extent for one in definitions if not one.whole and one.kind != SYMBOL]
    found: list[Mention] = []
    wrappers: set[int] = set()
    place = 0
    for token in _tokens(code, 0, len(code), ends):
        while place < len(ends) and ends[place].end <= token.start:
            place += 1
        around = place < len(ends) and ends[place].start <= token.start
        here: Declared = declared[place] if around else {}
        inside = bodies[place] if around else OUTSIDE
        if token.name in here:
            if token.how == LAUNCH or LAUNCHING.match(token.within.decode()):
                if _is_parameter(code, ends[place], here[token.name]):
                    wrappers.add(inside)
                else:
                    found += _pointed(code, ends[place], token, here, inside)
        elif token.start not in named and (around or not _lies_in(token.start, prototypes)):
            # among declarations an argument list follows an instantiation
            mention = _mention(code, token if around else evolve(token, how=USE), inside)
            if mention.qualifier.partition("::")[0] not in _ELSEWHERE:
                found.append(mention)
    macros = [at for at, one in enumerate(definitions) if one.kind == MACRO]
    joined = _CONTINUED.sub(lambda match: spaces(match.group()), document.text) if macros else b""
    for at in macros:
        within, launches = _in_macro(joined, definitions[at], at)
        found += within
        wrappers |= {at} if launches else set()
    return tuple(sorted(found, key=lambda one: one.span.start)), frozenset(wrappers)


def _lies_in(offset: int, spans: Sequence[Span]) -> bool:
    at = bisect_right(spans, offset, key=lambda span: span.start) - 1
    return at >= 0 and offset < spans[at].end


def _declared(document: Document, ends: Sequence[Span]) -> list[dict[bytes, int]]:
    declared: list[dict[bytes, int]] = [{} for _ in ends]
    starts = [span.start for span in ends]
    for node in captured(_DECLARED, document.tree.root_node):
        at = bisect_right(starts, node.start_byte) - 1
        if at >= 0 and node.end_byte <= ends[at].end:
            declared[at].setdefault(document.text[node.start_byte : node.end_byte], node.start_byte)
    return declared


def _tokens(code: bytes, start: int, end: int, resets: Sequence[Span] = ()) -> Iterator[_Token]:
    """The names in a stretch of code. The calls that a name is an argument of are forgotten where a function begins:
    what one leaves open does not reach into the next."""
    launched = _launched(code, start, end)
    calls: list[bytes] = []
    opens: dict[int, bytes] = {}
    boundaries = iter([*(span.start for span in resets), end])
    boundary = next(boundaries)
    for match in _TOKEN.finditer(code, start, end):
        name, at = match.group(), match.start()
        while at >= boundary and boundary < end:
            calls.clear()
            boundary = next(boundaries)
        if name == b"(":
            calls.append(opens.pop(at, calls[-1] if calls else b""))
            continue
        if name == b")":
            if calls:
                calls.pop()
            continue
        if name.decode() in KEYWORDS:
            continue
        after = code[match.end() : match.end() + 1]
        called = _CALLED.match(code, match.end()) if after in b"(< \t\r\n" else None
        if called is not None:
            opens[called.end() - 1] = name
        if at in launched:
            how = LAUNCH
        elif _FOREIGN.match(name) or (after in b": \t\n" and _SCOPE.match(code, match.end())):
            continue
        else:
            how = CALL if called is not None else USE
        yield _Token(name, at, how, calls[-1] if calls else b"")


def _launched(code: bytes, start: int, end: int) -> frozenset[int]:
    """Where the names begin that stand in front of ``<<<``."""
    found = set()
    for match in _CHEVRONS.finditer(code, start, end):
        stop = _before_arguments(code, _before_space(code, match.start()))
        name = _LAUNCHED.search(code, max(start, stop - _LONGEST_NAME), stop)
        if name is not None:
            found.add(name.start())
    return frozenset(found)


def _before_space(code: bytes, at: int) -> int:
    floor = max(0, at - _LONGEST_NAME)
    return floor + len(code[floor:at].rstrip())


def _before_arguments(code: bytes, stop: int) -> int:
    """Where the name ends of which the template arguments end at an offset; the offset where none do."""
    if code[stop - 1 : stop] != b">":
        return stop
    depth = 0
    for place in range(stop - 1, max(-1, stop - _LONGEST_ARGUMENTS), -1):
        if code[place] == 0x3C and b"<<" not in (code[place - 1 : place + 1], code[place : place + 2]):  # no shift
            depth -= 1
        depth += code[place] == 0x3E
        if not depth:
            return _before_space(code, place)
        if code[place] in b";{}":
            break
    return stop


def _is_parameter(code: bytes, extent: Span, declared: int) -> bool:
    """Whether what is declared there is a parameter of the function: in front of its body."""
    return code.find(b"{", extent.start, declared) < 0


def _pointed(code: bytes, extent: Span, launch: _Token, declared: Declared, inside: int) -> Iterator[Mention]:
    """A launch through a local pointer: of each name that it is set to."""
    assigned = re.compile(rb"\b" + launch.name + rb"\b[^;={}]*=([^;={}]+);")
    for match in assigned.finditer(code, extent.start, extent.end):
        for token in _tokens(code, match.start(1), match.end(1)):
            before = code[match.start(1) : token.start]
            # what stands between angle brackets is an argument of the template
            if token.name not in declared and token.how == USE and before.count(b"<") == before.count(b">"):
                mention = _mention(code, token, inside)
                yield Mention(mention.name, mention.qualifier, LAUNCH, launch.span, "", inside)


def _mention(code: bytes, token: _Token, inside: int) -> Mention:
    qualifier = ""
    if code[token.start - 1 : token.start] == b":":
        before = code[max(0, token.start - _LONGEST_QUALIFIER) : token.start]
        qualifier = before[len(before.rstrip(_QUALIFYING)) :].decode().strip(":")
    return Mention(token.name.decode(), qualifier, token.how, token.span, token.within.decode(), inside)


def _in_macro(text: bytes, macro: Definition, place: int) -> tuple[list[Mention], bool]:
    """What a macro launches, and whether it launches what it is given. The rest of its body is not looked at. In
    ``text`` lines are continued with spaces."""
    start, end = macro.extent.start, macro.extent.end
    given = _PARAMETERS.match(text, start, end)
    parameters = {name.strip() for name in given.group(1).split(b",")} if given else set()
    found, launches = [], False
    for token in _tokens(text, given.end() if given else macro.span.end, end):
        if token.how == LAUNCH or LAUNCHING.match(token.within.decode()):
            if token.name in parameters:
                launches = True
            elif token.how == LAUNCH or token.how == USE:
                found.append(_mention(text, token, place))
    return found, launches
