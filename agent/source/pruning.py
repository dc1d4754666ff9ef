"""A slice without the parts in which a compiler found errors, where nothing that is left can mean something else."""

import hashlib
import re
from collections.abc import Sequence

from agent.source.items import Found, Item
from agent.source.names import names_in
from agent.source.writing import named

Place = tuple[str, int]
"""A file as a compiler says it, and a line."""

LEFT_OUT = "left out, since it does not compile here"
_SPECIALISED = re.compile(rb"\s*template\s*<\s*>")


def prunable(
    found: Sequence[Found], roots: frozenset[str], errors: frozenset[Place], gone: frozenset[str]
) -> tuple[Item, ...]:
    """The items to leave out for errors at these places: those that hold one, each with all of its namespace that have
    a name in common with it, so that no call finds another overload and no type another specialisation in its place:
    what needs it does not compile then.

    Kernels that were asked for and macros stay, a specialisation does without its primary template, and an operator
    does unless it works on one of the names that are ``gone`` already.
    """
    left_out: list[Item] = []
    chosen = [each.item for each in found]
    for item, scope in ((each.item, each.scope) for each in found):
        if item.kind in ("macro", "pragma", "using") or not _holds(item, errors):
            continue
        if item.kind == "other":
            # a macro call: what it defines is not known but for the words in it; others of the macro are as wrong
            left_out += [other for other in chosen if other.kind == "other" and _word(other) == _word(item)]
        elif item.kind == "operator":
            left_out += [item] if item.takes & gone else []
        elif not item.gives & roots:
            same = [one.item for one in found if one.scope == scope and item.gives & one.item.gives]
            same = [other for other in same if other.kind not in ("macro", "other")]
            left_out += same if not all(map(_specialises, same)) else []
    return tuple({id(item): item for item in left_out}.values())


def _holds(item: Item, errors: frozenset[Place]) -> bool:
    document = item.document
    first, last = document.line(item.span.start), document.line(max(item.span.start, item.span.end - 1))
    file = named(document.path or "text")
    return any(path == file and first <= line <= last for path, line in errors)


def _specialises(item: Item) -> bool:
    head = item.document.text[item.span.start : item.span.start + 200]
    return _SPECIALISED.match(head) is not None


def _word(item: Item) -> bytes:
    return item.document.text[item.span.start : item.span.end].partition(b"(")[0].strip()


def key_of(item: Item) -> str:
    """What an item is known by in another text that has the same: a hash of how it is written."""
    return hashlib.sha256(item.document.text[item.span.start : item.span.end]).hexdigest()[:32]


def said(item: Item) -> str:
    """``util.h:12: left out, since it does not compile here: Logger``."""
    names = ", ".join(sorted(item.gives & names_in(item.document.text[item.span.start : item.span.end])))[:60]
    line = item.document.line(item.span.start)
    return f"{item.document.path or 'text'}:{line}: {LEFT_OUT}: {names or item.kind}"
