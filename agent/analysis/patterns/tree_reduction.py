"""A reduction tree in shared memory: ``log2`` rounds in which half of the threads fold in the other half's values."""

from itertools import pairwise

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import access
from agent.analysis.affine import Poly, number, unknown
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop, trip_values
from agent.analysis.patterns.combination import Combination, combination
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, descendants, is_barrier, statements, text
from agent.analysis.values import value


@frozen(eq=False)
class TreeReduction:
    """``array[0]`` becomes the fold of ``array[0] .. array[width - 1]``.

    ``thread`` is the index of the running thread as the tree uses it, ``thread_node`` how it is spelled. ``width`` is
    a number (a power of two). ``barrier_last``: the barrier ends each round (then the result is visible to all
    threads after the loop); otherwise it begins each round. ``statement`` is the loop; ``setup`` the statement before
    it that sets a ``while`` loop's variable."""

    loop: Loop
    array: Symbol
    combination: Combination
    thread: Poly
    thread_node: Node
    width: int
    barrier_last: bool

    @property
    def statement(self) -> Node:
        return self.loop.node


def tree_reductions(facts: Facts) -> tuple[TreeReduction, ...]:
    """Every tree of the kernel, in source order. Needs the block's extents (``facts.scope.known``) or constants in
    the loop."""
    return tuple(found for loop in facts.loops if (found := tree_reduction(loop, facts)) is not None)


def tree_reduction(loop: Loop, facts: Facts) -> TreeReduction | None:
    inside = [statement for statement in statements(loop.body) if not contains(statement, loop.update)]
    barriers = [statement for statement in inside if is_barrier(statement)]
    work = [statement for statement in inside if not is_barrier(statement) and statement.type != "preproc_call"]
    if len(barriers) != 1 or loop.leaves_early or loop.step_kind not in "*/" or loop.step.constant != 2:
        return None
    if barriers[0] not in (inside[0], inside[-1]) or not work:
        return None
    guard = work[-1]
    if guard.type != "if_statement" or guard.child_by_field_name("alternative") is not None:
        return None
    if any(statement.type != "declaration" for statement in work[:-1]):
        return None
    condition = bare(guard.child_by_field_name("condition"))
    if condition is None:
        return None
    steps = statements(guard.child_by_field_name("consequence"))
    found = combination(steps[-1], lambda node: node.type == "subscript_expression") if steps else None
    if found is None or any(statement.type != "declaration" for statement in steps[:-1]):
        return None
    shape = halving(loop, condition, facts) if loop.step_kind == "/" else _doubling(loop, condition, found, facts)
    if shape is None:
        return None
    thread_node, target_index, width = shape
    target, other = access(found.target, facts.scope), access(_through(found.operand, facts), facts.scope)
    if target.root is None or target.root is not other.root or target.space != "shared" or len(target.root.dims) != 1:
        return None
    if target.index != target_index or other.index != target_index + unknown(loop.atom):
        return None
    # Nothing else may be touched in the rounds.
    if any(a.root is not target.root or not contains(guard, a.node) for a in facts.accesses_in(loop.body)):
        return None
    return TreeReduction(
        loop, target.root, found, value(thread_node, facts.scope), thread_node, width, barriers[0] == inside[-1]
    )


def halving(loop: Loop, condition: Node, facts: Facts) -> tuple[Node, Poly, int] | None:
    """``for (s = width / 2; s > 0; s /= 2) if (thread < s) a[thread] op= a[thread + s]``"""
    compared = _less_than(condition)
    if compared is None or value(compared[1], facts.scope) != unknown(loop.atom):
        return None
    rounds = trip_values(loop, 64)
    if rounds is None or not rounds or rounds[-1] != 1 or not _halves_exactly(rounds):
        return None
    return compared[0], value(compared[0], facts.scope), rounds[0] * 2


def _halves_exactly(rounds: list[int]) -> bool:
    return all(one == 2 * two for one, two in pairwise(rounds))


def _doubling(loop: Loop, condition: Node, found: Combination, facts: Facts) -> tuple[Node, Poly, int] | None:
    """``for (s = 1; s < width; s *= 2)`` with ``if (thread % (2 * s) == 0) a[thread] op= a[thread + s]``, or with
    ``index = 2 * s * thread; if (index < width) a[index] op= a[index + s]``."""
    rounds = trip_values(loop, 64)
    if rounds is None or not rounds or rounds[0] != 1:
        return None
    width = rounds[-1] * 2
    stride = unknown(loop.atom)
    if condition.type == "binary_expression" and text(condition.child_by_field_name("operator")) == "==":
        left, right = bare(condition.child_by_field_name("left")), condition.child_by_field_name("right")
        if left is None or value(right, facts.scope).constant != 0 or left.type != "binary_expression":
            return None
        thread, modulus = left.child_by_field_name("left"), value(left.child_by_field_name("right"), facts.scope)
        if thread is None or text(left.child_by_field_name("operator")) != "%" or modulus != number(2) * stride:
            return None
        return thread, value(thread, facts.scope), width
    compared = _less_than(condition)
    if compared is None or value(compared[1], facts.scope).constant != width:
        return None
    index = value(compared[0], facts.scope)
    thread = next(
        (node for node in descendants(facts.body, "identifier", "field_expression")
         if _is_thread(value(node, facts.scope)) and value(node, facts.scope) * number(2) * stride == index),
        None,
    )  # fmt: skip
    return None if thread is None else (thread, index, width)


def _is_thread(poly: Poly) -> bool:
    return any(atom.name.startswith("threadIdx") for atom in poly.atoms)


def _less_than(condition: Node) -> tuple[Node, Node] | None:
    """(a, b) of ``a < b`` or ``b > a``."""
    if condition.type != "binary_expression":
        return None
    left, right = bare(condition.child_by_field_name("left")), bare(condition.child_by_field_name("right"))
    operator = text(condition.child_by_field_name("operator"))
    if left is None or right is None or operator not in ("<", ">"):
        return None
    return (left, right) if operator == "<" else (right, left)


def _through(node: Node, facts: Facts) -> Node:
    """The definition of a local that is set once (``float other = a[t + s];``), or the node itself."""
    symbol = facts.symbols.resolve(node) if node.type == "identifier" else None
    if symbol is not None and symbol.fixed and not symbol.is_memory and symbol.init is not None:
        return bare(symbol.init) or node
    return node
