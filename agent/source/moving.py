"""Values that an edit before them moved: the same, some bytes and lines further on.

A large file has thousands of them, and every keystroke moves those behind it. So what is kept is by how much, and a
value in its new place is made when it is asked for.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar, overload

from agent.source.blanking import Blank
from agent.source.kernel import Kernel, Parameter
from agent.source.launch import LaunchSite
from agent.source.span import Span


class Spanned(Protocol):
    @property
    def span(self) -> Span: ...


T = TypeVar("T", bound=Spanned)


class Moved(Sequence[T]):
    """Values in text order that never change, in their places of now. It equals any sequence of equal values."""

    def __init__(self, placed: Sequence[tuple[T, int, int]], move: Callable[[T, int, int], T]) -> None:
        """``placed``: each value where it was read, and how many bytes and lines further on it stands now."""
        self._placed = placed
        self._move = move
        self._made: dict[int, T] = {}

    @property
    def as_read(self) -> Iterator[T]:
        """The values themselves, each in the place where it stood when its text was last read. All but the places
        holds, and a value whose text was not read anew stays the same object."""
        return (item for item, _, _ in self._placed)

    def start(self, index: int) -> int:
        """Where a value begins."""
        item, by, _ = self._placed[index]
        return item.span.start + by

    def end(self, index: int) -> int:
        """Where a value ends."""
        item, by, _ = self._placed[index]
        return item.span.end + by

    def first_from(self, offset: int) -> int:
        """The index of the first that begins at ``offset`` or later."""
        return bisect_left(range(len(self._placed)), offset, key=self.start)

    def touching(self, start: int, end: int) -> list[T]:
        """Those that have a byte in a stretch of the text, or end or begin at its edge."""
        return [self[at] for at in range(self.first_from(end + 1)) if self.end(at) >= start]

    def split(self, before: int, after: int) -> tuple[int, int] | None:
        """How many lie in front of a stretch of the text, and which is the first behind it. None where one lies across
        its edge."""
        front = bisect_left(range(len(self._placed)), before, key=self.end)
        while front < len(self._placed) and self.end(front) <= before:
            front += 1
        back = self.first_from(after)
        clean = all(before <= self.start(at) and self.end(at) <= after for at in range(front, back))
        return (front, back) if clean else None

    def touched(self, start: int, end: int) -> tuple[int, int]:
        """From the first that does not end before a stretch of the text to the first that begins behind it."""
        back = self.first_from(end)
        return next((at for at in range(back) if self.end(at) > start), back), back

    def replaced(self, front: int, fresh: Iterable[T], back: int, by: int, lines: int) -> "Moved[T]":
        """``fresh`` in place of those from ``front`` to ``back``; what is behind goes so many bytes and lines on."""
        behind = self._placed[back:]
        if by or lines:
            behind = [(item, bytes_ + by, lines_ + lines) for item, bytes_, lines_ in behind]
        return Moved([*self._placed[:front], *((item, 0, 0) for item in fresh), *behind], self._move)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(*index.indices(len(self._placed)))])
        item, by, lines = self._placed[index]
        if not by and not lines:
            return item
        index %= len(self._placed)
        if index not in self._made:
            self._made[index] = self._move(item, by, lines)
        return self._made[index]

    def __len__(self) -> int:
        return len(self._placed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(_equal, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _equal(one: object, other: object) -> bool:
    return one == other


def kernels_of(found: Iterable[Kernel]) -> Moved[Kernel]:
    """Kernels that stand where they were read."""
    return Moved([(kernel, 0, 0) for kernel in found], moved_kernel)


def launches_of(found: Iterable[LaunchSite]) -> Moved[LaunchSite]:
    """Launches that stand where they were read."""
    return Moved([(site, 0, 0) for site in found], moved_launch)


def blanks_of(found: Iterable[Blank]) -> Moved[Blank]:
    """Blanks that stand where they were read."""
    return Moved([(blank, 0, 0) for blank in found], moved_blank)


def moved_kernel(kernel: Kernel, by: int, lines: int) -> Kernel:
    """Written out, and not with ``evolve``, which takes several times as long."""
    return Kernel(
        kernel.name,
        kernel.qualified_name,
        kernel.template,
        tuple([
            Parameter(p.name, p.type, p.element, p.pointer_depth, p.const, p.restrict, _moved(p.span, by), p.arrays)
            for p in kernel.parameters
        ]),
        _moved(kernel.span, by),
        _moved(kernel.signature, by),
        _moved(kernel.body, by),
        _moved(kernel.name_span, by),
        kernel.line + lines,
        kernel.launch_bounds,
        kernel.uses,
        kernel.damage,
        kernel.cluster_dims,
    )  # fmt: skip


def moved_launch(site: LaunchSite, by: int, lines: int) -> LaunchSite:
    return LaunchSite(
        site.kernel,
        site.callee,
        site.template_arguments,
        site.grid,
        site.block,
        site.shared,
        site.stream,
        site.arguments,
        _moved(site.span, by),
        _moved(site.grid_span, by),
        _moved(site.block_span, by),
        _moved(site.shared_span, by) if site.shared_span else None,
        tuple([_moved(span, by) for span in site.argument_spans]),
        site.line + lines,
        site.function,
        _moved(site.function_span, by) if site.function_span else None,
        tuple([_moved(span, by) for span in site.loops]),
        site.damage,
        site.how,
        site.cluster,
    )


def moved_blank(blank: Blank, by: int, lines: int = 0) -> Blank:
    return Blank(_moved(blank.span, by), blank.kind, blank.name, blank.value, blank.expansion)


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)
