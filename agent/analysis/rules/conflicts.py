"""Bank conflicts of a kernel, one entry for each shared array."""

from collections.abc import Iterator

from attrs import evolve, frozen

from agent.analysis.accesses import Access
from agent.analysis.rules.traffic import passes
from agent.analysis.rules.view import View


@frozen(eq=False)
class Conflict:
    """The first access to an array that takes twice its ideal number of passes or more, and the others of the kind."""

    access: Access
    passes: int
    ideal: int
    others: "tuple[Conflict, ...]" = ()


def conflicts(view: View, flat: bool) -> Iterator[Conflict]:
    """``flat``: arrays of one dimension; otherwise those of several."""
    found: dict[str, list[Conflict]] = {}
    for access in view.facts.accesses:
        if access.space != "shared" or access.root is None or access.atomic or (len(access.root.dims) < 2) != flat:
            continue
        counted = passes(access, view)
        if counted is not None and counted[0] >= 2 * counted[1]:
            found.setdefault(access.root.key, []).append(Conflict(access, *counted))
    for first, *others in found.values():
        yield evolve(first, others=tuple(others))
