"""A kernel around a loop over pairs: one index of the thread, one loop, and what follows."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.patterns.coordinates import Coordinate, coordinates
from agent.analysis.patterns.pair_loop import PairLoop, Total, pair_loop
from agent.analysis.syntax import arguments, bare, callee, contains, descendants, enclosing, text
from agent.ideas.exchange.plane import obstacles
from agent.ideas.view import View

WARP = 32
SCALARS = ("float", "double", "int", "unsigned", "unsigned int", "long long")
VECTORS = {"float2": "float", "float3": "float", "float4": "float", "double2": "double", "double3": "double"}
VECTORS |= {"double4": "double"}


@frozen(eq=False)
class Site:
    """``own`` is the thread's element, ``threads`` the block's size, ``turns`` those of the loop at the declared
    sizes (0: not known)."""

    view: View
    own: Coordinate
    pairs: PairLoop
    threads: int
    turns: int


def site(view: View) -> Site | str:
    """The one loop over pairs of a kernel whose threads work alone, or why there is none."""
    facts = view.facts
    obstacle = obstacles(view)
    if obstacle is not None:
        return obstacle
    if any(access.space == "shared" for access in facts.accesses) or facts.barriers:
        return "its threads exchange data already"
    places = coordinates(facts)
    if isinstance(places, str):
        return places
    if len(places.digits) != 1 or not places.digits[0].whole or places.digits[0].axis != "x":
        return "its threads are not told apart by one index"
    own = places.digits[0]
    x, y, z = view.block
    if x is None or (y, z) != (1, 1) or x % WARP or not own.threads:
        return "its blocks are not a fixed number of whole warps in one dimension"
    reasons: list[str] = []
    for loop in facts.loops:
        if any(contains(other.body, loop.node) for other in facts.loops):
            continue
        found = pair_loop(loop, facts)
        if isinstance(found, str):
            reasons.append(f"the loop at line {view.document.line(loop.node.start_byte)}: {found}")
            continue
        reason = _kept(found, view)
        return reason if reason is not None else Site(view, own, found, x, _turns(found, view))
    return reasons[0] if reasons else "it has no loop in which all threads meet the same elements"


def _kept(found: PairLoop, view: View) -> str | None:
    """The loop is reached by all threads that work, once, and all stores come after it."""
    facts = view.facts
    loop = found.loop.node
    if loop.parent is None or loop.parent.type != "compound_statement" or _conditional(loop, facts.body):
        return "the loop is not reached by each thread that works"
    if any(access.writes and access.space == "global" and access.node.start_byte < loop.start_byte
           for access in facts.accesses):  # fmt: skip
        return "something is stored before the loop"
    for total in found.totals:
        if element(total) is None:
            return f"{total.spelled} of type {total.symbol.type} is not added up over lanes"
        if total.op != "sum" and total.symbol.type not in SCALARS:
            return f"{total.spelled} is no plain number"
    for node in descendants(facts.body, "return_statement"):
        if node.start_byte > loop.end_byte:
            return "a thread may leave behind the loop"
    return None


def _conditional(loop: Node, body: Node) -> bool:
    """Whether something other than guards of the whole thread decides about the loop: another loop, an ``else``."""
    around = loop.parent
    while around is not None and around != body:
        if around.type not in ("compound_statement", "if_statement"):
            return True
        if around.type == "if_statement" and around.child_by_field_name("alternative") is not None:
            return True
        if around.type == "if_statement" and around.parent is not None and around.parent != body:
            return True
        around = around.parent
    return around is None


def element(total: Total) -> str | None:
    """The number type of what is added up."""
    if total.symbol.type in SCALARS and total.spelled == total.symbol.name:
        return total.symbol.type
    return VECTORS.get(total.symbol.type) if total.spelled != total.symbol.name else None


def starts_at_zero(total: Total) -> bool:
    """Whether a total is zero before the loop for sure: declared as zero and not set before."""
    init = bare(total.symbol.init)
    if init is None:
        return False
    given = arguments(init) if init.type == "call_expression" and callee(init).startswith("make_") else [init]
    if init.type == "initializer_list":
        given = [child for child in init.named_children if child.type != "comment"]
    return all(_zero(text(bare(one))) for one in given)


def _zero(written: str) -> bool:
    return written.rstrip("fFlLuU").replace(".", "").strip("0") == "" and written[:1] in "0."


def written_before(total: Total, loop: Node) -> bool:
    return any(write.start_byte < loop.start_byte for write in total.symbol.writes)


def _turns(found: PairLoop, view: View) -> int:
    span = (found.loop.bound - found.loop.start).evaluate(view.parameters(view.launches[0]))
    return max(0, span or 0)


def declaration_of(own: Coordinate) -> Node | None:
    return enclosing(own.symbol.declarator, "declaration")
