"""Running the rules over one kernel: once for each content, remembered, and put in place."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b

from agent.analysis.facts import analyse
from agent.analysis.file import FileFacts, file_facts, mentions, restricted
from agent.analysis.headers import learned
from agent.analysis.launches import UNKNOWN, Extents, Shape, launches_of, shape, template_numbers
from agent.analysis.rules.finding import Finding, Hit, Mend, Place, Related, Repair, named
from agent.analysis.rules.hosting import check_hosts
from agent.analysis.rules.registry import by_id, rules
from agent.analysis.rules.selection import Selection
from agent.analysis.rules.suppression import silenced, silences
from agent.analysis.rules.view import AXES, View
from agent.source.blanking import blanks_in
from agent.source.document import Document
from agent.source.edits import Edit
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.source.launch import LaunchSite
from agent.source.line_ends import line_end
from agent.source.moving import moved_kernel
from agent.source.nodes import DEEPEST, is_deep
from agent.source.parsing import parse_tree
from agent.source.span import Span
from agent.workload.expression import Expression, ExpressionError
from agent.workload.workload import Workload

MOST_REMEMBERED = 4096
LARGEST = 200_000
"""Bytes: a kernel longer than this is machine-made, and is not looked at."""
_RAISES = (b"FuncSetAttribute", b"MaxDynamicSharedMemorySize", b"MAX_DYNAMIC_SHARED_SIZE_BYTES")
_HIP = re.compile(rb"#\s*include\s*[<\"]hip/")
"""HIP has other warps, other banks and other functions."""

_Key = tuple[object, ...]
_remembered: dict[_Key, tuple[Hit, ...]] = {}


def check(
    document: Document, kernel: Kernel, workload: Workload | None = None, selection: Selection | None = None
) -> tuple[Finding, ...]:
    """The findings in one kernel, at its launches and in the functions that launch it, in text order. A kernel with a
    parse error gets none, nor does HIP code.

    ``workload`` adds what it fixes: blocks that the file does not show, and values of parameters. What was found is
    remembered by the kernel's text and by what it sees of its file, so that only a kernel that changed is looked at
    again.
    """
    if kernel.damage is not None or len(kernel.span) > LARGEST or _is_hip(document):
        return ()
    sites = launches_of(document, kernel)
    whole = learned(document, file_facts(document))
    shapes = tuple(shape(document, site, whole.constants) for site in sites)
    facts = restricted(whole, kernel.uses)
    block = _block(shapes) if workload is None else _stated(workload, kernel)
    sizes = {
        **template_numbers(document, kernel, sites, whole.constants),
        **(_sizes(workload, kernel) if workload else {}),
    }
    raised, newest = _raises(document), any(mentions(document, word) for word in (b"tcgen05", b"wgmma"))
    start, end = kernel.span.start, kernel.span.end
    digest = blake2b(document.text[start:end], digest_size=16).digest()
    wanted = selection or Selection()
    asked = _asked(wanted)
    key = (digest, kernel.launch_bounds, _frozen(facts), shapes, block, raised, newest, asked, *sizes.items())
    if key not in _remembered:
        if len(_remembered) >= MOST_REMEMBERED:
            _remembered.clear()
        _remembered[key] = tuple(_run(document, kernel, facts, shapes, block, sizes, raised, newest, asked))
    own, around = (
        _placed(_remembered[key], document, kernel, sites, wanted),
        check_hosts(document, kernel, sites, wanted),
    )
    return tuple(sorted((*own, *around), key=lambda one: one.span))


@lru_cache(maxsize=16)
def _asked(selection: Selection) -> frozenset[str]:
    """The rules that a selection admits: no other is run between two keys."""
    return frozenset(rule.id for rule in rules() if selection.admits(rule))


def _is_hip(document: Document) -> bool:
    return mentions(document, b"hip/") and _HIP.search(document.text) is not None


def _raises(document: Document) -> bool:
    return any(mentions(document, word) for word in _RAISES)


def _run(
    document: Document,
    kernel: Kernel,
    shared: FileFacts,
    shapes: tuple[Shape, ...],
    block: Extents,
    sizes: Mapping[str, int],
    raised: bool,
    newest: bool,
    asked: frozenset[str],
) -> Iterator[Hit]:
    alone = _alone(document, kernel)
    if alone.tree.root_node.has_error or is_deep(alone.tree.root_node, DEEPEST):
        return
    own = moved_kernel(kernel, -kernel.span.start, 1 - kernel.line)
    known = {f"blockDim.{axis}": extent for axis, extent in zip(AXES, block, strict=True) if extent is not None}
    try:
        facts = analyse(alone, own, known, shared)
    except SourceError:
        return
    bounds = _number(kernel.launch_bounds[0], shared.constants) if kernel.launch_bounds else None
    view = View(facts, shapes, block, bounds, sizes, raised, shared.functions, newest)
    for rule in rules():
        for found in rule.examine(view) if rule.examine is not None and rule.id in asked else ():
            yield named(found, rule.id)


def _alone(document: Document, kernel: Kernel) -> Document:
    """The kernel as a document of its own: its tree is small, so that asking a node for its parent costs the same in
    any file."""
    start, end = kernel.span.start, kernel.span.end
    blanked = document.blanked[start:end]
    blanks = tuple(
        type(blank)(
            Span(blank.span.start - start, blank.span.end - start), blank.kind, blank.name, blank.value, blank.expansion
        )
        for blank in blanks_in(document.blanks, start, end)
    )
    return Document(document.path, document.text[start:end], blanked, parse_tree(blanked), blanks, ())


def _placed(
    hits: tuple[Hit, ...], document: Document, kernel: Kernel, sites: tuple[LaunchSite, ...], selection: Selection
) -> Iterator[Finding]:
    wanted = [hit for hit in hits if selection.admits(by_id()[hit.rule])]
    for hit in sorted(wanted, key=lambda hit: (_span(hit.at, kernel, sites), hit.rule)):
        span = _span(hit.at, kernel, sites)
        if silences(silenced(document, kernel, span, hit.at.launch is None), hit.rule):
            continue
        rule = by_id()[hit.rule]
        related = tuple(Related(_span(place, kernel, sites), words) for place, words in hit.related)
        repair = _repair(hit.mend, document, kernel, sites) if hit.mend else None
        yield Finding(hit.rule, hit.message, span, rule.severity, related, hit.cost, hit.fix or rule.fix, repair)


def _repair(mend: Mend, document: Document, kernel: Kernel, sites: tuple[LaunchSite, ...]) -> Repair | None:
    """None where the text is not what was read (something was blanked there), or where a signature would change that
    is declared elsewhere too."""
    end = line_end(document.text)
    if any(place.launch is not None and sites[place.launch].how for place, _ in mend.changes):
        return None  # its numbers may be those of other launches too
    edits = []
    for place, written in mend.changes:
        span = _span(place, kernel, sites)
        if document.text[span.start : span.end] != document.blanked[span.start : span.end]:
            return None
        edits.append(Edit(span, written.encode().replace(b"\n", end)))
    declared = any(edit.span.start < kernel.body.start for edit in edits) and _is_declared(document, kernel)
    return None if declared else Repair(mend.title, tuple(edits), mend.sure)


def _is_declared(document: Document, kernel: Kernel) -> bool:
    """Whether a declaration without a body may name the kernel too."""
    name = re.escape(kernel.name.encode())
    return re.search(rb"\b__global__\b[^;{}]*\b" + name + rb"\s*\([^;{}]*\)\s*;", document.text) is not None


def _span(place: Place, kernel: Kernel, sites: tuple[LaunchSite, ...]) -> Span:
    if place.launch is None:
        return Span(kernel.span.start + place.start, kernel.span.start + place.end)
    site = sites[place.launch]
    part = {"grid": site.grid_span, "block": site.block_span, "shared": site.shared_span}.get(place.part)
    return part or site.span


def _block(shapes: tuple[Shape, ...]) -> Extents:
    """The block's extents where every launch has the same."""
    if not shapes:
        return UNKNOWN
    x, y, z = (
        next(iter(found)) if len(found := {one.block[axis] for one in shapes}) == 1 else None for axis in range(3)
    )
    return x, y, z


