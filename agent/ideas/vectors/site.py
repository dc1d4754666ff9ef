"""Where each thread works at one element of some arrays and its neighbours at the next ones."""

from collections.abc import Sequence

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly, unknown
from agent.analysis.loops import Loop
from agent.analysis.patterns.straight import Piece, flat, pieces
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, callee, contains, descendants, enclosing, text
from agent.ideas.elements.buffers import apart
from agent.ideas.elements.front import split
from agent.ideas.elements.pieces import at
from agent.ideas.elements.places import Place, bound, place, reached, thread_number
from agent.ideas.exchange.cost import LOOP_WEIGHT, lanes
from agent.ideas.exchange.plane import obstacles
from agent.ideas.rewriting import source_text
from agent.ideas.vectors.reached import is_there, written_first
from agent.ideas.vectors.strides import obstacle, strides
from agent.ideas.view import View

BYTES = 16
"""The widest access of one thread (CUDA C++ Programming Guide, "Device Memory Accesses")."""
WIDTHS = (2, 4, 8, 16)
UNALIGNED = "packs of `{}` do not start aligned at the declared sizes, so that most would be moved one by one"


@frozen(eq=False)
class Group:
    """Accesses to one element of one array: all of them; ``rest`` is what is added to the element's number, ``loaded``
    says that its old value may be wanted."""

    root: Symbol
    accesses: tuple[Access, ...]
    rest: Poly
    bytes: int
    loaded: bool
    stored: bool


@frozen(eq=False)
class Site:
    """``variable`` is the element's number: a coordinate of the grid (``place``) or a loop's (``loop``).
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


def sites(view: View) -> tuple[Site, ...] | str:
    """Every loop in steps of the block or grid whose elements can come in packs; where there is no such loop, the
    kernel's own coordinate."""
    if view.block[0] is None:
        return "the block's width is no fixed number"
    if enclosing(view.facts.node, "linkage_specification") is not None:
        return 'it stands in an extern "C" block, where no template can be written'
    loops = strides(view)
    if not loops:
        found = _of_place(view)
        return found if isinstance(found, str) else (found,)
    tried = [_of_loop(view, loop) for loop in loops]
    fit = [one for one in tried if isinstance(one, Site)]
    if not fit:
        return next(reason for reason in tried if isinstance(reason, str))
    widths = set(fit[0].widths).intersection(*(one.widths for one in fit))
    return tuple(evolve(one, widths=tuple(sorted(widths))) for one in fit) if widths else "its loops fit no one width"


def _of_loop(view: View, loop: Loop) -> Site | str:
    reason = obstacle(view, loop)
    if reason is not None:
        return reason
    inside = flat(loop.body)
    if inside is None:
        return "the loop's work is no straight run of statements"
    return _made(view, loop.variable, None, loop, (), tuple(inside), loop.bound_node)


def _of_place(view: View) -> Site | str:
    if (hidden := obstacles(view)) is not None:
        return hidden
    shared = next((symbol.name for symbol in view.facts.symbols.all() if symbol.space == "shared"), None)
    if shared is not None:
        return f"its threads work together already (`{shared}`)"
    parts = pieces(view.facts)
    if isinstance(parts, str):
        return parts
    found = place(view, 0)
    if found is None:
        return (
            "threadIdx.x is not used for one coordinate alone, so neighbouring elements cannot be given to one thread"
        )
    limit = bound(view, parts, found.start)
    if limit is not None and not reached(view, 0, limit):
        return f"the launch may not reach {source_text(view.document, limit)} at every size, and would after a change"
    head, work = split(view, parts, found.symbol)
    if limit is not None and bound(view, head, found.start) is None:
        return f"the test against {source_text(view.document, limit)} comes after other work"
    return _made(view, found.symbol, found, None, tuple(head), tuple(work), limit)


def _made(
    view: View,
    variable: Symbol,
    at_place: Place | None,
    loop: Loop | None,
    head: tuple[Piece, ...],
    work: tuple[Piece, ...],
    limit: Node | None,
) -> Site | str:
    groups = _groups(view, loop, work, limit)
    if isinstance(groups, str):
        return groups
    widths = _widths(view, groups, variable, at_place, limit)
    if isinstance(widths, str):
        return widths
    return Site(variable, at_place, loop, head, work, limit, groups, widths)


