"""The atomics of a kernel whose results nobody uses, and what is known about where they go."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, callee, contains, text
from agent.ideas.buffers import handed, may_be_one
from agent.ideas.view import View

ADDS = ("atomicAdd", "atomicSub")
BEFORE = "atomic"


@frozen(eq=False)
class Atomics:
    """``calls`` go to ``root`` by one ``function``; each is a statement of its own."""

    root: Symbol
    function: str
    calls: tuple[Access, ...]

    def value(self, call: Access) -> Node:
        return arguments(call.node)[1]


def atomics(view: View) -> tuple[Atomics, ...] | str:
    """The kernel's atomics on global memory, by the parameter they go through. A reason where one cannot be put off:
    its result is used, or the memory is touched otherwise too."""
    found: dict[Symbol, list[Access]] = {}
    for access in view.facts.accesses:
        if not access.atomic:
            continue
        if access.space != "global" or access.root is None:
            if access.space == "shared":
                continue
            return f"where `{text(access.node)}` goes cannot be followed"
        parent = access.node.parent
        if parent is None or parent.type != "expression_statement":
            return f"the value that `{text(access.node)}` returns is used"
        if len(arguments(access.node)) != 2:
            return f"`{text(access.node)}` is no plain update"
        found.setdefault(access.root, []).append(access)
    if not found:
        return "it has no atomics on global memory"
    for root, calls in found.items():
        if len({callee(call.node) for call in calls}) != 1:
            return f"{root.name} is updated by more than one kind of atomic"
        reason = touched(root, view)
        if reason is not None:
            return reason
    return tuple(Atomics(root, callee(calls[0].node), tuple(calls)) for root, calls in found.items())


def touched(root: Symbol, view: View) -> str | None:
    """What else may touch the memory that the atomics on ``root`` update, in words; None where nothing does."""
    for access in view.facts.accesses:
        if access.atomic and access.root is root:
            continue
        inside = access.space == "global" and access.root is not None and may_be_one(view, root, access.root)
        if access.space == "unknown" or inside:
            return f"`{text(access.node)}` may touch what {root.name} counts"
    for call in view.facts.calls:
        given = [bare(argument) for argument in arguments(call)]
        names = [one for one in given if one is not None and one.type == "identifier"]
        inside = any(contains(call, access.node) for access in view.facts.accesses if access.atomic)
        if not inside and any(view.facts.symbols.resolve(name) is root for name in names):
            return f"{root.name} is handed to `{callee(call)}`"
    if any(len(handed(view, root.name, launch)) != 1 for launch in view.launches):
        return f"which buffer {root.name} is, is not known"
    return None