def _stated(workload: Workload, kernel: Kernel) -> Extents:
    names = {one.name: one.value for one in workload.sizes}
    launches = [one for one in workload.plan.launches() if _bare(one.kernel) == kernel.name]
    return _same([{_value(one.block[axis], names) for one in launches} for axis in range(3)])


def _same(extents: list[set[int | None]]) -> Extents:
    x, y, z = (next(iter(found)) if len(found) == 1 else None for found in extents)
    return x, y, z


def _sizes(workload: Workload, kernel: Kernel) -> dict[str, int]:
    """The integer parameters whose value is the same at every launch of the workload."""
    names = {one.name: one.value for one in workload.sizes}
    found: dict[str, set[int | None]] = {}
    for launch in workload.plan.launches():
        if _bare(launch.kernel) == kernel.name:
            for parameter, given in zip(kernel.parameters, launch.arguments, strict=False):
                if parameter.pointer_depth == 0:
                    found.setdefault(parameter.name, set()).add(_value(given, names))
    return {n: v for n, values in found.items() if len(values) == 1 and (v := next(iter(values))) is not None}


def _bare(name: str) -> str:
    return name.split("<")[0].split("::")[-1].strip()


def _value(expression: Expression, names: Mapping[str, int]) -> int | None:
    try:
        value = expression.evaluate(names)
    except ExpressionError:
        return None
    return value if isinstance(value, int) else None


def _number(written: str, constants: Mapping[str, int]) -> int | None:
    try:
        return _value(Expression.parse(written), constants)
    except ExpressionError:
        return None


def _frozen(facts: FileFacts) -> tuple[object, ...]:
    return (
        tuple(facts.constants.items()),
        facts.takers,
        facts.arrays,
        facts.fixed,
        facts.functions,
        tuple(facts.formulas.items()),
        tuple(facts.structs.items()),
        tuple(facts.casts.items()),
    )
