"""Where a rewrite belongs, told by the text that it replaces: found again in any later text, or not at all.

A rewrite is never a whole file. It is a replacement of the kernel (with the helpers above it) and of the launch sites
that changed with it; where it launches other kernels than before, of the host functions that do so, or of other
kernels, as whole definitions. An ``#include`` that it needs is held by the line before it. Each is known by its bytes,
so that edits elsewhere, a restart, a renamed file or an undo need no bookkeeping, and a single byte of difference in
what is replaced is noticed.
"""

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from tree_sitter import Node

from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.kernel import Kernel
from agent.source.launch import LaunchSite
from agent.source.span import Span
from cuda_lsp.proposals.headers import Header, added_headers, header_edits

if TYPE_CHECKING:  # takes long to import, and the server's start must not wait for it
    from agent.source.items import Item

_TOP = ("translation_unit", "declaration_list", "preproc_if", "preproc_ifdef", "preproc_elif", "preproc_else", "ERROR")
"""Nodes whose children stand at the top level."""


@frozen
class Definition:
    """A definition at the top level other than the kernel, such as the function that launches it: ``old`` becomes
    ``new``. ``old`` stands ``alike`` times in the file, and it is the ``place``-th of them."""

    old: bytes
    new: bytes
    place: int
    alike: int


@frozen
class Anchors:
    """The kernel's definition ``old``, the ``place``-th of ``alike`` kernels of that name and text, becomes ``new``;
    ``above`` goes above it and above its comment. ``sites`` are all launches of the kernel outside of it as they were;
    ``launches`` what becomes of each (equal where nothing does). ``comment`` is the comment right above the kernel
    where it changes too, as a directive that states the launches does, and ``note`` what becomes of it.
    ``definitions`` are others that change as a whole; ``sites`` and ``launches`` are then those outside of them.
    ``headers`` go with the file's other ``#include`` lines."""

    kernel: str
    old: bytes
    new: bytes
    above: bytes
    place: int
    alike: int
    sites: tuple[bytes, ...]
    launches: tuple[bytes, ...]
    comment: bytes = b""
    note: bytes = b""
    definitions: tuple[Definition, ...] = ()
    headers: tuple[Header, ...] = ()


def anchor(base: Document, kernel: Kernel, rewritten: Document) -> Anchors | None:
    """The anchors of a rewrite of ``kernel``; None where it changes anything but definitions that stay and what is
    above the kernel or further headers. Host functions in which no more than launches change are not held by more than
    those."""
    headers, back = added_headers(base, rewritten)
    if headers:
        found = anchor(base, kernel, parse(apply_edits(rewritten.text, back), base.path))
        return found and _proved(evolve(found, headers=headers), base, rewritten)
    return _by_launches(base, kernel, rewritten) or _by_definitions(base, kernel, rewritten)


def _by_launches(base: Document, kernel: Kernel, rewritten: Document) -> Anchors | None:
    before, after = _sites(base, kernel.name), _sites(rewritten, kernel.name)
    outside = [site for site in before if not site.span.overlaps(kernel.span)]
    # Launches in the rewritten kernel come and go; those of the host code stand in the same order before and behind.
    ahead = sum(site.span.end <= kernel.span.start for site in outside)
    behind = len(outside) - ahead
    if len(after) < len(outside):
        return None
    changed = [*after[:ahead], *after[len(after) - behind :]]
    olds = tuple(base.text[site.span.start : site.span.end] for site in outside)
    news = tuple(rewritten.text[site.span.start : site.span.end] for site in changed)
    back = [Edit(site.span, old) for site, old in zip(changed, olds, strict=True)]
    found = _around(base, kernel, apply_edits(rewritten.text, back))
    return found and _proved(evolve(found, sites=olds, launches=news), base, rewritten)


def _by_definitions(base: Document, kernel: Kernel, rewritten: Document) -> Anchors | None:
    pairs = _paired(base, kernel, rewritten)
    back = [Edit(now, base.text[was.start : was.end]) for was, now in pairs]
    found = _around(base, kernel, apply_edits(rewritten.text, back))
    if found is None:
        return None
    definitions = tuple(_definition(base, was, rewritten.text[now.start : now.end]) for was, now in pairs)
    inside = [kernel.span, *(was for was, _ in pairs)]
    outside = [site for site in _sites(base, kernel.name) if not any(site.span.overlaps(one) for one in inside)]
    sites = tuple(base.text[site.span.start : site.span.end] for site in outside)
    return _proved(evolve(found, definitions=definitions, sites=sites, launches=sites), base, rewritten)


