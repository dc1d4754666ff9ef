"""Passes over the banks that the accesses to one shared array take, for a given way to lay its elements out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product

from agent.analysis.accesses import Access, subscripts_of
from agent.analysis.affine import Poly
from agent.analysis.coalescing import BANKS, WORD, block_lanes
from agent.analysis.loops import trip_values
from agent.analysis.values import value
from agent.ideas.exchange.cost import LOOP_WEIGHT, lanes
from agent.ideas.view import View

Layout = Callable[[tuple[int, ...]], int]
"""Where an element lies, counted in elements, by its subscripts."""

MOST_CASES = 64
POWERS = (1, 2, 4, 8, 16, 32)
"""What a factor that all threads share may be, where nothing says (``offset`` in the tree of a scan)."""
TURNS = 4


def passes(
    view: View, accesses: Sequence[Access], layouts: Sequence[Layout], bytes_each: int, extent: int
) -> list[float] | None:
    """The sum over all accesses for each layout: the mean over several turns of the loops around it, weighted by how
    deep it stands in loops. None where an index cannot be evaluated."""
    totals = [0.0] * len(layouts)
    for access in accesses:
        cases = list(islice(_cases(view, access), MOST_CASES))
        weight = LOOP_WEIGHT ** len(view.facts.loops_around(access.node))
        counted = [_wavefronts(case, layout, bytes_each, extent) for layout in layouts for case in cases]
        if not cases:
            return None
        for place in range(len(layouts)):
            own = counted[place * len(cases) : (place + 1) * len(cases)]
            totals[place] += weight * sum(own) / len(own)
    return totals


Lane = tuple[int, ...]


def _cases(view: View, access: Access) -> Iterator[list[Lane]]:
    """The subscripts of each lane of the first warp, in several turns."""
    indices = [value(node, view.facts.scope) for node in subscripts_of(access.node)]
    x, y, z = view.block
    if not indices or x is None or y is None or z is None:
        return
    warp = lanes(view, block_lanes((x, y, z)))
    for names in _turns(view, access, indices, warp[0]):
        found = [tuple(index.relative({**lane, **names}) for index in indices) for lane in warp]
        known = [tuple(part for part in lane if part is not None) for lane in found]
        if any(len(lane) < len(indices) for lane in known):
            return
        yield known


def _turns(view: View, access: Access, indices: Sequence[Poly], lane: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """Values for the loops' variables, and for factors without a value that all threads share."""
    choices: dict[str, list[int]] = {}
    for loop in view.facts.loops_around(access.node):
        if any(loop.atom in index.atoms for index in indices):
            turns = trip_values(loop, TURNS)
            if turns:
                choices[loop.atom.name] = turns
    for index in indices:
        for term, _ in index.terms:
            for atom in term:
                missing = atom.name not in lane and atom.name not in choices and atom.formula is None
                if len(term) > 1 and missing and atom.same_for_all:
                    choices[atom.name] = list(POWERS)
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def _wavefronts(case: Sequence[Lane], layout: Layout, bytes_each: int, extent: int) -> int:
    """The most distinct words that a bank is asked for; lanes of wide elements go in groups. Lanes past the array's
    extent are taken to be idle."""
    together = max(1, len(case) * WORD // max(WORD, bytes_each))
    total = 0
    for start in range(0, len(case), together):
        banks: dict[int, set[int]] = {}
        for lane in case[start : start + together]:
            if len(lane) == 1 and not 0 <= lane[0] < extent:
                continue
            word = layout(lane) * bytes_each // WORD
            banks.setdefault(word % BANKS, set()).add(word)
        total += max((len(words) for words in banks.values()), default=0)
    return total
