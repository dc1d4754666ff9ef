"""Constants of the file that a rewrite needs with another value: told where they are declared, and used as before."""

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from agent.search.host.named import CONSTANT, named_shapes
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.items import entries, leaves
from agent.source.kernel import Kernel
from agent.source.nodes import node_text
from agent.source.span import Span


def with_constants(before: Document, kernel: Kernel, written: Document, launched: Callable[[], Document]) -> Document:
    """``written`` with each constant that it uses no more under its name again: one that gave shared arrays of
    ``kernel``, in ``before``, their extent, and that the launches used, where one number took its place everywhere.
    ``launched`` gives ``written`` with its launches edited."""
    there = written.kernel(kernel.qualified_name)
    own, new = before.slice_text(kernel.span), written.slice_text(there.span)
    found = [(node, name) for node, name in _constants(written) if _uses(name, own) and not _uses(name, new)]
    if not found:
        return written
    edited = launched()
    edits: list[Edit] = []
    for node, name in found:
        value = _value(name, own, new, written, edited)
        if value is not None and _uses(name, edited.text.decode("utf-8", "replace")) == 1:
            edits += _edits(written, there, node, name, value, own)
    return parse(apply_edits(written.text, edits), written.path, written) if edits else written


def _constants(document: Document) -> Iterator[tuple[Node, str]]:
    for item in leaves(entries(document)):
        if item.kind == "variable" and item.node is not None:
            declared = CONSTANT.fullmatch(node_text(document, item.node).strip())
            if declared is not None:
                yield item.node, declared["name"]


def _value(name: str, own: str, new: str, written: Document, edited: Document) -> str | None:
    """The number that stands in the place of ``name`` in every array and every launch; None where there is none."""
    values = set()
    for array in re.findall(rf"\b(\w+)\s*\[\s*{name}\s*\]", own):
        if _uses(array, new):
            values |= set(re.findall(rf"__shared__[^;=(]*?\b{array}\[(\w+)\]", new)) or {""}
    values |= {text for other, text in named_shapes(written, edited) if other == name}
    value = next(iter(values)) if len(values) == 1 else ""
    return value if value.isdecimal() else None


def _edits(document: Document, kernel: Kernel, declared: Node, name: str, value: str, own: str) -> Iterator[Edit]:
    text = node_text(document, declared)
    found = CONSTANT.search(text)
    assert found is not None
    start = declared.start_byte + len(text[: found.start("value")].encode())
    yield Edit(Span(start, start + len(found["value"].encode())), value.encode())
    code = document.text[kernel.span.start : kernel.span.end]
    arrays = "|".join(re.findall(rf"\b(\w+)\s*\[\s*{name}\s*\]", own))
    places = list(re.finditer(rf"__shared__[^;=(]*?\b(?:{arrays})\[({value})\]".encode(), code)) if arrays else []
    if "__launch_bounds__" not in own:
        places += re.finditer(rf"__launch_bounds__\(({value})\b".encode(), code)
    for place in places:
        yield Edit(Span(kernel.span.start + place.start(1), kernel.span.start + place.end(1)), name.encode())


def _uses(name: str, text: str) -> int:
    return len(re.findall(rf"\b{name}\b", text))
