"""The candidate against the original: every family, every size, contents that nobody knew, and the declared size."""

from collections.abc import Iterator, Sequence
from time import monotonic

import numpy as np
from attrs import evolve

from agent.evaluation import runs
from agent.evaluation.comparators.base import WRONG, Comparison, Expected, worst
from agent.evaluation.contents.aimed import Aim, aim, near
from agent.evaluation.contents.planting import has_small
from agent.evaluation.contracts.contract import at, serious
from agent.evaluation.declared import TOO_LONG, Sample, above, judge_sample, largest, sample_at, within
from agent.evaluation.doubts import FEW_LANES, Doubt, eased
from agent.evaluation.draws import drawing
from agent.evaluation.glimpse import crowded, glimpse, words
from agent.evaluation.left_out import certain, comparable
from agent.evaluation.oracles.truth import Truth, disagreements, patient, truth
from agent.evaluation.ran import ran
from agent.evaluation.runs import PRIORS, Case
from agent.evaluation.setting import FULL
from agent.evaluation.sizes import Draw, bound_at, declared, describe, hidden
from agent.evaluation.trial import Ruling, Trial, gate, passed, undecided, wrong
from agent.execution.device import Answer
from agent.workload.errors import WorkloadError
from agent.workload.generators import families
from agent.workload.workload import Access

WHOLE_BUDGET = {"screen": 10_000_000, "full": 200_000_000}
"""Thread-instructions of the original at the largest size that is run whole."""

SHORT = 1 << 16
"""One more than an unsigned index of 16 bits holds."""

LARGE = 8 << 20
TOO_LARGE = 1 << 30
"""Bytes of all buffers: above the first the card makes contents itself, above the second no truth is kept."""

_SAMPLED = 4
"""So many of the sizes that only one of the two names, and that are too large to run whole, run on sampled blocks."""

_SOFT_SECONDS = {"screen": 20.0, "full": 90.0}
"""After this long no further case is begun; those left out are named."""


@gate(
    "correctness",
    order=50,
    reason="right means right for inputs and sizes that the author of the rewrite never saw",
    answers=(
        "hard-coded sizes, dropped tails, branches on the size or on the values, stale or partly written outputs, "
        "writes to inputs, answers learnt by heart"
    ),
)
def correctness(trial: Trial) -> Ruling:
    start = monotonic()
    shapes: set[object] = set()
    aimed = aim(trial, _largest(trial))
    for chosen in (*_cases(trial), *aimed.cases):
        if trial.prepared.setting.cancelled():
            return undecided(trial, "cancelled")
        if trial.sizes and monotonic() - start > _SOFT_SECONDS[trial.prepared.setting.depth]:
            trial = trial.unchecked(f"{chosen} (out of time)")
            continue
        ruling = _one(trial, chosen, both=chosen.sizes not in shapes)
        shapes.add(chosen.sizes)
        if ruling.outcome != "passed":
            return ruling
        trial = ruling.trial
    for look in (_declared, _beyond, lambda found: _aimed(found, aimed)):
        ruling = look(trial)
        if ruling.outcome != "passed":
            return ruling
        trial = ruling.trial
    count = len(trial.comparisons) + len(trial.doubts)
    if not count:
        return undecided(trial, "nothing was compared: the plan has no outputs")
    return passed(trial, f"{count} outputs compared; {len(trial.families)} families, {len(trial.sizes)} sizes")


def _cases(trial: Trial) -> Iterator[Case]:
    """A screen repeats the original's cached cases and adds one that is drawn now; a full verdict draws all anew."""
    prepared = trial.prepared
    contract, names = prepared.contract, families(prepared.workload)
    yield from _full(trial) if prepared.setting.depth == FULL else prepared.cases
    if contract.base:
        yield runs.case(hidden(contract.base, contract.rules, Draw()), names[0], runs.draw_seed())
    whole = _largest(trial)
    if whole is not None:
        yield whole
    if prepared.setting.depth == FULL:
        yield from (alike for case in (_base(trial), whole) if case for alike in _alike_everywhere(case))
        yield from _small(trial)
        yield from _past_short(trial)


