"""A costly expression of the element that the last two passes both evaluate: its value can be kept instead."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.dependence import conditions
from agent.analysis.loops import Loop
from agent.analysis.patterns.row_pass import canonical
from agent.analysis.patterns.row_reuse import RowReuse
from agent.analysis.syntax import contains, descendants
from agent.analysis.types import type_of
from agent.ideas.view import View
from agent.source.span import Span
from agent.workload.dtypes import from_c_type


@frozen(eq=False)
class Repeated:
    """``first`` and ``second`` are the expression in the two passes."""

    first: Node
    second: Node


def repeated(reuse: RowReuse, view: View) -> Repeated | None:
    """The largest expression with a call in it that both passes spell alike, and whose other operands do not change
    from one to the other. Its type is the row's own."""
    if len(reuse.passes) < 3 or any(len(reads) != 1 for reads in reuse.reads[-2:]):
        return None
    (one, two), (first, second) = reuse.passes[-2:], (reads[0] for reads in reuse.reads[-2:])
    steady = Span(one.node.start_byte, two.node.end_byte)
    found: Repeated | None = None
    for left, right in zip(_around(first, one), _around(second, two), strict=False):
        spelled = canonical(left, one, view.facts, steady)
        if spelled is None or spelled != canonical(right, two, view.facts, steady):
            break
        calls = any(True for _ in descendants(left, "call_expression"))
        if calls and type_of(left, view.facts.symbols) == from_c_type(reuse.root.type):
            found = Repeated(left, right)
    return found


def _around(read: Access, loop: Loop) -> list[Node]:
    """The expressions around an unconditional read, the smallest first."""
    found: list[Node] = []
    node: Node | None = read.node
    while node is not None and contains(loop.body, node) and not conditions(node, loop.body):
        if node.type in ("argument_list", "parenthesized_expression"):
            node = node.parent
            continue
        if node.type not in ("subscript_expression", "binary_expression", "call_expression", "unary_expression"):
            break
        found.append(node)
        node = node.parent
    return found
