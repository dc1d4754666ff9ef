"""Whether a model's code is device code that may stand in the user's file, and nothing else.

The code replaces one kernel in a file that the user compiles and runs, and the compiler and the editor see it first.
So only what device code needs is let through, by kind: functions for the device, plain types, constants. All else is
refused by its name, with the line in the answer.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from agent.source.document import Document, parse
from agent.source.errors import SourceError
from agent.source.items import Block, Conditional, Entry, Include, Item, entries
from agent.source.kernel import Kernel
from agent.source.lexing import scan, without_comments
from agent.source.names import names_in
from agent.source.nodes import walk
from agent.source.span import Span

LONGEST = 60_000
"""Characters."""

_WORDS = {
    "__host__": "`__host__`: only device code is taken",
    "__managed__": "`__managed__` memory",
    "__attribute__": "`__attribute__`",
    "__declspec": "`__declspec`",
    "_Pragma": "`_Pragma`",
    "__pragma": "`__pragma`",
    "thread_local": "`thread_local`",
    "import": "`import`",
    "module": "`module`",
    "dlopen": "`dlopen`",
}
_RUNTIME = re.compile(r"\bcuda[A-Z]\w*\s*\(")
_ASM = re.compile(rb'\b(?:asm|__asm__|__asm)\b(?:"(?:\\.|[^"\\])*"|[^";])*;', re.DOTALL)
_UNROLL = re.compile(rb"#\s*pragma\s+(?:no)?unroll\b[^\n\\]*")
_OTHER_SPELLING = re.compile(rb"<%|%>|%:|\?\?[=/'()!<>-]")
_FUNCTION = ("function_definition", "inline_method_definition")


class Refused(Exception):
    """The code is not taken. The message lists the reasons, each with its line in the code."""


def vet(code: str, document: Document, kernel: Kernel) -> str:
    """The code as it may replace ``kernel`` in ``document``: without what it only repeats of the file. Raises
    Refused."""
    if len(code) > LONGEST:
        raise Refused(f"the code has {len(code)} characters; at most {LONGEST} are taken")
    _raise(_bad_characters(code))
    code = _without_repeats(code.replace("\r\n", "\n"), document)
    told = parse(code.encode())
    _raise(_directives(told))
    _raise(_damage(told))
    _raise(_words(told, document))
    found = _entries(told)
    _raise(reason for entry in found for reason in _refusals(entry, told))
    _raise(_clashes(found, told, document, kernel))
    _raise(_kernel(told, kernel))
    return code.strip("\n")


def _raise(reasons: Iterator[str]) -> None:
    found = list(dict.fromkeys(reasons))
    if found:
        more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
        raise Refused("; ".join(found[:5]) + more)


def _bad_characters(code: str) -> Iterator[str]:
    for number, line in enumerate(code.split("\n"), 1):
        for char in line.rstrip("\r"):
            if char != "\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
                yield f"line {number}: the invisible character U+{ord(char):04X}"
        if line.rstrip("\r").endswith("\\"):
            yield f"line {number}: a backslash at the end of a line"


def _directives(told: Document) -> Iterator[str]:
    for directive in scan(told.text).directives:
        if _UNROLL.fullmatch(directive.text.strip()):
            continue
        line = told.line(directive.span.start)
        hint = "; write `constexpr` in place of a macro" if directive.keyword == "define" else ""
        yield f"line {line}: `#{directive.keyword}` (only `#pragma unroll` may stand in the code{hint})"
    for match in _OTHER_SPELLING.finditer(told.text):
        yield f"line {told.line(match.start())}: `{match[0].decode()}`, another spelling of a bracket or a directive"


def _damage(told: Document) -> Iterator[str]:
    node = told.tree.root_node
    if not node.has_error:
        return
    while not (node.is_error or node.is_missing):
        node = next(child for child in node.children if child.has_error or child.is_error or child.is_missing)
    near = told.text[node.start_byte : node.start_byte + 40].decode("utf-8", "replace").split("\n")[0]
    yield f"line {node.start_point.row + 1}: this cannot be parsed, near `{near}`"


def _words(told: Document, document: Document) -> Iterator[str]:
    code = scan(told.text).code.decode("utf-8", "replace")
    for match in re.finditer(r"[A-Za-z_]\w*", code):
        if match[0] in _WORDS:
            yield f"line {code.count(chr(10), 0, match.start()) + 1}: {_WORDS[match[0]]}"
    for match in _RUNTIME.finditer(code):
        yield f"line {code.count(chr(10), 0, match.start()) + 1}: a call of the CUDA runtime, `{match[0][:-1].strip()}`"
    for site in told.launches:
        yield f"line {site.line}: a launch; launches are stated in the plan"
    yield from _assembly(told, document)


def _assembly(told: Document, document: Document) -> Iterator[str]:
    """Inline PTX that does not stand in the user's file word for word."""
    known = {_plain(match[0]) for match in _ASM.finditer(without_comments(document.text))}
    allowed = [match.span() for match in _ASM.finditer(without_comments(told.text)) if _plain(match[0]) in known]
    for word in re.finditer(rb"\b(?:asm|__asm__|__asm)\b", scan(told.text).code):
        if not any(start <= word.start() < end for start, end in allowed):
            yield f"line {told.line(word.start())}: `asm` that the original does not have"


def _plain(text: bytes) -> bytes:
    return b" ".join(text.split())


def _entries(told: Document) -> tuple[Entry, ...]:
    try:
        return entries(told)
    except SourceError as error:
        raise Refused(str(error)) from None


