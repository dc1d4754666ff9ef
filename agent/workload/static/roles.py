"""What the steps of a plan do to each buffer, over every role that exchanges give it: in, out or both."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.workload.static.usage import Usage
from agent.workload.static.values import Item, LoopItem
from agent.workload.workload import Access

if TYPE_CHECKING:
    from agent.workload.static.assemble import Draft


def orbits(items: tuple[Item, ...]) -> dict[int, set[int]]:
    """Memories that swaps exchange with each other."""
    found: dict[int, set[int]] = {}
    for item in items:
        if isinstance(item, LoopItem):
            for memory, others in orbits(item.body).items():
                found.setdefault(memory, set()).update(others)
            for pair in item.swaps:
                joined = set(pair).union(*(found.get(memory, set()) for memory in pair))
                for memory in joined:
                    found[memory] = joined
    return found


def access(
    memory: int, draft: "Draft", usages: dict[str, Usage | None], orbit: dict[int, set[int]], notes: list[str]
) -> Access:
    """In when nothing writes it, in any role that swaps give it; out when what was there before cannot show.

    Whether a launch writes all of a buffer is not seen here. So what the host put there may still be read by a later
    step, such as the rim that a stencil leaves alone; what nothing put there is left for the contract to judge, unless
    the first launch reads it before it writes it.
    """
    own = list(_role(memory, draft, usages)) or [(False, False)]
    every = [role for other in orbit.get(memory, {memory}) for role in _role(other, draft, usages)]
    content = draft.first.contents.get(memory) if draft.first else None
    fresh = content is None or content.kind == "fresh"
    _, first_writes = own[0]
    if not any(writes for _, writes in every):
        return Access.IN
    if not first_writes or (not fresh and any(reads for reads, _ in every)):
        return Access.INOUT
    path, kernel, _ = draft.uses[memory][0]
    how = usages.get(kernel.name)
    if how is not None and path in how.before:
        name = draft.facts.memories[memory].name
        notes.append(f"`{kernel.name}` reads `{name}` before it writes it, and nothing that was read fills it before")
        return Access.INOUT
    return Access.OUT


def _role(memory: int, draft: "Draft", usages: dict[str, Usage | None]) -> Iterator[tuple[bool, bool]]:
    for parameter, kernel, _ in draft.uses.get(memory, []):
        how = usages.get(kernel.name)
        if how is None:
            yield True, True
        else:
            yield how.role(parameter)
