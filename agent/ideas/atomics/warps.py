"""Atomics of whole warps to one float in shared memory: the warp adds up first."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import pointer
from agent.analysis.guards import LEAPS, exits_before, guards
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, arguments, bare, callee, descendants, statements, text
from agent.analysis.types import type_of
from agent.analysis.values import is_uniform
from agent.ideas.atomics.total import several_threads
from agent.ideas.reduction.helpers import Shape
from agent.ideas.reduction.lanes import WARP, among_lanes
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_local, fresh_name, indented, replace, source_text
from agent.ideas.view import View
from agent.source.edits import Edit

TYPES = {"f32": "float", "f64": "double"}
CHANGES = ("assignment_expression", "update_expression", "lambda_expression")


@frozen(eq=False)
class Sent:
    """Every lane of a warp comes to ``place``, the statement of ``call``; those for which ``test`` holds (all, where it
    is None) add a ``type`` to ``target``."""

    call: Node
    place: Node
    test: Node | None
    target: Node
    type: str


def sent(view: View) -> tuple[Sent, ...] | str:
    """The atomics that a warp can send as one, or why there are none."""
    found: list[Sent] = []
    reasons: list[str] = []
    for call in view.facts.calls:
        if callee(call) != "atomicAdd" or len(arguments(call)) != 2:
            continue
        one = _sent(view, call)
        if isinstance(one, Sent):
            found.append(one)
        else:
            reasons.append(one)
    if not found:
        return (reasons or ["it has no atomicAdd"])[0]
    threads = view.block[0]
    if threads is None or view.block[1:] != (1, 1) or threads % WARP:
        return "the launches do not all have one-dimensional blocks of a fixed whole number of warps"
    return tuple(found)


def _sent(view: View, call: Node) -> Sent | str:
    spelled = source_text(view.document, call)
    target = bare(arguments(call)[0])
    kind = None if target is None else _shared_float(view, target)
    if target is None or kind is None:
        return f"`{spelled}` does not add to one float in shared memory"
    statement = call.parent
    if statement is None or statement.type != "expression_statement":
        return f"the value that `{spelled}` returns is used"
    place, test = _around(view, statement)
    if place.parent is None or place.parent.type != "compound_statement":
        return f"there is no place for the warp's sum beside `{spelled}`"
    if not several_threads(view, [one for one in view.facts.accesses if one.node == call]):
        return f"one thread alone sends `{spelled}`"
    return Sent(call, place, test, target, kind) if converged(view, place) else f"not all lanes come to `{spelled}`"


def _shared_float(view: View, target: Node) -> str | None:
    """The type of what an address names, where it is one float in shared memory, the same for all threads."""
    if not is_uniform(target, view.facts.scope) and not _of_scalar(view, target):
        return None
    if target.type == "pointer_expression" and text(target.child_by_field_name("operator")) == "&":
        inner = bare(target.child_by_field_name("argument"))
        base = inner
        while base is not None and base.type in ("field_expression", "subscript_expression"):
            index = base.child_by_field_name("indices")
            if index is not None and not is_uniform(index, view.facts.scope):
                return None
            base = bare(base.child_by_field_name("argument"))
        symbol = None if base is None or base.type != "identifier" else view.facts.symbols.resolve(base)
        shared = symbol is not None and symbol.space == "shared"
        return TYPES.get(str(type_of(inner, view.facts.symbols))) if shared else None
    root, _ = pointer(target, view.facts.scope)
    if not isinstance(root, Symbol) or root.space != "shared" or len(root.dims) != 1:
        return None
    return root.type if root.type in TYPES.values() and is_uniform(target, view.facts.scope) else None


def _of_scalar(view: View, target: Node) -> bool:
    """Whether an address names a shared variable, or a part of one: no index that could differ."""
    return target.type == "pointer_expression" and not any(True for _ in descendants(target, "subscript_expression"))


def _around(view: View, statement: Node) -> tuple[Node, Node | None]:
    """(the statement that all lanes come to, the test under which a lane adds): an ``if`` that holds nothing else and
    that the threads do not take alike is the test."""
    above = statement.parent
    if above is not None and above.type == "compound_statement" and len(statements(above)) == 1:
        above = above.parent
    if above is None or above.type != "if_statement" or above.child_by_field_name("alternative") is not None:
        return statement, None
    test = bare(above.child_by_field_name("condition"))
    if test is None or is_uniform(test, view.facts.scope) or any(True for _ in descendants(test, *CHANGES)):
        return statement, None
    if test.type in CHANGES or any(True for _ in descendants(test, "call_expression")):
        return statement, None
    return above, test


def converged(view: View, place: Node) -> bool:
    """Whether every thread of a block comes to a statement, as often as the others: what decides on the way is the
    same for all of them, and none has left before."""
    if any(not is_uniform(guard.condition, view.facts.scope) for guard in guards(place, view.facts.node)):
        return False
    for _, conditions in exits_before(place, view.facts.node):
        if any(not is_uniform(one.condition, view.facts.scope) for one in conditions):
            return False
    loops = [above for above in ancestors(place) if above.type in LOOPS]
    if any(not is_uniform(loop.child_by_field_name("condition"), view.facts.scope) for loop in loops):
        return False
    return not any(True for loop in loops for _ in descendants(loop, *LEAPS)) and not any(
        True for _ in descendants(view.facts.body, "goto_statement")
    )


def once_a_warp(view: View, found: tuple[Sent, ...]) -> Rewrite:
    """The lanes of a warp add up by shuffles, and one of them sends the sum."""
    helpers: dict[str, str] = {}
    edits: list[Edit] = []
    taken: list[str] = []
    for one in found:
        if one.type not in helpers:
            helpers[one.type] = fresh_name(styled("warp_sum", view), view.document, *helpers.values())
        name = fresh_local(styled(f"{_word(one.target)}_of_warp", view), view.document, view.kernel, *taken)
        taken.append(name)
        given = source_text(view.document, arguments(one.call)[1])
        if one.test is not None:
            given = f"{_operand(view, one.test)} ? {_operand(view, arguments(one.call)[1])} : 0"
        send = f"atomicAdd({source_text(view.document, arguments(one.call)[0])}, {name})"
        lines = f"const {one.type} {name} = {helpers[one.type]}({given});\nif (threadIdx.x % {WARP} == 0) {send};"
        edits.append(replace(one.place, indented(view.document, one.place, lines)))
    made = tuple(
        among_lanes(Shape("sum", "+", kind, planar=False, template=False), name, WARP) for kind, name in helpers.items()
    )
    return Rewrite(tuple(edits), made)


def _operand(view: View, node: Node) -> str:
    written = source_text(view.document, node)
    plain = node.type in ("identifier", "number_literal", "subscript_expression", "field_expression", "call_expression")
    return written if plain or node.type == "parenthesized_expression" else f"({written})"


def _word(target: Node) -> str:
    """A name for what an address names: ``lsums_x`` for ``&lsums.x``."""
    return "_".join("".join(char if char.isalnum() or char == "_" else " " for char in text(target)).split())
