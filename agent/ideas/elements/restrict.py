"""Telling the compiler that pointers are apart, where the plan says so."""

from itertools import combinations

from agent.analysis.symbols import Symbol
from agent.ideas.buffers import handed, in_structs
from agent.ideas.elements.buffers import apart
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span


def pointers(view: View) -> tuple[Symbol, ...]:
    return tuple(one for one in view.facts.symbols.all() if one.space == "parameter" and one.pointer == 1)


def all_apart(view: View) -> str | None:
    """Why not all of the kernel's pointers are known to be apart; None where they are."""
    for one, other in combinations(pointers(view), 2):
        if not apart(view, one, other):
            return f"{one.name} and {other.name} may be handed the same buffer"
    hidden = frozenset[str]().union(*(in_structs(launch, view) for launch in view.launches))
    for one in pointers(view):
        if any(handed(view, one.name, launch) & hidden for launch in view.launches):
            return f"{one.name} and a pointer in a struct may be handed the same buffer"
    if any(one.space == "parameter" and one.pointer > 1 for one in view.facts.symbols.all()):
        return "a parameter points at pointers"
    return None


def restricted(view: View) -> tuple[Edit, ...]:
    """``__restrict__`` for every pointer parameter that lacks it and is written with a star."""
    return tuple(
        Edit(Span(one.declarator.start_byte, one.declarator.start_byte), b"__restrict__ ") for one in unmarked(view)
    )


def unmarked(view: View) -> tuple[Symbol, ...]:
    """The pointer parameters that ``restricted`` would mark."""
    return tuple(
        one
        for one in pointers(view)
        if not one.restrict and one.declarator.parent is not None and one.declarator.parent.type == "pointer_declarator"
    )
