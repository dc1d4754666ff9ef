"""Which loop waits for memory in every turn, although the next turn's loads do not depend on it."""

from collections.abc import Iterator
from math import prod

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access, subscripts_of
from agent.analysis.loops import Loop
from agent.analysis.patterns.quiet_calls import is_quiet
from agent.analysis.syntax import LOOPS, ancestors, bare, callee, contains, descendants, text
from agent.analysis.types import literal_value, type_of
from agent.analysis.values import value
from agent.ideas.rewriting import source_text
from agent.ideas.rowpass.writing import with_pragma
from agent.ideas.view import View, evaluate

BRANCHES = ("if_statement", "conditional_expression", "switch_statement", "lambda_expression")
APART = ("labeled_statement", "goto_statement", "gnu_asm_expression", "preproc_if", "preproc_ifdef", "preproc_call")
INTRINSICS = ("__f", "__d", "__h", "__float", "__int", "__uint", "__low", "__popc", "__clz", "__bfloat", "make_")
"""How functions begin that compute a value (CUDA Math API), those that PURE does not list."""
SMS, MOST_THREADS, AT_ONCE, WHOLE = 132, 2048, 4, 32
"""SMs of an H200 and threads on each; turns of a counted loop that a compiler takes at once, and those that it writes
out whole."""
ENOUGH = 24 << 10
"""Bytes on each SM: 4.8 TB/s for some 700 ns (Little's law) are 25 KB."""
FEWEST, MOST_LINES = 8, 12
"""Turns of a thread below which there is nothing to take together; lines that are not worth writing twice beyond."""


@frozen(eq=False)
class Stride:
    """``loads`` are what each turn waits for; ``step`` is what the variable is stepped by, as written (None: a number,
    so that the compiler takes four turns at once by itself), and ``turns`` how many a thread takes at the declared
    sizes (None: not known). ``like`` are the loops of the kernel that are of the same kind."""

    loop: Loop
    loads: tuple[Node, ...]
    step: Node | None
    turns: int | None
    like: tuple[Loop, ...] = ()


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
        best = max(found, key=lambda one: (one.turns or 0, len(one.loads)))
        return evolve(best, like=tuple(one.loop for one in found if (one.step is None) == (best.step is None)))
    return reasons[0] if reasons else "no loop waits for memory in its turns"


def _stride(view: View, loop: Loop) -> Stride | str | None:
    step = _own_step(view, loop)
    if step is None and not _counted(loop):
        return None
    spelled = f"the loop at line {view.document.line(loop.node.start_byte)}"
    reason = _obstacle(view, loop) or (None if step is None else _unwritable(view, loop))
    if reason is not None:
        return f"{spelled} {reason}"
    loads = tuple(_loads(view, loop))
    if not loads:
        return f"{spelled} loads nothing in each turn whose place the loop's variable tells"
    turns = _turns(view, loop)
    if turns is not None and turns < FEWEST:
        return f"{spelled} takes {turns} turns at the declared sizes"
    if step is None and (waiting := _under_way(view, loads)) >= ENOUGH:
        return f"{spelled} has {waiting >> 10} KB under way on each SM, as the compiler takes four turns at once"
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


def _counted(loop: Loop) -> bool:
    """Whether the compiler can tell how many turns are left, and does not unroll the loop whole."""
    update = bare(loop.update)
    step = update.child_by_field_name("right") if update is not None else None
    plain = update is not None and update.type == "update_expression"
    whole = loop.start.constant is not None and loop.bound.constant is not None
    ends = whole and (loop.bound.constant or 0) - (loop.start.constant or 0) <= WHOLE
    counts = plain or literal_value(step) is not None
    return loop.node.type == "for_statement" and loop.relation in ("<", "<=") and counts and not ends


