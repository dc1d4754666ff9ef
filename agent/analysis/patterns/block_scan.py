"""A scan over a block by doubling, in shared memory: ``log2`` rounds with two barriers each."""

from collections import Counter

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import access
from agent.analysis.affine import Poly, unknown
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop, trip_values
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, expression_of, is_barrier, statements, text
from agent.analysis.values import difference, value

Sum = Counter[Poly]
"""The elements of the array that a value is the sum of, by their index."""


@frozen(eq=False)
class BlockScan:
    """After ``loop``, ``array[thread]`` is the sum of ``array[0] .. array[thread]``, for ``width`` threads."""

    loop: Loop
    array: Symbol
    thread: Poly
    width: int

    @property
    def statement(self) -> Node:
        return self.loop.node


def block_scans(facts: Facts, thread: Poly) -> tuple[BlockScan, ...]:
    """Every such loop in which ``thread`` is the index of the running thread."""
    return tuple(found for loop in facts.loops if (found := _block_scan(loop, thread, facts)) is not None)


def _block_scan(loop: Loop, thread: Poly, facts: Facts) -> BlockScan | None:
    rounds = trip_values(loop, 64)
    if loop.step_kind != "*" or not rounds or rounds[0] != 1 or loop.leaves_early or loop.step.constant != 2:
        return None
    touched = facts.accesses_in(loop.body)
    arrays = {one.root for one in touched}
    array = next(iter(arrays)) if len(arrays) == 1 else None
    if array is None or array.space != "shared" or len(array.dims) != 1:
        return None
    stored = [_round(loop, thread, array, far, facts) for far in (True, False)]
    before = thread - unknown(loop.atom)
    if stored[0] != Counter({thread: 1, before: 1}) or stored[1] != Counter({thread: 1}):
        return None
    return BlockScan(loop, array, thread, rounds[-1] * 2)


def _round(loop: Loop, thread: Poly, array: Symbol, far: bool, facts: Facts) -> Sum | None:
    """What ``array[thread]`` becomes in one round, for a thread that has a neighbour at the distance (``far``) or none.
    None where that cannot be told, or a barrier is missing between reads of other elements and writes."""
    inside = [one for one in statements(loop.body) if not contains(one, loop.update)]
    barriers = [at for at, one in enumerate(inside) if is_barrier(one)]
    if len(barriers) != 2 or (barriers[0] != 0 and barriers[1] != len(inside) - 1):
        return None
    middle = barriers[1] if barriers[0] == 0 else barriers[0]
    run = _Run(loop, thread, array, far, facts)
    for at, statement in enumerate(inside):
        if not is_barrier(statement) and not run.step(statement, reading=at < middle):
            return None
    return run.own


class _Run:
    """One thread's way through a round: sums in locals, and the thread's own element."""

    def __init__(self, loop: Loop, thread: Poly, array: Symbol, far: bool, facts: Facts) -> None:
        self.loop, self.thread, self.array, self.far, self.facts = loop, thread, array, far, facts
        self.locals: dict[Symbol, Sum] = {}
        self.own: Sum = Counter({thread: 1})

    def step(self, statement: Node, reading: bool) -> bool:
        """Before the barrier in the middle others' elements may be read, after it the own one may be written."""
        if statement.type == "compound_statement":
            return all(self.step(one, reading) for one in statements(statement))
        if statement.type == "if_statement":
            truth = self.truth(bare(statement.child_by_field_name("condition")))
            chosen = statement.child_by_field_name("consequence" if truth else "alternative")
            if chosen is not None and chosen.type == "else_clause":
                chosen = next((one for one in chosen.named_children if one.type != "comment"), None)
            return truth is not None and (chosen is None or all(self.step(one, reading) for one in statements(chosen)))
        if statement.type == "declaration":
            return self.declared(statement, reading)
        return self.assigned(statement, reading)

    def declared(self, statement: Node, reading: bool) -> bool:
        for symbol in self.facts.symbols.all():
            if contains(statement, symbol.declarator) and symbol.init is not None:
                found = self.sum(symbol.init, reading)
                if found is None:
                    return False
                self.locals[symbol] = found
        return True

    def assigned(self, statement: Node, reading: bool) -> bool:
        assignment = expression_of(statement)
        if assignment is None or assignment.type != "assignment_expression":
            return False
        target = bare(assignment.child_by_field_name("left"))
        found = self.sum(assignment.child_by_field_name("right"), reading)
        operator = text(assignment.child_by_field_name("operator"))
        if target is None or found is None or operator not in ("=", "+="):
            return False
        if target.type == "identifier":
            symbol = self.facts.symbols.resolve(target)
            if symbol is None or symbol.is_memory or (operator == "+=" and symbol not in self.locals):
                return False
            self.locals[symbol] = found if operator == "=" else self.locals[symbol] + found
            return True
        made = access(target, self.facts.scope)
        if made.root is not self.array or made.index != self.thread or reading:
            return False
        self.own = found if operator == "=" else self.own + found
        return True

    def truth(self, test: Node | None) -> bool | None:
        """Whether ``thread >= distance`` (and its like) holds."""
        if test is None or test.type != "binary_expression":
            return None
        relation, apart = text(test.child_by_field_name("operator")), difference(test, self.facts.scope)
        if relation in (">", "<="):
            relation, apart = {">": "<", "<=": ">="}[relation], -apart
        if relation not in ("<", ">=") or apart != self.thread - unknown(self.loop.atom):
            return None
        return self.far == (relation == ">=")

    def sum(self, node: Node | None, reading: bool) -> Sum | None:
        node = bare(node)
        if node is None:
            return None
        if node.type == "subscript_expression":
            made = access(node, self.facts.scope)
            if made.root is not self.array or made.index is None:
                return None
            if made.index == self.thread:
                return self.own
            return Counter({made.index: 1}) if reading else None
        if node.type == "identifier":
            symbol = self.facts.symbols.resolve(node)
            return None if symbol is None else self.locals.get(symbol)
        if node.type == "conditional_expression":
            truth = self.truth(bare(node.child_by_field_name("condition")))
            chosen = node.child_by_field_name("consequence" if truth else "alternative")
            return None if truth is None else self.sum(chosen, reading)
        if node.type == "binary_expression" and text(node.child_by_field_name("operator")) == "+":
            one = self.sum(node.child_by_field_name("left"), reading)
            two = self.sum(node.child_by_field_name("right"), reading)
            return None if one is None or two is None else one + two
        zero = value(node, self.facts.scope).constant == 0 or text(node).rstrip("fF") in ("0.0", "0.", ".0")
        return Counter() if zero else None
