"""Loops in which every thread meets the same elements: all pairs of a thread's own element and those of a list.

``for (j = 0; j < n; ++j) total += interaction(mine, other[j]);``
"""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import number
from agent.analysis.dependence import VARYING
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.combination import combination
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, descendants, expression_of, same, statement_of, statements, text

FOLDED = {"sum": "sum", "max": "max", "min": "min"}


@frozen(eq=False)
class Total:
    """What the loop folds into: a local (``sum``) or a member of one (``total.x``). ``spelled`` is how; ``op`` is
    ``sum``, ``max`` or ``min``; ``function`` the user's own word for the last two (``fmaxf``)."""

    symbol: Symbol
    spelled: str
    op: str
    function: str


@frozen(eq=False)
class PairLoop:
    """``streams`` are the reads that are the same for all threads of the grid in each turn."""

    loop: Loop
    totals: tuple[Total, ...]
    streams: tuple[Access, ...]


def pair_loop(loop: Loop, facts: Facts) -> PairLoop | str:
    """The loop over pairs that a loop is, or why it is none."""
    if loop.node.type != "for_statement" or loop.setup is not None or loop.step_kind != "+" or loop.leaves_early:
        return "it does not count through a range in its header alone"
    if loop.step.constant != 1 or loop.relation not in ("<", "<="):
        return "it does not count upwards one by one"
    if any(one.depends for one in (loop.start, loop.bound)):
        return "its range depends on the thread or on memory"
    inside = facts.accesses_in(loop.body)
    if any(one.writes or one.atomic for one in inside if one.space != "local") or facts.barriers:
        return "it writes to memory or waits for other threads"
    streams = []
    for access in inside:
        index = access.index
        if access.space in ("constant", "local") and access.reads and not access.writes:
            continue
        if access.space != "global" or index is None:
            return f"where `{text(access.node)}` points cannot be followed"
        if loop.atom not in index.atoms:
            continue
        along = index.coefficient(loop.atom.name)
        # The variable itself steps alike in all threads, whichever turns some of them skip.
        rest = index.substitute(loop.atom.name, number(0)).depends | (frozenset() if along is None else along.depends)
        if along is None or any(name.startswith(VARYING) or name in ("memory", "unknown") for name in rest):
            return f"`{text(access.node)}` is not the same for all threads"
        streams.append(access)
    if not streams:
        return "its threads share no element"
    totals = _totals(loop, facts)
    return totals if isinstance(totals, str) else PairLoop(loop, totals, tuple(streams))


def _totals(loop: Loop, facts: Facts) -> tuple[Total, ...] | str:
    """What the loop changes outside of itself: each by folding only, and read nowhere else in the loop."""
    found: dict[str, Total] = {}
    folds: list[Node] = []
    for change in descendants(loop.body, "assignment_expression", "update_expression"):
        target = bare(change.child_by_field_name("left") or change.child_by_field_name("argument"))
        base = None if target is None else bare(target.child_by_field_name("argument")) or target
        base = target if target is not None and target.type == "identifier" else base
        symbol = None if base is None or base.type != "identifier" else facts.symbols.resolve(base)
        line = facts.document.line(change.start_byte)
        if symbol is None or target is None or target.type not in ("identifier", "field_expression"):
            return f"line {line} changes something that is no variable of the thread"
        if contains(loop.node, symbol.declarator) or _private(symbol, loop, facts):
            continue
        if symbol.is_memory or symbol.escapes or symbol.space == "parameter":
            return f"{symbol.name} is no plain variable of the thread"
        total = _fold(change, target, symbol)
        if total is None or (total.spelled in found and found[total.spelled].op != total.op):
            return f"line {line} does not just fold into {text(target)}"
        found.setdefault(total.spelled, total)
        folds.append(target)
    if not found:
        return "it folds nothing"
    for name in descendants(loop.body, "identifier"):
        symbol = facts.symbols.resolve(name)
        if any(total.symbol is symbol for total in found.values()) and not _part_of_fold(name, folds):
            return f"{text(name)} is read in the loop while it is added up"
    if any(total.symbol.name == text(name) for total in found.values() for name in _header_names(loop)):
        return "its range depends on what it adds up"
    return tuple(found.values())


def _private(symbol: Symbol, loop: Loop, facts: Facts) -> bool:
    """Whether a variable from outside only carries values within a turn: each turn sets it before anything reads it,
    and nothing reads it behind the loop."""
    if symbol.is_memory or symbol.escapes or symbol.space == "parameter":
        return False
    names = [
        name
        for name in descendants(facts.body, "identifier")
        if name != symbol.declarator and facts.symbols.resolve(name) is symbol
    ]
    if any(name.start_byte > loop.node.end_byte for name in names):
        return False
    first = next((name for name in names if contains(loop.node, name)), None)
    statement = None if first is None else statement_of(first)
    assignment = None if statement is None else expression_of(statement)
    return (
        statement in statements(loop.body)
        and assignment is not None
        and assignment.type == "assignment_expression"
        and text(assignment.child_by_field_name("operator")) == "="
        and assignment.child_by_field_name("left") == first
        and not any(contains(assignment, name) for name in names if name != first and contains(loop.node, name))
    )


def _header_names(loop: Loop) -> list[Node]:
    return [*descendants(loop.bound_node, "identifier")]


def _part_of_fold(name: Node, folds: list[Node]) -> bool:
    """Whether a name stands in a fold's target, or is the repetition of it in ``m = fmaxf(m, x)``."""
    for target in folds:
        if contains(target, name):
            return True
        assignment = target.parent
        while assignment is not None and assignment.type == "parenthesized_expression":
            assignment = assignment.parent
        right = None if assignment is None else bare(assignment.child_by_field_name("right"))
        operator = None if assignment is None else text(assignment.child_by_field_name("operator"))
        if right is None or assignment is None or operator != "=":
            continue
        choice = None if assignment.parent is None else _choice(assignment.parent)
        condition = None if choice is None else choice.child_by_field_name("condition")
        if condition is not None and contains(condition, name):
            return True
        operands = [bare(child) for child in _operands(right)]
        if any(one is not None and contains(one, name) and same(one, target) for one in operands):
            return True
    return False


def _operands(node: Node) -> list[Node]:
    listed = node.child_by_field_name("arguments")
    return (listed if listed is not None else node).named_children


def _choice(statement: Node) -> Node | None:
    """The ``if (x > m)`` around ``m = x;``, where it has no other statement."""
    around = statement.parent
    if around is not None and around.type == "compound_statement":
        around = around.parent
    found = around is not None and combination(around, lambda node: node.type in ("identifier", "field_expression"))
    return around if found and around is not None and around.type == "if_statement" else None


def _fold(change: Node, target: Node, symbol: Symbol) -> Total | None:
    if change.type != "assignment_expression" or change.parent is None:
        return None
    if expression_of(change.parent) != change:
        return None
    spelled = text(target)
    if text(change.child_by_field_name("operator")) == "-=":
        return Total(symbol, spelled, "sum", "-")
    statement = _choice(change.parent) or change.parent
    found = combination(statement, lambda node: node.type in ("identifier", "field_expression"))
    if found is None or found.op not in FOLDED:
        return None
    return Total(symbol, spelled, found.op, found.function)
