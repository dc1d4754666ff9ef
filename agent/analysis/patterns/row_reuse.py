"""Loops in which each thread of a block walks over the same elements of global memory again."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly, unknown
from agent.analysis.dependence import PURE, conditions
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.row_pass import same_space
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, callee, contains, descendants, text
from agent.source.span import Span

VARIABLE = Atom("row element")
HARMLESS_CALLS = ("__syncthreads", "__syncwarp", "__shfl", "__ballot", "__any", "__all", "__activemask", "__reduce")


@frozen(eq=False)
class RowReuse:
    """``passes`` are two or more loops side by side over the same values of their variables, in each thread.

    ``reads`` holds, for each pass, its reads of the one element of ``root`` (a pointer parameter) that belongs to the
    turn; those of the first pass happen in every turn. ``index`` is the element's index, the loop's variable being
    ``VARIABLE``."""

    passes: tuple[Loop, ...]
    reads: tuple[tuple[Access, ...], ...]
    root: Symbol
    index: Poly

    @property
    def span(self) -> Span:
        return Span(self.passes[0].node.start_byte, self.passes[-1].node.end_byte)


def row_reuses(facts: Facts) -> tuple[RowReuse, ...]:
    """Every element that two or more passes read, the one with most passes first. Nothing is said yet about what is
    written between."""
    found: list[RowReuse] = []
    for at, first in enumerate(facts.loops):
        others = [loop for loop in facts.loops[at + 1 :] if _again(first, loop)]
        if first.leaves_early or first.step_kind != "+" or not others:
            continue
        for index, root in _elements(first, facts):
            reads = {loop: _reads(loop, root, index, facts) for loop in (first, *others)}
            passes = tuple(loop for loop, inside in reads.items() if inside)
            if len(passes) > 1 and passes[0] is first and not any(_covers(old, passes, index) for old in found):
                found.append(RowReuse(passes, tuple(reads[loop] for loop in passes), root, index))
    return tuple(sorted(found, key=lambda one: -len(one.passes)))


def _again(first: Loop, loop: Loop) -> bool:
    return (
        loop.node.parent == first.node.parent
        and loop.node.start_byte >= first.node.end_byte
        and not loop.leaves_early
        and same_space(first, loop)
    )


def _covers(old: RowReuse, passes: tuple[Loop, ...], index: Poly) -> bool:
    return old.index == index and set(passes) <= set(old.passes)


def _elements(loop: Loop, facts: Facts) -> list[tuple[Poly, Symbol]]:
    found: list[tuple[Poly, Symbol]] = []
    for access in facts.accesses_in(loop.body):
        if access.space != "global" or access.writes or access.root is None or access.index is None:
            continue
        index = in_variable(access.index, loop)
        unsure = "unknown" in access.index.depends or VARIABLE not in index.atoms
        if not unsure and not conditions(access.node, loop.body) and (index, access.root) not in found:
            found.append((index, access.root))
    return found


def in_variable(index: Poly, loop: Loop) -> Poly:
    return index.substitute(loop.atom.name, unknown(VARIABLE))


def _reads(loop: Loop, root: Symbol, index: Poly, facts: Facts) -> tuple[Access, ...]:
    return tuple(
        access
        for access in facts.accesses_in(loop.body)
        if access.root is root
        and access.reads
        and not access.writes
        and access.index is not None
        and in_variable(access.index, loop) == index
    )


def own_turns(loop: Loop, facts: Facts) -> bool:
    """Whether the loop goes ``for (i = threadIdx.x; i < bound; i += blockDim.x)`` in a block of one dimension, so
    that ``i`` takes each value below the bound in one thread alone."""
    extents = [facts.scope.known.get(f"blockDim.{axis}") for axis in "xyz"]
    step = loop.step.constant if extents[0] is not None else None
    whole = step == extents[0] if step is not None else str(loop.step) == "blockDim.x"
    return loop.start == unknown(Atom("threadIdx.x")) and whole and loop.relation == "<" and extents[1:] == [1, 1]


def disturbed(reuse: RowReuse, facts: Facts, apart: "frozenset[Symbol]") -> str | None:
    """What may change the elements between the first read and the last, or None. ``apart`` are the pointers that never
    point into the same buffer as the root."""
    last = reuse.passes[-1]
    final = max(read.node.end_byte for read in reuse.reads[-1])
    for access in facts.accesses_between(reuse.span.start, reuse.span.end):
        if not access.writes or access.space in ("shared", "local") or access.root in apart:
            continue
        own = access.index is not None and in_variable(access.index, last) == reuse.index
        if not (contains(last.node, access.node) and own and _written_at(access.node) >= final):
            return (
                f"`{text(access.node)}` is written between the passes, and `{reuse.root.name}` may be the same buffer"
            )
    for call in facts.calls:
        if reuse.span.start <= call.start_byte < reuse.span.end and _may_write(call, facts):
            return f"`{callee(call)}` is called between the passes and may write what they read"
    return None


def _written_at(target: Node) -> int:
    """Where a store is done: at the end of its assignment."""
    parent = target.parent
    return parent.end_byte if parent is not None and parent.type == "assignment_expression" else target.start_byte


def _may_write(call: Node, facts: Facts) -> bool:
    name = callee(call)
    if name in PURE or name.startswith((*HARMLESS_CALLS, "atomic")):
        return False
    for argument in arguments(call):
        for node in descendants(argument, "identifier"):
            symbol = facts.symbols.resolve(node)
            inside = node.parent is not None and node.parent.type == "subscript_expression"
            if symbol is not None and symbol.space != "shared" and symbol.pointer > 0 and not inside:
                return not symbol.const
    return False
