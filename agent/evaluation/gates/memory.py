"""Memory and races, in the emulator, for optimised and unoptimised code, against what the original does."""

import numpy as np
from attrs import evolve

from agent.evaluation import runs
from agent.evaluation.comparators.base import WRONG, worst
from agent.evaluation.contents.placing import placed
from agent.evaluation.contracts.contract import LIMIT, at
from agent.evaluation.contracts.probed import hold
from agent.evaluation.declared import TOO_LONG, largest
from agent.evaluation.gates.correctness import not_ok
from agent.evaluation.oracles.truth import Truth, disagreements, outputs, patient, truth
from agent.evaluation.prepare import unoptimised
from agent.evaluation.runs import ALL_CHECKS, Case
from agent.evaluation.setting import FULL, checker
from agent.evaluation.sizes import Sizes, bound_at
from agent.evaluation.trial import Ruling, Trial, gate, passed, undecided, wrong
from agent.execution.compiler import build
from agent.execution.compiler.result import Build, CompileFailure
from agent.execution.device import Answer, Fault
from agent.workload.errors import WorkloadError
from agent.workload.program import Program

Hazards = frozenset[tuple[str, bool, bool]]

CHECKED = "checked"
CHECKED_BUDGET = 50_000_000
"""Thread-instructions of the original at the largest size that is checked."""

_REFUSED = ("race on a tested value", "read-only load of a written value")
"""No proof of a fault in an original: "has nobody been here?" is asked so by searches and flags that are right, and a
cache may happen to hear of a write. A rewrite that begins with it has no such claim."""

_NAMED = {
    "race on a polled flag": "a flag is polled that is written without volatile",
    "race of a test with an atomic": "a value is tested while others change it by atomics",
    "barrier of a split warp": "threads leave before a barrier that their warp comes to",
    "race behind a lock without a fence": "no fence follows the compare-and-swap that takes a lock",
}


@gate(
    "memory",
    order=80,
    reason="a race or a stray read can give right answers here and wrong ones on the card",
    answers="missing barriers, reads past the end, uninitialised shared memory, results that hang on the block order",
)
def memory(trial: Trial) -> Ruling:
    """Bounds, races, initialised reads and barriers at small sizes. A hazard refuses only if the original lacks it."""
    notes: list[str] = []
    for optimised in (True, False):
        built = _build(trial, trial.candidate, optimised)
        if isinstance(built, CompileFailure):
            trial = trial.unchecked(f"unoptimised code: {built.message}")
            continue
        for sizes in (*_sizes(trial), *(_large(trial) if optimised else ())):
            ruling = _checked(trial, built, sizes, optimised)
            if ruling.outcome != "passed":
                return ruling
            trial = ruling.trial
            notes += [ruling.reason] if ruling.reason else []
    ruling = _other_order(trial)
    if ruling.outcome != "passed":
        return ruling
    notes += [ruling.reason] if ruling.reason else []
    ruling = placed(ruling.trial)
    if ruling.outcome != "passed":
        return ruling
    return passed(ruling.trial, "; ".join(["no hazard that the original lacks", *dict.fromkeys(notes)]))


def _sizes(trial: Trial) -> list[Sizes]:
    tried = trial.prepared.contract.tried
    wanted = ("base", "primes") if trial.prepared.setting.depth == FULL else ("base",)
    return [tried[name] for name in wanted if name in tried] or [trial.prepared.contract.base]


def _large(trial: Trial) -> list[Sizes]:
    """The largest sizes that run checked in little time: a rewrite's loops may take more at a turn than the original's,
    and what races from one turn to the next shows only where there are several."""
    prepared = trial.prepared
    if prepared.setting.depth != FULL:
        return []
    held = prepared.cache.largest
    if CHECKED not in held:
        bench = evolve(prepared.bench, setting=evolve(prepared.setting, device=checker(prepared.setting)))
        try:
            sizes = largest(bench, prepared.contract, CHECKED_BUDGET)
        except WorkloadError:
            sizes = None
        held[CHECKED] = runs.case(sizes, _family(trial), prepared.cases[0].seed) if sizes else None
    found = held[CHECKED]
    return [dict(found.sizes)] if found is not None else []


def _build(trial: Trial, program: Program, optimised: bool) -> Build | CompileFailure:
    options = trial.prepared.setting.options
    if optimised and trial.build is not None and program is trial.candidate:
        return trial.build
    chosen = options if optimised else unoptimised(options)
    return build(program, chosen, cancelled=trial.prepared.setting.cancelled)


