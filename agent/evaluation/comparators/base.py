"""What a comparator gets and gives."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from agent.evaluation.values import Floats, Mask
from agent.execution.device import Bytes

SAME, LESS, WRONG = "same", "less", "wrong"
_RANK = {SAME: 0, LESS: 1, WRONG: 2}


@frozen
class Expected:
    """The truth about one output of one run.

    ``original`` holds the bytes of the original's answer, ``written`` which lanes it wrote. ``oracle`` is the same in
    float64 arithmetic where there is one. ``spread`` is how far the original's own lanes moved (at most, and in the
    root mean square) when its inputs moved by one unit in the last place, or its blocks ran in another order; ``fine``
    is what of that float arithmetic does where inputs are stored in 16 bits (None: all of it), which counts beside an
    oracle: what the original loses by computing in 16 bits is in its own error then. ``exact``
    demands equality: the arithmetic was exact. ``prior`` is the byte that stood in the output before the run.
    ``inputs`` are for comparators that look things up. ``silent``: float64 contradicts the original itself here, so
    this output says nothing. ``places`` are the true indices of the lanes where only some are held.
    """

    name: str
    dtype: str
    original: Bytes = field(repr=False)
    written: Mask = field(repr=False)
    kind: str = "numeric"
    oracle: Floats | None = field(default=None, repr=False)
    spread: float = 0.0
    spread_rms: float = 0.0
    fine: float | None = None
    fine_rms: float | None = None
    exact: bool = False
    tolerance: float | None = None
    prior: int = 0
    inputs: Mapping[str, tuple[str, Bytes]] = field(factory=dict, repr=False)
    silent: bool = False
    places: npt.NDArray[np.int64] | None = field(default=None, repr=False)


@frozen
class Errors:
    """Errors against the oracle (against the original where there is none), relative to the output's scale: the
    largest, and the root mean square relative to that of the output. ``apart`` counts lanes where both precisions took
    another branch than float64 does. ``own`` is what the budget is a multiple of, the larger of the original's error
    and sensitivity (twice the latter without an oracle); ``units`` is what is allowed beside it. ``coarser``: so many
    times as much does the next lower precision err."""

    candidate: float
    original: float
    candidate_rms: float
    original_rms: float
    limit: float
    limit_rms: float
    scale: float
    apart: int = 0
    own: float = 0.0
    own_rms: float = 0.0
    units: float = 0.0
    coarser: float = 1.0


@frozen
class Comparison:
    """``grade``: ``same``, ``less`` or ``wrong``. ``message`` names the first bad lane and how many there are."""

    output: str
    grade: str
    message: str = ""
    index: int | None = None
    errors: Errors | None = None


Comparator = Callable[[Expected, Bytes], Comparison]
COMPARATORS: dict[str, Comparator] = {}


def comparator(name: str) -> Callable[[Comparator], Comparator]:
    def register(function: Comparator) -> Comparator:
        COMPARATORS[name] = function
        return function

    return register


def compare(expected: Expected, got: Bytes) -> Comparison:
    """Judge one output. Raises KeyError for a kind that nobody registered (the workload's reader refuses those)."""
    return COMPARATORS[expected.kind](expected, got)


def worst(comparisons: "list[Comparison]") -> Comparison:
    return max(comparisons, key=lambda comparison: _RANK[comparison.grade])


def first(mask: Mask) -> int:
    return int(np.argmax(mask))


def mismatch(
    expected: Expected, index: int, got: object, want: object, bad: int, total: int, grade: str = WRONG
) -> Comparison:
    """``y[3] is 0, expected 1.25 (5 of 64 differ)``."""
    more = f" ({bad} of {total} differ)" if total > 1 else ""
    index = place(expected, index)
    return Comparison(
        expected.name, grade, f"{expected.name}[{index}] is {show(got)}, expected {show(want)}{more}", index
    )


def place(expected: Expected, index: int) -> int:
    """The index in the whole output of a lane that is held."""
    return index if expected.places is None else int(expected.places[index])


def show(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)