def _around(base: Document, kernel: Kernel, spliced: bytes) -> Anchors | None:
    """The anchors of what ``spliced`` changes in the kernel and above it; None where it changes anything else."""
    parts = _parts(base, kernel, spliced)
    if parts is None:
        return None
    old = base.text[kernel.span.start : kernel.span.end]
    there = [other.span for other in _alike(base, kernel.qualified_name, old)]
    above, comment, note, new = parts
    place = there.index(kernel.span)
    return Anchors(kernel.qualified_name, old, new, above, place, len(there), (), (), comment, note)


def _proved(anchors: Anchors, base: Document, rewritten: Document) -> Anchors | None:
    edits = locate(anchors, base)
    return anchors if edits is not None and apply_edits(base.text, edits) == rewritten.text else None


def _paired(base: Document, kernel: Kernel, rewritten: Document) -> list[tuple[Span, Span]]:
    """Where the definitions that both texts have and that differ stand in each; the kernel's own is left out."""
    before = [item for item in _items(base) if not item.span.overlaps(kernel.span)]
    after = _items(rewritten)
    names, renamed = ([(item.kind, item.gives) for item in items] for items in (before, after))
    blocks = SequenceMatcher(None, names, renamed, autojunk=False).get_matching_blocks()
    pairs = [(before[a + at].span, after[b + at].span) for a, b, size in blocks for at in range(size)]
    return [(a, b) for a, b in pairs if base.text[a.start : a.end] != rewritten.text[b.start : b.end]]


def _items(document: Document) -> "list[Item]":
    """The definitions of a file, in namespaces and conditional branches too, in text order."""
    from agent.source.items import entries, leaves  # only a worker makes anchors

    return [item for item in leaves(entries(document)) if item.node is not None]


def _definition(base: Document, was: Span, new: bytes) -> Definition:
    old = base.text[was.start : was.end]
    there = _standing(base, old)
    return Definition(old, new, there.index(was) if was in there else 0, len(there))


def _standing(document: Document, written: bytes) -> list[Span]:
    """Where a definition of these bytes stands; not in a comment, a string or a longer definition."""
    found, at = [], document.text.find(written)
    while at >= 0:
        span = Span(at, at + len(written))
        if _is_definition(document, span):
            found.append(span)
        at = document.text.find(written, at + 1)
    return found


def _is_definition(document: Document, span: Span) -> bool:
    """Whether what ends there is a whole definition at the top level. It is looked at from its last byte: its first may
    be specifiers that the tree does not have."""
    node = document.tree.root_node.descendant_for_byte_range(span.end - 1, span.end)
    if node is None or not _within(node, span):
        return False
    while node.parent is not None and _within(node.parent, span):
        node = node.parent
    return node.parent is not None and node.parent.type in _TOP


def _within(node: Node, span: Span) -> bool:
    return node.parent is not None and span.start <= node.start_byte and node.end_byte <= span.end


def locate(anchors: Anchors, document: Document) -> tuple[Edit, ...] | None:
    """The edits that apply the rewrite to this text; None where what it replaces is not there as it was."""
    text = document.text
    there = _alike(document, anchors.kernel, anchors.old)
    if len(there) != anchors.alike:
        return None
    kernel = there[anchors.place]
    headers = header_edits(anchors.headers, document, kernel.span.start)
    places = [_standing(document, one.old) for one in anchors.definitions]
    if headers is None or any(len(a) != b.alike for a, b in zip(places, anchors.definitions, strict=True)):
        return None
    spans = [place[one.place] for place, one in zip(places, anchors.definitions, strict=True)]
    inside = [kernel.span, *spans]
    sites = [site for site in _sites(document, kernel.name) if not any(site.span.overlaps(one) for one in inside)]
    if tuple(text[site.span.start : site.span.end] for site in sites) != anchors.sites:
        return None
    found = [*headers, *_kernel_edits(anchors, document, kernel)]
    found += [_smallest(Edit(span, one.new), text) for span, one in zip(spans, anchors.definitions, strict=True)]
    if anchors.comment != anchors.note:
        span = Span(_above(document, kernel), kernel.span.start)
        if text[span.start : span.end] != anchors.comment:
            return None
        found.append(_smallest(Edit(span, anchors.note), text))
    for site, old, new in zip(sites, anchors.sites, anchors.launches, strict=True):
        if old != new:
            found.append(_smallest(Edit(site.span, new), text))
    return tuple(sorted(found, key=lambda edit: edit.span))


