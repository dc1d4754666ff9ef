"""Where each thread works at one element of some arrays and its neighbours at the next ones."""

from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.loops import Loop
from agent.analysis.patterns.straight import Piece, flat, pieces
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, contains, descendants, enclosing, expression_of, text
from agent.ideas.elements.buffers import apart
from agent.ideas.elements.front import split
from agent.ideas.elements.pieces import at
from agent.ideas.elements.places import Place, bound, place, reached, thread_number
from agent.ideas.exchange.cost import LOOP_WEIGHT, lanes
from agent.ideas.exchange.plane import obstacles
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

BYTES = 16
"""The widest access of one thread (CUDA C++ Programming Guide, "Device Memory Accesses")."""
WIDTHS = (2, 4, 8, 16)


@frozen(eq=False)
class Group:
    """Accesses to one element of one array: all of them, ``loaded`` where its old value may be wanted."""

    root: Symbol
    accesses: tuple[Access, ...]
    bytes: int
    loaded: bool
    stored: bool


@frozen(eq=False)
class Site:
    """``variable`` is the element's number: a coordinate of the grid (``place``) or a grid-stride loop's (``loop``).
    ``head`` is what does not depend on it, ``tests`` those that bound it included; ``work`` is done for each element.
    ``limit`` is the bound; None: the launch has a thread for each element."""

    variable: Symbol
    place: Place | None
    loop: Loop | None
    head: tuple[Piece, ...]
    work: tuple[Piece, ...]
    limit: Node | None
    groups: tuple[Group, ...]
    widths: tuple[int, ...]


def site(view: View) -> Site | str:
    if (obstacle := obstacles(view)) is not None:
        return obstacle
    if view.block[0] is None:
        return "the block's width is no fixed number"
    if enclosing(view.facts.node, "linkage_specification") is not None:
        return 'it stands in an extern "C" block, where no template can be written'
    parts = pieces(view.facts)
    if isinstance(parts, str):
        return parts
    loop = _stride_loop(view, parts)
    if loop is not None:
        inside = flat(loop.body)
        if inside is None or any(True for _ in descendants(loop.body, "continue_statement", "break_statement")):
            return "the loop over elements is left or continued from inside"
        before = tuple(piece for piece in parts if not contains(piece.node, loop.node))
        return _split(view, loop.variable, None, loop, before, tuple(inside), loop.bound_node)
    found = place(view, 0)
    if found is None:
        return (
            "threadIdx.x is not used for one coordinate alone, so neighbouring elements cannot be given to one thread"
        )
    limit = bound(view, parts, found.start)
    if limit is not None and not reached(view, 0, limit):
        return f"the launch may not reach {source_text(view.document, limit)} at every size, and would after a change"
    return _split(view, found.symbol, found, None, (), parts, limit)


def _stride_loop(view: View, parts: Sequence[Piece]) -> Loop | None:
    """The loop from a thread's place in steps of the whole grid, as the kernel's last statement."""
    last = next((piece.node for piece in reversed(parts) if piece.kind != "comment"), None)
    loop = None if last is None or last.type != "for_statement" else view.facts.loop(last)
    if loop is None or loop.relation != "<" or loop.step_kind != "+" or loop.setup is not None:
        return None
    extent = view.block[0]
    width = unknown(Atom("blockDim.x")) if extent is None else number(extent)
    if not contains(loop.node, loop.variable.declarator) or loop.step != unknown(Atom("gridDim.x")) * width:
        return None
    return loop if loop.start == thread_number(view, 0) else None


def _foreign(view: View, variable: Symbol, loop: Loop, work: Sequence[Piece]) -> str | None:
    """What else the loop's body takes from the thread's index, which would be the same for all its elements."""
    for piece in work:
        for node in descendants(piece.node, "identifier"):
            symbol = view.facts.symbols.resolve(node)
            built_in = symbol is None and text(node) in ("threadIdx", "blockIdx")
            outside = symbol is not None and symbol is not variable and not contains(loop.node, symbol.declarator)
            if outside and symbol is not None and symbol.writes and not symbol.is_memory:
                return f"{symbol.name} is carried from one element to the next"
            if built_in or (outside and symbol is not None and _varies(view, symbol)):
                return f"`{text(node)}` in the loop's body depends on the thread, and not through {variable.name}"
    return None


