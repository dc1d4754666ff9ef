"""An extent as the largest of what single instructions reach: ``max(n, blocks * 128)``."""

from collections.abc import Mapping, Sequence

from agent.inference.probing.fitting import Form, fit, largest
from agent.inference.probing.launching import Settled
from agent.inference.probing.polynomials import Names, Polynomial
from agent.inference.probing.subject import Pointer
from agent.inference.probing.trial import BEFORE
from agent.workload import dtypes

_MOST = 3  # forms under one maximum
_MOST_SITES = 64


def largest_of(
    pointer: Pointer, samples: Sequence[Names], settled: Sequence[Settled], wanted: Sequence[int],
    divisors: Sequence[int], counts: Sequence[Polynomial],
) -> Form | None:  # fmt: skip
    """The fewest forms of single accesses, the largest of which is ``wanted`` (elements behind the pointer) everywhere;
    None where there are none. Accesses that some sample did not reach are left out: they have no form."""
    forms: dict[str, tuple[Form, list[int]]] = {}
    for reached in list(_by_site(pointer, settled).values())[:_MOST_SITES]:
        if len(reached) == len(settled):
            values = [reached[index] for index in range(len(settled))]
            form = fit(samples, values, divisors, counts)
            if form is not None:
                forms.setdefault(str(form.expression), (form, values))
    open_ = set(range(len(wanted)))
    chosen: list[Form] = []
    while open_ and len(chosen) < _MOST and forms:
        name = max(forms, key=lambda one: sum(forms[one][1][index] == wanted[index] for index in open_))
        form, values = forms.pop(name)
        open_ -= {index for index in open_ if values[index] == wanted[index]}
        chosen.append(form)
    return None if open_ else largest(chosen)


def _by_site(pointer: Pointer, settled: Sequence[Settled]) -> Mapping[int, dict[int, int]]:
    """Elements behind the pointer up to the last that each instruction touched, by instruction and sample."""
    size = dtypes.size_of(pointer.dtype)
    found: dict[int, dict[int, int]] = {}
    for index, one in enumerate(settled):
        for seen in one.seen:
            for reached in seen.reached:
                if reached.buffer == pointer.name:
                    at = found.setdefault(reached.site, {})
                    at[index] = max(at.get(index, 0), -(-(reached.high - BEFORE) // size))
    return found
