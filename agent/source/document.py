"""A CUDA file as an immutable value: its text, its tree, its kernels and its launches."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from attrs import field, frozen
from tree_sitter import Tree

from agent.source.blanking import Blank, blank
from agent.source.errors import SourceError, UnknownKernel
from agent.source.incremental import Fresh, State, advance, glance, state_of
from agent.source.indirect import indirect_launches
from agent.source.kernel import Kernel
from agent.source.kernels import find_kernels
from agent.source.launch import LaunchSite
from agent.source.launches import find_launches
from agent.source.lexing import Macro
from agent.source.line_ends import with_newlines
from agent.source.moving import Moved, kernels_of, launches_of
from agent.source.parsing import parse_tree, reparse_tree
from agent.source.span import Span
from agent.source.trees import LazyTree

__all__ = ["Document", "SourceError", "UnknownKernel", "parse", "read"]

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@frozen(eq=False)
class Document:
    """``text`` is what is on disk or in the editor, with ``\\n`` for a lone ``\\r``. ``tree`` was parsed from
    ``blanked``, a text of the same length and the same lines, so that all offsets hold in all of them. Tree, kernels
    and launches are made when first asked for, and kernels and launches put in their places one by one. ``hasty``: see
    :func:`parse`."""

    path: str
    text: bytes = field(repr=False)
    blanked: bytes = field(repr=False, eq=False)
    _tree: Tree | LazyTree = field(repr=False, eq=False)
    blanks: Sequence[Blank] = field(repr=False, eq=False)
    macros: tuple[Macro, ...] = field(repr=False, eq=False)
    hasty: bool = field(default=False, repr=False, eq=False)
    _state: Callable[["Document"], State] | State | None = field(default=None, repr=False, eq=False)

    def __eq__(self, other: object) -> bool:
        """The same text is the same document, but for what was read in haste: that depends on what was there before."""
        if self is other:
            return True
        if not isinstance(other, Document) or self.hasty or other.hasty:
            return False
        return self.path == other.path and self.text == other.text

    def __hash__(self) -> int:
        """Without the text: to hash a large one takes longer than to compare two."""
        return hash((self.path, len(self.text)))

    @property
    def tree(self) -> Tree:
        return self._tree.tree if isinstance(self._tree, LazyTree) else self._tree

    @property
    def broken(self) -> bool:
        """Whether there are parse errors anywhere."""
        return self._state.broken if isinstance(self._state, State) else self.tree.root_node.has_error

    @cached_property
    def kernels(self) -> Moved[Kernel]:
        """Every ``__global__`` definition in text order, damaged ones included."""
        if isinstance(self._state, State):
            return self._state.kernels
        return kernels_of(find_kernels(self.text, self.tree, self.blanks))

    @cached_property
    def launches(self) -> Moved[LaunchSite]:
        """Every ``<<<>>>`` expression in text order."""
        if isinstance(self._state, State):
            return self._state.launches
        return launches_of(find_launches(self.text, self.tree, self.blanks))

    @cached_property
    def indirect_launches(self) -> tuple[LaunchSite, ...]:
        """The launches of its kernels through pointers and by calls of the runtime, in text order."""
        return indirect_launches(self)

    @cached_property
    def state(self) -> State | None:
        """What the next state of the document is made from; None for one that was put together by hand."""
        return self._state(self) if callable(self._state) else self._state

    @property
    def fresh(self) -> Fresh | None:
        """The part that was read anew where nothing else had to be looked at; None where more was."""
        return self._state.fresh if isinstance(self._state, State) else None

    def is_state(self, number: int) -> bool:
        """Whether this is the state from which :attr:`fresh` of another counts."""
        state = self.state
        return state is not None and state.number == number

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset at which each line begins; as nvcc counts them."""
        return (0, *accumulate(len(line) + 1 for line in self.text.split(b"\n")[:-1]))

    def kernel(self, name: str) -> Kernel:
        """The kernel of that bare or qualified name. Raises UnknownKernel, naming those that exist."""
        wanted = "".join(name.split()).removeprefix("::")
        for matches in (lambda k: k.qualified_name == wanted, lambda k: k.name == wanted):
            found = next(filter(matches, self.kernels), None)
            if found is not None:
                return found
        there = ", ".join(dict.fromkeys(k.qualified_name for k in self.kernels))
        where = self.path or "this text"
        known = f"it has {there}" if there else "it has no kernel at all (no __global__ function with a body)"
        raise UnknownKernel(f"no kernel '{name}' in {where}: {known}")

    def line(self, offset: int) -> int:
        """The 1-based line of a byte offset."""
        return bisect_right(self.line_starts, offset)

    def slice_text(self, span: Span) -> str:
        """What stands in ``span``, as text."""
        return self.text[span.start : span.end].decode("utf-8", "replace")


def parse(text: bytes, path: str = "", previous: Document | None = None, hasty: bool = False) -> Document:
    """Parse any bytes. With ``previous`` (an earlier state of the document) what did not change is reused; the result
    is the same as without.

    A ``hasty`` parse is for the time between two keystrokes. It reads only the functions that were edited: where those
    have parse errors, it may recover from them elsewhere than a parse from scratch does, and where their brackets do
    not match, it does not look at what follows. The document then says so; it must not be a ``previous``.
    """
    text = with_newlines(text)
    if previous is not None and (before := previous.state) is not None:
        after = glance(before, text) if hasty else advance(before, text)
        if after is not None:
            wrong = before.broken or after.broken or after.kept
            return Document(path, text, after.blanked, after.lazy, after.blanks, after.macros, hasty and wrong, after)
    blanked = blank(text)
    new = blanked.text
    tree = parse_tree(new) if previous is None else reparse_tree(new, previous.blanked, previous.tree)

    def state(document: Document) -> State:
        return state_of(text, blanked, tree, document.kernels, document.launches)

    return Document(path, text, new, tree, blanked.blanks, blanked.macros, False, state)


def read(path: str | Path) -> Document:
    """Read and parse a file. Raises SourceError for what is no readable CUDA text."""
    place = Path(path)
    try:
        text = place.read_bytes()
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist; give the path of a .cu file") from None
    except IsADirectoryError:
        raise SourceError(f"{path} is a directory; give the path of a .cu file") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL in the name
        raise SourceError(f"{str(path)!r} cannot be read: that is no file name") from None
    if text.startswith(_UTF16):
        raise SourceError(f"{path} is UTF-16 text; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")
    if b"\0" in text:
        raise SourceError(f"{path} is a binary file (it holds NUL bytes); give a .cu source file")
    return parse(text, str(path))