def _varies(view: View, symbol: Symbol) -> bool:
    return any(one.startswith(("threadIdx", "blockIdx")) for one in view.facts.scope.sources.get(symbol, frozenset()))


def _split(
    view: View,
    variable: Symbol,
    at_place: Place | None,
    loop: Loop | None,
    before: tuple[Piece, ...],
    parts: tuple[Piece, ...],
    limit: Node | None,
) -> Site | str:
    head, work = split(view, parts, variable)
    if limit is not None and loop is None and bound(view, head, thread_number(view, 0)) is None:
        return f"the test against {source_text(view.document, limit)} comes after other work"
    if loop is not None and (reason := _foreign(view, variable, loop, work)) is not None:
        return reason
    groups = _groups(view, variable, loop, work)
    if isinstance(groups, str):
        return groups
    widths = _widths(view, groups, variable, at_place, limit)
    if isinstance(widths, str):
        return widths
    return Site(variable, at_place, loop, (*before, *head), tuple(work), limit, groups, widths)


def _groups(view: View, variable: Symbol, loop: Loop | None, work: Sequence[Piece]) -> tuple[Group, ...] | str:
    by_element: dict[tuple[Symbol, Poly], list[Access]] = {}
    for piece in work:
        for access in view.facts.accesses_in(piece.node):
            spelled = source_text(view.document, access.node)
            if access.space in ("local", "constant", "shared"):
                continue
            if access.root is None or access.root.space != "parameter":
                return f"where `{spelled}` points cannot be followed"
            rest = None if access.index is None else rest_of(view, access.index, loop)
            if rest is not None and access.node.type == "subscript_expression":
                by_element.setdefault((access.root, rest), []).append(access)
            elif access.writes:
                return f"`{spelled}` does not write one element for each thread, side by side"
    found: list[Group] = []
    for (root, rest), accesses in by_element.items():
        group = _group(view, root, accesses, work)
        stored = any(access.writes for access in accesses)
        if isinstance(group, str):
            if stored:
                return group
            continue
        if not stored and not _aligned(view, group, 2):
            continue
        if stored and any(other is root and its != rest for other, its in by_element):
            return f"{root.name} is written at one index and touched at another"
        found.append(group)
    reason = _loose(view, found, work) or _shared_buffer(view, found, work)
    if reason is not None:
        return reason
    return tuple(found) if found else "no array is walked element by element, from aligned places on"


def _loose(view: View, groups: Sequence[Group], work: Sequence[Piece]) -> str | None:
    """Loads that run with the threads but come in no pack lie further apart afterwards: they must be the fewer. Where
    each element's work is a loop over memory, fewer threads would only take longer."""
    packed = {at(access.node) for group in groups for access in group.accesses}
    for piece in work:
        for access in view.facts.accesses_in(piece.node):
            inner = any(above.type in LOOPS and contains(piece.node, above) for above in ancestors(access.node))
            if inner and access.space == "global" and at(access.node) not in packed:
                return f"an element's work is a loop over `{source_text(view.document, access.node)}`, in no packs"
    weight, spelled = 0, ""
    for piece in work:
        for access in view.facts.accesses_in(piece.node):
            runs = access.index is not None and "threadIdx.x" in access.index.depends
            if access.space == "global" and runs and at(access.node) not in packed:
                weight += LOOP_WEIGHT ** len(view.facts.loops_around(access.node))
                spelled = source_text(view.document, access.node)
    if weight >= len(packed):
        return f"most of what it loads, such as `{spelled}`, comes in no packs and would lie further apart"
    return None


def rest_of(view: View, index: Poly, loop: Loop | None) -> Poly | None:
    """What an index adds to the element's number, where it is linear in that with factor one and the rest does not
    depend on it."""
    start = unknown(loop.atom) if loop is not None else thread_number(view, 0)
    rest = index - start
    names = (loop.atom.name,) if loop is not None else ("threadIdx.x", "blockIdx.x")
    hidden = any(name in rest.depends or any(atom.name == name for atom in rest.atoms) for name in names)
    inner = any("threadIdx.x" in atom.depends or "unknown" in atom.depends for atom in rest.atoms)
    return None if hidden or inner else rest


