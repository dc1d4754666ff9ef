"""How an output is compared, one file per way; each registers itself. ``compare`` is the door.

Three grades, because "not the same bits" has three causes that a user must not see mixed: ``same`` (within the error
budget that the original itself sets), ``less`` (explained by arithmetic of the next lower precision) and ``wrong``.
"""

from agent.evaluation.comparators import argmax, distribution, exact, multiset, numeric
from agent.evaluation.comparators.base import COMPARATORS, Comparison, Errors, Expected, compare

__all__ = ["COMPARATORS", "Comparison", "Errors", "Expected", "compare"]

_REGISTERED = (argmax, distribution, exact, multiset, numeric)
