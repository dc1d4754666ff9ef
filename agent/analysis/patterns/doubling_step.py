"""One step of a scan by doubling: each element becomes its own and the one ``distance`` before it, added up.

W. D. Hillis, G. L. Steele, "Data parallel algorithms", Communications of the ACM 29 (1986).
"""

from collections import Counter
from collections.abc import Sequence

from attrs import define, field, frozen
from tree_sitter import Node

from agent.analysis.accesses import access
from agent.analysis.affine import Poly, number, unknown
from agent.analysis.facts import Facts
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, expression_of, statements, text
from agent.analysis.values import difference, value

Sum = Counter[tuple[Symbol, Poly]]
"""The elements that a value is the sum of, each as often as it is in it."""


@frozen(eq=False)
class DoublingStep:
    """``target[i] = source[i] + source[i - distance]`` where ``i >= distance``, and ``source[i]`` elsewhere, for each
    ``i`` below ``count``. All but ``index`` are parameters."""

    source: Symbol
    target: Symbol
    count: Symbol
    distance: Symbol
    index: Poly


def doubling_step(facts: Facts, index: Poly) -> DoublingStep | None:
    """The kernel as a step of a scan, where its threads' elements are ``index``."""
    scalars = [one for one in facts.symbols.all() if one.space == "parameter" and not one.pointer and one.fixed]
    pointers = [one for one in facts.symbols.all() if one.space == "parameter" and one.pointer == 1 and one.fixed]
    if facts.barriers or any(one.atomic or one.root not in pointers for one in facts.accesses):
        return None
    for distance in scalars:
        for count in (one for one in scalars if one is not distance):
            made = [_stored(facts, index, distance, count, far) for far in (True, False)]
            step = _step(made[0], made[1], index, distance, count)
            if step is not None:
                return step
    return None


Stored = dict[tuple[Symbol, Poly], Sum]


def _step(far: Stored | None, near: Stored | None, index: Poly, distance: Symbol, count: Symbol) -> DoublingStep | None:
    if far is None or near is None or len(far) != 1 or far.keys() != near.keys():
        return None
    ((target, at),) = far
    own = near[(target, at)]
    if at != index or len(own) != 1 or sum(own.values()) != 1:
        return None
    ((source, read),) = own
    before = index - _atom(distance)
    if read != index or source is target or far[(target, at)] != Counter({(source, index): 1, (source, before): 1}):
        return None
    return DoublingStep(source, target, count, distance, index)


def _atom(symbol: Symbol) -> Poly:
    from agent.analysis.affine import Atom

    return unknown(Atom(symbol.key))


@define(eq=False)
class _Run:
    """One thread's way through the kernel: an element inside the array, ``far`` from its start or not."""

    facts: Facts
    index: Poly
    distance: Poly
    count: Poly
    far: bool
    locals: dict[Symbol, Sum] = field(factory=dict)
    stored: Stored = field(factory=dict)
    bounded: bool = False


def _stored(facts: Facts, index: Poly, distance: Symbol, count: Symbol, far: bool) -> Stored | None:
    """What such a thread stores; None where that cannot be told, or it would also write beyond the array."""
    run = _Run(facts, index, _atom(distance), _atom(count), far)
    return run.stored if _walk(statements(facts.body), run) and run.bounded else None


def _walk(body: Sequence[Node], run: _Run) -> bool:
    for statement in body:
        if statement.type == "return_statement":
            return True
        if statement.type == "compound_statement":
            fine = _walk(statements(statement), run)
        elif statement.type == "if_statement":
            fine = _branch(statement, run)
        elif statement.type == "declaration":
            fine = _declared(statement, run)
        else:
            fine = _assigned(statement, run)
        if not fine:
            return False
    return True


def _branch(statement: Node, run: _Run) -> bool:
    truth = _truth(bare(statement.child_by_field_name("condition")), run)
    if truth is None:
        return False
    chosen = statement.child_by_field_name("consequence" if truth else "alternative")
    if chosen is not None and chosen.type == "else_clause":
        chosen = next((one for one in chosen.named_children if one.type != "comment"), None)
    return chosen is None or _walk(statements(chosen), run)


def _truth(test: Node | None, run: _Run) -> bool | None:
    """Whether a test holds, where it asks for the bound of the array or for the distance; None for any other."""
    if test is None or test.type != "binary_expression":
        return None
    relation, apart = text(test.child_by_field_name("operator")), difference(test, run.facts.scope)
    if relation not in ("<", ">", "<=", ">="):
        return None
    if relation in (">", "<="):  # turned round: the other side's difference
        relation, apart = {">": "<", "<=": ">="}[relation], -apart
    if apart == run.index - run.count:
        run.bounded = True
        return relation == "<"
    return (run.far == (relation == ">=")) if apart == run.index - run.distance else None


def _declared(statement: Node, run: _Run) -> bool:
    for symbol in run.facts.symbols.all():
        if contains(statement, symbol.declarator) and symbol.init is not None:
            found = _sum(symbol.init, run)
            if found is not None:
                run.locals[symbol] = found
    return True


def _assigned(statement: Node, run: _Run) -> bool:
    assignment = expression_of(statement)
    if assignment is None or assignment.type != "assignment_expression":
        return False
    target, found = bare(assignment.child_by_field_name("left")), _sum(assignment.child_by_field_name("right"), run)
    operator = text(assignment.child_by_field_name("operator"))
    if target is None or found is None or operator not in ("=", "+="):
        return False
    if target.type == "identifier":
        symbol = run.facts.symbols.resolve(target)
        if symbol is None or symbol.is_memory or (operator == "+=" and symbol not in run.locals):
            return False
        run.locals[symbol] = found if operator == "=" else run.locals[symbol] + found
        return True
    made = access(target, run.facts.scope)
    if made.root is None or made.index is None or operator != "=" or (made.root, made.index) in run.stored:
        return False
    run.stored[(made.root, made.index)] = found
    return True


def _sum(node: Node | None, run: _Run) -> Sum | None:
    """An expression as a sum of elements."""
    node = bare(node)
    if node is None:
        return None
    if node.type == "subscript_expression":
        made = access(node, run.facts.scope)
        known = made.root is not None and made.index is not None and made.root not in {key[0] for key in run.stored}
        return Counter({(made.root, made.index): 1}) if known else None  # type: ignore[dict-item]
    if node.type == "identifier":
        symbol = run.facts.symbols.resolve(node)
        return None if symbol is None else run.locals.get(symbol)
    if node.type == "conditional_expression":
        truth = _truth(bare(node.child_by_field_name("condition")), run)
        return None if truth is None else _sum(node.child_by_field_name("consequence" if truth else "alternative"), run)
    if node.type == "binary_expression" and text(node.child_by_field_name("operator")) == "+":
        one, two = _sum(node.child_by_field_name("left"), run), _sum(node.child_by_field_name("right"), run)
        return None if one is None or two is None else one + two
    return Counter() if value(node, run.facts.scope) == number(0) else None