def _under_way(view: View, loads: tuple[Node, ...]) -> int:
    """Bytes on each SM of the largest card that is built, with four turns of each thread at once."""
    launch = view.launches[0]
    extents = [evaluate(one, view.sizes) for one in (*launch.grid, *launch.block)]
    known = [extent for extent in extents if isinstance(extent, int)]
    threads = prod(known) // SMS if len(known) == len(extents) else MOST_THREADS
    wide = [
        view.element_bytes(access)
        for access in view.facts.accesses
        if any(access.node == load for load in loads)
    ]  # fmt: skip
    return min(threads, MOST_THREADS) * AT_ONCE * sum(size or 4 for size in wide or [4] * len(loads))


def _unwritable(view: View, loop: Loop) -> str | None:
    """Why it cannot be written as batches and a rest."""
    header = loop.node.child_by_field_name("initializer")
    condition = bare(loop.node.child_by_field_name("condition"))
    declared = header is not None and header.type == "declaration"
    if header is None or not declared or len(header.children_by_field_name("declarator")) != 1:
        return "does not declare its variable by itself"
    if condition is None or condition.type != "binary_expression" or not _steady_bound(view, loop):
        return "has a bound that may change"
    if type_of(loop.bound_node, view.facts.symbols) in ("f32", "f64"):
        return "has a bound that is no whole number"
    if len(source_text(view.document, loop.node).split("\n")) > MOST_LINES:
        return f"has more than {MOST_LINES} lines, too many to be written twice"
    return None


def _obstacle(view: View, loop: Loop) -> str | None:
    """What keeps its turns apart, whoever takes them together."""
    if with_pragma(loop.node) != loop.node:
        return "has a pragma already"
    if loop.leaves_early:
        return "may be left early"
    whole = {one.node for one in view.facts.loops if _unrolled(one)}
    inner = next((one for one in descendants(loop.body, *LOOPS, *APART) if not (one in whole or _pragma(one))), None)
    if inner is not None:
        return f"has `{text(inner).splitlines()[0]}` inside"
    for call in descendants(loop.body, "call_expression"):
        if not (is_quiet(call, view.facts) or callee(call).startswith(INTRINSICS)):
            return f"calls `{text(call.child_by_field_name('function'))}`, which may wait or write"
    for access in view.facts.accesses_in(loop.body):
        if access.writes and access.space not in ("local", "shared"):
            return f"writes `{text(access.node)}`, which the next turn's loads may not overtake"
    if loop.node.parent is None or loop.node.parent.type != "compound_statement":
        return "stands where one statement alone may stand"
    return None


def _unrolled(loop: Loop) -> bool:
    """Whether the compiler writes out all of its turns."""
    start, bound = loop.start.constant, loop.bound.constant
    return start is not None and bound is not None and abs(bound - start) <= WHOLE


def _pragma(node: Node) -> bool:
    return node.type == "preproc_call" and "pragma" in text(node)


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
        if access.space == "global" and access.reads and not access.atomic and _along(view, loop, access)
    ]
    places += [
        call
        for call in descendants(loop.body, "call_expression")
        if callee(call) == "__ldg" and any(_runs(view, loop, name) for name in descendants(call, "identifier"))
    ]
    for place in sorted(places, key=lambda one: one.start_byte):
        above = [one for one in ancestors(place) if contains(loop.body, one)]
        short = any(text(one.child_by_field_name("operator")) in ("&&", "||") for one in above)
        if not short and not any(one.type in BRANCHES and not _asked(one, place) for one in above):
            yield place


def _asked(branch: Node, place: Node) -> bool:
    """Whether a place belongs to what a branch is decided by: that runs in any case."""
    condition = branch.child_by_field_name("condition")
    return condition is not None and contains(condition, place)


def _along(view: View, loop: Loop, access: Access) -> bool:
    """Whether the loop's variable tells the place: also behind a pointer that was moved before the loop."""
    if access.index is not None:
        return any(loop.atom in product for product, _ in access.index.terms)
    base = access.node.child_by_field_name("argument")
    moved = None if base is None or base.type != "identifier" else view.facts.symbols.resolve(base)
    if moved is None or any(contains(loop.node, write) for write in moved.writes):
        return False
    return any(loop.atom in value(one, view.facts.scope).atoms for one in subscripts_of(access.node))


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