def _group(view: View, root: Symbol, accesses: Sequence[Access], work: Sequence[Piece]) -> Group | str:
    size = view.element_bytes(accesses[0])
    spelled = source_text(view.document, accesses[0].node)
    if size is None or size not in (1, 2, 4, 8):
        return f"`{spelled}` is no element of 1, 2, 4 or 8 bytes"
    if "volatile" in root_declaration(view, root):
        return f"{root.name} is volatile"
    always = [access for access in accesses if not _sometimes(access.node, work)]
    if not always:
        return f"`{spelled}` is touched inside a branch only, so its neighbours need not exist"
    stored = any(access.writes for access in accesses)
    first = accesses[0]
    written_first = first in always and _plain_store(first, work)
    return Group(root, tuple(accesses), size, not written_first, stored)


def root_declaration(view: View, root: Symbol) -> str:
    return next((one.type for one in view.kernel.parameters if one.name == root.name), "")


def _plain_store(access: Access, work: Sequence[Piece]) -> bool:
    """Whether the access is the left side of an ``=`` that is a statement of its own, and nothing on its right reads
    the element."""
    piece = next(piece for piece in work if contains(piece.node, access.node))
    assignment = expression_of(piece.node)
    if assignment is None or assignment.type != "assignment_expression":
        return False
    return assignment.child_by_field_name("left") == access.node and access.writes and not access.reads


def _sometimes(node: Node, work: Sequence[Piece]) -> bool:
    """Whether an element's access is reached only at times."""
    for piece in work:
        if piece.kind == "test" and piece.node.end_byte <= node.start_byte:
            return True
        if piece.kind == "statement" and contains(piece.node, node):
            if piece.node.type in (*LOOPS, "if_statement", "switch_statement", "compound_statement"):
                return True
            for above in ancestors(node):
                short = above.type == "binary_expression" and text(above.child_by_field_name("operator")) in (
                    "&&",
                    "||",
                )
                if short or above.type in ("conditional_expression", "lambda_expression"):
                    return True
                if above == piece.node:
                    return False
    return False


def _shared_buffer(view: View, groups: Sequence[Group], work: Sequence[Piece]) -> str | None:
    """Values are loaded before and stored after the work on several elements: no other access may see that."""
    for group in groups:
        for other in view.facts.accesses:
            mine = any(other.node == own.node for own in group.accesses)
            if not group.stored or mine or other.space in ("local", "constant", "shared"):
                continue
            if other.root is None or not apart(view, group.root, other.root):
                spelled = source_text(view.document, other.node)
                return f"{group.root.name}, which it writes, may share a buffer with what `{spelled}` touches"
    return None


def _widths(
    view: View, groups: Sequence[Group], variable: Symbol, at_place: Place | None, limit: Node | None
) -> tuple[int, ...] | str:
    """How many elements a thread may take: the narrowest fill at most two accesses, all start aligned at the declared
    sizes, and (where no test bounds the element) the block can be made so much smaller."""
    narrow = min(group.bytes for group in groups)
    found = [width for width in WIDTHS if width * narrow <= 2 * BYTES]
    found = [width for width in found if all(_aligned(view, group, width) for group in groups)]
    if at_place is not None and limit is None:
        extent = view.block[0]
        found = [width for width in found if extent is not None and extent % width == 0 and extent // width >= 32]
        if not found:
            return "no test bounds the element's number, and the block cannot be made smaller"
    if not found:
        worst = source_text(view.document, groups[0].accesses[0].node)
        return f"rows do not start aligned at the declared sizes (`{worst}`), so that most would be moved one by one"
    return tuple(found)


def _aligned(view: View, group: Group, width: int) -> bool:
    """Whether the first element of a thread is a multiple of what one access holds, in several rows and blocks."""
    index = group.accesses[0].index
    assert index is not None
    step = min(width, BYTES // group.bytes)
    for y, z in ((0, 0), (1, 0), (0, 1)):
        for lane in lanes(view, [(0, y, z)]):
            names = {**lane, "blockIdx.x": 0}
            for loop in view.facts.loops:
                names.setdefault(loop.atom.name, 0)
            first = index.relative(names)
            if first is None or first % step:
                return False
    return True
