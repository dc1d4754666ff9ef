"""Atomics of one thread to one address in all turns of a loop: the thread adds up for itself first."""

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.dependence import BUILT_IN, PURE
from agent.analysis.syntax import LOOPS, ancestors, arguments, callee, contains, descendants, text, tokens
from agent.ideas.atomics.site import Atomics, atomics
from agent.ideas.atomics.total import FOLDS, NEUTRAL, TYPES, folded
from agent.ideas.buffers import may_be_one
from agent.ideas.gridloop.site import GridLoop, grid_loop
from agent.ideas.gridloop.write import with_fewer_blocks
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_local, insert_after, source_text
from agent.ideas.rowpass.writing import insert_before_loop
from agent.ideas.view import View
from agent.source.edits import Edit

LEAVES = ("return_statement", "goto_statement")


@frozen(eq=False)
class Kept:
    """``calls`` go to one address, which ``target`` spells, in every turn of ``loop``."""

    atomics: Atomics
    target: Node
    loop: Node
    calls: tuple[Access, ...]


@frozen(eq=False)
class Turns:
    """``grid``: one of the loops deals out the grid's elements, so that fewer blocks mean more turns a thread."""

    kept: tuple[Kept, ...]
    grid: bool


def turns(view: View) -> Turns | str:
    """The atomics that stay with one address while a loop runs, or why there are none."""
    found = atomics(view)
    if isinstance(found, str):
        return found
    reasons: list[str] = []
    kept: dict[tuple[tuple[str, ...], Node], Kept] = {}
    for one in found:
        for call in one.calls:
            made = _kept(view, one, call)
            if isinstance(made, str):
                reasons.append(made)
                continue
            key = (tokens(made.target), made.loop)
            kept[key] = made if key not in kept else evolve(kept[key], calls=(*kept[key].calls, call))
    if not kept:
        return reasons[0]
    elements = grid_loop(view)
    grid = isinstance(elements, GridLoop) and elements.loop is not None
    own = elements.loop.node if isinstance(elements, GridLoop) and elements.loop is not None else None
    return Turns(tuple(kept.values()), grid and all(one.loop == own for one in kept.values()))


def _kept(view: View, one: Atomics, call: Access) -> Kept | str:
    spelled = source_text(view.document, call.node)
    types = (*TYPES, *(parameter.name for parameter in view.kernel.template))
    op = FOLDS.get(one.function, ("", ""))[0]
    known = op in ("sum", "or") or (op, one.root.type) in NEUTRAL
    if not known or one.root.type not in types:
        return f"`{one.function}` on {one.root.type} is no fold that a thread can do first"
    target = arguments(call.node)[0]
    loops = [above for above in ancestors(call.node) if above.type in LOOPS and contains(view.facts.body, above)]
    if not loops:
        return f"`{spelled}` stands in no loop"
    steady = [loop for loop in loops if _steady(view, target, loop)]
    # what an outer loop leaves alone, those inside it leave alone
    fit = [loop for loop in steady if loop.parent is not None and loop.parent.type == "compound_statement"]
    if not steady:
        return f"`{spelled}` goes to another address in each turn"
    if not fit or any(True for _ in descendants(fit[-1], *LEAVES)):
        return f"there is no one place behind the loop around `{spelled}`"
    return Kept(one, target, fit[-1], (call,))


def _steady(view: View, target: Node, loop: Node) -> bool:
    """Whether an address is the same in all turns of a loop, and behind it."""
    if any(callee(inner) not in PURE for inner in descendants(target, "call_expression")):
        return False
    if any(True for _ in descendants(target, "assignment_expression", "update_expression", "lambda_expression")):
        return False
    for name in [target] if target.type == "identifier" else descendants(target, "identifier"):
        symbol = view.facts.symbols.resolve(name)
        if symbol is None:
            called = name.parent is not None and name.parent.child_by_field_name("function") == name
            if not called and text(name) not in BUILT_IN and view.facts.symbols.outside(text(name)):
                return False  # a macro may stand for anything
            continue
        inside = contains(loop, symbol.declarator) or any(contains(loop, write) for write in symbol.writes)
        if inside or symbol.escapes or symbol.space == "shared":
            return False
    for read in view.facts.accesses_in(target):
        if read.space != "global" or read.root is None:
            return False
        others = [one for one in view.facts.accesses if one.writes and one.root is not None]
        if any(may_be_one(view, read.root, one.root) for one in others if one.root is not None):
            return False
    return True


def once_a_thread(view: View, found: Turns, blocks: int | None) -> Rewrite:
    """Each thread folds into variables of its own while the loops run. ``blocks``: how many at most; None: as now."""
    edits: list[Edit] = []
    taken: list[str] = []
    before: dict[Node, list[str]] = {}
    after: dict[Node, list[str]] = {}
    for one in found.kept:
        op, _ = FOLDS[one.atomics.function]
        kind = one.atomics.root.type
        own = fresh_local(styled(f"own_{one.atomics.root.name}", view), view.document, view.kernel, *taken)
        taken.append(own)
        neutral = NEUTRAL.get((op, kind), "0")
        before.setdefault(one.loop, []).append(f"{kind} {own} = {neutral};")
        send = f"{one.atomics.function}({source_text(view.document, one.target)}, {own});"
        whole = neutral if neutral.isalnum() else f"({neutral})"
        after.setdefault(one.loop, []).append(f"if ({own} != {whole}) {send}")
        edits += [folded(view, one.atomics, call, own) for call in one.calls]
    lead = "// One atomic a thread behind the loop, instead of one a turn.\n"
    for loop, lines in before.items():
        edits.append(insert_before_loop(view.document, loop, lead + "\n".join(lines)))
    for loop, lines in after.items():
        edits.append(insert_after(view.document, loop, "\n".join(lines)))
    return Rewrite(tuple(edits), (), None if blocks is None else with_fewer_blocks(view, blocks))
