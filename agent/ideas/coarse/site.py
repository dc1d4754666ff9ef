"""Kernels whose number of blocks is free: each block reduces its elements and folds the result into a common one."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.loops import Loop
from agent.analysis.patterns.combination import IDEMPOTENT
from agent.analysis.patterns.tree_reduction import tree_reductions
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import (
    arguments,
    bare,
    callee,
    contains,
    descendants,
    expression_of,
    next_statement,
    statement_of,
    statements,
    text,
)
from agent.analysis.values import dependence, value
from agent.ideas.reduction.site import Site, site
from agent.ideas.view import View, evaluate

ATOMICS = {"sum": "atomicAdd", "max": "atomicMax", "min": "atomicMin", "or": "atomicOr", "and": "atomicAnd"}
LOWEST = ("INFINITY", "FLT_MAX", "DBL_MAX", "INT_MIN", "INT_MAX", "UINT_MAX", "2147483647", "2147483648")
ENOUGH_BLOCKS = 2112
"""Sixteen for each of 132 multiprocessors: with fewer there is nothing to gain."""


@frozen(eq=False)
class OneEach:
    """``index`` is the thread's element, set by ``declaration``. ``element`` is what the thread takes into the tree
    where the index is below ``bound`` (``below`` is the relation).

    Written as a choice, ``choice`` is the conditional expression in the tree's store. Written as a statement, ``guard``
    is the ``if`` under which ``assignment`` sets the variable that the tree takes in."""

    index: Symbol
    declaration: Node
    below: str
    bound: Node
    element: Node
    choice: Node | None
    guard: Node | None
    assignment: Node | None


@frozen(eq=False)
class Coarse:
    """``tree`` reduces over the block. ``loop`` is the loop by which the threads of the grid take turns already,
    ``each`` how a thread takes its one element; one of the two is None."""

    tree: Site
    loop: Loop | None
    each: OneEach | None


def coarse(view: View) -> Coarse | str:
    threads = view.block[0]
    if not view.launches or threads is None or view.block[1:] != (1, 1):
        return "the launches do not all have one-dimensional blocks of a fixed size"
    trees = tree_reductions(view.facts)
    if len(trees) != 1:
        return "it does not have one reduction tree in shared memory"
    tree = site(trees[0], view)
    if isinstance(tree, str):
        return tree
    reason = _common(tree, view) or _blocks(view)
    if reason is not None:
        return reason
    own = number(threads) * unknown(Atom("blockIdx.x")) + unknown(Atom("threadIdx.x"))
    stride = number(threads) * unknown(Atom("gridDim.x"))
    loops = [one for one in view.facts.loops if one.start == own and one.step == stride and one.step_kind == "+"]
    if loops:
        alone = _places_elsewhere(view, [loops[0].node]) or _rest(view, tree)
        return alone if alone is not None else Coarse(tree, loops[0], None)
    each = _one_each(tree, own, view)
    return each if isinstance(each, str) else Coarse(tree, None, each)


def _blocks(view: View) -> str | None:
    counts = [evaluate(launch.grid[0], view.sizes) for launch in view.launches]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts) or max(known) <= ENOUGH_BLOCKS:
        return f"its {max(known, default=0)} blocks are few already"
    return None


def _common(tree: Site, view: View) -> str | None:
    """Whether the block's result goes into one element for the whole grid, by an atomic of the tree's own operation,
    and nothing else is written."""
    op = tree.tree.combination.op
    for access in view.facts.accesses:
        if not access.writes or access.space in ("shared", "local"):
            continue
        statement = statement_of(access.node)
        into = access.atomic and access.space == "global" and callee(access.node) == ATOMICS.get(op)
        if not into or statement.type != "expression_statement" or access.node.parent != statement:
            return f"`{text(access.node)}` is another block's own element, or no fold of the tree's result"
        if access.index is None or access.index.depends:
            return f"`{text(access.node)}` does not go to the same element in all blocks"
        if not any(bare(arguments(access.node)[1]) == read.node for read in tree.reads):
            return f"`{text(access.node)}` takes more than the tree's result"
    if not tree.reads or not tree.first_thread:
        return "the tree's result is used by more than one thread"
    used = [statement_of(read.node) for read in tree.reads]
    calls = [expression_of(one) for one in used]
    if any(call is None or not callee(call).startswith("atomic") for call in calls):
        return "the tree's result goes elsewhere than into a common element"
    return None


def _places_elsewhere(view: View, allowed: list[Node]) -> str | None:
    for built_in in descendants(view.facts.body, "field_expression"):
        name = text(built_in.child_by_field_name("argument"))
        if name in ("blockIdx", "gridDim") and not any(contains(part, built_in) for part in allowed):
            symbol = _declares(built_in, view)
            if symbol is None or not _only_in(symbol, allowed, view):
                return f"`{text(built_in)}` is used for something else as well"
    return None


def _declares(node: Node, view: View) -> Symbol | None:
    return next((one for one in view.facts.symbols.all() if one.init is not None and contains(one.init, node)), None)


def _only_in(symbol: Symbol, allowed: list[Node], view: View) -> bool:
    uses = [one for one in descendants(view.facts.body, "identifier") if view.facts.symbols.resolve(one) is symbol]
    return all(use == symbol.declarator or any(contains(part, use) for part in allowed) for use in uses)


def _rest(view: View, tree: Site) -> str | None:
    if any(True for _ in descendants(view.facts.body, "return_statement")):
        return "some threads may return early"
    return None


def _one_each(tree: Site, own: Poly, view: View) -> OneEach | str:
    index = next(
        (
            one
            for one in view.facts.symbols.all()
            if one.space == "local" and one.fixed and one.init is not None and value(one.init, view.facts.scope) == own
        ),
        None,
    )
    if index is None:
        return "no variable holds the thread's index in the grid"
    declaration = statement_of(index.declarator)
    if declaration.type != "declaration" or len(declaration.children_by_field_name("declarator")) != 1:
        return f"{index.name} is not declared alone"
    if tree.store is None or tree.value is None:
        return "what goes into the tree is not stored right before it"
    found = _chosen(tree, index, declaration, view) or _assigned(tree, index, declaration, view)
    if found is None:
        return f"a thread does not take one element below a bound of {index.name}, or else what changes nothing"
    inside = [part for part in (found.choice, found.guard, declaration) if part is not None]
    if not _only_in(index, inside, view):
        return f"{index.name} is used for more than the thread's element"
    if dependence(found.bound, view.facts.scope):
        return f"the bound `{text(found.bound)}` is not the same for all threads"
    return _places_elsewhere(view, [declaration]) or _rest(view, tree) or found


def _chosen(tree: Site, index: Symbol, declaration: Node, view: View) -> OneEach | None:
    """``s[t] = i < n ? x[i] : 0;``, or with a local between."""
    choice = tree.value
    if choice is not None and choice.type == "identifier":
        symbol = view.facts.symbols.resolve(choice)
        choice = symbol.init if symbol is not None and symbol.fixed else None
    choice = bare(choice)
    if choice is None or choice.type != "conditional_expression":
        return None
    test = _below(choice.child_by_field_name("condition"), index, view)
    element, other = bare(choice.child_by_field_name("consequence")), choice.child_by_field_name("alternative")
    if test is None or element is None or not _neutral(other, tree):
        return None
    return OneEach(index, declaration, test[0], test[1], element, choice, None, None)


def _assigned(tree: Site, index: Symbol, declaration: Node, view: View) -> OneEach | None:
    """``float v = 0; if (i < n) v = x[i]; s[t] = v;``"""
    symbol = None if tree.value is None or tree.value.type != "identifier" else view.facts.symbols.resolve(tree.value)
    if (
        symbol is None
        or symbol.is_memory
        or symbol.escapes
        or len(symbol.writes) != 1
        or not _neutral(symbol.init, tree)
    ):
        return None
    assignment = symbol.writes[0]
    guard = next((one for one in statements(view.facts.body) if contains(one, assignment)), None)
    if guard is None or guard.type != "if_statement" or guard.child_by_field_name("alternative") is not None:
        return None
    inside = statements(guard.child_by_field_name("consequence"))
    last = None if not inside else expression_of(inside[-1])
    test = _below(guard.child_by_field_name("condition"), index, view)
    element = assignment.child_by_field_name("right")
    operator = text(assignment.child_by_field_name("operator"))
    plain = last == assignment and all(one.type == "declaration" for one in inside[:-1])
    names = [one for one in descendants(guard, "identifier") if view.facts.symbols.resolve(one) is symbol]
    if test is None or element is None or not plain or operator not in ("=", "+=") or len(names) != 1:
        return None
    if operator == "+=" and tree.tree.combination.op != "sum":
        return None
    between = next_statement(guard)
    return OneEach(index, declaration, test[0], test[1], element, None, guard, assignment) if between else None


def _below(test: Node | None, index: Symbol, view: View) -> tuple[str, Node] | None:
    test = bare(test)
    if test is None or test.type != "binary_expression":
        return None
    left, right = bare(test.child_by_field_name("left")), bare(test.child_by_field_name("right"))
    relation = text(test.child_by_field_name("operator"))
    if left is None or right is None:
        return None
    if relation in ("<", "<=") and left.type == "identifier" and view.facts.symbols.resolve(left) is index:
        return relation, right
    if relation in (">", ">=") and right.type == "identifier" and view.facts.symbols.resolve(right) is index:
        return relation.replace(">", "<"), left
    return None


def _neutral(node: Node | None, tree: Site) -> bool:
    op, spelled = tree.tree.combination.op, text(bare(node))
    if op in IDEMPOTENT:
        return any(word in spelled for word in LOWEST)
    try:
        return float(spelled.rstrip("fFuUlL")) == (1.0 if op == "product" else 0.0)
    except ValueError:
        return False