def is_applied(anchors: Anchors, text: bytes) -> bool:
    """Whether all that the rewrite writes stands in this text, wherever that is."""
    definitions = (one.new for one in anchors.definitions)
    headers = (one.line for one in anchors.headers)
    pieces = (anchors.new, anchors.above, anchors.note, *anchors.launches, *definitions, *headers)
    return all(piece in text for piece in pieces)


def _kernel_edits(anchors: Anchors, document: Document, kernel: Kernel) -> list[Edit]:
    above = _above(document, kernel)
    if above == kernel.span.start:
        return [_smallest(Edit(kernel.span, anchors.above + anchors.new), document.text)]
    helpers = [Edit(Span(above, above), anchors.above)] if anchors.above else []
    return [*helpers, _smallest(Edit(kernel.span, anchors.new), document.text)]


def _above(document: Document, kernel: Kernel) -> int:
    """Where helpers go: above the comment that belongs to the kernel."""
    from agent.ideas.rewriting import comment_start  # brings in what the server starts without

    comment = comment_start(document, kernel)
    return kernel.span.start if comment is None else comment


def _parts(base: Document, kernel: Kernel, spliced: bytes) -> tuple[bytes, bytes, bytes, bytes] | None:
    """What ``spliced`` has above the kernel's comment, that comment as it was and as it is (both empty where it stays),
    and the definition; None where it differs from ``base`` in anything else."""
    start = _above(base, kernel)
    head, comment, rest = base.text[:start], base.text[start : kernel.span.start], base.text[kernel.span.end :]
    again = parse(spliced, base.path)
    named = (other for other in again.kernels if other.name == kernel.name)
    found = next((other for other in named if other.span.start >= start), None)
    if found is None or not spliced.endswith(rest) or not spliced.startswith(head):
        return None
    at, end = found.span.start, len(spliced) - len(rest)
    if at > end:
        return None
    if spliced[at - len(comment) : at] == comment:
        return spliced[start : at - len(comment)], b"", b"", spliced[at:end]
    begin = _above(again, found)
    return (spliced[start:begin], comment, spliced[begin:at], spliced[at:end]) if begin >= start else None


def _alike(document: Document, name: str, written: bytes) -> list[Kernel]:
    return [
        kernel
        for kernel in document.kernels
        if kernel.qualified_name == name and document.text[kernel.span.start : kernel.span.end] == written
    ]


def _sites(document: Document, name: str) -> list[LaunchSite]:
    return [site for site in document.launches if site.kernel == name]


def _smallest(edit: Edit, text: bytes) -> Edit:
    """The same edit without the bytes that stay, so that a cursor or a mark beside them stays as well."""
    old = text[edit.span.start : edit.span.end]
    head, tail = _alike_ends(old, edit.text)
    return Edit(Span(edit.span.start + head, edit.span.end - tail), edit.text[head : len(edit.text) - tail])


def _alike_ends(old: bytes, new: bytes) -> tuple[int, int]:
    """How many bytes two texts begin and end with alike, cut between characters and never inside a line end."""
    head = _common(old, new)
    while not (_between(old, head) and _between(new, head)):
        head -= 1
    most = min(len(old), len(new)) - head
    tail = _common(old[len(old) - most :][::-1], new[len(new) - most :][::-1])
    while not (_between(old, len(old) - tail) and _between(new, len(new) - tail)):
        tail -= 1
    return head, tail


def _between(text: bytes, at: int) -> bool:
    return text[at - 1 : at + 1] != b"\r\n" and (at >= len(text) or text[at] & 0xC0 != 0x80)


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with alike."""
    if one[: len(other)] == other[: len(one)]:
        return min(len(one), len(other))
    return next(at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
