"""Loops in which the threads of a block or grid walk side by side over elements."""

import re

from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, number, unknown
from agent.analysis.dependence import PURE
from agent.analysis.loops import Loop
from agent.analysis.patterns.settled import settled
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import (
    arguments,
    bare,
    callee,
    contains,
    descendants,
    enclosing,
    expression_of,
    same,
    statement_of,
    text,
)
from agent.analysis.values import dependence
from agent.ideas.elements.places import thread_number
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

TOGETHER = re.compile(r"__(sync|shfl|ballot|any|all|activemask|match|reduce|threadfence)|atomic")
FOLDS = ("fmaxf", "fminf", "fmax", "fmin", "max", "min")


def strides(view: View) -> list[Loop]:
    """Loops from the thread's place in the block or grid in steps of the block or grid, that set their own variable."""
    extent = view.block[0]
    width = unknown(Atom("blockDim.x")) if extent is None else number(extent)
    shapes = (
        (thread_number(view, 0), unknown(Atom("gridDim.x")) * width),
        (unknown(Atom("threadIdx.x", frozenset({"threadIdx.x"}))), width),
    )
    return [
        loop
        for loop in view.facts.loops
        if loop.node.type == "for_statement"
        and loop.relation == "<"
        and loop.step_kind == "+"
        and contains(loop.node, loop.variable.declarator)
        and (loop.start, loop.step) in shapes
    ]


def obstacle(view: View, loop: Loop) -> str | None:
    """Why the loop's elements cannot be handed to other threads of the same block or grid."""
    for call in descendants(loop.body, "call_expression"):
        if TOGETHER.match(callee(call)):
            return f"its threads work together already (`{callee(call)}`)"
        if _looks_at_thread(view, callee(call)):
            return f"`{callee(call)}`, which it calls, looks at the thread index by itself"
    written = view.document.text[loop.node.start_byte : loop.node.end_byte]
    for macro in view.document.macros:
        if "threadIdx" in macro.body and re.search(rb"\b%s\b" % macro.name.encode(), written):
            return f"the macro {macro.name} hides a thread index"
    leaves = ("continue_statement", "break_statement", "return_statement", "goto_statement")
    if any(True for _ in descendants(loop.body, *leaves)):
        return "the loop over elements is left or continued from inside"
    return _carried(view, loop) or _of_block(view, loop) or _seen_elsewhere(view, loop)


def _looks_at_thread(view: View, name: str) -> bool:
    for node in descendants(view.document.tree.root_node, "function_definition"):
        declarator = node.child_by_field_name("declarator")
        named = "" if declarator is None else text(declarator.child_by_field_name("declarator")).split("::")[-1]
        if named == name and re.search(r"\b(threadIdx|__shfl|__syncwarp|warpSize|lane|__shared__|cub::)", text(node)):
            return True
    return False


def _carried(view: View, loop: Loop) -> str | None:
    """What an element takes from the thread or from the elements before it, sums and extremes apart."""
    # what other threads of the block or grid may see otherwise
    own = ("threadIdx", "blockIdx.x") if "blockIdx.x" in loop.start.depends else ("threadIdx",)
    for node in descendants(loop.body, "identifier"):
        symbol = view.facts.symbols.resolve(node)
        if symbol is None:
            whole = text(node) == "blockIdx" and text(node.parent) not in ("blockIdx.x", "blockIdx.y", "blockIdx.z")
            if whole or text(node.parent).startswith(own):
                return f"`{text(node.parent)}` in the loop's body depends on the thread, and not through the loop"
            continue
        if symbol is loop.variable or contains(loop.node, symbol.declarator) or symbol.space == "shared":
            continue
        inside = [write for write in symbol.writes if contains(loop.node, write)]
        if _given_away(view, symbol, loop) or (symbol.dims and symbol.space == "local"):
            return f"{symbol.name} is carried from one element to the next"
        if inside and not symbol.is_memory:
            if not _folds(view, symbol, loop):
                return f"{symbol.name} is carried from one element to the next"
        elif not symbol.is_memory and any(one.startswith(own) for one in _sources(view, symbol, node)):
            return f"`{symbol.name}` in the loop's body depends on the thread, and not through {loop.variable.name}"
    return None


def _given_away(view: View, symbol: Symbol, loop: Loop) -> bool:
    """Whether the loop may change a variable unseen. A function outside the loop that takes it by reference (the sum
    over a block, say) is done with it when it returns."""
    if not symbol.escapes:
        return False
    for use in _uses(view, symbol):
        above = use.parent
        while above is not None and above.type == "parenthesized_expression":
            above = above.parent
        if above is None or text(above.child_by_field_name("operator")) == "&":
            return True  # its address
        holder = enclosing(use, "init_declarator")
        if holder is not None and any(True for _ in descendants(holder, "reference_declarator")):
            return True  # another name for it
        if above.type == "argument_list" and contains(loop.node, use) and callee(above.parent) not in PURE:
            return True
    return False


