"""A loop whose turns may be dealt out to several threads: it folds into accumulators, or writes an element a turn.

Turns may run in any order and in any thread when all that one turn leaves behind for another is folded into
accumulators by an associative operation, and when no turn touches an element that another one writes.
"""

from collections.abc import Callable, Iterator

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.combination import IDEMPOTENT, Combination, combination
from agent.analysis.patterns.quiet_calls import is_quiet
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import ancestors, bare, callee, contains, descendants, expression_of, statements, text

NEUTRAL = {"sum": "0", "product": "1", "xor": "0"}
"""What folds in without a change. The other operations are idempotent: there, any value may be folded in twice."""


@frozen(eq=False)
class Accumulator:
    """A scalar from outside the loop that every turn folds something into. ``steps`` are the statements that do so,
    ``fold`` one of them."""

    symbol: Symbol
    fold: Combination
    steps: tuple[Node, ...]

    @property
    def op(self) -> str:
        return self.fold.op


@frozen(eq=False)
class ReductionLoop:
    """``loop`` steps up by one. ``stores`` are the accesses that write global memory, one element a turn each."""

    loop: Loop
    accumulators: tuple[Accumulator, ...]
    stores: tuple[Access, ...]

    @property
    def node(self) -> Node:
        return self.loop.node


def reduction_loop(loop: Loop, facts: Facts, alike: Callable[[Symbol, Symbol], bool]) -> ReductionLoop | str:
    """The loop as one whose turns can be dealt out, or why they cannot. ``alike`` says whether two pointer parameters
    may be handed the same buffer."""
    reason = _form(loop, facts) or _calls(loop, facts)
    if reason is not None:
        return reason
    accumulators: list[Accumulator] = []
    for symbol in _carried(loop, facts):
        found = _accumulator(symbol, loop, facts)
        if isinstance(found, str):
            return found
        accumulators.append(found)
    stores = tuple(access for access in facts.accesses_in(loop.node) if access.writes and not _own(access, loop))
    reason = _stores(stores, loop, facts, alike)
    if reason is not None:
        return reason
    if not accumulators and not stores:
        return f"the loop at line {facts.document.line(loop.node.start_byte)} leaves nothing behind"
    return ReductionLoop(loop, tuple(accumulators), stores)


def _form(loop: Loop, facts: Facts) -> str | None:
    where = f"the loop at line {facts.document.line(loop.node.start_byte)}"
    if loop.node.type != "for_statement" or loop.setup is not None:
        return f"{where} is no `for` loop that sets its own variable"
    if loop.step_kind != "+" or loop.relation not in ("<", "<="):
        return f"{where} does not count up to a bound"
    if loop.leaves_early:
        return f"{where} is left early"
    if any(_changes(symbol, loop) for symbol in _symbols_in(loop.bound_node, facts)):
        return f"the bound of {where} changes inside it"
    outside = [name for name in _uses(loop.variable, facts) if not contains(loop.node, name)]
    if any(not _set_anew(name, loop, facts) for name in outside):
        return f"{loop.variable.name} is used after {where}"
    return None


def _set_anew(name: Node, loop: Loop, facts: Facts) -> bool:
    """The declaration of a loop's variable, or a use inside another loop that sets it first."""
    if name == loop.variable.declarator:
        return True
    around = [other for other in facts.loops if contains(other.node, name) and other.node != loop.node]
    return any(other.variable is loop.variable and other.setup is None for other in around)


def _calls(loop: Loop, facts: Facts) -> str | None:
    for call in facts.calls:
        if contains(loop.node, call) and not is_quiet(call, facts):
            return f"the loop calls `{callee(call)}`, whose effects are not known"
    return None


def _carried(loop: Loop, facts: Facts) -> Iterator[Symbol]:
    """The names from outside the loop that it changes, its variable apart."""
    for symbol in facts.symbols.all():
        if symbol is not loop.variable and not contains(loop.node, symbol.declarator) and _changes(symbol, loop):
            yield symbol


def _changes(symbol: Symbol, loop: Loop) -> bool:
    return any(contains(loop.node, write) for write in symbol.writes)


