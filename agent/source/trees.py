"""Trees of whole texts, made when somebody asks for one: between two keystrokes, nobody does."""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Parser, Range, Tree

from agent.source.parsing import LANGUAGE, edited_tree, point_of, reparse_tree
from agent.source.span import Span


class LazyTree:
    """The tree of a text (already blanked)."""

    __slots__ = ("_make", "_origin", "_text", "_tree")

    def __init__(self, text: bytes, make: Callable[[], Tree], origin: tuple[bytes, Tree] | None = None) -> None:
        self._text = text
        self._make: Callable[[], Tree] | None = make
        self._origin = origin
        self._tree: Tree | None = None

    @classmethod
    def made(cls, text: bytes, tree: Tree) -> LazyTree:
        """One that is there."""
        return cls(text, lambda: tree)

    @property
    def tree(self) -> Tree:
        make = self._make
        if self._tree is None and make is not None:
            self._tree = make()
            self._make = self._origin = None
        assert self._tree is not None
        return self._tree

    def next(self, text: bytes) -> LazyTree:
        """That of a later state of a text without parse errors, which has none either. From the newest state whose tree
        was asked for: the states between are not kept."""
        origin = self._origin or (self._text, self.tree)
        return LazyTree(text, lambda: reparse_tree(text, *origin), origin)

    def guess(self, text: bytes, part: Span) -> LazyTree:
        """That of a later state of a text which may have parse errors, in the part that was edited. Where the parser's
        recovery from them reaches further, the tree is the old one, moved."""

        def make() -> Tree:
            edited = edited_tree(self.tree, self._text, text)
            tree = Parser(LANGUAGE).parse(text, edited)
            return tree if changes_within(edited, tree, part) else edited

        return LazyTree(text, make)

    def moved(self, text: bytes) -> LazyTree:
        """The tree around an edit, moved."""
        return LazyTree(text, lambda: edited_tree(self.tree, self._text, text))


def changes_within(old: Tree, new: Tree, part: Span) -> bool:
    """Whether two trees differ inside a part only."""
    return all(part.start <= found.start_byte and found.end_byte <= part.end for found in old.changed_ranges(new))


def part_tree(text: bytes, part: Span) -> Tree:
    """The tree of a part of a text, as if nothing else were there, with the offsets of the text."""
    where = Range(point_of(text, part.start), point_of(text, part.end), part.start, part.end)
    return Parser(LANGUAGE, included_ranges=[where]).parse(text)