def _uses(view: View, symbol: Symbol) -> list[Node]:
    return [one for one in descendants(view.facts.body, "identifier") if view.facts.symbols.resolve(one) is symbol]


def _sources(view: View, symbol: Symbol, use: Node) -> frozenset[str]:
    last = settled(use, symbol, view.facts)
    if last is not None:
        return dependence(last.child_by_field_name("right"), view.facts.scope)
    return view.facts.scope.sources.get(symbol, frozenset())


def _folds(view: View, symbol: Symbol, loop: Loop) -> bool:
    """Whether all that the loop does with a variable is to add to it, to count, or to take the larger or smaller."""
    return all(_folding(one) for one in _uses(view, symbol) if contains(loop.body, one))


def _folding(use: Node) -> bool:
    statement = statement_of(use)
    assignment = expression_of(statement)
    if assignment is not None and assignment.type == "update_expression":
        return bare(assignment.child_by_field_name("argument")) == use  # `++count;`
    if assignment is None or assignment.type != "assignment_expression":
        return False
    left, right = bare(assignment.child_by_field_name("left")), bare(assignment.child_by_field_name("right"))
    if left is None or right is None or left.type != "identifier" or text(left) != text(use):
        return False
    own = [one for one in descendants(right, "identifier") if text(one) == text(use)]
    if text(assignment.child_by_field_name("operator")) == "+=":
        return not own
    if text(assignment.child_by_field_name("operator")) != "=" or len(own) != 1:
        return False
    if callee(right) in FOLDS:
        return any(same(one, left) for one in arguments(right))
    sides = (bare(right.child_by_field_name("left")), bare(right.child_by_field_name("right")))
    return text(right.child_by_field_name("operator")) == "+" and any(same(one, left) for one in sides)


def _of_block(view: View, loop: Loop) -> str | None:
    """What a thread or a block makes of its own share of the elements, and stores: packs give each another share."""
    folded = {
        symbol
        for symbol in view.facts.symbols.all()
        if symbol is not loop.variable and not symbol.is_memory and not contains(loop.node, symbol.declarator)
        if any(contains(loop.node, write) for write in symbol.writes)
    }
    grid = "blockIdx.x" in loop.start.depends
    for access in view.facts.accesses:
        inside = contains(loop.node, access.node)
        if grid and inside and access.writes and access.space == "shared":
            return f"each block would keep other elements in {access.name} than now"
        if not folded or inside or not access.writes or access.space != "global":
            continue
        depends = frozenset({"unknown"}) if access.index is None else access.index.depends
        own = any(_own_share(view, loop, one, folded) for one in _names(statement_of(access.node)))
        if own and {"threadIdx.x", "unknown"} & depends:
            return "each thread would add up other elements than now, and what it makes of them is stored"
        if grid and (not access.atomic or {"blockIdx.x", "unknown"} & depends):
            return "each block would add up other elements than now, and what it makes of them is stored"
    return None


def _own_share(view: View, loop: Loop, use: Node, folded: set[Symbol]) -> bool:
    """Whether a name holds what the loop made of a thread's share, or something worked out from it alone, and was
    given nothing else since."""
    symbol = view.facts.symbols.resolve(use)
    if symbol is None:
        return False
    if symbol not in folded:
        made = symbol.init if symbol.fixed and symbol.space == "local" and not symbol.is_memory else None
        calls = [] if made is None else [made, *descendants(made, "call_expression")]
        if made is None or any(one.type == "call_expression" and callee(one) not in PURE for one in calls):
            return False
        return any(_own_share(view, loop, one, folded) for one in [made, *_names(made)] if one.type == "identifier")
    last = settled(use, symbol, view.facts)
    return (
        last is None
        or last.start_byte < loop.node.end_byte
        or any(view.facts.symbols.resolve(one) in folded for one in _names(last.child_by_field_name("right") or last))
    )


def _names(node: Node) -> list[Node]:
    return list(descendants(node, "identifier"))


def _seen_elsewhere(view: View, loop: Loop) -> str | None:
    """What the loop touches is touched by others outside it, one of them writing, with no barrier in between: the
    thread that does so need not be the same one afterwards."""
    inside = [one for one in view.facts.accesses if contains(loop.node, one.node)]
    outside = [one for one in view.facts.accesses if not contains(loop.node, one.node)]
    for mine in inside:
        for other in outside:
            if mine.space in ("local", "constant") or mine.root is not other.root or not (mine.writes or other.writes):
                continue
            again = [one for one in view.facts.loops_around(loop.node) if contains(one.body, other.node)]
            if again or not _barrier_between(view, loop, other):
                return (
                    f"`{source_text(view.document, other.node)}` meets what the loop touches, with no barrier between"
                )
    return None


def _barrier_between(view: View, loop: Loop, other: Access) -> bool:
    low = min(loop.node.end_byte, other.node.end_byte)
    high = max(loop.node.start_byte, other.node.start_byte)
    return any(low <= barrier.start_byte and barrier.end_byte <= high for barrier in view.facts.barriers)
