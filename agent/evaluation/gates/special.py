"""NaN and infinity among the inputs: a line of its own, under the user's policy."""

import numpy as np
from attrs import evolve

from agent.evaluation import runs
from agent.evaluation.comparators import compare
from agent.evaluation.comparators.base import WRONG, first, show
from agent.evaluation.gates.correctness import not_ok
from agent.evaluation.oracles.truth import Truth, outputs, patient, truth
from agent.evaluation.runs import Contents
from agent.evaluation.sizes import bound_at
from agent.evaluation.trial import DIFFERS, NOT_APPLICABLE, NOT_CHECKED, Ruling, Trial, gate, passed, wrong
from agent.evaluation.values import Floats, from_floats, to_floats
from agent.execution.device import Answer, Bytes, Recipe
from agent.workload.dtypes import base, is_float
from agent.workload.floats import TINY
from agent.workload.generators import SPECIAL, families, special

DENORMALS = "denormals"


@gate(
    "special values",
    order=60,
    reason="a rewrite may treat NaN and infinity otherwise; whether that matters is the user's to say",
    answers="fast-math shortcuts that lose a NaN or a denormal, reordered maxima, sentinels that infinities meet",
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
    setting = patient(prepared.setting, known, proven=True)
    answer = runs.run(setting, trial.build, runs.for_candidate(known.before, bound))
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
            return _differs(trial, words)
    return _beside(trial, known, answer) or _denormals(trial)


def _beside(trial: Trial, known: Truth, answer: Answer) -> Ruling | None:
    """What stands beside them: a NaN somewhere else must not change what is a number in the original."""
    for item in known.expected:
        if item.kind == "numeric" and not item.silent:
            found = compare(item, answer.outputs[item.name])
            if found.grade == WRONG:
                return _differs(trial, f"NaN and infinity elsewhere in the inputs: {found.message}")
    return None


def _denormals(trial: Trial) -> Ruling:
    """Inputs of nothing but denormals and zeros: results below the normal range that the original keeps. Beside larger
    numbers a flushed one is no error that anybody could measure."""
    prepared = trial.prepared
    fine = "NaN and infinity come out where the original has them"
    if DENORMALS not in families(prepared.workload):
        return passed(trial, fine)
    assert trial.build is not None
    before = runs.contents(
        bound_at(prepared.workload, prepared.original, prepared.contract.base),
        runs.case(prepared.contract.base, DENORMALS, runs.draw_seed()),
    )
    tiny = evolve(before, given={name: _tiny(before, name) for name in before.given})
    bound = bound_at(prepared.workload, trial.candidate, prepared.contract.base)
    want = runs.run(prepared.setting, prepared.build, tiny)
    have = runs.run(prepared.setting, trial.build, runs.for_candidate(tiny, bound))
    if want.status != "ok" or have.status != "ok":
        return passed(trial.unchecked("inputs of nothing but denormals"), fine)
    for buffer in outputs(before.bound):
        if is_float(buffer.dtype):
            old, new = (to_floats(side.outputs[buffer.name], buffer.dtype) for side in (want, have))
            lost = (old != 0) & (np.abs(old) < TINY[base(buffer.dtype)[0]]) & (new == 0)
            if lost.any():
                words = f"denormal results of {buffer.name} are flushed to zero, the original keeps them"
                return _differs(trial, words)
    return passed(trial, f"{fine}; denormal results too")


def _tiny(before: Contents, name: str) -> Bytes | Recipe:
    """A buffer's contents with each normal float made zero."""
    data = before.given[name]
    buffer = next(item for item in before.bound.buffers if item.name == name)
    if not isinstance(data, np.ndarray) or not is_float(buffer.dtype):
        return data
    values = to_floats(data, buffer.dtype)
    return from_floats(np.where(np.abs(values) < TINY[base(buffer.dtype)[0]], values, 0.0), buffer.dtype)


def _differs(trial: Trial, words: str) -> Ruling:
    """What the user's policy makes of a difference."""
    if trial.prepared.setting.special == "refuse":
        return wrong(trial, words)
    return Ruling(DIFFERS, f"{words}; reported, not refused", trial.unchecked(words))


def _kind(values: Floats) -> "np.ndarray[tuple[int], np.dtype[np.int8]]":
    """0 finite, 1 NaN, 2 and 3 the infinities."""
    found = np.zeros(len(values), np.int8)
    found[np.isnan(values)] = 1
    found[np.isposinf(values)] = 2
    found[np.isneginf(values)] = 3
    return found