def _groups(view: View, loop: Loop | None, work: Sequence[Piece], limit: Node | None) -> tuple[Group, ...] | str:
    by_element: dict[tuple[Symbol, Poly], list[Access]] = {}
    for piece in work:
        for access in view.facts.accesses_in(piece.node):
            spelled = source_text(view.document, access.node)
            if access.space in ("local", "constant", "shared"):
                continue
            if access.root is None or access.root.space != "parameter":
                return f"where `{spelled}` points cannot be followed"
            if recast(view, access.node):
                return f"`{spelled}` is moved as another type than {access.root.name} is declared with"
            rest = None if access.index is None else rest_of(view, access.index, loop)
            if rest is not None and access.node.type == "subscript_expression":
                by_element.setdefault((access.root, rest), []).append(access)
            elif access.writes:
                return f"`{spelled}` does not write one element for each thread, side by side"
    found: list[Group] = []
    crooked = ""
    for (root, rest), accesses in by_element.items():
        group = _group(view, root, rest, accesses, work, limit)
        stored = any(access.writes for access in accesses)
        if isinstance(group, str):
            if stored:
                return group
            continue
        if not stored and not _aligned(view, group, 2):
            crooked = crooked or source_text(view.document, accesses[0].node)
            continue
        if stored and any(other is root and its != rest for other, its in by_element):
            return f"{root.name} is written at one index and touched at another"
        found.append(group)
    if crooked and (not found or _loose(view, found, work)):
        return UNALIGNED.format(crooked)
    reason = _loose(view, found, work) or _shared_buffer(view, found, loop)
    if reason is not None:
        return reason
    return tuple(found) if found else "no array is walked element by element, from aligned places on"


def recast(view: View, node: Node) -> bool:
    """Whether an array is seen through a cast, or through a local pointer that is made by one: an element is of
    another type then, and mostly of another size, than its declaration says."""
    waiting, seen = [node.child_by_field_name("argument")], set[Symbol]()
    while waiting:
        base = waiting.pop()
        if base is None:
            continue
        calls = [base, *descendants(base, "call_expression")]
        if base.type == "cast_expression" or any(callee(one).endswith("_cast") for one in calls):
            return True
        if any(True for _ in descendants(base, "cast_expression")):
            return True
        for name in [base] if base.type == "identifier" else descendants(base, "identifier"):
            symbol = view.facts.symbols.resolve(name)
            if symbol is not None and symbol.space == "local" and symbol.pointer and symbol not in seen:
                seen.add(symbol)
                waiting.append(symbol.init)
    return False


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


def _group(
    view: View, root: Symbol, rest: Poly, accesses: Sequence[Access], work: Sequence[Piece], limit: Node | None
) -> Group | str:
    size = view.element_bytes(accesses[0])
    spelled = source_text(view.document, accesses[0].node)
    if size is None or size not in (1, 2, 4, 8):
        return f"`{spelled}` is no element of 1, 2, 4 or 8 bytes"
    if "volatile" in root_declaration(view, root):
        return f"{root.name} is volatile"
    fresh = written_first(work, accesses)
    always = any(not _sometimes(access.node, work) for access in accesses)
    if not (fresh or always or is_there(view, root, rest, limit)):
        return f"`{spelled}` is touched inside a branch only, so its neighbours need not exist"
    stored = any(access.writes for access in accesses)
    return Group(root, tuple(accesses), rest, size, not fresh, stored)


def root_declaration(view: View, root: Symbol) -> str:
    return next((one.type for one in view.kernel.parameters if one.name == root.name), "")


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


def _shared_buffer(view: View, groups: Sequence[Group], loop: Loop | None) -> str | None:
    """Values are loaded before and stored after the work on several elements: no other access may see that."""
    around = view.facts.accesses if loop is None else view.facts.accesses_in(loop.node)
    for group in groups:
        for other in around:
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
        return UNALIGNED.format(worst)
    return tuple(found)


def _aligned(view: View, group: Group, width: int) -> bool:
    """Whether the first element of a thread is a multiple of what one access holds, in several rows and blocks."""
    step = min(width, BYTES // group.bytes)
    for x, y, z in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)):
        (lane,) = lanes(view, [(0, y, z)])
        first = group.rest.relative({**lane, "blockIdx.x": x})
        if first is None or first % step:
            return False
    return True
