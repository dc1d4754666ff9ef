"""What calls of a file's own macros stand for, as far as one name is concerned: launches that hide in ``#define``."""

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from agent.source.brackets import match_brackets
from agent.source.document import Document, parse
from agent.source.kernels import split_arguments
from agent.source.lexing import Macro, scan

_CALL = re.compile(rb"\b([A-Za-z_]\w*)\s*\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PASTE = re.compile(r"\s*##\s*")
_HEAD = "void cuda_lsp_expanded() {\n"
_DEPTH = 5
_LARGEST = 200_000
_MOST = 64


@frozen
class Expansion:
    """``document`` is what the call at ``offset`` of its file stands for, as the body of a function of its own."""

    offset: int
    document: Document


def expansions(document: Document, macros: Mapping[str, Macro], word: str) -> Iterator[Expansion]:
    """The calls of function-like ``macros`` in ``document`` whose expansion has ``word`` in it, carried out."""
    if not macros:
        return
    hiding = _hiding(macros, word)
    code = scan(document.text).code
    closing = None
    end = found = 0
    for match in _CALL.finditer(code):
        name = match.group(1).decode()
        if match.start() < end or name not in macros or found == _MOST:
            continue
        closing = closing or match_brackets(code).closing
        stop = closing.get(match.end() - 1)
        if stop is None:
            continue
        written = document.text[match.end() : stop].decode("utf-8", "replace")
        if name not in hiding and word not in written:
            continue
        text = _expanded(macros[name], split_arguments(written), macros, 0)
        if re.search(rf"\b{re.escape(word)}\b", text):
            end, found = stop, found + 1
            yield Expansion(match.start(), parse(f"{_HEAD}{text}\n}}\n".encode()))


def function_macros(documents: Sequence[Document]) -> dict[str, Macro]:
    """The macros with parameters; of several by one name the longest, since the others do nothing."""
    found: dict[str, Macro] = {}
    for document in documents:
        for macro in document.macros:
            if macro.parameters is not None and len(macro.body) > len(found.get(macro.name, macro).body) - 1:
                found[macro.name] = macro
    return found


def _hiding(macros: Mapping[str, Macro], word: str) -> frozenset[str]:
    """The macros in whose expansion a word may stand whatever their arguments are."""
    bodies = {name: frozenset(_WORD.findall(macro.body)) for name, macro in macros.items()}
    hiding = {name for name, body in bodies.items() if word in body or "##" in macros[name].body}
    for _ in range(_DEPTH):
        more = {name for name, body in bodies.items() if not hiding.isdisjoint(body)} - hiding
        if not more:
            break
        hiding |= more
    return frozenset(hiding)


def _expanded(macro: Macro, arguments: Sequence[str], macros: Mapping[str, Macro], depth: int) -> str:
    text = _put_in(macro, arguments)
    if depth == _DEPTH or len(text) > _LARGEST:
        return text
    return carried_out(text, {name: one for name, one in macros.items() if one is not macro}, depth + 1)


def carried_out(text: str, macros: Mapping[str, Macro], depth: int = 0) -> str:
    """A piece of code with the calls of ``macros`` in it replaced by what they stand for."""
    pieces: list[str] = []
    raw = text.encode()
    code = scan(raw).code
    closing = match_brackets(code).closing
    at = 0
    for match in _CALL.finditer(code):
        inner = macros.get(match.group(1).decode())
        stop = closing.get(match.end() - 1)
        if match.start() < at or inner is None or stop is None:
            continue
        passed = split_arguments(raw[match.end() : stop].decode("utf-8", "replace"))
        pieces += (raw[at : match.start()].decode("utf-8", "replace"), _expanded(inner, passed, macros, depth))
        at = stop + 1
    return "".join((*pieces, raw[at:].decode("utf-8", "replace")))[:_LARGEST]


def _put_in(macro: Macro, arguments: Sequence[str]) -> str:
    names = [name.strip() for name in (macro.parameters or "").split(",")]
    given = dict(zip(names, arguments, strict=False))
    if names and names[-1].endswith("..."):
        rest = ", ".join(arguments[len(names) - 1 :])
        given[names[-1].removesuffix("...").strip() or "__VA_ARGS__"] = given["__VA_ARGS__"] = rest
    return _PASTE.sub("", _WORD.sub(lambda match: given.get(match.group(), match.group()), macro.body))
