"""Bank conflicts of a kernel, one entry for each shared array."""

from collections.abc import Iterator

from attrs import evolve, frozen

from agent.analysis.accesses import Access, subscripts_of
from agent.analysis.affine import number
from agent.analysis.rules.traffic import passes
from agent.analysis.rules.view import View
from agent.analysis.values import value


@frozen(eq=False)
class Conflict:
    """The first access to an array that takes twice its ideal number of passes or more, and the others of the kind.
    ``padding`` mends it: the inner extent made one larger."""

    access: Access
    passes: int
    ideal: int
    padding: bool
    others: "tuple[Conflict, ...]" = ()


def conflicts(view: View, flat: bool) -> Iterator[Conflict]:
    """``flat``: arrays of one dimension; otherwise those of several."""
    found: dict[str, list[Conflict]] = {}
    for access in view.facts.accesses:
        if access.space != "shared" or access.root is None or access.atomic or (len(access.root.dims) < 2) != flat:
            continue
        counted = passes(access, view)
        if counted is not None and counted[0] >= 2 * counted[1]:
            found.setdefault(access.root.key, []).append(Conflict(access, *counted, _mended(access, view)))
    for first, *others in found.values():
        yield evolve(first, others=tuple(others))


def _mended(access: Access, view: View) -> bool:
    """Whether the access would need no more passes than it must with one more element in the inner extent."""
    subscripts = subscripts_of(access.node)
    if access.root is None or len(subscripts) != len(access.root.dims) or len(subscripts) < 2:
        return False
    index = number(0)
    for place, (dim, subscript) in enumerate(zip(access.root.dims, subscripts, strict=True)):
        if dim is None:
            return False
        extent = value(dim, view.facts.scope) + number(1 if place == len(subscripts) - 1 else 0)
        index = index * extent + value(subscript, view.facts.scope)
    counted = passes(evolve(access, index=index), view)
    return counted is not None and counted[0] <= counted[1]
