"""A reduction tree that carries several values along: the better of two wins, with everything that belongs to it."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly, unknown
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.tree_reduction import halving
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, expression_of, is_barrier, statements, text

MIRRORED = {"<": ">", ">": "<", "==": "=="}


@frozen(eq=False)
class PairTree:
    """``for (stride = width / 2; stride > 0; stride /= 2) { if (thread < stride && wins) { each array[thread] =
    array[thread + stride]; } barrier }``.

    ``arrays`` are the shared arrays, ``value`` the one that is compared first and ``place`` the one that decides where
    values are equal, so that the winner does not hang on the order. ``greater`` and ``later``: whether the greater
    value wins, and of equals the greater place."""

    loop: Loop
    value: Symbol
    place: Symbol
    greater: bool
    later: bool
    thread: Poly
    thread_node: Node
    width: int

    @property
    def statement(self) -> Node:
        return self.loop.node

    @property
    def arrays(self) -> tuple[Symbol, Symbol]:
        return self.value, self.place


def pair_trees(facts: Facts) -> tuple[PairTree | str, ...]:
    """Every such tree, in source order; a reason for one whose winner may hang on the order."""
    return tuple(found for loop in facts.loops if (found := _pair_tree(loop, facts)) is not None)


def _pair_tree(loop: Loop, facts: Facts) -> PairTree | str | None:
    inside = [one for one in statements(loop.body) if one.type != "preproc_call" and not contains(one, loop.update)]
    if len(inside) != 2 or not is_barrier(inside[1]) or loop.leaves_early or loop.step_kind != "/":
        return None
    guard = inside[0]
    condition = bare(guard.child_by_field_name("condition"))
    if guard.type != "if_statement" or guard.child_by_field_name("alternative") is not None or condition is None:
        return None
    shape = halving(loop, condition, facts)
    body = statements(guard.child_by_field_name("consequence"))
    if shape is None or not body or any(one.type != "declaration" for one in body[:-1]):
        return None
    thread_node, thread, width = shape
    pick = body[-1]
    if pick.type != "if_statement" or pick.child_by_field_name("alternative") is not None:
        return None
    arrays = _moved(pick, thread, loop, facts)
    touched = facts.accesses_in(loop.body)
    if arrays is None or any(one.root not in arrays or not contains(guard, one.node) for one in touched):
        return None
    if len(arrays) != 2:
        return f"the tree carries {len(arrays)} values along, not a value and its place"
    order = _order(bare(pick.child_by_field_name("condition")), thread, loop, facts)
    if order is None:
        return "which of two equal values wins hangs on the order of the tree"
    value, place, greater, later = order
    if {value, place} != set(arrays):
        return "the tree compares other values than those that it carries along"
    return PairTree(loop, value, place, greater, later, thread, thread_node, width)


def _moved(pick: Node, thread: Poly, loop: Loop, facts: Facts) -> list[Symbol] | None:
    """The arrays of ``array[thread] = array[thread + stride];``, nothing else being done."""
    found: list[Symbol] = []
    for statement in statements(pick.child_by_field_name("consequence")):
        assigned = expression_of(statement)
        if assigned is None or assigned.type != "assignment_expression":
            return None
        target = _element(assigned.child_by_field_name("left"), facts)
        source = _element(assigned.child_by_field_name("right"), facts)
        if target is None or source is None or text(assigned.child_by_field_name("operator")) != "=":
            return None
        same = target.root is source.root and target.root is not None and target.root.space == "shared"
        if not same or target.index != thread or source.index != thread + unknown(loop.atom) or target.root is None:
            return None
        if len(target.root.dims) != 1 or target.root in found:
            return None
        found.append(target.root)
    return found


def _element(node: Node | None, facts: Facts) -> Access | None:
    """The access that an expression is, also through a local that is set once."""
    node = bare(node)
    if node is not None and node.type == "identifier":
        symbol = facts.symbols.resolve(node)
        node = bare(symbol.init) if symbol is not None and symbol.fixed and not symbol.is_memory else None
    return None if node is None else next((one for one in facts.accesses if one.node == node), None)


def _order(test: Node | None, thread: Poly, loop: Loop, facts: Facts) -> tuple[Symbol, Symbol, bool, bool] | None:
    """(value, place, greater, later) of ``other > own || (other == own && its place < own place)`` and its kin."""
    if test is None or text(test.child_by_field_name("operator")) != "||":
        return None
    sides = [bare(test.child_by_field_name(side)) for side in ("left", "right")]
    tie = next((one for one in sides if one is not None and text(one.child_by_field_name("operator")) == "&&"), None)
    strict = next((one for one in sides if one is not tie), None)
    first = _compared(strict, thread, loop, facts)
    if tie is None or first is None or first[1] == "==":
        return None
    parts = [_compared(bare(tie.child_by_field_name(side)), thread, loop, facts) for side in ("left", "right")]
    equal = next((one for one in parts if one is not None and one[1] == "=="), None)
    second = next((one for one in parts if one is not None and one[1] != "=="), None)
    if equal is None or second is None or equal[0] is not first[0] or second[0] is first[0]:
        return None
    return first[0], second[0], first[1] == ">", second[1] == ">"


def _compared(test: Node | None, thread: Poly, loop: Loop, facts: Facts) -> tuple[Symbol, str] | None:
    """(array, relation) of ``array[thread + stride] relation array[thread]``."""
    if test is None or test.type != "binary_expression":
        return None
    relation = text(test.child_by_field_name("operator"))
    left = _element(test.child_by_field_name("left"), facts)
    right = _element(test.child_by_field_name("right"), facts)
    if relation not in MIRRORED or left is None or right is None or left.root is None or left.root is not right.root:
        return None
    other = thread + unknown(loop.atom)
    if (left.index, right.index) == (other, thread):
        return left.root, relation
    return (left.root, MIRRORED[relation]) if (left.index, right.index) == (thread, other) else None
