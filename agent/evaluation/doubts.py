"""Luck and precision: an error beyond its budget is *less precise* only where the original could not err so itself.

A budget is a multiple of the error that the original was seen to make in the same run. With few outputs that is a
small sample: of one value the original may happen to be right to the last bit. So a doubt is settled on up to ``MOST``
further contents of the same sizes and family, drawn for it. With e the rewrite's error in the run that raised the
doubt, M the largest of the original's own (error or sensitivity) over the n runs so far, that of the doubt among them,
and u one unit in the last place:

    luck   e <= 4 M + 2 u
    less   e > 4 max(M, u/2) RARE^(-1/n) + 2 u, or the rewrite was beyond its own budget in each of the first ``ROW``
           further runs, or in ``OFTEN`` of all
    luck   neither after all of them

Why that is seldom wrong. Let the errors of original and rewrite in a run be normal with standard deviations s and at
most 2 s, one independent value a run (the worst case: more lanes make the largest error steadier). The density of |z|
is at most sqrt(2 / pi) < 0.8, so all n of the original's stay below t s with probability (0.8 t)^n at most: M
understates s by RARE^(1/n) about as seldom as RARE. Over n = 1 ... MOST + 1 and the distribution of e, the first
reason misjudges such a rewrite with probability 6e-8. One of its errors passes four times the original's with
probability p = 2 / pi atan(2 / 4) = 0.295; so all of ROW do with p^ROW = 3e-9, and OFTEN of MOST (binomial) with 2e-9.
Fifty comparisons, each by its largest error and its root mean square, stay below 1e-5 a verdict;
``tests/evaluation/test_doubts.py`` computes all that. The u/2 stands for what one rounding may add where M is zero
because results are exact by chance.

The other way round, an error that is gross in its own run (*wrong*, where 1/16 of the output's scale or what the next
lower precision explains is passed) may be so because the few values of an output cancelled. Such an error is *less
precise* where it is not gross beside the largest scale and the largest M of ``EASED`` further runs.

What is less precise is found nonetheless: an error of five times the original's in every run is beyond in ``ROW`` of
them, and one a thousand times as large, as half precision makes it, after four.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import islice

from attrs import evolve, field, frozen

from agent.evaluation import runs
from agent.evaluation.comparators import Comparison, Errors, Expected
from agent.evaluation.comparators.base import LESS, SAME, WRONG
from agent.evaluation.comparators.numeric import FACTOR, GROSS
from agent.evaluation.declared import Sample, judge_sample, sample_at
from agent.evaluation.draws import draw_seed, drawing
from agent.evaluation.oracles.truth import Bench, Truth, disagreements, patient, truth
from agent.evaluation.runs import Case
from agent.evaluation.sizes import bound_at
from agent.execution.compiler.result import Build
from agent.workload.program import Program

MOST = 32
ROW = 16
OFTEN = 26
RARE = 1e-9

EASED = 4
FEW_LANES = 64
"""The scale of an output of more lanes is no matter of luck."""

LUCK, BEYOND, OPEN = "luck", "beyond", "open"


@frozen
class Doubt:
    """A comparison beyond its budget and the case that it was made in, whole or on the blocks of ``sample``. ``cost``:
    thread-instructions of the original there."""

    case: Case
    comparison: Comparison
    cost: int = 0
    sample: Sample | None = field(default=None, repr=False)

    @property
    def kind(self) -> object:
        """What doubts have in common that the same further contents settle."""
        return evolve(self.case, seed=0), self.sample is not None, self.comparison.output

    @property
    def excess(self) -> float:
        """How far beyond: the larger of the two errors over what was allowed of it."""
        found = self.comparison.errors
        assert found is not None
        tiny = 1e-300
        return max(found.candidate / max(found.limit, tiny), found.candidate_rms / max(found.limit_rms, tiny))

    @property
    def price(self) -> float:
        """Thread-instructions until it is settled, if the original errs elsewhere as it did here."""
        certain = self.comparison.errors is not None and self.comparison.errors.limit > 0
        return self.cost * (min(MOST, -math.log10(RARE) / math.log10(max(self.excess, 1.1))) if certain else MOST)


def doubtful(found: Comparison, known: Sequence[Expected]) -> bool:
    """Whether luck may have made it: not where the user's own tolerance was passed."""
    stated = {item.name for item in known if item.tolerance is not None}
    return found.grade == LESS and found.errors is not None and found.output not in stated


