"""Divisors that have one value in all turns of a loop."""

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.dependence import parts
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, bare, contains, descendants, text
from agent.analysis.types import type_of
from agent.ideas.precision.forms import ONES
from agent.ideas.view import View

FLOATS = {"f32": "float", "f64": "double"}


@frozen(eq=False)
class Divisor:
    """``node`` has one value in all turns of ``loop``, the outermost such; ``quotients`` divide by it there, ``a / d``
    and ``a /= d``. ``type``: ``float`` or ``double``; ``names`` are the variables in it."""

    node: Node
    type: str
    loop: Node
    quotients: tuple[Node, ...]
    names: frozenset[Symbol]


def divisors(view: View) -> tuple[Divisor, ...] | str:
    """The divisors of float divisions in loops that no turn of the loop changes, each spelling once, as they come in
    the text; or why there is none."""
    found: dict[tuple[str, Node], Divisor] = {}
    reasons = []
    for node in descendants(view.facts.body, "binary_expression", "assignment_expression"):
        one = _divided(view, node)
        if one is None:
            continue
        if isinstance(one, str):
            reasons.append(one)
            continue
        key = (text(one.node), one.loop)
        known = found.get(key)
        found[key] = one if known is None else evolve(known, quotients=(*known.quotients, node))
    # `a / (1 / d)`: what a divisor is made of is gone with it
    found = {
        key: one
        for key, one in found.items()
        if not any(contains(other.node, quotient) for other in found.values() for quotient in one.quotients)
    }
    if not found:
        return reasons[0] if reasons else "no loop divides floats by anything that the compiler does not know"
    return tuple(found.values())


def _divided(view: View, node: Node) -> Divisor | str | None:
    """The quotient at a node, alone; why its divisor must stay; None for what is no division that could matter."""
    left, right = node.child_by_field_name("left"), bare(node.child_by_field_name("right"))
    if text(node.child_by_field_name("operator")) not in ("/", "/=") or left is None or right is None:
        return None
    kind, divided = type_of(right, view.facts.symbols), type_of(left, view.facts.symbols)
    fits = (kind,) if node.type == "assignment_expression" else (kind, "int", "f32")
    names = parts(right, view.facts.symbols).symbols
    if kind not in FLOATS or divided not in fits or not names:
        return None
    loops = [above for above in ancestors(node) if above.type in LOOPS and contains(view.facts.body, above)]
    if not loops:
        return None
    steady = [loop for loop in loops if _steady(view, right, loop)]
    if not steady:
        return f"`{text(right)}` may change in each turn of the loop that divides by it"
    loop = steady[-1]  # what an outer loop leaves alone, the loops inside it leave alone
    if node.type == "binary_expression" and _steady(view, left, loop) and text(bare(left)) not in ONES:
        return None  # the whole quotient has one value: the compiler divides before the loop
    if loop.parent is None or loop.parent.type != "compound_statement":
        return f"there is no place for the reciprocal of `{text(right)}` before the loop"
    return Divisor(right, FLOATS[kind], loop, (node,), names)


def _steady(view: View, node: Node, loop: Node) -> bool:
    """Whether an expression has one value in all turns of a loop, and can be evaluated before it."""
    made = parts(node, view.facts.symbols)
    if made.reads or "unknown" in made.sources:
        return False
    return not any(
        symbol.escapes or contains(loop, symbol.declarator) or any(contains(loop, write) for write in symbol.writes)
        for symbol in made.symbols
    )
