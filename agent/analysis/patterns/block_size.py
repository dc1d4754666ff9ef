"""Whether a kernel computes the same with another number of threads in its (one-dimensional) block."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Atom, number, unknown
from agent.analysis.dependence import conditions
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.combination import IDEMPOTENT, Combination, combination
from agent.analysis.patterns.row_reuse import own_turns
from agent.analysis.patterns.tree_reduction import TreeReduction, tree_reductions
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import (
    bare,
    contains,
    descendants,
    expression_of,
    is_barrier,
    previous_statement,
    same,
    statement_of,
    statements,
    text,
)
from agent.analysis.values import dependence, is_uniform, value

THREAD = unknown(Atom("threadIdx.x"))
NEUTRAL = {"sum": 0.0, "xor": 0.0, "product": 1.0}


@frozen(eq=False)
class Resizable:
    """The kernel is right for the block that ``facts`` know of. ``arrays`` are the shared arrays with one element a
    thread, which must have as many elements."""

    arrays: tuple[Symbol, ...]


def resizable(facts: Facts) -> Resizable | str:
    """Whether the kernel of ``facts`` (analysed with the new block's extents as known) still computes what it did:
    threads only share out loop turns among themselves, and fold what they got over the whole block. Otherwise why
    this is not shown."""
    threads = facts.scope.known.get("blockDim.x")
    if threads is None or b"__launch_bounds__" in _head(facts):
        return "the kernel is bound to its number of threads"
    loops = [loop for loop in facts.loops if own_turns(loop, facts)]
    trees = tree_reductions(facts)
    reason = _thread_uses(facts, loops, trees) or _extent_uses(facts, loops, trees) or _counted(facts)
    if reason is not None:
        return reason
    for loop in loops:
        reason = _shared_out(loop, trees, facts)
        if reason is not None:
            return reason
    if any(tree.width != threads for tree in trees):
        return f"a reduction tree folds a fixed number of values, not one for each of {threads} threads"
    return Resizable(tuple({tree.array.key: tree.array for tree in trees}.values()))


def _head(facts: Facts) -> bytes:
    return facts.document.text[facts.kernel.span.start : facts.body.start_byte]


def _thread_uses(facts: Facts, loops: list[Loop], trees: tuple[TreeReduction, ...]) -> str | None:
    """Each use of the thread's index must be a loop's start, an element of its own in a tree's array, a comparison with
    zero, or inside a tree."""
    arrays = {tree.array for tree in trees}
    for node in descendants(facts.body, "field_expression", "identifier"):
        if not _is_thread(node, facts) or any(contains(tree.statement, node) for tree in trees):
            continue
        if any(_starts(loop, node) for loop in loops) or _declares_alias(node, facts) or _tests_zero(node, facts):
            continue
        access = next((a for a in facts.accesses if contains(a.node, node) and a.root in arrays), None)
        if access is not None and access.index == THREAD and access.writes and not access.reads:
            continue
        return f"`{text(statement_of(node)).splitlines()[0]}` uses the thread's index in a way of its own"
    for access in facts.accesses:
        inside = any(contains(tree.statement, access.node) for tree in trees)
        if access.root in arrays and not access.writes and access.index != number(0) and not inside:
            return f"`{text(access.node)}` is a partial value of the tree"
    varying = [s for s in facts.symbols.all() if not s.is_memory and s.space == "local" and not _alias(s, facts)]
    variables = {loop.variable for loop in facts.loops}
    for symbol in varying:
        integer = symbol.type.replace("const", "").strip() in ("int", "unsigned", "unsigned int", "size_t", "long")
        if (
            integer
            and symbol not in variables
            and not all(
                is_uniform(part, facts.scope) for part in (symbol.init, *_right_sides(symbol)) if part is not None
            )
        ):
            return f"{symbol.name} hangs on the thread's index in a way that is not followed"
    return None


def _counted(facts: Facts) -> str | None:
    """Atomic operations add up over threads, unless one thread alone does them."""
    for access in facts.accesses:
        tests = [name for test in conditions(access.node, facts.body) for name in _thread_names(test, facts)]
        if access.atomic and not any(_tests_zero(name, facts) for name in tests):
            return f"`{text(access.node)}` is done once by each thread"
    return None


def _thread_names(node: Node, facts: Facts) -> list[Node]:
    return [name for name in descendants(node, "identifier", "field_expression") if _is_thread(name, facts)]


def _right_sides(symbol: Symbol) -> list[Node | None]:
    return [write.child_by_field_name("right") for write in symbol.writes]


def _is_thread(node: Node, facts: Facts) -> bool:
    if node.type == "field_expression":
        return text(node.child_by_field_name("argument")) == "threadIdx"
    symbol = facts.symbols.resolve(node)
    return symbol is not None and _alias(symbol, facts) and node != symbol.declarator


def _alias(symbol: Symbol, facts: Facts) -> bool:
    return (
        symbol.space == "local" and not symbol.is_memory and symbol.fixed and symbol.init is not None
        and value(symbol.init, facts.scope) == THREAD
    )  # fmt: skip


def _declares_alias(node: Node, facts: Facts) -> bool:
    return any(
        symbol.init is not None and _alias(symbol, facts) and contains(symbol.init, node)
        for symbol in facts.symbols.all()
    )


def _starts(loop: Loop, node: Node) -> bool:
    header = loop.node.child_by_field_name("initializer")
    if header is not None and contains(header, node):
        return True
    return loop.setup is not None and contains(loop.setup, node)


def _tests_zero(node: Node, facts: Facts) -> bool:
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    if parent is None:
        return False
    if parent.type == "unary_expression":
        return text(parent.child_by_field_name("operator")) == "!"
    operator = text(parent.child_by_field_name("operator"))
    sides = [parent.child_by_field_name(side) for side in ("left", "right")]
    return (
        parent.type == "binary_expression"
        and operator in ("==", "!=", ">")
        and any(side is not None and value(side, facts.scope) == number(0) for side in sides)
    )


def _extent_uses(facts: Facts, loops: list[Loop], trees: tuple[TreeReduction, ...]) -> str | None:
    """Each use of the block's extent must be a loop's step or inside a tree. (A number in its place would not have been
    taken for the step of such a loop.)"""
    for node in descendants(facts.body, "field_expression", "identifier"):
        if not _is_extent(node, facts):
            continue
        if any(contains(tree.statement, node) or _sets_up(tree, node) for tree in trees):
            continue
        if not any(contains(loop.update, node) for loop in loops):
            return f"`{text(statement_of(node)).splitlines()[0]}` uses the block's extent"
    return None


def _is_extent(node: Node, facts: Facts) -> bool:
    """``blockDim.x``, or a use of a local that stands for it alone; not where that is declared."""
    if node.type == "field_expression":
        return text(node.child_by_field_name("argument")) == "blockDim" and not any(
            symbol.init == node and _for_extent(symbol) for symbol in facts.symbols.all()
        )
    symbol = facts.symbols.resolve(node)
    return symbol is not None and node != symbol.declarator and _for_extent(symbol)


def _for_extent(symbol: Symbol) -> bool:
    local = symbol.space == "local" and not symbol.is_memory and symbol.fixed
    return local and text(symbol.init) == "blockDim.x"


def _sets_up(tree: TreeReduction, node: Node) -> bool:
    return tree.loop.setup is not None and contains(tree.loop.setup, node)


def _shared_out(loop: Loop, trees: tuple[TreeReduction, ...], facts: Facts) -> str | None:
    """A loop whose turns may go to any thread: it stores each turn's own element, and what it folds goes into a tree of
    the same operation at once."""
    for statement in statements(loop.body):
        if statement.type == "declaration":
            continue
        found = combination(statement, lambda node: node.type == "identifier")
        if found is not None:
            if (reason := _folded(found, loop, trees, facts)) is not None:
                return reason
        elif not _stores_own(statement, loop, facts):
            return f"`{text(statement).splitlines()[0]}` does more than fold or store an element of its own"
    return None


def _stores_own(statement: Node, loop: Loop, facts: Facts) -> bool:
    assignment = expression_of(statement)
    target = bare(assignment.child_by_field_name("left")) if assignment is not None else None
    access = next((a for a in facts.accesses if a.node == target), None)
    if access is None or access.index is None or access.space != "global":
        return False
    stride = access.index.coefficient(loop.atom.name)
    return stride == number(1) or (stride is not None and bool(stride.terms) and not stride.depends)


def _folded(found: Combination, loop: Loop, trees: tuple[TreeReduction, ...], facts: Facts) -> str | None:
    symbol = facts.symbols.resolve(found.target)
    unclear = f"nothing shows that {text(found.target)} is folded over the block after the loop"
    if symbol is None or symbol.is_memory or symbol.escapes or contains(loop.node, symbol.declarator):
        return unclear
    uses = [
        node
        for node in descendants(facts.body, "identifier")
        if node.start_byte >= loop.node.end_byte and facts.symbols.resolve(node) is symbol
    ]
    store = _tree_store(uses[0], trees, facts) if uses else None
    if store is None or store.combination.op != found.op:
        return unclear
    if len(uses) > 1 and not _overwrites(uses[1], symbol):
        return unclear
    start = _start(symbol, loop)
    if start is None or not is_uniform(start, facts.scope):
        return f"{symbol.name} does not start the loop at a value that is the same in all threads"
    if found.op in IDEMPOTENT and not dependence(start, facts.scope):
        return None
    return None if _is_number(start, NEUTRAL.get(found.op)) else f"{symbol.name} does not start at the neutral element"


def _tree_store(use: Node, trees: tuple[TreeReduction, ...], facts: Facts) -> TreeReduction | None:
    """The tree that is filled by ``array[thread] = use``, the statement right before it."""
    for tree in trees:
        before = previous_statement(tree.statement)
        if before is not None and tree.loop.setup == before:
            before = previous_statement(before)
        if before is not None and is_barrier(before):
            before = previous_statement(before)
        assignment = None if before is None else expression_of(before)
        if assignment is None or not same(assignment.child_by_field_name("right"), use):
            continue
        target = bare(assignment.child_by_field_name("left"))
        stored = next((a for a in facts.accesses if a.node == target), None)
        if contains(assignment, use) and stored is not None and stored.root is tree.array and stored.index == THREAD:
            return tree
    return None


def _overwrites(use: Node, symbol: Symbol) -> bool:
    return any(
        write.type == "assignment_expression"
        and text(write.child_by_field_name("operator")) == "="
        and write.child_by_field_name("left") == use
        and use.text not in [leaf.text for leaf in descendants(write.child_by_field_name("right") or use, "identifier")]
        for write in symbol.writes
    )


def _start(symbol: Symbol, loop: Loop) -> Node | None:
    before = [write for write in symbol.writes if write.end_byte <= loop.node.start_byte]
    if not before:
        return symbol.init
    last = before[-1]
    plain = last.type == "assignment_expression" and text(last.child_by_field_name("operator")) == "="
    at_level = statement_of(last).parent == loop.node.parent
    return last.child_by_field_name("right") if plain and at_level else None


def _is_number(node: Node, wanted: float | None) -> bool:
    try:
        return wanted is not None and float(text(bare(node)).rstrip("fFuUlL")) == wanted
    except ValueError:
        return False