def gathered(found: Sequence[Doubt]) -> list[Doubt]:
    """One doubt of each kind, the farthest beyond; what is settled cheaply comes first."""
    by_kind: dict[object, Doubt] = {}
    for item in found:
        other = by_kind.get(item.kind)
        by_kind[item.kind] = item if other is None or item.excess > other.excess else other
    return sorted(by_kind.values(), key=lambda item: (item.sample is not None, item.price))


def eased(bench: Bench, build: Build, candidate: Program, doubt: Doubt) -> Comparison:
    """The comparison of ``doubt``, called less precise where it was called wrong by chance only."""
    found = doubt.comparison
    if found.grade != WRONG or found.errors is None:
        return found
    more = [
        item
        for seen in islice(further(bench, build, candidate, doubt), EASED)
        for item in seen
        if item.output == found.output
    ]
    own = settled(found.errors, more).own
    explained = found.errors.candidate <= found.errors.coarser * (FACTOR * own + found.errors.units)
    return evolve(found, grade=LESS) if explained and not gross(found, more) else found


def gross(found: Comparison, more: Sequence[Comparison]) -> bool:
    """Whether no rounding in any precision explains it, beside the largest scale that the output had in all runs."""
    if found.grade != WRONG or found.errors is None:
        return found.grade == WRONG
    largest = max(item.errors.scale for item in (found, *more) if item.errors is not None)
    return found.errors.candidate * found.errors.scale > GROSS * largest


def further(bench: Bench, build: Build, candidate: Program, doubt: Doubt) -> Iterator[list[Comparison]]:
    """What the comparators say of original and rewrite on further contents. They follow from the secret seed of the
    doubt's own, so that a verdict which is repeated meets them again."""
    for turn in range(MOST):
        if bench.setting.cancelled():
            return
        with drawing(f"{doubt.case.seed:032x}", f"further {turn}"):
            if doubt.sample is not None:
                found = _sampled(bench, build, candidate, doubt.sample)
            else:
                found = _whole(bench, build, candidate, doubt.case)
        yield found


def _whole(bench: Bench, build: Build, candidate: Program, chosen: Case) -> list[Comparison]:
    """Nothing where either does not run: that is other gates' to judge."""
    known = truth(bench, evolve(chosen, seed=draw_seed()))
    if not isinstance(known, Truth):
        return []
    bound = bound_at(bench.workload, candidate, dict(chosen.sizes))
    answer = runs.run(patient(bench.setting, known), build, runs.for_candidate(known.before, bound))
    return disagreements(known, answer) if answer.status == "ok" else []


def _sampled(bench: Bench, build: Build, candidate: Program, sample: Sample) -> list[Comparison]:
    sizes = dict(sample.case.sizes)
    known = sample_at(bench, sizes, sample.near)
    if not isinstance(known, Sample):
        return []
    return list(judge_sample(bench.setting, known, build, bound_at(bench.workload, candidate, sizes)).comparisons)


@frozen
class Settled:
    """``state``: ``luck``, ``beyond`` (budget and doubt), ``open`` (the further runs do not tell yet). ``limit`` and
    ``limit_rms`` are what is allowed by what the original showed in ``runs`` runs, ``own`` its largest error there."""

    state: str
    limit: float
    limit_rms: float
    own: float
    runs: int


def settled(first: Errors, more: Sequence[Comparison]) -> Settled:
    """The rule, on the errors that raised a doubt and the comparisons of the same output on further contents."""
    seen = [item.errors for item in more if item.errors is not None]
    scaled = [max(1.0, item.scale / first.scale) for item in seen]  # as large as the doubt's output, or as their own
    own = max((first.own, *(item.own * by for item, by in zip(seen, scaled, strict=True))))
    own_rms = max((first.own_rms, *(item.own_rms * by for item, by in zip(seen, scaled, strict=True))))
    count = 1 + len(seen)
    sure = RARE ** (-1 / count)
    least = first.units / 4
    exact = first.limit == 0.0 and all(item.limit == 0.0 for item in seen)
    again = [item.grade != SAME for item in more]
    systematic = (len(again) >= ROW and all(again[:ROW])) or sum(again) >= OFTEN

    likely = FACTOR * own + first.units, FACTOR * own_rms + first.units
    possible = FACTOR * sure * max(own, least) + first.units, FACTOR * sure * max(own_rms, least) + first.units

    def within(allowed: tuple[float, float]) -> bool:
        return first.candidate <= allowed[0] and first.candidate_rms <= allowed[1]

    if exact:
        state = BEYOND if len(seen) >= MOST else OPEN
    elif within(likely):
        state = LUCK
    else:
        state = OPEN if within(possible) and not systematic else BEYOND
    limit, limit_rms = likely if state == LUCK else possible
    return Settled(state, limit, limit_rms, own, count)
