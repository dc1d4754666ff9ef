"""A loop that walks over a row and folds its elements into one variable."""

from collections.abc import Mapping

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.dependence import PURE
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.combination import Combination, combination
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, expression_of, statements, text, walk
from agent.source.span import Span

PRIMARY = ("identifier", "subscript_expression", "call_expression", "number_literal", "field_expression")


@frozen(eq=False)
class RowPass:
    """``for (...) { declarations; accumulator = accumulator op operand; }``, with at most one store beside it.

    ``accumulator`` is a local scalar. ``store`` is an assignment ``array[index] = ...`` (its statement), or None.
    """

    loop: Loop
    fold: Combination
    accumulator: Symbol
    store: Node | None

    @property
    def node(self) -> Node:
        return self.loop.node


def row_pass(loop: Loop, facts: Facts) -> RowPass | None:
    if loop.step_kind != "+" or loop.leaves_early or loop.node.type != "for_statement" or loop.setup is not None:
        return None
    folds: list[Combination] = []
    stores: list[Node] = []
    for statement in statements(loop.body):
        if statement.type == "declaration":
            continue
        found = combination(statement, lambda node: node.type == "identifier")
        if found is not None:
            folds.append(found)
        elif _is_store(statement):
            stores.append(statement)
        else:
            return None
    if len(folds) != 1 or len(stores) > 1:
        return None
    accumulator = facts.symbols.resolve(folds[0].target)
    if accumulator is None or accumulator.is_memory or accumulator.escapes or accumulator is loop.variable:
        return None
    if contains(loop.node, accumulator.declarator):
        return None
    return RowPass(loop, folds[0], accumulator, stores[0] if stores else None)


def _is_store(statement: Node) -> bool:
    assignment = expression_of(statement)
    if assignment is None or assignment.type != "assignment_expression":
        return False
    left = bare(assignment.child_by_field_name("left"))
    return left is not None and left.type == "subscript_expression"


def same_space(one: Loop, other: Loop) -> bool:
    """Whether two loops take the same values in the same order."""
    return (
        one.step_kind == other.step_kind
        and (one.start, one.relation, one.bound, one.step) == (other.start, other.relation, other.bound, other.step)
        and all("unknown" not in poly.depends for poly in (one.start, one.bound, one.step))
    )


def canonical(node: Node | None, loop: Loop, facts: Facts, steady: Span | None = None) -> tuple[str, ...] | None:
    """What an expression says, with the loop's variable as ``@`` and locals of the body written out, so that
    expressions of two loops can be compared. None where it is not the same each time it is evaluated inside ``steady``
    (by default, anywhere): a variable that is changed there, a call with effects."""
    node = bare(node)
    if node is None:
        return None
    found: list[str] = []
    return tuple(found) if _spell(node, _Spelling(loop, facts, steady, found)) else None


@frozen(eq=False)
class _Spelling:
    loop: Loop
    facts: Facts
    steady: Span | None
    found: list[str]

    def changes(self, symbol: Symbol) -> bool:
        if self.steady is None or symbol.escapes:
            return not symbol.fixed
        return any(self.steady.contains(Span(write.start_byte, write.end_byte)) for write in symbol.writes)


def _spell(node: Node, spelling: _Spelling) -> bool:
    if node.type == "identifier":
        return _spell_name(node, spelling)
    if node.type == "parenthesized_expression":
        inner = bare(node)
        return inner is not None and _grouped(inner, spelling)
    if node.type == "call_expression" and text(node.child_by_field_name("function")).split("::")[-1] not in PURE:
        return False
    if node.type in ("assignment_expression", "update_expression", "lambda_expression"):
        return False
    if node.child_count == 0:
        spelling.found.append(text(node))
        return True
    return all(_spell(child, spelling) for child in node.children if child.type != "comment")


def _spell_name(node: Node, spelling: _Spelling) -> bool:
    symbol = spelling.facts.symbols.resolve(node)
    if symbol is spelling.loop.variable:
        spelling.found.append("@")
        return True
    if symbol is None:
        spelling.found.append(text(node))
        return True
    if spelling.changes(symbol):
        return False
    if contains(spelling.loop.body, symbol.declarator) and symbol.init is not None and not symbol.is_memory:
        inner = bare(symbol.init)
        return inner is not None and _grouped(inner, spelling)
    spelling.found.append(symbol.key)
    return True


def _grouped(node: Node, spelling: _Spelling) -> bool:
    if node.type in PRIMARY:
        return _spell(node, spelling)
    spelling.found.append("(")
    fine = _spell(node, spelling)
    spelling.found.append(")")
    return fine


def through_locals(node: Node | None, loop: Loop, facts: Facts) -> Node | None:
    """The expression behind a local of the loop's body (``float d = x[i] - mean; ... d``), or the node itself."""
    node = bare(node)
    while node is not None and node.type == "identifier":
        symbol = facts.symbols.resolve(node)
        if symbol is None or not symbol.fixed or symbol.init is None or not contains(loop.body, symbol.declarator):
            return node
        node = bare(symbol.init)
    return node


def respelled(node: Node, loop: Loop, facts: Facts, names: Mapping[Symbol, str]) -> str:
    """The source of an expression with symbols renamed and locals of the loop's body written out."""
    if node.type == "identifier":
        symbol = facts.symbols.resolve(node)
        if symbol is not None and symbol in names:
            return names[symbol]
        if symbol is not None and symbol.fixed and symbol.init is not None and contains(loop.body, symbol.declarator):
            inner = bare(symbol.init)
            assert inner is not None
            spelled = respelled(inner, loop, facts, names)
            return spelled if inner.type in PRIMARY else f"({spelled})"
        return text(node)
    if node.child_count == 0:
        return text(node)
    source, start = text(node), node.start_byte
    raw = source.encode()
    pieces, at = [], 0
    for child in node.children:
        pieces.append(raw[at : child.start_byte - start].decode())
        pieces.append(respelled(child, loop, facts, names))
        at = child.end_byte - start
    return "".join((*pieces, raw[at:].decode()))


def is_invariant(node: Node, loop: Loop, facts: Facts) -> bool:
    """Whether an expression of the loop's body uses neither the loop's variable nor anything that the loop sets."""
    for part in walk(node):
        if part.type == "identifier":
            symbol = facts.symbols.resolve(part)
            if symbol is None:
                continue
            if symbol is loop.variable or contains(loop.node, symbol.declarator):
                return False
            if any(contains(loop.node, write) for write in symbol.writes) or symbol.escapes:
                return False
        if part.type in ("call_expression", "assignment_expression", "update_expression"):
            return False
    return True


def global_reads(node: Node, facts: Facts) -> tuple[Access, ...]:
    return tuple(access for access in facts.accesses_in(node) if access.space == "global" and access.reads)
