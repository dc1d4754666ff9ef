"""Running the host rules over the functions that launch kernels or ask the runtime for something: once for each text,
remembered, and put in place.

What is found in a function is shown with the first kernel that it launches, or with the first of the file where it
launches none, so that each finding has one home.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from tree_sitter import Node, TreeCursor

from agent.analysis.host import HostFunction, host_function
from agent.analysis.rules.finding import Finding, Hit, Place, Related, Repair, named
from agent.analysis.rules.registry import by_id, rules
from agent.analysis.rules.selection import Selection
from agent.analysis.rules.suppression import silenced, silences
from agent.analysis.syntax import descendants
from agent.source.document import Document
from agent.source.edits import Edit
from agent.source.kernel import Kernel
from agent.source.launch import LaunchSite
from agent.source.line_ends import line_end
from agent.source.nodes import DEEPEST, is_deep
from agent.source.parsing import parse_tree
from agent.source.span import Span

MOST_REMEMBERED = 2048
LARGEST = 100_000
"""Bytes: a function longer than this is machine-made, and is not looked at."""

# begins with letters, so that a search is a search for these letters
_RUNTIME = re.compile(rb"cuda(?:Malloc|Memcpy|Memset|Thread|Bind|EventElapsed)\w*\s*\(")
_remembered: dict[bytes, tuple[Hit, ...]] = {}


def check_hosts(
    document: Document, kernel: Kernel, sites: Sequence[LaunchSite], selection: Selection
) -> Iterator[Finding]:
    """The findings in the host functions whose first launch is of this kernel, ``sites`` being its launches; with the
    first kernel of a file, also those in functions that launch nothing."""
    first = document.kernels.start(0) == kernel.span.start
    for span in (*_launching(document, kernel, sites), *(_others(document) if first else ())):
        for found in _hits(document.blanked[span.start : span.end]):
            if selection.admits(by_id()[found.rule]):
                yield from _placed(found, document, kernel, span)


def _launching(document: Document, kernel: Kernel, sites: Sequence[LaunchSite]) -> list[Span]:
    """The functions that launch the kernel before any other of this file."""
    spans = dict.fromkeys(site.function_span for site in sites if not _on_device(document, site.function_span))
    kernels = {one.name for one in document.kernels.as_read}
    return [span for span in spans if span is not None and _first(document, span, kernels) == kernel.name]


def _on_device(document: Document, function: Span | None) -> bool:
    """A kernel that launches kernels is no function of the host."""
    head = b"" if function is None else document.blanked[function.start : function.end].partition(b"{")[0]
    return b"__global__" in head or b"__device__" in head


def _first(document: Document, function: Span, kernels: set[str]) -> str | None:
    """Which kernel of the file a function launches first."""
    launches = document.launches
    for at in range(launches.first_from(function.start), len(launches)):
        if launches.start(at) >= function.end:
            break
        site = launches[at]
        if site.function_span == function and site.kernel in kernels:
            return site.kernel
    return None


def _others(document: Document) -> Iterator[Span]:
    """The functions of the host that call the runtime and launch nothing."""
    text, end, cursor = document.blanked, 0, document.tree.walk()
    for call in _RUNTIME.finditer(text):
        function = None if call.start() < end else _function_at(cursor, call.start())
        if function is not None:
            end, body = function.end_byte, function.child_by_field_name("body")
            head = text[function.start_byte : body.start_byte if body is not None else end]
            launches = text.find(b"<<<", function.start_byte, end) >= 0
            if not launches and b"__device__" not in head and b"__global__" not in head:
                yield Span(function.start_byte, end)


def _function_at(cursor: TreeCursor, place: int) -> Node | None:
    """The outermost function definition around a place. From the root down: to ask nodes for their parents takes much
    longer in a large file."""
    while cursor.goto_parent():
        pass
    while cursor.goto_first_child_for_byte(place) is not None:
        node = cursor.node
        if node is None or node.start_byte > place:
            return None
        if node.type == "function_definition":
            return node
    return None


def _hits(written: bytes) -> tuple[Hit, ...]:
    if len(written) > LARGEST:
        return ()
    key = blake2b(written, digest_size=16).digest()
    if key not in _remembered:
        if len(_remembered) >= MOST_REMEMBERED:
            _remembered.clear()
        _remembered[key] = tuple(_run(written))
    return _remembered[key]


def _run(written: bytes) -> Iterator[Hit]:
    tree = parse_tree(written)
    function = next(descendants(tree.root_node, "function_definition"), None)
    if function is None or tree.root_node.has_error or is_deep(function, DEEPEST):
        return
    view: HostFunction = host_function(function)
    for rule in rules():
        if rule.examine_host is not None:
            yield from (named(found, rule.id) for found in rule.examine_host(view))


def _placed(found: Hit, document: Document, kernel: Kernel, function: Span) -> Iterator[Finding]:
    rule, span = by_id()[found.rule], _span(found.at, function)
    if silences(silenced(document, kernel, span, False), found.rule):
        return
    related = tuple(Related(_span(place, function), words) for place, words in found.related)
    edits = [(_span(place, function), written) for place, written in found.mend.changes] if found.mend else []
    same = all(document.text[at.start : at.end] == document.blanked[at.start : at.end] for at, _ in edits)
    repair = None
    if found.mend is not None and same:
        end = line_end(document.text)
        changes = tuple(Edit(at, written.encode().replace(b"\n", end)) for at, written in edits)
        repair = Repair(found.mend.title, changes, found.mend.sure)
    yield Finding(found.rule, found.message, span, rule.severity, related, found.cost, rule.fix, repair)


def _span(place: Place, function: Span) -> Span:
    return Span(function.start + place.start, function.start + place.end)
