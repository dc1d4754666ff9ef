"""Buffers that lie where the original allows and the workload does not put them: one element past an aligned address,
and an output in the place of an input (that for what is shown only). In the emulator, at the base size."""

from collections.abc import Iterator

import numpy as np
from attrs import evolve

from agent.evaluation import runs
from agent.evaluation.comparators.base import WRONG, worst
from agent.evaluation.contracts.contract import element
from agent.evaluation.oracles.truth import Truth, disagreements, truth
from agent.evaluation.runs import ALL_CHECKS, BOUNDS, Case, Contents
from agent.evaluation.setting import FULL, checker
from agent.evaluation.sizes import bound_at
from agent.evaluation.trial import Ruling, Trial, passed, wrong
from agent.execution.compiler.result import Build
from agent.execution.device import Answer, Image, Request
from agent.workload.binding import Bound, BoundBuffer
from agent.workload.generators import families
from agent.workload.workload import Access

MOST_PAIRS = 3
"""Outputs and inputs of one size and type that are tried in one place."""


SECONDS = 3.0
"""For each run: a kernel that takes longer at its least size is not tried so."""


def placed(trial: Trial) -> Ruling:
    """A rewrite may count on what allocations have, aligned addresses and a place of its own for each buffer: where it
    does and the original did not, that is a line. That its answer changes with the address makes it wrong."""
    prepared = trial.prepared
    full = prepared.setting.depth == FULL
    if not (full or prepared.contract.unaligned) or not prepared.contract.deterministic or trial.build is None:
        return passed(trial, "")
    original = bound_at(prepared.workload, prepared.original, prepared.contract.base)
    candidate = bound_at(prepared.workload, trial.candidate, prepared.contract.base)
    chosen = runs.case(prepared.contract.base, families(prepared.workload)[0], runs.draw_seed())
    before = runs.contents(original, chosen)
    mine = runs.for_candidate(before, candidate)
    own = _run(trial, trial.build, mine)
    if own.status != "ok":  # other gates have looked at that, or it takes too long
        return passed(trial, "")
    trial, problem = _unaligned(trial, evolve(chosen, shift=element(original)), mine, own)
    if problem:
        return wrong(trial, problem)
    return passed(_in_place(trial, before, mine, own) if full else trial, "")


def _unaligned(trial: Trial, chosen: Case, mine: Contents, own: Answer) -> tuple[Trial, str]:
    """What is wrong with an answer that hangs on the address, if anything. Other last bits are not: who reads vectors
    may sum in another order where they begin elsewhere."""
    prepared = trial.prepared
    if not prepared.contract.unaligned:
        return trial, ""
    assert trial.build is not None
    answer = _run(trial, trial.build, evolve(mine, shift=chosen.shift))
    if any(fault.kind == "misaligned access" for fault in answer.faults):
        words = "buffers that are not aligned as cudaMalloc aligns them: the original takes them, this does not"
        return trial.unchecked(words), ""
    if answer.status != "ok" or not _differing(own, answer):
        return trial, ""
    known = truth(evolve(prepared.bench, setting=evolve(prepared.setting, device=checker(prepared.setting))), chosen)
    found = disagreements(known, answer) if isinstance(known, Truth) else []
    if not found or worst(found).grade != WRONG:
        return trial, ""
    return trial, f"{worst(found).message} ({chosen}, buffers {chosen.shift} bytes past an aligned address)"


def _in_place(trial: Trial, before: Contents, mine: Contents, own: Answer) -> Trial:
    prepared = trial.prepared
    assert trial.build is not None
    theirs: Answer | None = None
    for output, given in _pairs(before.bound):
        if prepared.setting.cancelled():
            return trial
        theirs = theirs or _run(trial, prepared.build, before)
        if theirs.status != "ok":
            return trial
        if not _same_there(trial, prepared.build, before, theirs, output, given):
            continue
        if _same_there(trial, trial.build, mine, own, output, given) is False:
            trial = trial.unchecked(f"{output} in the place of {given}: the original can be called so, this cannot")
    return trial


def _pairs(bound: Bound) -> Iterator[tuple[str, str]]:
    plain = [one for one in bound.buffers if not (one.scratch or one.symbol or one.name in bound.shown) and one.nbytes]
    found = [
        (output.name, given.name)
        for output in plain
        for given in plain
        if output.access is Access.OUT and given.access is Access.IN and _alike(output, given)
    ]
    yield from found[:MOST_PAIRS]


def _alike(one: BoundBuffer, other: BoundBuffer) -> bool:
    return (one.nbytes, one.dtype) == (other.nbytes, other.dtype)


def _same_there(trial: Trial, build: Build, before: Contents, apart: Answer, output: str, given: str) -> bool | None:
    """Whether it answers the same with one buffer for both, and not by luck: no thread reads what another overwrote.
    None where it did not come to an end."""
    images = tuple(
        Image(image.name, image.nbytes, image.contents, alias=given) if image.name == output else image
        for image in runs.images(before, runs.PRIORS[0])
    )
    answer = _asked(trial, build, before, images, ALL_CHECKS)
    if answer.status not in ("ok", "fault"):
        return None
    return answer.status == "ok" and not answer.faults and not _differing(apart, answer, but=given)


def _run(trial: Trial, build: Build, before: Contents) -> Answer:
    return _asked(trial, build, before, runs.images(before, runs.PRIORS[0]), BOUNDS)


def _asked(
    trial: Trial, build: Build, before: Contents, images: tuple[Image, ...], checks: frozenset[str]
) -> Answer:  # fmt: skip
    setting = trial.prepared.setting
    outputs = tuple(one.name for one in before.bound.buffers if not one.scratch and one.access is not Access.IN)
    return checker(setting).run(
        Request(
            build=build,
            steps=before.bound.steps,
            images=images,
            outputs=outputs,
            checks=checks,
            step_cap=setting.step_cap,
            seconds=min(setting.seconds, SECONDS),
            cancelled=setting.cancelled,
        )
    )


def _differing(one: Answer, other: Answer, but: str = "") -> str:
    """The first output whose bytes are others; empty where there is none."""
    strays = (name for name, data in one.outputs.items() if not np.array_equal(data, other.outputs[name]))
    return next((name for name in strays if name != but), "")
