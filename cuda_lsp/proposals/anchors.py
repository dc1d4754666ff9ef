"""Where a rewrite belongs, told by the text that it replaces: found again in any later text, or not at all.

A rewrite is never a whole file. It is a replacement of the kernel (with the helpers above it) and of the launch sites
that changed with it. Each is known by its bytes, so that edits elsewhere, a restart, a renamed file or an undo need no
bookkeeping, and a single byte of difference in what is replaced is noticed.
"""

from attrs import frozen

from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.kernel import Kernel
from agent.source.launch import LaunchSite
from agent.source.span import Span


@frozen
class Anchors:
    """The kernel's definition ``old``, the ``place``-th of ``alike`` kernels of that name and text, becomes ``new``;
    ``above`` goes above it and above its comment. ``sites`` are all launches of the kernel outside of it as they were;
    ``launches`` what becomes of each (equal where nothing does). ``comment`` is the comment right above the kernel
    where it changes too, as a directive that states the launches does, and ``note`` what becomes of it."""

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


def anchor(base: Document, kernel: Kernel, rewritten: Document) -> Anchors | None:
    """The anchors of a rewrite of ``kernel``; None where it changes anything but the kernel and its launches."""
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
    parts = _parts(base, kernel, apply_edits(rewritten.text, back))
    if parts is None:
        return None
    old = base.text[kernel.span.start : kernel.span.end]
    there = [other.span for other in _alike(base, kernel.qualified_name, old)]
    place = there.index(kernel.span)
    above, comment, note, new = parts
    anchors = Anchors(kernel.qualified_name, old, new, above, place, len(there), olds, news, comment, note)
    edits = locate(anchors, base)
    return anchors if edits is not None and apply_edits(base.text, edits) == rewritten.text else None


def locate(anchors: Anchors, document: Document) -> tuple[Edit, ...] | None:
    """The edits that apply the rewrite to this text; None where what it replaces is not there as it was."""
    text = document.text
    there = _alike(document, anchors.kernel, anchors.old)
    if len(there) != anchors.alike:
        return None
    kernel = there[anchors.place]
    sites = [site for site in _sites(document, kernel.name) if not site.span.overlaps(kernel.span)]
    if tuple(text[site.span.start : site.span.end] for site in sites) != anchors.sites:
        return None
    found = _kernel_edits(anchors, document, kernel)
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
    return all(piece in text for piece in (anchors.new, anchors.above, anchors.note, *anchors.launches))


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
