"""Launches that stand in macros: ``RUN(k, n)`` for ``k<<<grid, n>>>(x)``, and ``k SHAPE(grid, block)(x)``."""

import re
from collections.abc import Iterator

from attrs import evolve

from agent.source.brackets import match_brackets
from agent.source.document import Document, parse
from agent.source.expansion import carried_out, function_macros
from agent.source.launch import LaunchSite
from agent.source.launches import function_name
from agent.source.lexing import scan
from agent.source.nodes import enclosing, span_of
from agent.source.span import Span

_CALL = re.compile(rb"\b([A-Za-z_]\w*)\s*\(")
_ENDS = b";{}"
_LAUNCH = re.compile(r"<\s*<\s*<")
_HEAD = b"void cuda_lsp_expanded() {\n"
_MOST = 256
_LONGEST = 4000


def macro_launches(document: Document) -> tuple[LaunchSite, ...]:
    """The launches that calls of the file's own macros make, in text order.

    What a site says (``grid``, ``arguments``) is what the macro stands for, with the call's arguments put in. It has no
    place of its own: all of its spans are that of the statement with the call, which cannot be edited as a launch can.
    """
    macros = function_macros([document])
    if not any(_LAUNCH.search(macro.body) for macro in macros.values()):
        return ()
    code = scan(document.text).code
    closing = match_brackets(code).closing
    found: list[LaunchSite] = []
    end = 0
    for match in _CALL.finditer(code):
        stop = closing.get(match.end() - 1)
        if match.start() < end or match.group(1).decode() not in macros or stop is None or len(found) >= _MOST:
            continue
        span = _statement(code, match.start(), stop + 1)
        end = stop + 1
        if span.end - span.start > _LONGEST:
            continue
        text = carried_out(document.text[span.start : span.end].decode("utf-8", "replace"), macros)
        if _LAUNCH.search(text):
            end = span.end
            found += _sites(document, text, span)
    return tuple(found)


def _statement(code: bytes, start: int, stop: int) -> Span:
    """The statement around a call."""
    first = max(code.rfind(bytes([character]), 0, start) for character in _ENDS) + 1
    last = min(place if place >= 0 else len(code) for place in (code.find(bytes([c]), stop) for c in _ENDS))
    return Span(first + len(code[first:start]) - len(code[first:start].lstrip()), last)


def _sites(document: Document, text: str, span: Span) -> Iterator[LaunchSite]:
    node = document.tree.root_node.descendant_for_byte_range(span.start, span.start)
    function = enclosing(node, "function_definition") if node is not None else None
    for site in parse(_HEAD + text.encode() + b";\n}\n").launches:
        yield evolve(
            site,
            span=span,
            grid_span=span,
            block_span=span,
            shared_span=span if site.shared_span else None,
            argument_spans=(span,) * len(site.argument_spans),
            line=document.line(span.start),
            function=function_name(document.text, function) if function is not None else None,
            function_span=span_of(function) if function is not None else None,
            loops=(),
        )