def _small(trial: Trial) -> Iterator[Case]:
    """The base size with floats near zero: relative to outputs near one, what a formula loses there is nothing."""
    chosen = _base(trial)
    bound = bound_at(trial.prepared.workload, trial.prepared.original, dict(chosen.sizes))
    if any(has_small(buffer) for buffer in bound.buffers if not buffer.scratch and buffer.access is not Access.OUT):
        yield evolve(chosen, seed=runs.draw_seed(), small=True)


def _alike_everywhere(chosen: Case) -> Iterator[Case]:
    """The least element everywhere, and the largest: an even seed and an odd one."""
    for odd in (0, 1):
        yield evolve(chosen, seed=runs.draw_seed() // 2 * 2 + odd, alike=True)


def _past_short(trial: Trial) -> Iterator[Case]:
    """Each size alone past what an index of 16 bits holds, where the declared one is not and that runs whole."""
    prepared = trial.prepared
    top, bench = declared(prepared.workload), evolve(prepared.bench, setting=prepared.setting)
    for name, value in prepared.contract.base.items():
        sizes = {**prepared.contract.base, name: prepared.contract.rules[name].fit(SHORT + value)}
        if top[name] > SHORT:
            continue
        try:
            if within(bench, sizes, WHOLE_BUDGET[FULL] // 4):
                yield runs.case(sizes, families(prepared.workload)[0], runs.draw_seed())
        except WorkloadError:
            continue


def _base(trial: Trial) -> Case:
    return runs.case(trial.prepared.contract.base, families(trial.prepared.workload)[0], 0)


def _largest(trial: Trial) -> Case | None:
    """The largest size that runs whole in the time that this depth has; for a screen its truth is kept, and on a card
    there is none, where the declared size runs whole."""
    prepared = trial.prepared
    held, depth = prepared.cache.largest, prepared.setting.depth
    if depth != FULL and not prepared.setting.device.emulated:
        return None
    if depth not in held:
        sizes = largest(evolve(prepared.bench, setting=prepared.setting), prepared.contract, WHOLE_BUDGET[depth])
        with drawing(prepared.setting.secret, f"largest, {depth}"):
            held[depth] = runs.case(sizes, families(prepared.workload)[0], runs.draw_seed()) if sizes else None
    found = held[depth]
    return evolve(found, seed=runs.draw_seed()) if found is not None and depth == FULL else found


def _full(trial: Trial) -> Iterator[Case]:
    prepared = trial.prepared
    contract, names = prepared.contract, families(prepared.workload)
    every = tuple(dict.fromkeys((*names, *prepared.selftest.families)))
    for family in every:
        yield runs.case(contract.base, family, runs.draw_seed())
    for name, sizes in contract.tried.items():
        if dict(sizes) != dict(contract.base):
            yield runs.case(sizes, every[0], runs.draw_seed())
            if name in ("primes", "plus one") and len(every) > 1:
                yield runs.case(sizes, every[-1], runs.draw_seed())
    if contract.base:
        yield runs.case(hidden(contract.base, contract.rules, Draw()), every[-1], runs.draw_seed())


def _truth(trial: Trial, chosen: Case) -> Truth | Answer:
    held = trial.prepared.cache.truths
    if chosen in held:
        return held[chosen]
    found = truth(trial.prepared.bench, chosen)
    if isinstance(found, Truth) and _again(trial, chosen) and (not chosen.lazy or _nbytes(trial) <= TOO_LARGE):
        held[chosen] = found
    return found


def _again(trial: Trial, chosen: Case) -> bool:
    """Whether a case is run again for the next candidate."""
    prepared = trial.prepared
    return chosen in prepared.cases or chosen in prepared.cache.largest.values() or chosen == prepared.cache.declared


def _one(trial: Trial, chosen: Case, both: bool) -> Ruling:
    """One case; ``both``: over both prior contents, as the first case of every size is."""
    prepared = trial.prepared
    try:
        known = _truth(trial, chosen)
        bound = bound_at(prepared.workload, trial.candidate, dict(chosen.sizes))
    except WorkloadError as error:
        return wrong(trial, f"{error} ({chosen})")
    if isinstance(known, Answer):
        if known.status == "cancelled":
            return undecided(trial, "cancelled")
        problem = unwell(trial)
        if problem:
            return undecided(trial, problem)
        return passed(trial.unchecked(f"{chosen}: the original does not run there{_because(known)}"), "")
    before = runs.for_candidate(known.before, bound)
    assert trial.build is not None
    setting = patient(prepared.setting, known, proven=bool(trial.sizes))
    found: list[Comparison] = []
    first: Answer | None = None
    last: Answer | None = None
    for prior in PRIORS if both or not prepared.setting.device.emulated else PRIORS[:1]:
        answer = runs.run(setting, trial.build, before, prior=prior)
        if answer.status != "ok":
            return not_ok(trial, answer, str(chosen), known)
        if last is None or not _alike(known, last, answer):
            found += disagreements(known, answer, prior)
        first, last = first or answer, answer
        if found and worst(found).grade == WRONG:
            break
    found = _eased(trial, chosen, known.expected, found)
    if first is not None:
        trial = evolve(trial, inexact=trial.inexact.union(known.answer.inexact, first.inexact))
    if trial.kept and first is not None:
        trial = evolve(trial, runs=(*trial.runs, ran(chosen, known, found, first)))
    return _record(trial, chosen, known, found)


def _eased(
    trial: Trial, chosen: Case, known: Sequence[Expected], found: Sequence[Comparison], sample: Sample | None = None
) -> list[Comparison]:
    """With those that are gross by chance called less precise."""
    assert trial.build is not None
    few = {item.name for item in known if np.count_nonzero(item.written) <= FEW_LANES}
    bench = evolve(trial.prepared.bench, setting=trial.prepared.setting)
    return [
        eased(bench, trial.build, trial.candidate, Doubt(chosen, item, sample=sample)) if item.output in few else item
        for item in found
    ]


def _alike(known: Truth, one: Answer, other: Answer) -> bool:
    """Whether two runs over different prior contents gave the same bits, in outputs that the original writes whole:
    what was found of the first holds for the second."""
    whole = all(item.written.all() for item in known.expected)
    same = all(np.array_equal(data, other.outputs[name]) for name, data in one.outputs.items())
    return whole and same and one.changed == other.changed


def _record(trial: Trial, chosen: Case, known: Truth, found: list[Comparison]) -> Ruling:
    if found and worst(found).grade == WRONG:
        return wrong(trial, f"{worst(found).message} ({chosen})")
    size = describe(dict(chosen.sizes))
    for item in known.expected:
        if item.silent:
            trial = trial.unchecked(f"{item.name} at {chosen}: float64 contradicts the original itself there")
    trial = evolve(
        trial.compared(chosen, known.expected, found, known.answer.thread_instructions),
        families=tuple(dict.fromkeys((*trial.families, chosen.family))),
        sizes=tuple(dict.fromkeys((*trial.sizes, size))),
        # what the next candidate will meet again is not told
        seeds=trial.seeds if _again(trial, chosen) else (*trial.seeds, chosen.seed),
        oracle_used=trial.oracle_used or known.oracle,
        largest=_larger(trial, chosen),
    )
    return passed(trial, "")


def _larger(trial: Trial, chosen: Case) -> str:
    """The larger of two sizes, by the bytes of all buffers."""

    def nbytes(words: str) -> int:
        sizes = {name: int(value) for name, _, value in (part.partition("=") for part in words.split()) if value}
        bound = bound_at(trial.prepared.workload, trial.prepared.original, sizes)
        return sum(buffer.nbytes for buffer in bound.buffers)

    size = describe(dict(chosen.sizes))
    return size if not trial.largest or nbytes(size) > nbytes(trial.largest) else trial.largest


def not_ok(trial: Trial, answer: Answer, where: str, known: Truth | Sample) -> Ruling:
    """A run that did not end well: the candidate's fault, or ours. It had all the steps that what is ``known`` of the
    original allows: who passes their limit has done far more."""
    bad = serious(answer.faults)
    if bad:
        more = ""
        if bad[0].kind == "step limit":
            needed = known.steps if isinstance(known, Sample) else known.answer.thread_instructions
            more = f"; the original ends after {needed:,} thread-instructions"
        return wrong(trial, f"{at(bad[0])}{more} ({where})", bad[0])
    if answer.status == "crashed":
        return wrong(trial, f"crashed: {answer.message} ({where})")
    if answer.status == "timeout" and isinstance(known, Truth):
        return undecided(trial, f"{answer.message}; the original ends after {known.answer.seconds:.3g} s ({where})")
    if answer.status == "unavailable":
        return undecided(trial, f"{answer.message} ({where}): that says nothing of the rewrite; run it again")
    return undecided(trial, f"{answer.message or answer.status} ({where})")


def unwell(trial: Trial) -> str:
    """Why a device runs nothing any more, not even what the original did before; empty where it is well. That it does
    not run one thing says nothing: that may be too large for it."""
    prepared = trial.prepared
    first = prepared.cases[0]
    before = runs.contents(bound_at(prepared.workload, prepared.original, dict(first.sizes)), first)
    answer = runs.run(prepared.setting, prepared.build, before)
    if answer.status in ("ok", "cancelled"):
        return ""
    said = answer.message or answer.status
    return f"{prepared.setting.device.name} does not run any more what it ran before: {said}. Run it again"


def _because(answer: Answer) -> str:
    return f": {answer.message}" if answer.message and answer.status in ("refused", "timeout", "unavailable") else ""


def _declared(trial: Trial) -> Ruling:
    """The declared size: whole on a GPU, on sampled blocks in the emulator."""
    prepared = trial.prepared
    known = prepared.sample()
    size = describe(declared(prepared.workload))
    if not prepared.setting.device.emulated:
        return _whole(trial, _declared_case(trial))
    if size in trial.sizes:
        return passed(trial, "")
    if not isinstance(known, Sample):
        return passed(trial.unchecked(f"the declared size {size}: {known.reason}"), "")
    if describe(dict(known.case.sizes)) in trial.sizes:
        return passed(trial.unchecked(f"the declared size {size}: {known.note}"), "")
    ruling = _on_sample(trial, known)
    note = f"the declared size {size}: {known.note}"
    return evolve(ruling, trial=ruling.trial.unchecked(note)) if known.note and ruling.outcome == "passed" else ruling


def _whole(trial: Trial, chosen: Case) -> Ruling:
    """The declared size, all of it. A screen does not fetch large outputs where parts and digests tell."""
    prepared = trial.prepared
    assert trial.build is not None
    try:
        bound = bound_at(prepared.workload, trial.candidate, dict(chosen.sizes))
        seen = glimpse(prepared, trial.build, bound, chosen)
    except WorkloadError as error:
        return wrong(trial, f"{error} ({chosen})")
    if seen is not None:
        return _record(trial.unchecked(words(prepared, chosen)), chosen, *seen)
    full = crowded(prepared, chosen)
    if full:
        return undecided(trial, f"parts of the outputs leave a doubt, and {full}: state smaller sizes ({chosen})")
    return _one(trial, chosen, both=True)


def _declared_case(trial: Trial) -> Case:
    """A full verdict draws it anew; a screen keeps one for all candidates, and its truth where that is not too large.
    Of large sizes the card makes the contents itself; small ones are at hand here, for whoever asks."""
    prepared = trial.prepared
    kept = prepared.cache.declared
    if kept is not None and prepared.setting.depth != FULL:
        return kept
    if prepared.setting.depth == FULL:
        return _at_declared(trial)
    with drawing(prepared.setting.secret, "declared"):
        prepared.cache.declared = _at_declared(trial)
    return prepared.cache.declared


def _at_declared(trial: Trial) -> Case:
    workload, large = trial.prepared.workload, _nbytes(trial) > LARGE
    return runs.case(declared(workload), families(workload)[0], runs.draw_seed(), lazy=large)


def _nbytes(trial: Trial) -> int:
    return sum(buffer.nbytes for buffer in bound_at(trial.prepared.workload, trial.prepared.original).buffers)


def _beyond(trial: Trial) -> Ruling:
    """Past the declared sizes, for what is shown to a user: on sampled blocks, or whole on a card."""
    prepared = trial.prepared
    if prepared.setting.depth != FULL or not prepared.workload.sizes:
        return passed(trial, "")
    if not prepared.setting.device.emulated or _affordable(trial):
        return _above(trial)
    known = prepared.sample_above()
    if not isinstance(known, Sample):
        return passed(trial.unchecked(f"sizes above the declared ones: {known.reason}"), "")
    ruling = _on_sample(trial, known)
    return evolve(ruling, trial=evolve(ruling.trial, beyond=True))


def _affordable(trial: Trial) -> bool:
    """Whether sizes above the declared ones run whole in the emulator: what nobody writes shows only there."""
    prepared = trial.prepared
    sizes = above(declared(prepared.workload), prepared.contract)
    try:
        return within(evolve(prepared.bench, setting=prepared.setting), sizes, WHOLE_BUDGET[prepared.setting.depth])
    except WorkloadError:
        return False


def _aimed(trial: Trial, aimed: Aim) -> Ruling:
    """Blocks that stand where the numbers of one side point, at the declared size where that did not run whole; and,
    for a full verdict, sizes of those numbers that are too large to run whole."""
    prepared = trial.prepared
    size = declared(prepared.workload)
    trial = trial.unchecked(*aimed.left)
    if not prepared.setting.device.emulated:
        return passed(trial, "")
    bench = evolve(prepared.bench, setting=prepared.setting)
    places = near(trial, aimed)
    wanted = [(size, places)] if places and describe(size) not in trial.sizes else []
    if prepared.setting.depth == FULL:
        wanted += [(sizes, ()) for sizes in aimed.larger[:_SAMPLED]]
    for sizes, parts in wanted:
        first = prepared.sample()
        known = sample_at(bench, sizes, parts) if isinstance(first, Sample) else first
        if not isinstance(known, Sample):
            what = f"the parts of {describe(sizes)}" if parts else f"the size {describe(sizes)},"
            trial = trial.unchecked(f"{what} that a number of one of the two programs points to: {known.reason}")
            continue
        ruling = _on_sample(trial, known)
        if ruling.outcome != "passed":
            return ruling
        trial = evolve(ruling.trial, sampled=trial.sampled or ruling.trial.sampled)
    return passed(trial, "")


def _above(trial: Trial) -> Ruling:
    """Whole, while it is not too large."""
    prepared = trial.prepared
    sizes = above(declared(prepared.workload), prepared.contract)
    try:
        nbytes = sum(buffer.nbytes for buffer in bound_at(prepared.workload, prepared.original, sizes).buffers)
    except WorkloadError as error:
        return passed(trial.unchecked(f"sizes above the declared ones: {error}"), "")
    if nbytes > TOO_LARGE:
        return passed(trial.unchecked(f"sizes above the declared ones: {nbytes / 1e9:.1f} GB of buffers"), "")
    chosen = runs.case(sizes, families(prepared.workload)[0], runs.draw_seed(), lazy=nbytes > LARGE)
    ruling = _one(trial, chosen, both=True)
    return evolve(ruling, trial=evolve(ruling.trial, beyond=describe(sizes) in ruling.trial.sizes))


def _on_sample(trial: Trial, known: Sample) -> Ruling:
    """The candidate on the blocks that the original's sample has."""
    prepared = trial.prepared
    assert trial.build is not None
    try:
        bound = bound_at(prepared.workload, trial.candidate, dict(known.case.sizes))
    except WorkloadError as error:
        return wrong(trial, f"{error} ({describe(dict(known.case.sizes))})")
    found = judge_sample(prepared.setting, known, trial.build, bound)
    where = f"{describe(dict(known.case.sizes))}, sampled blocks"
    if found.answer.status != "ok":
        if found.answer.status == "fault" and certain(found.answer, bound, trial.build):
            return not_ok(trial, found.answer, where, known)
        why = found.answer.message or (found.answer.faults[0].message if found.answer.faults else found.answer.status)
        return passed(trial.unchecked(f"{where}: {why}"), "")
    if found.left:
        trial = trial.unchecked(f"{where}: {found.left} of the places that numbers point to, {TOO_LONG}")
    compared = _eased(trial, known.case, known.known, found.comparisons, known)
    if compared and worst(compared).grade == WRONG:
        if not comparable(known.before.bound, bound, known.blocks):
            why = "both plans leave parts of the work undone, and not the same ones"
            return passed(trial.unchecked(f"{where}: {why}"), "")
        return wrong(trial, f"{worst(compared).message} ({where})")
    if not found.compared:
        return passed(trial.unchecked(f"{where}: the two grids have no finished part in common"), "")
    trial = evolve(
        trial.compared(known.case, known.known, compared, found.answer.thread_instructions, known),
        sampled=" and ".join(
            filter(None, (trial.sampled, f"{found.blocks} blocks at {describe(dict(known.case.sizes))}"))
        ),
    )
    return passed(trial, "")
