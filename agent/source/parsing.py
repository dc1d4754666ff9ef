"""Text to tree. An incremental parse gives the tree of a parse from scratch, or it is not used."""

from collections.abc import Callable

from tree_sitter import Language, Parser, Point, Tree
from tree_sitter_cuda import language

LANGUAGE = Language(language())


def parse_tree(text: bytes) -> Tree:
    """Parse ``text`` (already blanked) from scratch."""
    return Parser(LANGUAGE).parse(text)


def reparse_tree(text: bytes, old_text: bytes, old_tree: Tree) -> Tree:
    """The tree of ``text``, reusing what ``old_tree`` (the tree of ``old_text``) still says.

    What changed is found by comparing the two texts, not by believing an editor: an edit that opens a comment also
    changes what is blanked far away. A tree with errors is not reused, nor is a new tree with errors kept: the
    parser's recovery depends on where it began.
    """
    if old_tree.root_node.has_error:
        return parse_tree(text)
    if text == old_text:
        return old_tree
    new_tree = Parser(LANGUAGE).parse(text, edited_tree(old_tree, old_text, text))
    return parse_tree(text) if new_tree.root_node.has_error else new_tree


def edited_tree(old_tree: Tree, old_text: bytes, text: bytes) -> Tree:
    """A copy of ``old_tree`` that knows where ``text`` differs, as the parser and ``changed_ranges`` want it."""
    start, old_end, new_end = changed_range(old_text, text)
    tree = old_tree.copy()
    tree.edit(start, old_end, new_end, point_of(old_text, start), point_of(old_text, old_end), point_of(text, new_end))
    return tree


def changed_range(old: bytes, new: bytes) -> tuple[int, int, int]:
    """``(start, old_end, new_end)`` of the smallest range that differs, widened to whole UTF-8 characters."""
    shortest = min(len(old), len(new))
    start = _common(shortest, lambda a, b: old[a:b] == new[a:b])
    rest = shortest - start
    end = _common(rest, lambda a, b: old[len(old) - b : len(old) - a] == new[len(new) - b : len(new) - a])
    while start and (_continues(old, start) or _continues(new, start)):
        start -= 1
    while end and (_continues(old, len(old) - end) or _continues(new, len(new) - end)):
        end -= 1
    return start, len(old) - end, len(new) - end


def _common(limit: int, same: Callable[[int, int], bool]) -> int:
    """How far two texts agree, found by halving: comparing slices is fast, comparing bytes one by one is not."""
    low = 0
    while low < limit:
        step = (limit - low + 1) // 2
        if same(low, low + step):
            low += step
        elif step == 1:
            break
        else:
            limit = low + step - 1
    return low


def _continues(text: bytes, at: int) -> bool:
    return at < len(text) and text[at] & 0xC0 == 0x80


def point_of(text: bytes, offset: int) -> Point:
    """Line and column, in bytes, both from 0."""
    return Point(text.count(b"\n", 0, offset), offset - (text.rfind(b"\n", 0, offset) + 1))