def _checked(trial: Trial, built: Build, sizes: Sizes, optimised: bool) -> Ruling:
    answer = _run(trial, trial.candidate, built, sizes)
    kind = "" if optimised else "unoptimised code, "
    words = f"{kind}{Case(tuple(sizes.items()), _family(trial), 0)}"
    if answer.status not in ("ok", "fault"):
        if answer.status == "cancelled":
            return undecided(trial, "cancelled")
        return passed(trial.unchecked(f"memory and races, {words}: {answer.message or answer.status}"), "")
    # what is endless has been refused by now: that limit is our own
    ended = all(fault.kind != LIMIT for fault in answer.faults)
    if not ended:
        trial = trial.unchecked(f"memory and races, {words}: {TOO_LONG}")
    allowed = _hazards_of_original(trial, sizes, optimised)
    if allowed is None:
        return passed(trial.unchecked(f"memory and races, {words}: the original does not run there"), "")
    new = [fault for fault in answer.faults if fault.kind != LIMIT and _hazard(fault) not in allowed]
    bad = [fault for fault in new if not fault.benign or fault.kind in _REFUSED]
    if bad:
        return wrong(trial, f"{at(bad[0])}; the original has none ({words})", bad[0])
    return passed(trial, "; ".join(_named(kind, new) for kind in dict.fromkeys(fault.kind for fault in new)))


def _named(kind: str, faults: list[Fault]) -> str:
    """A race that gives no wrong result by itself is worth a word."""
    line = next(fault.where.line for fault in faults if fault.kind == kind)
    return f"{_NAMED.get(kind, 'several threads write equal values')} (line {line})"


def _family(trial: Trial) -> str:
    return trial.prepared.cases[0].family


def _run(trial: Trial, program: Program, built: Build, sizes: Sizes) -> Answer:
    prepared = trial.prepared
    bound = bound_at(prepared.workload, program, sizes)
    before = runs.contents(bound, runs.case(sizes, _family(trial), prepared.cases[0].seed))
    return runs.run(prepared.setting, built, before, checks=ALL_CHECKS, device=checker(prepared.setting), seconds=30.0)


def _hazard(fault: Fault) -> tuple[str, bool, bool]:
    """What of a fault two programs may have in common. Bytes of global memory that nobody wrote are read by programs
    that throw them away; those of shared memory are another matter."""
    return fault.kind, fault.benign, "shared memory" in fault.message


def _hazards_of_original(trial: Trial, sizes: Sizes, optimised: bool) -> Hazards | None:
    """Found once for each size and kind of code. Where the original does not compile so, it excuses nothing; None
    where it does not end."""
    held = trial.prepared.cache.hazards
    key = (tuple(sizes.items()), optimised)
    if key not in held:
        original = trial.prepared.original
        built = trial.prepared.build if optimised else _build(trial, original, optimised)
        answer = None if isinstance(built, CompileFailure) else _run(trial, original, built, sizes)
        if answer is not None:
            hold(trial.prepared.workload, answer, sizes)
        if answer is not None and answer.status not in ("ok", "fault"):
            held[key] = None
        else:
            held[key] = frozenset(map(_hazard, answer.faults)) if answer else frozenset()
    return held[key]


def _known(trial: Trial) -> Truth | Answer | None:
    """What the original answers in the emulator to the first case."""
    prepared = trial.prepared
    chosen = prepared.cases[0]
    if prepared.setting.device.emulated:
        return prepared.cache.truths.get(chosen)
    if prepared.cache.emulated is None:
        setting = evolve(prepared.setting, device=checker(prepared.setting))
        prepared.cache.emulated = truth(evolve(prepared.bench, setting=setting), chosen)
    return prepared.cache.emulated


def _other_order(trial: Trial) -> Ruling:
    """Blocks in another order, and buffers at other addresses: still right, and the same bits if the original's are.
    In the emulator, also beside a card: there threads meet in one order nearly always, and which outputs belong
    together is not seen."""
    prepared, built = trial.prepared, trial.build
    known = _known(trial)
    if not isinstance(known, Truth) or built is None:
        return passed(trial, "")
    bound = bound_at(prepared.workload, trial.candidate, dict(known.case.sizes))
    before = runs.for_candidate(known.before, bound)
    setting = patient(evolve(prepared.setting, device=checker(prepared.setting)), known, proven=True)
    plain = runs.run(setting, built, before)
    if plain.status != "ok":
        if prepared.setting.device.emulated:
            return not_ok(trial, plain, str(known.case), known)
        return passed(trial.unchecked(f"blocks in another order: {plain.message or plain.status}"), "")
    turned = runs.run_reordered(setting, built, before, moved=True)
    if turned.status != "ok":
        trial = trial.unchecked("blocks in another order: they wait for one another")
        turned = runs.run(setting, built, before, moved=True)
        if turned.status != "ok":
            return not_ok(trial, turned, f"{known.case}, the buffers at other addresses", known)
    found = disagreements(known, turned)
    if found and worst(found).grade == WRONG:
        where = "with blocks in another order, or buffers at other addresses,"
        return wrong(trial, f"{where} {worst(found).message} ({known.case})")
    same = all(
        np.array_equal(plain.outputs[item.name], turned.outputs[item.name]) for item in outputs(known.before.bound)
    )
    if same or not prepared.contract.deterministic:
        return passed(trial, "")
    words = "its last bits depend on the order of the blocks, the original's do not"
    return passed(trial.unchecked(words), words)
