"""The next state of a document from the one before, looking only at the functions that were edited.

The text is cut where a function body ends. The part with the edit, from the end of the body before it to the end of the
body it lies in, is read anew; the rest moves. That gives what reading everything anew gives, or it is not done: where
a comment, a bracket or a macro definition of the part may reach beyond it, nothing is returned.

Where both ends of the part are ends of whole items of the file, the part is parsed alone: the parser is in the same
state after each such item, and what follows begins with a word, which cannot continue an item that could end before it.
In large files this counts: the parser would take most of the file apart to see what of it still holds.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import count

from attrs import evolve, field, frozen
from tree_sitter import Node, Parser, Tree

from agent.source.blanking import Blank, Blanked, Part, ReachesOut, blank_part
from agent.source.brackets import Brackets, match_brackets
from agent.source.kernel import Kernel
from agent.source.kernels import find_kernels_in
from agent.source.launch import LaunchSite
from agent.source.launches import find_launches_in
from agent.source.lexing import Macro, scan_part
from agent.source.moving import Moved, Spanned, T, blanks_of, moved_kernel, moved_launch
from agent.source.parsing import LANGUAGE, changed_range, edited_tree
from agent.source.span import Span
from agent.source.trees import LazyTree, changes_within, part_tree

_serial = count()
_SMALL = 4096
_WORD_OR_END = re.compile(rb"\s*(?:[A-Za-z_]|\Z)")


@frozen(eq=False)
class Fresh:
    """A part that was parsed alone: what stands from ``start`` to ``end`` came in place of what stood up to
    ``old_end`` in the state with the number ``since``."""

    since: int
    start: int
    old_end: int
    end: int
    tree: Tree


@frozen
class State:
    """A document's parts as far as they are needed to find those of the next. ``bodies`` as in ``Brackets.changes``;
    ``cuts`` are the offsets at which an item of the file ends with a function body and what follows begins with a
    word. ``balanced``: every bracket is closed, so that a later edit concerns one function and not the rest of the
    file. ``broken``: there are parse errors."""

    balanced: bool
    broken: bool
    text: bytes
    blanked: bytes
    code: bytes
    bodies: tuple[int, ...]
    cuts: tuple[int, ...]
    blanks: Moved[Blank]
    macros: tuple[Macro, ...]
    lazy: LazyTree
    kernels: Moved[Kernel]
    launches: Moved[LaunchSite]
    kept: bool = False
    """See :func:`glance`: the edited functions were not read."""
    fresh: Fresh | None = None
    number: int = field(factory=lambda: next(_serial), eq=False)

    @property
    def tree(self) -> Tree:
        return self.lazy.tree


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
    if old.broken and not errors:
        return None
    by = new_end - old_end
    alone = _between(old.cuts, start, old_end, len(old.text))
    before, after = alone if _is_small(alone, old.text) else _part(old.bodies, start, old_end, len(old.text))
    part = _read(old, text, before, after, by)
    if part is None or (part.left and not _in_body(old.bodies, start, old_end)):
        return None  # the head of a namespace decides on the names of all that follows in it
    try:
        written, inside = blank_part(part)
    except ReachesOut:
        return None
    blanked = old.blanked[:before] + written + old.blanked[after:]
    where, code = Span(part.start, part.end), part.code
    parsed = None
    if (before, after) == alone and not part.left and _begins_with_word(code, before):
        parsed = _parse_alone(old, blanked, where, after, errors)
    parsed = parsed or _parse(old, blanked, where, errors)
    if parsed is None:
        return None
    lazy, tree, fresh = parsed
    lines = text.count(b"\n", start, new_end) - old.text.count(b"\n", start, old_end)
    blanks = old.blanks.replaced(old.blanks.first_from(before), inside, old.blanks.first_from(after), by, lines)
    kernels, launches = old.kernels.split(before, after), old.launches.split(before, after)
    if kernels is None or launches is None:
        return None
    assert isinstance(part.brackets, Brackets)
    return State(
        balanced=old.balanced,
        broken=old.broken or tree.root_node.has_error,
        text=text,
        blanked=blanked,
        code=code,
        bodies=(
            *old.bodies[: bisect_left(old.bodies, before)],
            *part.brackets.changes,
            *[offset + by for offset in old.bodies[bisect_left(old.bodies, after) :]],
        ),
        cuts=(
            *old.cuts[: bisect_left(old.cuts, before)],
            *_cuts_at(before, old, tree, code, fresh),
            *_cuts(tree, code, part.brackets, where),
            *[cut + by for cut in old.cuts[bisect_right(old.cuts, after) :]],
        ),
        blanks=blanks,
        macros=old.macros,
        lazy=lazy,
        kernels=old.kernels.replaced(
            kernels[0], find_kernels_in(text, tree, blanks, code, part.brackets, where), kernels[1], by, lines
        ),
        launches=old.launches.replaced(launches[0], find_launches_in(text, tree, where), launches[1], by, lines),
        fresh=fresh,
    )


def _kept(old: State, text: bytes) -> State:
    """The old parts around the edit, moved, and those in it that stand there as they did: what is known after edits in
    two places is one stretch over both. No part of it is read: what an open bracket swallows is not seen."""
    start, old_end, new_end = changed_range(old.text, text)
    by, lines = new_end - old_end, text.count(b"\n", start, new_end) - old.text.count(b"\n", start, old_end)
    edit = Span(start, max(old_end, start + 1))
    first, last = old.kernels.touched(edit.start, edit.end)
    again = _again(old.kernels[first:last], old.text, text, edit, by)
    kernels = [
        _edited(kernel, edit, by) if moved is None else moved_kernel(kernel, *moved)
        for kernel, moved in zip(old.kernels[first:last], again, strict=True)
    ]
    return State(
        balanced=False,
        broken=old.broken,
        text=text,
        blanked=text,
        code=text,
        bodies=(),
        cuts=(),
        blanks=_outside(old.blanks, start, old_end, by, lines),
        macros=old.macros,
        lazy=old.lazy.moved(text),
        kernels=old.kernels.replaced(first, [kernel for kernel in kernels if kernel is not None], last, by, lines),
        launches=_launches(old, text, edit, by, lines),
        kept=True,
    )


def _launches(old: State, text: bytes, edit: Span, by: int, lines: int) -> Moved[LaunchSite]:
    first, last = old.launches.touched(edit.start, edit.end)
    touched = old.launches[first:last]
    again = _again(touched, old.text, text, edit, by)
    found = [moved_launch(site, *moved) for site, moved in zip(touched, again, strict=True) if moved is not None]
    return old.launches.replaced(first, found, last, by, lines)


def _again(touched: Sequence[Spanned], old: bytes, new: bytes, edit: Span, by: int) -> Iterator[tuple[int, int] | None]:
    """For each part that an edit touches, in their order: how many bytes and lines further on it stands, byte for byte;
    None where it does not."""
    at = min([edit.start, *(part.span.start for part in touched[:1])])
    end = max([edit.end, *(part.span.end for part in touched[-1:])]) + by
    for part in touched:
        written = old[part.span.start : part.span.end]
        found = new.find(written, at, end)
        if found < 0:
            yield None
            continue
        lines = new.count(b"\n", edit.start, found) - old.count(b"\n", edit.start, part.span.start)
        yield found - part.span.start, lines
        at = found + len(written)


def _outside(found: Moved[T], start: int, end: int, by: int, lines: int) -> Moved[T]:
    """Those that an edit does not touch."""
    first, last = found.touched(start, end)
    return found.replaced(first, [one for one in found[first:last] if one.span.end <= start], last, by, lines)


def _edited(kernel: Kernel, edit: Span, by: int) -> Kernel | None:
    """A kernel after an edit that touches it. None where its head is no longer what it was."""
    if not (kernel.body.start < edit.start and edit.end <= kernel.body.end):
        return None
    end = kernel.span.end + by
    return evolve(
        kernel, span=Span(kernel.span.start, end), body=Span(kernel.body.start, end),
        damage=f"brackets, comments or quotes that are not closed, after line {kernel.line}",
    )  # fmt: skip


def _part(bodies: Sequence[int], start: int, end: int, size: int) -> tuple[int, int]:
    """From behind the last body that ends before ``start`` to behind the first that ends at ``end`` or later."""
    return _between([leaving + 1 for leaving in bodies[1::2]], start, end, size)


def _between(cuts: Sequence[int], start: int, end: int, size: int) -> tuple[int, int]:
    """From the last cut at ``start`` or before to the first behind ``end``."""
    first, last = bisect_right(cuts, start), bisect_right(cuts, end)
    return (cuts[first - 1] if first else 0), (cuts[last] if last < len(cuts) else size)


def _is_small(part: tuple[int, int], text: bytes) -> bool:
    """Whether to parse a part alone is less work than to see what of the whole tree still holds."""
    return part[1] - part[0] <= max(len(text) // 8, _SMALL)


def _cuts(tree: Tree, code: bytes, brackets: Brackets, within: Span) -> Iterator[int]:
    """See ``State``; those of the items of a file that lie in a stretch of it."""
    leaving = frozenset(brackets.changes[1::2])
    for item in _items(tree.root_node, within):
        end = item.end_byte
        if end - 1 in leaving and end <= within.end and not item.has_error and _begins_with_word(code, end):
            yield end


def _cuts_at(before: int, old: State, tree: Tree, code: bytes, fresh: Fresh | None) -> Iterator[int]:
    """Where a part begins is a cut if an item ends there (behind a body, in any case), as the new text has it."""
    if fresh is not None:
        ends = before in old.cuts
    else:
        ends = before > 0 and any(
            item.end_byte == before and not item.has_error for item in _items(tree.root_node, Span(before - 1, before))
        )
    if ends and _begins_with_word(code, before):
        yield before


def _items(root: Node, within: Span) -> Iterator[Node]:
    cursor = root.walk()
    there = cursor.goto_first_child_for_byte(within.start) is not None
    while there and cursor.node is not None and cursor.node.start_byte < within.end:
        yield cursor.node
        there = cursor.goto_next_sibling()


def _begins_with_word(code: bytes, offset: int) -> bool:
    """Whether what follows could begin an item, and could not continue one that may have ended."""
    return _WORD_OR_END.match(code, offset) is not None


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


Parsed = tuple[LazyTree, Tree, Fresh | None]
"""The whole tree, the tree in which to look for what stands in the part, and the part if it was parsed alone."""


def _parse_alone(old: State, blanked: bytes, part: Span, after: int, errors: bool) -> Parsed | None:
    """The part as if nothing else were there, if that says all about it."""
    tree = part_tree(blanked, part)
    root = tree.root_node
    if root.has_error and not errors:
        return None
    whole = after == len(old.text) or (root.child_count > 0 and root.children[-1].end_byte == part.end)
    if not whole:
        return None
    lazy = old.lazy.guess(blanked, part) if old.broken or root.has_error else old.lazy.next(blanked)
    return lazy, tree, Fresh(old.number, part.start, after, part.end, tree)


def _parse(old: State, blanked: bytes, part: Span, errors: bool) -> Parsed | None:
    """The new tree, if it is that of a parse from scratch and differs only inside the part."""
    if blanked == old.blanked:
        return old.lazy, old.tree, None
    edited = edited_tree(old.tree, old.blanked, blanked)
    tree = Parser(LANGUAGE).parse(blanked, edited)
    if (tree.root_node.has_error and not errors) or not changes_within(edited, tree, part):
        return None
    return LazyTree.made(blanked, tree), tree, None


def state_of(text: bytes, blanked: Blanked, tree: Tree, kernels: Moved[Kernel], launches: Moved[LaunchSite]) -> State:
    """The state of a document that was read whole."""
    brackets = blanked.brackets.found
    return State(
        balanced=not brackets.left and not brackets.stray,
        broken=tree.root_node.has_error,
        text=text,
        blanked=blanked.text,
        code=blanked.code,
        bodies=brackets.changes,
        cuts=tuple(_cuts(tree, blanked.code, brackets, Span(0, len(text)))),
        blanks=blanks_of(blanked.blanks),
        macros=blanked.macros,
        lazy=LazyTree.made(blanked.text, tree),
        kernels=kernels,
        launches=launches,
    )
