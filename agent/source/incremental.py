"""The next state of a document from the one before, looking only at the functions that were edited.

The text is cut where a function body ends. The part with the edit, from the end of the body before it to the end of the
body it lies in, is read anew; the rest moves. That gives what reading everything anew gives, or it is not done: where
a comment, a bracket or a macro definition of the part may reach beyond it, nothing is returned.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeVar

from attrs import evolve, frozen
from tree_sitter import Parser, Tree

from agent.source.blanking import Blank, Blanked, Part, ReachesOut, blank_part, blanks_in
from agent.source.brackets import Brackets, match_brackets
from agent.source.kernel import Kernel
from agent.source.kernels import find_kernels_in
from agent.source.launch import LaunchSite
from agent.source.launches import find_launches_in
from agent.source.lexing import Macro, scan_part
from agent.source.moving import moved_blank, moved_kernel, moved_launch
from agent.source.parsing import LANGUAGE, changed_range, edited_tree
from agent.source.span import Span

T = TypeVar("T", Kernel, LaunchSite)


@frozen
class State:
    """A document's parts as far as they are needed to find those of the next. ``bodies`` as in ``Brackets.changes``.
    ``balanced``: every bracket is closed, so that a later edit concerns one function and not the rest of the file."""

    balanced: bool
    text: bytes
    blanked: bytes
    code: bytes
    bodies: tuple[int, ...]
    blanks: tuple[Blank, ...]
    macros: tuple[Macro, ...]
    tree: Tree
    kernels: tuple[Kernel, ...]
    launches: tuple[LaunchSite, ...]
    kept: bool = False
    """See :func:`glance`: the edited functions were not read."""


def advance(old: State, text: bytes) -> State | None:
    """The state of ``text``, the same as when all of it is read. None where all of it must be read.

    It never has parse errors: how the parser recovers from them depends on where it began.
    """
    return _advance(old, text, errors=False)


def glance(old: State, text: bytes) -> State:
    """What can be said of ``text`` at once, between two keystrokes: as ``advance`` where that gives something. Else the
    parse errors of the edited functions are admitted, and where their brackets do not even match, they are kept as they
    were, the kernels among them marked as damaged."""
    return _advance(old, text, errors=True) or _kept(old, text)


def _advance(old: State, text: bytes, errors: bool) -> State | None:
    start, old_end, new_end = changed_range(old.text, text)
    before, after = _part(old.bodies, start, old_end, len(old.text))
    by = new_end - old_end
    part = _read(old, text, before, after, by)
    if part is None or (part.left and not _in_body(old.bodies, start, old_end)):
        return None  # the head of a namespace decides on the names of all that follows in it
    try:
        written, inside = blank_part(part)
    except ReachesOut:
        return None
    blanked = old.blanked[:before] + written + old.blanked[after:]
    tree = _parse(old, blanked, Span(before, after + by), errors)
    if tree is None:
        return None
    blanks = (
        *blanks_in(old.blanks, 0, before),
        *inside,
        *[moved_blank(blank, by) for blank in blanks_in(old.blanks, after, len(old.text) + 1)],
    )
    lines = text.count(b"\n", start, new_end) - old.text.count(b"\n", start, old_end)
    kernels = _split(old.kernels, before, after)
    launches = _split(old.launches, before, after)
    if kernels is None or launches is None:
        return None
    where, code = Span(part.start, part.end), part.code
    assert isinstance(part.brackets, Brackets)
    return State(
        balanced=old.balanced,
        text=text,
        blanked=blanked,
        code=code,
        bodies=(
            *old.bodies[: bisect_left(old.bodies, before)],
            *part.brackets.changes,
            *[offset + by for offset in old.bodies[bisect_left(old.bodies, after) :]],
        ),
        blanks=blanks,
        macros=old.macros,
        tree=tree,
        kernels=(
            *kernels[0],
            *find_kernels_in(text, tree, blanks, code, part.brackets, where),
            *(kernels[1] if not by and not lines else [moved_kernel(kernel, by, lines) for kernel in kernels[1]]),
        ),
        launches=(
            *launches[0],
            *find_launches_in(text, tree, where),
            *(launches[1] if not by and not lines else [moved_launch(site, by, lines) for site in launches[1]]),
        ),
    )


def _kept(old: State, text: bytes) -> State:
    """The old parts around the edit, moved. No part of it is read: what an open bracket swallows is not seen."""
    start, old_end, new_end = changed_range(old.text, text)
    by, lines = new_end - old_end, text.count(b"\n", start, new_end) - old.text.count(b"\n", start, old_end)
    edit = Span(start, max(old_end, start + 1))
    kernels = [_edited(kernel, edit, by, lines) for kernel in old.kernels]
    return State(
        balanced=False,
        text=text,
        blanked=text,
        code=text,
        bodies=(),
        blanks=(
            *[blank for blank in old.blanks if blank.span.end <= start],
            *[moved_blank(blank, by) for blank in old.blanks if blank.span.start >= old_end],
        ),
        macros=old.macros,
        tree=edited_tree(old.tree, old.text, text),
        kernels=tuple(kernel for kernel in kernels if kernel is not None),
        launches=(
            *[site for site in old.launches if site.span.end <= start],
            *[moved_launch(site, by, lines) for site in old.launches if site.span.start >= old_end],
        ),
        kept=True,
    )


def _edited(kernel: Kernel, edit: Span, by: int, lines: int) -> Kernel | None:
    """A kernel after an edit that may lie in it. None where its head is no longer what it was."""
    if kernel.span.end <= edit.start:
        return kernel
    if kernel.span.start >= edit.end:
        return moved_kernel(kernel, by, lines)
    if not (kernel.body.start < edit.start and edit.end <= kernel.body.end):
        return None
    end = kernel.span.end + by
    return evolve(
        kernel, span=Span(kernel.span.start, end), body=Span(kernel.body.start, end),
        damage=f"brackets, comments or quotes that are not closed, after line {kernel.line}",
    )  # fmt: skip


def _part(bodies: Sequence[int], start: int, end: int, size: int) -> tuple[int, int]:
    """From behind the last body that ends before ``start`` to behind the first that ends at ``end`` or later."""
    leaving = bodies[1::2]
    first = bisect_left(leaving, start)
    last = bisect_left(leaving, end)
    return (leaving[first - 1] + 1 if first else 0), (leaving[last] + 1 if last < len(leaving) else size)


def _in_body(bodies: Sequence[int], start: int, end: int) -> bool:
    """Whether an edit from ``start`` to ``end`` lies inside one function body."""
    place = bisect_left(bodies, start)
    return place % 2 == 1 and bodies[place - 1] < start and bisect_left(bodies, end) == place


def _read(old: State, text: bytes, before: int, after: int, by: int) -> Part | None:
    """The edited part, if it leaves everything behind it as it was."""
    if b"define" in old.text[before:after] or b"define" in text[before : after + by]:
        return None
    scanned = scan_part(text, before, after + by)
    if scanned is None:
        return None
    code = old.code[:before] + scanned.code + old.code[after:]
    was = match_brackets(old.code, before, after)
    now = match_brackets(code, before, after + by)
    closed = after == len(old.text) or (len(now.changes) % 2 == 0 and now.changes[-1:] == (after + by - 1,))
    if was.stray or now.stray or was.left != now.left or not closed:
        return None
    return Part(text, code, scanned.directives, old.macros, now, before, after + by)


def _parse(old: State, blanked: bytes, part: Span, errors: bool) -> Tree | None:
    """The new tree, if it is that of a parse from scratch and differs only inside the part."""
    if old.tree.root_node.has_error and not errors:
        return None
    if blanked == old.blanked:
        return old.tree
    edited = edited_tree(old.tree, old.blanked, blanked)
    tree = Parser(LANGUAGE).parse(blanked, edited)
    if tree.root_node.has_error and not errors:
        return None
    inside = all(part.start <= found.start_byte and found.end_byte <= part.end for found in edited.changed_ranges(tree))
    return tree if inside else None


def _split(found: tuple[T, ...], before: int, after: int) -> tuple[tuple[T, ...], tuple[T, ...]] | None:
    """Those in front of a part and those behind it. None where one lies across its edge."""
    front = bisect_left(found, before, key=lambda one: one.span.end)
    while front < len(found) and found[front].span.end <= before:
        front += 1
    back = bisect_left(found, after, key=lambda one: one.span.start)
    clean = all(before <= one.span.start and one.span.end <= after for one in found[front:back])
    return (found[:front], found[back:]) if clean else None


def state_of(
    text: bytes, blanked: Blanked, tree: Tree, kernels: tuple[Kernel, ...], launches: tuple[LaunchSite, ...]
) -> State:
    """The state of a document that was read whole."""
    brackets = blanked.brackets.found
    return State(
        balanced=not brackets.left and not brackets.stray,
        text=text,
        blanked=blanked.text,
        code=blanked.code,
        bodies=brackets.changes,
        blanks=blanked.blanks,
        macros=blanked.macros,
        tree=tree,
        kernels=kernels,
        launches=launches,
    )
