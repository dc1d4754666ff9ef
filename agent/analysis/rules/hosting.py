"""Running the host rules over the functions that launch kernels: once for each text, remembered, and put in place.

What is found in a function is shown with the first kernel that it launches, so that each finding has one home.
"""

from collections.abc import Iterator
from hashlib import blake2b

from agent.analysis.host import HostFunction, host_function
from agent.analysis.rules.finding import Finding, Hit, Place, Related, Repair, named
from agent.analysis.rules.registry import by_id, rules
from agent.analysis.rules.selection import Selection
from agent.analysis.rules.suppression import silenced, silences
from agent.analysis.syntax import descendants
from agent.source.document import Document
from agent.source.edits import Edit, line_end
from agent.source.kernel import Kernel
from agent.source.launch import LaunchSite
from agent.source.parsing import parse_tree
from agent.source.span import Span

MOST_REMEMBERED = 2048
LARGEST = 100_000
"""Bytes: a function longer than this is machine-made, and is not looked at."""

_remembered: dict[bytes, tuple[Hit, ...]] = {}


def check_hosts(
    document: Document, kernel: Kernel, sites: tuple[LaunchSite, ...], selection: Selection
) -> Iterator[Finding]:
    """The findings in the host functions whose first launch is of this kernel, in text order. ``sites`` are the
    launches of the kernel."""
    for span in _functions(document, kernel, sites):
        for found in _hits(document.blanked[span.start : span.end]):
            if selection.admits(by_id()[found.rule]):
                yield from _placed(found, document, kernel, span)


def _functions(document: Document, kernel: Kernel, sites: tuple[LaunchSite, ...]) -> list[Span]:
    """The functions that launch the kernel before any other of this file."""
    spans = dict.fromkeys(site.function_span for site in sites)
    kernels = {one.name for one in document.kernels.as_read}
    return [span for span in spans if span is not None and _first(document, span, kernels) == kernel.name]


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
    if function is None or tree.root_node.has_error:
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
