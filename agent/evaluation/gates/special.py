"""NaN and infinity among the inputs: a line of its own, under the user's policy."""

import numpy as np

from agent.evaluation import runs
from agent.evaluation.comparators.base import first, show
from agent.evaluation.gates.correctness import not_ok
from agent.evaluation.sizes import bound_at
from agent.evaluation.trial import DIFFERS, NOT_APPLICABLE, NOT_CHECKED, Ruling, Trial, gate, passed, wrong
from agent.evaluation.truth import Truth, truth
from agent.evaluation.values import Floats, to_floats
from agent.workload.dtypes import is_float
from agent.workload.generators import SPECIAL, special


@gate(
    "special values",
    order=60,
    reason="a rewrite may treat NaN and infinity otherwise; whether that matters is the user's to say",
    answers="fast-math shortcuts and reordered maxima that lose a NaN, sentinels that infinities collide with",
)
def special_values(trial: Trial) -> Ruling:
    prepared = trial.prepared
    if not special(prepared.workload) or "numeric" not in prepared.contract.kinds.values():
        return Ruling(NOT_APPLICABLE, "no input may hold NaN or infinity", trial)
    known = truth(prepared.bench, runs.case(prepared.contract.base, SPECIAL, runs.draw_seed()))
    if not isinstance(known, Truth):
        words = "NaN and infinity in the inputs: the original does not run on them"
        return Ruling(NOT_CHECKED, words, trial.unchecked(words))
    assert trial.build is not None
    bound = bound_at(prepared.workload, trial.candidate, prepared.contract.base)
    answer = runs.run(prepared.setting, trial.build, runs.for_candidate(known.before, bound))
    if answer.status != "ok":
        return not_ok(trial, answer, "NaN and infinity in the inputs", known)
    for item in known.expected:
        if not is_float(item.dtype):
            continue
        want, have = to_floats(item.original, item.dtype), to_floats(answer.outputs[item.name], item.dtype)
        bad = item.written & (_kind(want) != _kind(have))
        if bad.any():
            at = first(bad)
            words = (
                f"NaN and infinity in the inputs: {item.name}[{at}] is {show(have[at])} where the original gives "
                f"{show(want[at])} ({int(bad.sum())} such places)"
            )
            if prepared.setting.special == "refuse":
                return wrong(trial, words)
            return Ruling(DIFFERS, f"{words}; reported, not refused", trial.unchecked(words))
    return passed(trial, "NaN and infinity come out where the original has them")


def _kind(values: Floats) -> "np.ndarray[tuple[int], np.dtype[np.int8]]":
    """0 finite, 1 NaN, 2 and 3 the infinities."""
    found = np.zeros(len(values), np.int8)
    found[np.isnan(values)] = 1
    found[np.isposinf(values)] = 2
    found[np.isneginf(values)] = 3
    return found
