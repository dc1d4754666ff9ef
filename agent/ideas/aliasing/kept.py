"""An element of global memory that a loop reads and writes again in every turn."""

from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.loops import Loop
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, contains, descendants, text
from agent.ideas.elements.buffers import apart
from agent.ideas.elements.front import depends
from agent.ideas.elements.places import end_of
from agent.ideas.elements.reach import in_launch_names, samples
from agent.ideas.rewriting import source_text
from agent.ideas.view import View, evaluate


@frozen(eq=False)
class Kept:
    """``accesses`` are those inside ``loop``, all to one element of ``root``."""

    loop: Node
    root: Symbol
    accesses: tuple[Access, ...]


def kept(view: View) -> Kept | str:
    """The outermost loop that keeps coming back to one element, or why there is none."""
    reasons = []
    for loop in descendants(view.facts.body, *LOOPS):
        found = _in_loop(view, loop)
        if isinstance(found, Kept):
            return found
        if found is not None:
            reasons.append(found)
    return reasons[0] if reasons else "no loop comes back to one element of global memory in every turn"


def _in_loop(view: View, loop: Node) -> Kept | str | None:
    inside = view.facts.accesses_in(loop)
    body = loop.child_by_field_name("body")
    for root in dict.fromkeys(access.root for access in inside if access.root is not None):
        mine = [access for access in inside if access.root is root]
        writes = [access for access in mine if access.writes]
        if root.space != "parameter" or not writes or body is None:
            continue
        indices = {access.index for access in mine}
        if len(indices) != 1 or not all(_invariant(view, access, loop) for access in mine):
            continue
        spelled = source_text(view.document, writes[0].node)
        if any(access.atomic for access in mine):
            continue
        if any(not contains(body, access.node) for access in mine):
            return f"`{spelled}` is touched by the loop's header"
        if not any(access.reads for access in mine):
            continue  # a turn that writes it without reading it: the compiler may drop the others, or it is a choice
        reason = _obstacle(view, loop, body, root, mine, inside)
        if reason is not None:
            return f"`{spelled}` is touched in every turn, but {reason}"
        return Kept(loop, root, tuple(mine))
    return None


def _invariant(view: View, access: Access, loop: Node) -> bool:
    """Whether an index has one value in all turns: nothing that it is made of is changed or declared in the loop."""
    index = access.index
    if index is None or {"unknown", "memory"} & index.depends:
        return False
    made_of = depends(view, access.node) - {access.root}
    return not any(
        contains(loop, symbol.declarator) or any(contains(loop, write) for write in symbol.writes) for symbol in made_of
    )


def _obstacle(
    view: View, loop: Node, body: Node, root: Symbol, mine: Sequence[Access], inside: Sequence[Access]
) -> str | None:
    if any(contains(loop, barrier) for barrier in view.facts.barriers):
        return "other threads may look at it at the loop's barrier"
    if any(text(one).startswith(("__sync", "__threadfence")) for one in descendants(loop, "call_expression")):
        return "other threads may look at it in between"
    if any(True for _ in descendants(loop, "return_statement", "goto_statement")):
        return "the loop may be left by more than its end"
    declared = view.kernel.parameters[[one.name for one in view.kernel.parameters].index(root.name)].type
    if "volatile" in declared:
        return "it is volatile"
    for other in inside:
        if other.root is root or other.space in ("local", "shared", "constant"):
            continue
        if other.root is None or not apart(view, root, other.root):
            return f"`{source_text(view.document, other.node)}` may lie in the same buffer"
    always = any(not _sometimes(access.node, body) for access in mine)
    if not (always and _turns(view, loop)) and not _before(view, loop, mine[0]):
        return "the loop may have no turn, and nothing shows that the element is there then"
    return None


def _sometimes(node: Node, body: Node) -> bool:
    for above in ancestors(node):
        if above == body:
            return False
        if above.type in (*LOOPS, "if_statement", "conditional_expression", "switch_statement"):
            return True
    return False


def _turns(view: View, loop: Node) -> bool:
    """Whether the loop has a turn at every size."""
    found: Loop | None = view.facts.loop(loop)
    if found is None or found.start.constant is None or found.step_kind != "+":
        return False
    if found.bound.constant is not None:
        return found.relation == "<" and found.start.constant < found.bound.constant
    if found.relation != "<" or any(in_launch_names(view, one, found.bound_node) is None for one in view.launches):
        return False
    for launch in view.launches:
        end = end_of(view, launch, found.bound_node)
        for names in samples(view):
            value = evaluate(end, names)
            if not isinstance(value, int) or value <= found.start.constant:
                return False
    return True


def _before(view: View, loop: Node, access: Access) -> bool:
    """Whether the element is touched on the way to the loop, in the same block."""
    if loop.parent is None:
        return False
    for other in view.facts.accesses:
        statement = next((one for one in ancestors(other.node) if one.parent == loop.parent), None)
        straight = statement is not None and statement.type in ("expression_statement", "declaration")
        earlier = other.node.end_byte <= loop.start_byte
        if other.root is access.root and other.index == access.index and straight and earlier:
            return True
    return False