def _refusals(entry: Entry, told: Document) -> Iterator[str]:
    """Why a top-level entry is not taken."""
    span = entry.head if isinstance(entry, Block) else entry.foot if isinstance(entry, Conditional) else entry.span
    where = f"line {told.line(span.start)}"
    if isinstance(entry, Include):
        yield f"{where}: `#include`"
    elif isinstance(entry, Conditional):
        yield f"{where}: `#if`"
    elif isinstance(entry, Block):
        kind = "a namespace" if b"namespace" in told.text[span.start : span.end] else '`extern "C"`'
        yield f"{where}: {kind} (the code stands where the kernel stands, inside whatever is around it)"
    else:
        for reason in _ITEMS.get(entry.kind, _other)(entry, told):
            yield f"{where}: {reason}"


def _function(item: Item, told: Document) -> Iterator[str]:
    if not item.device or item.host_constexpr:
        yield f"`{_name(item)}` is a host function (mark it `__device__`)"


def _variable(item: Item, told: Document) -> Iterator[str]:
    head = told.text[item.span.start : item.span.end].partition(b"=")[0].partition(b"{")[0]
    words = set(re.findall(rb"\w+", head))
    if b"extern" in words and b"__shared__" in words:
        return
    if b"extern" in words:
        yield f"`{_name(item)}` is declared elsewhere (`extern`)"
    elif b"__constant__" in words or b"constexpr" in words or {b"__device__", b"const"} <= words:
        return
    elif b"__device__" in words:
        yield f"`{_name(item)}` is device memory that outlives a launch"
    else:
        yield f"`{_name(item)}` is a global object of the host (write `constexpr`, or put it into the kernel)"


def _type(item: Item, told: Document) -> Iterator[str]:
    text = told.text[item.span.start : item.span.end]
    if re.search(rb"\bstatic\b(?!\s+(?:constexpr|__device__|inline|__forceinline__))", scan(text).code):
        yield f"`{_name(item)}` has a static member"
    for node in walk(item.node) if item.node is not None else ():
        if node.type in _FUNCTION and not _on_device(node, told):
            yield f"`{_name(item)}` has a member function of the host (mark it `__device__`)"
            return


def _on_device(node: Node, told: Document) -> bool:
    """Whether ``__device__`` stands before the body, after whatever came before the function."""
    body = node.child_by_field_name("body")
    before = node.prev_sibling
    start = before.end_byte if before is not None else node.start_byte
    return b"__device__" in told.text[start : body.start_byte if body is not None else node.end_byte]


def _using(item: Item, told: Document) -> Iterator[str]:
    yield "`using namespace`, which would hold for the whole file"


def _other(item: Item, told: Document) -> Iterator[str]:
    text = _plain(told.text[item.span.start : item.span.end])
    if text.strip(b"; "):
        yield f"`{text[:40].decode('utf-8', 'replace')}` is no definition of device code"


_ITEMS = {"function": _function, "operator": _function, "variable": _variable, "type": _type, "using": _using}


def _name(item: Item) -> str:
    return ", ".join(sorted(item.gives)) or item.kind


def _clashes(found: Sequence[Entry], told: Document, document: Document, kernel: Kernel) -> Iterator[str]:
    """Names that the code gives and that the file has already, outside the kernel that is replaced."""
    text = document.text
    taken = names_in(text[: kernel.span.start]) | names_in(text[kernel.span.end :])
    for entry in found:
        if not isinstance(entry, Item) or entry.kind == "operator":
            continue
        for name in sorted(entry.gives & taken):
            if name != kernel.name:
                yield f"line {told.line(entry.span.start)}: `{name}` is a name in the file already; take another"


def _kernel(told: Document, kernel: Kernel) -> Iterator[str]:
    """The code must define the kernel itself, once, under its own name and with its own template parameters."""
    same = [other for other in told.kernels if other.name == kernel.name]
    if len(same) != 1:
        there = ", ".join(f"`{other.name}`" for other in told.kernels) or "none"
        yield f"the code must define the kernel `{kernel.name}` once; it defines {there}"
    elif len(same[0].template) != len(kernel.template):
        wanted, given = len(kernel.template), len(same[0].template)
        yield f"`{kernel.name}` has {wanted} template parameters; the code gives it {given}"
    for other in told.kernels:
        if other.damage is not None:
            yield f"`{other.name}`: {other.damage}"


def _without_repeats(code: str, document: Document) -> str:
    """Blanks for what the code only repeats of the file (helpers, constants, includes): it is in place already."""
    there = {_plain(piece) for piece, _ in _pieces(document)}
    told = parse(code.encode())
    text = bytearray(told.text)
    for piece, span in _pieces(told):
        if _plain(piece) in there and not any(kernel.span.start < span.end and span.start < kernel.span.end
                                              for kernel in told.kernels):  # fmt: skip
            text[span.start : span.end] = bytes(c if c == 0x0A else 0x20 for c in text[span.start : span.end])
    return "\n".join(line.rstrip() for line in text.decode("utf-8", "replace").split("\n"))


def _pieces(document: Document) -> Iterator[tuple[bytes, Span]]:
    try:
        found = entries(document)
    except SourceError:
        return
    waiting = list(found)
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, Block):
            waiting += entry.children
        elif isinstance(entry, Conditional):
            for _, inside in entry.branches:
                waiting += inside
        else:
            yield without_comments(document.text[entry.span.start : entry.span.end]), entry.span
