"""When an element is written, and whether it is there where it is not touched."""

from collections.abc import Sequence

from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly
from agent.analysis.patterns.straight import Piece
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import contains, expression_of, statements
from agent.ideas.buffers import buffer_of
from agent.ideas.elements.reach import in_launch_names, samples
from agent.ideas.view import View, evaluate
from agent.workload.workload import Access as Direction


def written_first(work: Sequence[Piece], mine: Sequence[Access]) -> bool:
    """Whether the element is written anew before anything reads it, on every way through the work."""
    for piece in work:
        inside = any(contains(piece.node, access.node) for access in mine)
        if piece.kind == "test":
            return False
        if inside:
            return _definitely(piece.node, mine)
    return False


def _definitely(node: Node, mine: Sequence[Access]) -> bool:
    inside = [access for access in mine if contains(node, access.node)]
    if node.type == "compound_statement":
        first = next((one for one in statements(node) if any(contains(one, access.node) for access in inside)), None)
        return first is not None and _definitely(first, mine)
    if node.type == "if_statement":
        condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        otherwise = node.child_by_field_name("alternative")
        if condition is None or then is None or otherwise is None:
            return False
        asked = any(contains(condition, access.node) for access in inside)
        other = otherwise.named_children[-1] if otherwise.type == "else_clause" else otherwise
        return not asked and _definitely(then, mine) and _definitely(other, mine)
    assignment = expression_of(node)
    if assignment is None or assignment.type != "assignment_expression" or len(inside) != 1:
        return False
    (access,) = inside
    return assignment.child_by_field_name("left") == access.node and access.writes and not access.reads


def is_there(view: View, root: Symbol, rest: Poly, limit: Node | None) -> bool:
    """Whether the array holds an element for each number below the bound, with a value: as the workload says."""
    buffer = buffer_of(view, root.name)
    if buffer is None or limit is None or rest.terms or buffer.access is Direction.OUT:
        return False
    names = [parameter.name for parameter in view.kernel.parameters]
    for launch in view.launches:
        if launch.arguments[names.index(root.name)].op != "name":
            return False
        end = in_launch_names(view, launch, limit)
        if end is None:
            return False
        for sizes in samples(view):
            extent, most = evaluate(buffer.extent, sizes), evaluate(end, sizes)
            if not isinstance(extent, int) or not isinstance(most, int) or extent < most:
                return False
    return True
