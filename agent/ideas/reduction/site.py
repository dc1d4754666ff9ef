"""A reduction tree with its surroundings: the store before it, the reads of its result after it, and the barriers."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.dependence import conditions, returns_before
from agent.analysis.facts import Facts
from agent.analysis.patterns.tree_reduction import TreeReduction
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import (
    LOOPS,
    ancestors,
    bare,
    contains,
    descendants,
    expression_of,
    is_barrier,
    previous_statement,
    statements,
    text,
)
from agent.analysis.values import is_uniform, value
from agent.ideas.view import View

WARP = 32
MOST_THREADS = 1024
SHUFFLED = frozenset(
    ("int", "unsigned", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "float", "double")
)
"""Types that the shuffle intrinsics take without a header of their own (CUDA C++ Programming Guide, "Warp Shuffle
Functions")."""


@frozen(eq=False)
class Site:
    """A tree that warp shuffles can replace.

    ``store`` is the statement ``array[thread] = value;`` right before (None where the array holds the values already,
    by accumulation), ``value`` its right side. ``first`` is where the replaced statements begin; they end with the
    tree's loop. ``quiet``: nobody can still be reading the array when the replaced statements begin, so no barrier is
    needed before its elements are written. ``first_thread``: thread 0 alone reads the result. ``reads`` are these
    reads, ``array[0]``. ``reused``: the array is written again afterwards with no barrier between."""

    tree: TreeReduction
    store: Node | None
    value: Node | None
    first: Node
    quiet: bool
    reads: tuple[Access, ...]
    reused: bool
    first_thread: bool

    @property
    def array(self) -> Symbol:
        return self.tree.array


def site(tree: TreeReduction, view: View) -> Site | str:
    """The site of a tree, or why shuffles cannot replace it."""
    reason = block_fits(tree.width, tree.thread, view) or _type(tree, view) or participation(tree.statement, view.facts)
    if reason is not None:
        return reason
    body = tree.statement.parent
    if body is None or body.type != "compound_statement":
        return "the tree is not a statement of its own in a block"
    before = _before(tree)
    store, given = _store(before, tree, view.facts)
    if store is None and (before is None or not is_barrier(before)):
        return f"no barrier stands between the values in {tree.array.name} and the tree"
    reads = _result_reads(tree, store, body, view.facts)
    if isinstance(reads, str):
        return reads
    first = store or before
    assert first is not None
    return Site(
        tree=tree,
        store=store,
        value=given,
        first=first,
        quiet=_quiet(first, tree, body, view.facts),
        reads=reads,
        reused=_reused(first, tree, body, view.facts),
        first_thread=all(_by_first_thread(read.node, tree, view.facts) for read in reads),
    )


def block_fits(width: int, thread: Poly, view: View) -> str | None:
    """Why a tree over ``width`` values, in which a thread has the number ``thread``, is none over whole warps of the
    block."""
    x, threads = view.block[0], view.threads
    if x is None or threads is None:
        return "the block's size is not a fixed number, so nothing shows that it is a whole number of warps"
    if width != threads:
        return f"the tree folds {width} values but the block has {threads} threads"
    if not WARP <= threads <= MOST_THREADS or threads & (threads - 1):
        return f"a block of {threads} threads is no power of two between {WARP} and {MOST_THREADS}"
    linear = unknown(Atom("threadIdx.x"))
    if view.block[1:] != (1, 1):
        linear = linear + number(x) * unknown(Atom("threadIdx.y"))
    if view.block[2] != 1 or thread != linear:
        return "the tree's index is not the thread's linear index in the block"
    return None


def _type(tree: TreeReduction, view: View) -> str | None:
    element = tree.array.type
    declaration = tree.array.declarator.parent
    while declaration is not None and declaration.type != "declaration":
        declaration = declaration.parent
    if declaration is not None and "volatile" in text(declaration).split():
        return f"{tree.array.name} is volatile: its accesses are meant to be as they are"
    templated = any(parameter.name == element and parameter.kind == "type" for parameter in view.kernel.template)
    if element not in SHUFFLED and not templated:
        return f"a warp cannot shuffle values of type {element}"
    return None


def participation(statement: Node, facts: Facts) -> str | None:
    """All lanes must take part in a shuffle: none may have left, and none may be elsewhere."""
    for leave in returns_before(statement, facts.body):
        if not all(is_uniform(test, facts.scope) for test in conditions(leave, facts.body)):
            line = facts.document.line(leave.start_byte)
            return f"some threads of a block may return at line {line}, before the tree, and a shuffle needs all lanes"
    for test in conditions(statement, facts.body):
        if not is_uniform(test, facts.scope):
            return f"the tree stands under `{text(test)}`, which may differ between threads of a block"
    return None


def _before(tree: TreeReduction) -> Node | None:
    """The statement before the tree, the one that sets its loop's variable left out."""
    before = previous_statement(tree.statement)
    if before is not None and tree.loop.setup is not None and before == tree.loop.setup:
        return previous_statement(before)
    return before


def _store(before: Node | None, tree: TreeReduction, facts: Facts) -> tuple[Node | None, Node | None]:
    """The statement ``array[thread] = value`` that fills the tree, and its value. A barrier stands after it, or begins
    each of the tree's rounds."""
    if before is not None and is_barrier(before):
        before = previous_statement(before)
    elif tree.barrier_last:
        return None, None
    assignment = None if before is None else expression_of(before)
    if assignment is None or assignment.type != "assignment_expression":
        return None, None
    if text(assignment.child_by_field_name("operator")) != "=":
        return None, None
    target = assignment.child_by_field_name("left")
    stored = next((a for a in facts.accesses if a.node == bare(target)), None)
    if stored is None or stored.root is not tree.array or stored.index != thread_index(tree, facts):
        return None, None
    return before, assignment.child_by_field_name("right")


def thread_index(tree: TreeReduction, facts: Facts) -> Poly:
    return value(tree.thread_node, facts.scope)


def _result_reads(tree: TreeReduction, store: Node | None, body: Node, facts: Facts) -> tuple[Access, ...] | str:
    """The reads of ``array[0]`` that see the tree's result. All other uses of the array must see something else."""
    own = [access for access in facts.accesses if access.root is tree.array]
    name = tree.array.name
    for symbol in facts.symbols.all():
        if symbol.init is not None and symbol.pointer and name in text(symbol.init).replace("[", " ").split():
            return f"{name} is reached through the pointer {symbol.name} as well"
    for call in facts.calls:
        if any(bare(node) is not None and text(bare(node)) == name for node in call.named_children[-1].named_children):
            return f"{name} is handed to `{text(call.child_by_field_name('function'))}`"
    outer = _outermost_loop(tree.statement, facts)
    if outer is not None:
        inside = [access for access in own if contains(outer, access.node)]
        if inside and not (inside[0].writes and not inside[0].reads):
            return (
                f"{name} is read at the start of the loop around the tree, where it holds the result of the turn before"
            )
    found: list[Access] = []
    for access in own:
        if access.node.start_byte < tree.statement.end_byte:
            continue
        if access.writes and not access.reads and not _leaves_some(access, own, tree):
            break
        if not contains(body, access.node):
            return f"{name} is read after the block that the tree stands in"
        if access.writes or access.index is None or access.index.constant != 0:
            return f"`{text(access.node)}` is used after the tree, which then holds a partial value"
        found.append(access)
    return tuple(found)


def _by_first_thread(read: Node, tree: TreeReduction, facts: Facts) -> bool:
    """Whether a read stands under ``if (thread == 0)``."""
    for test in (bare(found) for found in conditions(read, facts.body)):
        if test is None or test.type != "binary_expression" or text(test.child_by_field_name("operator")) != "==":
            continue
        one, two = (value(test.child_by_field_name(side), facts.scope) for side in ("left", "right"))
        thread = thread_index(tree, facts)
        if (one == thread and two.constant == 0) or (two == thread and one.constant == 0):
            return _in_consequence(read, test)
    return False


def _in_consequence(read: Node, test: Node) -> bool:
    branch = next((parent for parent in ancestors(test) if parent.type == "if_statement"), None)
    body = None if branch is None else branch.child_by_field_name("consequence")
    return body is not None and contains(body, read)


def _leaves_some(access: Access, own: list[Access], tree: TreeReduction) -> bool:
    """Whether a write after the tree leaves some elements as the tree left them: it does unless it is a whole-array
    store ``array[thread] = ...`` at the tree's own level."""
    statement = access.node
    while statement.parent is not None and statement.parent != tree.statement.parent:
        statement = statement.parent
    at_level = statement.parent is not None and statement.type == "expression_statement"
    return not (at_level and access.index == tree.thread)


def _outermost_loop(node: Node, facts: Facts) -> Node | None:
    found = None
    parent = node.parent
    while parent is not None and parent != facts.node:
        if parent.type in LOOPS:
            found = parent
        parent = parent.parent
    return found


def _quiet(first: Node, tree: TreeReduction, body: Node, facts: Facts) -> bool:
    """Whether a barrier, or the start of the kernel, stands before ``first`` with no use of the array between."""
    for statement in reversed([s for s in statements(body) if s.end_byte <= first.start_byte]):
        if is_barrier(statement):
            return True
        if any(access.root is tree.array for access in facts.accesses_in(statement)):
            return False
    return body == facts.body


def _reused(first: Node, tree: TreeReduction, body: Node, facts: Facts) -> bool:
    """Whether the array may be written after the tree with no barrier at the tree's level in between."""
    after = [s for s in statements(body) if s.start_byte >= tree.statement.end_byte]
    for statement in after:
        if is_barrier(statement):
            return False
        if any(access.root is tree.array and access.writes for access in facts.accesses_in(statement)):
            return True
    if body == facts.body:
        return False
    if body.parent is not None and body.parent.type in LOOPS:
        # Round the loop: from its top down to the statements that are replaced.
        return not any(is_barrier(s) for s in statements(body) if s.end_byte <= first.start_byte)
    return True


def used_after(symbol: Symbol, node: Node, facts: Facts) -> bool:
    """Whether a local is used after ``node``, or anywhere in a loop around it that does not declare it."""
    for name in descendants(facts.body, "identifier"):
        if text(name) != symbol.name or facts.symbols.resolve(name) is not symbol or name == symbol.declarator:
            continue
        if name.start_byte >= node.end_byte:
            return True
    loop = _outermost_loop(node, facts)
    return loop is not None and not contains(loop, symbol.declarator)
