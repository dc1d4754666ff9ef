"""What a rule looks at: a kernel's facts, the shapes of its launches, and what its warps touch."""

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.coalescing import block_lanes
from agent.analysis.facts import Facts
from agent.analysis.guards import Guard, guards, stopped
from agent.analysis.launches import Extents, Shape
from agent.analysis.layouts import Layout, layout
from agent.analysis.syntax import callee, descendants
from agent.analysis.vectors import Column, Names
from agent.workload.dtypes import from_c_type, size_of

Lanes = Names
"""The names of several threads: a number each, or one for each thread."""
AXES = ("x", "y", "z")
USUAL = ((32, 8, 1), (16, 16, 1), (32, 32, 1), (8, 8, 1))
USUAL_OF_THREE = ((32, 4, 2), (16, 4, 4), (8, 8, 4), (8, 8, 8))
"""Blocks that a kernel of several dimensions is looked at with where no launch tells its own: only what holds for all
is said."""


@frozen
class Part:
    """One request takes ``bytes`` from ``offset`` on of elements that are ``stride`` bytes apart."""

    stride: int
    offset: int
    bytes: int


@frozen(eq=False)
class View:
    """``launches`` are the shapes of the kernel's launches in its file, in text order. ``block`` is the block where all
    of them have the same. ``bounds`` is the first number of ``__launch_bounds__``. ``sizes`` are values of parameters
    that a workload fixes. ``raised``: the file raises a limit of dynamic shared memory somewhere; ``newest``: it has
    instructions that only targets like ``sm_100a`` have. ``defined``: the
    names that the kernel uses and its file defines as functions or macros."""

    facts: Facts
    launches: tuple[Shape, ...]
    block: Extents
    bounds: int | None
    sizes: Mapping[str, int]
    raised: bool
    defined: frozenset[str]
    newest: bool = False
    _away: dict[tuple[int, ...], npt.NDArray[np.bool_]] = field(factory=dict, init=False)
    _guards: dict[Access, tuple[Guard, ...]] = field(factory=dict, init=False)

    @property
    def threads(self) -> int | None:
        x, y, z = self.block
        return None if x is None or y is None or z is None else x * y * z

    def nodes(self, *types: str) -> list[Node]:
        """The kernel's nodes of some types, in text order."""
        return list(descendants(self.facts.node, *types))

    def calls(self, names: Iterable[str]) -> list[Node]:
        """The calls of functions with these names that the file does not define itself, in text order."""
        found = [call for name in self._calls.keys() & set(names) - self.defined for call in self._calls[name]]
        return sorted(found, key=lambda call: call.start_byte)

    def operations(self, *operators: str) -> list[Node]:
        """The binary expressions with these operators, in text order of each."""
        return [node for operator in operators for node in self._operations.get(operator, ())]

    @cached_property
    def _calls(self) -> Mapping[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for call in self.facts.calls:
            found.setdefault(callee(call), []).append(call)
        return found

    @cached_property
    def _operations(self) -> Mapping[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes("binary_expression"):
            operator = node.child_by_field_name("operator")
            found.setdefault("" if operator is None else operator.type, []).append(node)
        return found

    @cached_property
    def axes(self) -> frozenset[str]:
        """The axes of ``threadIdx`` that the kernel mentions."""
        text = self.facts.document.blanked
        return frozenset(axis for axis in AXES if f"threadIdx.{axis}".encode() in text)

    @cached_property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """The blocks that the kernel may run with, as far as they must be told apart: the known one; otherwise, one
        long row where only ``threadIdx.x`` is used, and usual shapes where others are. Empty where nothing is sensible
        to assume."""
        x, y, z = self.block
        if x is not None and y is not None and z is not None:
            return ((x, y, z),) if 0 < x * y * z <= 1024 and min(x, y, z) > 0 else ()
        told = {one.block for one in self.launches if one.threads is not None and 0 < one.threads <= 1024}
        if self.launches and len(told) == len({one.block for one in self.launches}):
            return tuple((int(a or 1), int(b or 1), int(c or 1)) for a, b, c in sorted(told, key=str))
        if self.axes <= {"x"}:
            return ((x if x is not None and 0 < x <= 1024 else 256, 1, 1),)
        given = USUAL if self.axes <= {"x", "y"} else USUAL_OF_THREE
        fitting = [one for one in given if all(own in (None, size) for own, size in zip(self.block, one, strict=True))]
        if fitting:
            return tuple(fitting)
        return ((x, 256 // x, 1),) if x is not None and y is None and 0 < x <= 256 and self.axes <= {"x", "y"} else ()

    @cached_property
    def warps(self) -> tuple[Lanes, ...]:
        """The lanes of the first warp, for each of ``blocks``."""
        return tuple(self.lanes(block, False) for block in self.blocks)

    @cached_property
    def exchanged(self) -> tuple[Lanes, ...]:
        """The lanes of the first warp with x and y in each other's place; none where a block has no second row."""
        if "y" not in self.axes or any(block[1] < 2 for block in self.blocks):
            return ()
        return tuple(self.lanes(block, True) for block in self.blocks)

    def lanes(self, block: tuple[int, int, int], exchanged: bool) -> Lanes:
        return self.names(block, np.array(block_lanes(block, exchanged), dtype=np.int64).T)

    def away(self, access: Access, lanes: Lanes) -> npt.NDArray[np.bool_]:
        """Which of ``warps`` or ``exchanged`` are known not to come to an access."""
        found = self.guards(access)
        key = (id(lanes), *(guard.condition.start_byte * 2 + guard.taken for guard in found))
        if key not in self._away:
            self._away[key] = np.broadcast_to(stopped(found, self.facts.scope, lanes), np.shape(lanes["threadIdx.x"]))
        return self._away[key]

    def names(self, block: tuple[int, int, int], threads: Column) -> Lanes:
        """What names mean to some threads of a block; ``threads`` has a row for each axis."""
        extents = {f"blockDim.{axis}": extent for axis, extent in zip(AXES, block, strict=True)}
        return {**self.sizes, **extents, **{f"threadIdx.{axis}": row for axis, row in zip(AXES, threads, strict=True)}}

    @cached_property
    def everyone(self) -> Lanes | None:
        """All threads of the block in order, where there is one block to look at."""
        if len(self.blocks) != 1:
            return None
        x, y, z = self.blocks[0]
        at = np.arange(x * y * z)
        return self.names(self.blocks[0], np.array([at % x, at // x % y, at // (x * y)], dtype=np.int64))

    def guards(self, access: Access) -> tuple[Guard, ...]:
        """The conditions on the way to an access."""
        if access not in self._guards:
            self._guards[access] = tuple(guards(access.node, self.facts.node))
        return self._guards[access]

    def element_bytes(self, access: Access) -> int | None:
        """Bytes of one element; None where its type is not known."""
        dtype = from_c_type(access.element) if access.element else None
        if dtype is None or (
            access.root is not None and access.root.pointer + len(access.root.dims) > 1 and access.space == "global"
        ):
            return None
        return size_of(dtype)

    def part(self, access: Access) -> Part | None:
        """What one request of an access takes; None where its element's type is not known. A vector is moved whole
        where all of its parts are wanted, else part by part, as structs and vectors of three always are. A template's
        own type is taken for 4 bytes: how many times too many sectors or passes a stride costs hardly depends on it."""
        root = access.root
        kind, taken = access.cast or (access.element, "")
        if not kind or (root is not None and root.pointer + len(root.dims) > 1 and access.space == "global"):
            return None
        found = layout(kind, self.facts.structs)
        if taken:
            wide = layout(taken, self.facts.structs)
            return None if wide is None or found is None else Part(found.size, 0, wide.size)
        if found is None and access.space in ("global", "shared") and not access.member and kind in self._open_types:
            return Part(4, 0, 4)
        if found is None:
            return None
        if found.size == found.align and (not access.member or self._goes_whole(access, found)):
            return Part(found.size, 0, found.size)
        if not access.member:
            return Part(found.size, 0, found.align)
        member = found.member(access.member)
        return Part(found.size, member.offset, member.bytes) if member is not None and member.whole else None

    @cached_property
    def _open_types(self) -> frozenset[str]:
        return frozenset(one.name for one in self.facts.kernel.template if one.kind == "type")

    def _goes_whole(self, access: Access, found: Layout) -> bool:
        """Whether a vector's parts are moved by one access: all of them are wanted, or, of those that are only loaded,
        some from both halves: compilers load the gap too."""
        wanted, names = self._members(access), [one.name for one in found.members]
        halves = [wanted & set(names[: len(names) // 2]), wanted & set(names[len(names) // 2 :])]
        return wanted == set(names) or (not access.writes and len(names) == 4 and all(halves))

    def _members(self, access: Access) -> frozenset[str]:
        """The members that the kernel takes of the same element, or of one that is written in the same way."""
        same = [one for one in self.facts.accesses if one.root is access.root and one.index == access.index]
        return frozenset(one.member for one in same if one.reads == access.reads or one.writes == access.writes)
