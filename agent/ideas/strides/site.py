"""Which loop waits for memory in every turn, although the next turn's loads do not depend on it."""

from collections.abc import Iterator

from attrs import frozen
from tree_sitter import Node

from agent.analysis.loops import Loop
from agent.analysis.patterns.quiet_calls import is_quiet
from agent.analysis.syntax import LOOPS, ancestors, bare, callee, contains, descendants, text
from agent.analysis.types import literal_value
from agent.analysis.values import value
from agent.ideas.rewriting import source_text
from agent.ideas.rowpass.writing import with_pragma
from agent.ideas.view import View, evaluate

BRANCHES = ("if_statement", "conditional_expression", "switch_statement", "lambda_expression")
APART = ("labeled_statement", "goto_statement", "gnu_asm_expression", "preproc_if", "preproc_ifdef", "preproc_call")
INTRINSICS = ("__f", "__d", "__h", "__float", "__int", "__uint", "__low", "__popc", "__clz", "__bfloat", "make_")
"""How functions begin that compute a value (CUDA Math API), those that PURE does not list."""
FEWEST, MOST_LINES = 8, 12
"""Turns of a thread below which there is nothing to take together; lines that are not worth writing twice beyond."""


@frozen(eq=False)
class Stride:
    """``loads`` are what each turn waits for; ``step`` is what the variable is stepped by, as written, and ``turns``
    how many a thread takes at the declared sizes (None: not known)."""

    loop: Loop
    loads: tuple[Node, ...]
    step: Node
    turns: int | None


def stride(view: View) -> Stride | str:
    """The loop with the most turns, or why there is none."""
    reasons: list[str] = []
    found: list[Stride] = []
    for loop in view.facts.loops:
        one = _stride(view, loop)
        if isinstance(one, str):
            reasons.append(one)
        elif one is not None:
            found.append(one)
    if found:
        return max(found, key=lambda one: (one.turns or 0, len(one.loads)))
    return reasons[0] if reasons else "no loop runs in steps that only the launch knows"


def _stride(view: View, loop: Loop) -> Stride | str | None:
    step = _own_step(view, loop)
    if step is None:
        return None
    spelled = f"the loop at line {view.document.line(loop.node.start_byte)}"
    reason = _obstacle(view, loop)
    if reason is not None:
        return f"{spelled} {reason}"
    loads = tuple(_loads(view, loop))
    if not loads:
        return f"{spelled} loads nothing in each turn whose place the loop's variable tells"
    turns = _turns(view, loop)
    if turns is not None and turns < FEWEST:
        return f"{spelled} takes {turns} turns at the declared sizes"
    return Stride(loop, loads, step, turns)


def _own_step(view: View, loop: Loop) -> Node | None:
    """The step as written, where the compiler does not know its value and it is the same in each turn."""
    update = bare(loop.update)
    if loop.node.type != "for_statement" or update is None or text(update.child_by_field_name("operator")) != "+=":
        return None
    step = update.child_by_field_name("right")
    if step is None or loop.relation != "<" or any(True for _ in descendants(step, "call_expression")):
        return None
    known = True
    for name in descendants(step, "identifier"):
        symbol = view.facts.symbols.resolve(name)
        if symbol is not None and (symbol.is_memory or not symbol.fixed):
            return None
        if symbol is None and text(name) not in ("blockDim", "gridDim") and view.facts.symbols.outside(text(name)):
            return None
        known = known and symbol is None and text(name) not in ("blockDim", "gridDim")
    return None if known or literal_value(step) is not None else step


def _obstacle(view: View, loop: Loop) -> str | None:
    """What keeps its turns apart, whoever takes them together."""
    header = loop.node.child_by_field_name("initializer")
    condition = bare(loop.node.child_by_field_name("condition"))
    declared = header is not None and header.type == "declaration"
    if header is None or not declared or len(header.children_by_field_name("declarator")) != 1:
        return "does not declare its variable by itself"
    if condition is None or condition.type != "binary_expression" or not _steady_bound(view, loop):
        return "has a bound that may change"
    if with_pragma(loop.node) != loop.node:
        return "has a pragma already"
    if loop.leaves_early:
        return "may be left early"
    inner = next(descendants(loop.body, *LOOPS, *APART), None)
    if inner is not None:
        return f"has `{text(inner).splitlines()[0]}` inside"
    for call in descendants(loop.body, "call_expression"):
        if not (is_quiet(call, view.facts) or callee(call).startswith(INTRINSICS)):
            return f"calls `{text(call.child_by_field_name('function'))}`, which may wait or write"
    for access in view.facts.accesses_in(loop.body):
        if access.writes and access.space not in ("local", "shared"):
            return f"writes `{text(access.node)}`, which the next turn's loads may not overtake"
    if len(source_text(view.document, loop.node).split("\n")) > MOST_LINES:
        return f"has more than {MOST_LINES} lines, too many to be written twice"
    if loop.node.parent is None or loop.node.parent.type != "compound_statement":
        return "stands where one statement alone may stand"
    return None


def _steady_bound(view: View, loop: Loop) -> bool:
    bound = loop.bound_node
    if any(True for _ in descendants(bound, "call_expression", "subscript_expression", "pointer_expression",
                                     "assignment_expression", "update_expression")):  # fmt: skip
        return False
    for name in descendants(bound, "identifier"):
        symbol = view.facts.symbols.resolve(name)
        if symbol is not None and (symbol.escapes or any(contains(loop.node, write) for write in symbol.writes)):
            return False
    return True


def _loads(view: View, loop: Loop) -> Iterator[Node]:
    """Loads from global memory in every turn, at places that the loop's variable tells."""
    places = [
        access.node
        for access in view.facts.accesses_in(loop.body)
        if access.space == "global" and access.reads and not access.atomic and access.index is not None
        if any(loop.atom in product for product, _ in access.index.terms)
    ]
    places += [
        call
        for call in descendants(loop.body, "call_expression")
        if callee(call) == "__ldg" and any(_runs(view, loop, name) for name in descendants(call, "identifier"))
    ]
    for place in sorted(places, key=lambda one: one.start_byte):
        above = [one for one in ancestors(place) if contains(loop.body, one)]
        short = any(text(one.child_by_field_name("operator")) in ("&&", "||") for one in above)
        if not short and not any(one.type in BRANCHES for one in above):
            yield place


def _runs(view: View, loop: Loop, name: Node) -> bool:
    """Whether a name is the loop's variable, or a local of the turn that it goes into."""
    symbol = view.facts.symbols.resolve(name)
    if symbol is None or symbol is loop.variable:
        return symbol is not None
    made = symbol.init if contains(loop.body, symbol.declarator) and symbol.fixed else None
    return made is not None and loop.atom in value(made, view.facts.scope).atoms


def _turns(view: View, loop: Loop) -> int | None:
    """Of the first thread of the first block."""
    launch = view.launches[0]
    names = dict(view.parameters(launch))
    for axis, extent, grid in zip("xyz", launch.block, launch.grid, strict=True):
        for name, expression in ((f"blockDim.{axis}", extent), (f"gridDim.{axis}", grid)):
            if isinstance(known := evaluate(expression, view.sizes), int):
                names[name] = known
        names |= {f"threadIdx.{axis}": 0, f"blockIdx.{axis}": 0}
    length, step = (loop.bound - loop.start).evaluate(names), loop.step.evaluate(names)
    return None if length is None or not step or step < 0 else max(0, -(-length // step))
