"""Whether each thread of a kernel does one element, or the threads of the grid take turns already."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.loops import Loop
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, bare, callee, contains, descendants, statements, text
from agent.analysis.values import dependence, value
from agent.ideas.view import View, evaluate

WARP = 32
FLIPPED = {">=": "<", "<=": ">", ">": "<=", "<": ">="}
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@frozen(eq=False)
class GridLoop:
    """``index`` holds the thread's element. ``loop`` is the loop by which the threads take turns already; where there
    is none, ``declaration`` sets the index, ``guard`` is the ``if`` right behind it, whose condition is ``below`` the
    ``bound``: either around the work (``inside``), or it sends away the threads beyond it. ``returns`` are further
    statements that end a thread's element."""

    index: Symbol
    loop: Loop | None
    declaration: Node | None
    guard: Node | None
    below: str
    bound: Node | None
    inside: bool
    returns: tuple[Node, ...]

    @property
    def first(self) -> Node:
        """Where the work begins."""
        node = self.declaration if self.loop is None else self.loop.node
        assert node is not None
        return node


def grid_loop(view: View) -> GridLoop | str:
    """The kernel's elements, or why they cannot be dealt out anew. Nothing is said about what is done with them."""
    threads = view.block[0]
    if not view.launches or threads is None or view.block[1:] != (1, 1) or threads % WARP:
        return "the launches do not all have one-dimensional blocks of a fixed whole number of warps"
    if any(evaluate(extent, view.sizes) != 1 for launch in view.launches for extent in launch.grid[1:]):
        return "the grid has more than one dimension"
    own = number(threads) * unknown(Atom("blockIdx.x")) + unknown(Atom("threadIdx.x"))
    for loop in view.facts.loops:
        if loop.start == own and loop.step == number(threads) * unknown(Atom("gridDim.x")) and loop.step_kind == "+":
            return _striding(loop, view)
    return _single(own, view)


TOGETHER = ("__sync", "__shfl", "__ballot", "__any", "__all", "__activemask", "__match", "__reduce")


def _striding(loop: Loop, view: View) -> GridLoop | str:
    for built_in in descendants(view.facts.body, "field_expression"):
        name = text(built_in.child_by_field_name("argument"))
        if name in ("blockIdx", "gridDim") and not _of_header(built_in, loop, view):
            return f"`{text(built_in)}` is used for more than the loop over the elements"
    if loop.node.parent != view.facts.body or loop.node.type != "for_statement":
        return "the loop over the elements does not stand in the kernel's body"
    if any(True for _ in descendants(view.facts.body, "return_statement", "goto_statement")):
        return "some threads may return early"
    return GridLoop(loop.variable, loop, None, None, "<", None, True, ())


def _of_header(node: Node, loop: Loop, view: View) -> bool:
    """Whether a built-in stands in the loop's header, or in a local that is used there alone."""
    body = loop.node.child_by_field_name("body")
    if contains(loop.node, node) and (body is None or not contains(body, node)):
        return True
    holder = next((one for one in view.facts.symbols.all() if one.init is not None and contains(one.init, node)), None)
    if holder is None or not holder.fixed:
        return False
    uses = [one for one in descendants(view.facts.body, "identifier") if view.facts.symbols.resolve(one) is holder]
    return all(
        use == holder.declarator or (contains(loop.node, use) and (body is None or not contains(body, use)))
        for use in uses
    )


def _single(own: Poly, view: View) -> GridLoop | str:
    body = statements(view.facts.body)
    for at, statement in enumerate(body[:-1]):
        symbol = _declared(statement, own, view)
        if symbol is None:
            if statement.type != "declaration":
                return "something is done before the thread's element is known"
            continue
        found = _guarded(symbol, statement, body[at + 1], body[at + 2 :], view)
        return found if isinstance(found, str) else _alone(found, view)
    return "no variable holds the thread's index in the grid"


def _declared(statement: Node, own: Poly, view: View) -> Symbol | None:
    if statement.type != "declaration" or len(statement.children_by_field_name("declarator")) != 1:
        return None
    for symbol in view.facts.symbols.all():
        if contains(statement, symbol.declarator) and symbol.fixed and symbol.init is not None:
            return symbol if value(symbol.init, view.facts.scope) == own else None
    return None


def _guarded(symbol: Symbol, declaration: Node, guard: Node, rest: list[Node], view: View) -> GridLoop | str:
    unclear = f"no test of {symbol.name} against a bound stands right behind it"
    if guard.type != "if_statement" or guard.child_by_field_name("alternative") is not None:
        return unclear
    test = bare(guard.child_by_field_name("condition"))
    compared = None if test is None else _compared(test, symbol, view)
    if compared is None:
        return unclear
    relation, bound = compared
    inside = relation in ("<", "<=")
    leaves = [one.type for one in statements(guard.child_by_field_name("consequence"))] == ["return_statement"]
    if (inside and rest) or (not inside and (not leaves or not rest)):
        return unclear
    if dependence(bound, view.facts.scope):
        return f"the bound `{text(bound)}` is not the same for all threads"
    returns = tuple(
        node for node in descendants(view.facts.body, "return_statement") if not contains(guard, node) or inside
    )
    for leave in returns:
        if any(above.type in (*LOOPS, "lambda_expression", "switch_statement") for above in ancestors(leave)):
            return "a thread may return from inside a loop"
    below = relation if inside else FLIPPED[relation]
    return GridLoop(symbol, None, declaration, guard, below, bound, inside, returns)


def _compared(test: Node, symbol: Symbol, view: View) -> tuple[str, Node] | None:
    """(relation, bound) of ``index relation bound``, in either order."""
    if test.type != "binary_expression":
        return None
    left, right = bare(test.child_by_field_name("left")), bare(test.child_by_field_name("right"))
    relation = text(test.child_by_field_name("operator"))
    if left is None or right is None or relation not in FLIPPED:
        return None
    if left.type == "identifier" and view.facts.symbols.resolve(left) is symbol:
        return relation, right
    if right.type == "identifier" and view.facts.symbols.resolve(right) is symbol:
        return MIRRORED[relation], left
    return None


def _alone(found: GridLoop, view: View) -> GridLoop | str:
    """A thread that takes another element must do for it what another thread did."""
    assert found.declaration is not None
    for call in view.facts.calls:
        if callee(call).startswith(TOGETHER):
            return f"its threads work together already (`{callee(call)}`)"
    for built_in in descendants(view.facts.body, "field_expression"):
        name = text(built_in.child_by_field_name("argument"))
        if name in ("threadIdx", "blockIdx", "gridDim") and not contains(found.declaration, built_in):
            return f"`{text(built_in)}` is used beside {found.index.name}"
    return found