def _accumulator(symbol: Symbol, loop: Loop, facts: Facts) -> Accumulator | str:
    where = f"the loop at line {facts.document.line(loop.node.start_byte)}"
    if symbol.is_memory or symbol.escapes:
        return f"{symbol.name} moves along with {where}"
    steps: list[Node] = []
    folds: list[Combination] = []
    for write in symbol.writes:
        if not contains(loop.node, write):
            continue
        found = _fold(write, symbol, loop, facts)
        if found is None:
            return f"{symbol.name} is carried from turn to turn of {where} by more than a sum, product, maximum or such"
        folds.append(found)
        steps.append(found.statement)
    if len({fold.op for fold in folds}) != 1:
        return f"{symbol.name} is folded by more than one operation in {where}"
    for use in _uses(symbol, facts):
        if contains(loop.node, use) and not any(contains(step, use) for step in steps):
            return f"{symbol.name} is read in {where} while it is being folded"
    return Accumulator(symbol, folds[0], tuple(steps))


def _fold(write: Node, symbol: Symbol, loop: Loop, facts: Facts) -> Combination | None:
    """``s += x;``, or ``if (x > m) m = x;`` around the write."""

    def is_target(node: Node) -> bool:
        return node.type == "identifier" and facts.symbols.resolve(node) is symbol

    for statement in ancestors(write):
        if statement == loop.node:
            return None
        if statement.type not in ("expression_statement", "if_statement"):
            continue
        if write.type == "update_expression":
            return _counted(write, statement)
        found = combination(statement, is_target)
        if found is not None:
            inside = [name for name in descendants(found.operand, "identifier") if is_target(name)]
            return None if inside or is_target(found.operand) else found
        if statement.type == "if_statement":
            return None
    return None


def _counted(write: Node, statement: Node) -> Combination | None:
    """``++n;``"""
    target = bare(write.child_by_field_name("argument"))
    alone = statement.type == "expression_statement" and expression_of(statement) == write
    counts = text(write.child_by_field_name("operator")) == "++"
    return Combination(statement, "sum", "+", target, write) if alone and counts and target is not None else None


def _own(access: Access, loop: Loop) -> bool:
    """Whether it is an array that each turn declares anew."""
    return access.space == "local" and access.root is not None and contains(loop.node, access.root.declarator)


def _stores(
    stores: tuple[Access, ...], loop: Loop, facts: Facts, alike: Callable[[Symbol, Symbol], bool]
) -> str | None:
    for store in stores:
        if store.space != "global" or store.root is None or store.atomic:
            return f"`{text(store.node)}` is written in the loop, and other turns may see it"
        if store.index is None or not _one_a_turn(store.index, loop):
            return f"nothing shows that each turn writes another element with `{text(store.node)}`"
        for other in facts.accesses_in(loop.node):
            if other.space not in ("global", "unknown"):
                continue
            same = other.root is not None and (other.root is store.root or alike(other.root, store.root))
            if (same and other.index != store.index) or other.space == "unknown":
                return f"`{text(other.node)}` may be what another turn writes with `{text(store.node)}`"
    return None


def _one_a_turn(index: Poly, loop: Loop) -> bool:
    """Whether the index differs between any two turns: linear in the variable alone, no inner loop's variable in it."""
    step = index.coefficient(loop.atom.name)
    steady = all("unknown" not in atom.depends or atom == loop.atom for atom in index.atoms)
    inner = any("@loop" in atom.name and atom != loop.atom for atom in index.atoms)
    return step is not None and bool(step.constant) and steady and not inner


def begins_neutral(accumulator: Accumulator, loop: Loop, facts: Facts) -> bool:
    """Whether the accumulator holds what changes nothing when the loop begins, or folding its start in once for each
    thread does no harm."""
    if accumulator.op in IDEMPOTENT:
        return True
    symbol, block = accumulator.symbol, loop.node.parent
    last: Node | None = None
    for statement in statements(block):
        if statement.start_byte >= loop.node.start_byte:
            break
        if contains(statement, symbol.declarator):
            last = symbol.init if statement.type == "declaration" else None
        elif any(contains(statement, write) for write in symbol.writes):
            assigned = expression_of(statement)
            plain = assigned is not None and assigned.type == "assignment_expression"
            written = plain and text(assigned.child_by_field_name("operator")) == "="  # type: ignore[union-attr]
            last = assigned.child_by_field_name("right") if written and assigned is not None else None
    return last is not None and _number(last) == float(NEUTRAL[accumulator.op])


def _number(node: Node) -> float | None:
    try:
        return float(text(node).strip("()").rstrip("fFuUlL"))
    except ValueError:
        return None


def _uses(symbol: Symbol, facts: Facts) -> list[Node]:
    return [name for name in descendants(facts.node, "identifier") if facts.symbols.resolve(name) is symbol]


def _symbols_in(node: Node, facts: Facts) -> list[Symbol]:
    names = [node] if node.type == "identifier" else list(descendants(node, "identifier"))
    return [found for name in names if (found := facts.symbols.resolve(name)) is not None]
