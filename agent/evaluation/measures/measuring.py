"""A candidate timed against the original: processes of their own, a control, and every timed output checked."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from agent.evaluation import runs
from agent.evaluation.draws import drawing
from agent.evaluation.measures.measurement import Measurement
from agent.evaluation.measures.statistics import decide, interval, seconds
from agent.evaluation.prepare import Prepared
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import Rule, Sizes, bound_at, describe
from agent.evaluation.trial import Trial
from agent.execution.timing import Digests, Entry, Race, Timed, Timer
from agent.workload.generators import families

APART = 0.05
"""The original beside the candidate may take so much longer than in processes that never saw it (and control noise)."""

ODD = 0.5
"""Part of the calls on which host and events may disagree before a timing is not believed."""

_SUM_SLACK = 1e-5
_SPREADS = 8.0


@frozen
class Effort:
    """How much is measured: processes, blocks in each (least, most), seconds in each, warm blocks."""

    processes: int
    blocks: tuple[int, int]
    budget: float
    warm: int


SCREEN = Effort(1, (6, 10), 0.6, 3)
CONFIRM = Effort(3, (8, 16), 1.0, 4)
ASIDE = Effort(1, (6, 8), 0.3, 0)
"""For each of the other sizes."""


@frozen
class Unmeasured:
    """Why there is no figure. ``wrong``: because the candidate did something that no right one does. ``again``: because
    of what may have been chance, and is another time's to tell."""

    reason: str
    wrong: bool = False
    again: bool = False


def measure(
    trial: Trial, timer: Timer, sizes: Sizes, effort: Effort, alone: Timed | None = None, then: int = 0
) -> Measurement | Unmeasured:
    """Time the candidate at ``sizes``, a second time where the first may have gone astray by chance. Raises
    WorkloadError where they cannot be bound. ``alone``: the original against itself, where that was timed already;
    ``then``: processes that will be wanted after this."""
    found = _once(trial, timer, sizes, effort, alone, then)
    if isinstance(found, Unmeasured) and found.again and not trial.prepared.setting.cancelled():
        trial.prepared.cache.controls.pop(_key(sizes, effort), None)
        found = _once(trial, timer, sizes, effort, alone, then)
    return found


def _once(
    trial: Trial, timer: Timer, sizes: Sizes, effort: Effort, alone: Timed | None, then: int
) -> Measurement | Unmeasured:
    prepared = trial.prepared
    assert trial.build is not None
    original = Entry(prepared.build, bound_at(prepared.workload, prepared.original, sizes))
    candidate = Entry(trial.build, bound_at(prepared.workload, trial.candidate, sizes))
    timer.ready(effort.processes + (alone is None))
    own = alone or control(prepared, timer, sizes, effort)
    if isinstance(own, Unmeasured):
        return own
    races, answers = [], []
    for _ in range(effort.processes):
        race = _race(prepared, (original, candidate), effort)
        timed = timer.race(race)
        if timed.status != "ok":
            return _failed(timed)
        races.append(race)
        answers.append(timed)
    timer.ready(effort.processes)
    timer.begin(effort.processes + then)
    notes: list[str] = []
    for race, timed in zip(races, answers, strict=True):
        checked = check_outputs(timer, race, timed)
        if isinstance(checked, Unmeasured):
            return checked
        notes += [checked] if checked else []
    return summary(describe(sizes), answers, own, notes, same_size=alone is None)


def control(prepared: Prepared, timer: Timer, sizes: Sizes, effort: Effort) -> Timed | Unmeasured:
    """The original against itself, in a process that never saw a candidate. A screen uses one for all candidates.
    Raises WorkloadError where the sizes cannot be bound."""
    original = Entry(prepared.build, bound_at(prepared.workload, prepared.original, sizes))
    key = _key(sizes, effort)
    held = prepared.cache.controls
    if key in held and effort.processes == 1:
        return held[key]
    with drawing(prepared.setting.secret, f"control, {describe(sizes)}, {effort.processes}"):
        race = _race(prepared, (original, original), effort)
    timed = timer.race(race)
    if timed.status != "ok":
        return Unmeasured(f"the original could not be timed: {timed.message or timed.status}")
    held[key] = timed
    return timed


def _key(sizes: Sizes, effort: Effort) -> object:
    return tuple(sizes.items()), effort


def _race(prepared: Prepared, sides: tuple[Entry, Entry], effort: Effort) -> Race:
    setting: Setting = prepared.setting
    return Race(
        sides,
        families(prepared.workload)[0],
        runs.draw_seed(),
        frozenset(name for name, kind in prepared.contract.kinds.items() if kind == "multiset"),
        effort.blocks,
        effort.warm,
        effort.budget,
        min(setting.seconds, 60.0),
        setting.cancelled,
    )


def _failed(timed: Timed) -> Unmeasured:
    """A timing that did not end well. What the candidate does while it is timed counts like any run."""
    bad = timed.status in ("fault", "crashed") and timed.side == 1
    return Unmeasured(f"while it was timed: {timed.message or timed.status}", wrong=bad)


def check_outputs(timer: Timer, race: Race, timed: Timed) -> str | Unmeasured:
    """Every timed output against what a fresh process that runs the candidate alone answers to the same seeds. A note
    where the candidate's own answers differ from run to run."""
    alone = timer.alone(race, timed)
    if alone.status != "ok" or alone.digests is None or timed.digests is None:
        return Unmeasured(f"the timed outputs could not be checked: {alone.message or alone.status}")
    if np.array_equal(alone.digests["hash"], timed.digests["hash"]):
        return ""
    again = timer.alone(race, timed)
    if again.status != "ok" or again.digests is None:
        return Unmeasured(f"the timed outputs could not be checked: {again.message or again.status}")
    return judge_digests(timed.digests, alone.digests, again.digests)


def judge_digests(timed: Digests, alone: Digests, again: Digests) -> str | Unmeasured:
    """Digests of timed calls, and of two runs alone. Where these two agree with each other, the timed ones must agree
    with them; where not, sums of the elements must, as far as two runs alone do."""
    steady = (alone["hash"] == again["hash"]).all(axis=(0, 1))
    strayed = steady & (timed["hash"] != alone["hash"])
    if strayed.any():
        bad, total = int(strayed.any(axis=(1, 2)).sum()), len(timed)
        return Unmeasured(
            f"a timed call gave another output than the same call in a process of its own ({bad} of {total} calls)",
            wrong=True,
        )
    spread = np.abs(alone["sum"] - again["sum"]).max(axis=(0, 1, 3), keepdims=True)
    for name in ("sum", "magnitude"):
        far = np.abs(timed[name] - alone[name]) > _SPREADS * spread + _SUM_SLACK * alone["magnitude"]
        if far.any():
            calls = int(far.any(axis=(1, 2, 3)).sum())
            return Unmeasured(
                f"the sums of timed outputs lie further off than two runs alone do ({calls} of {len(timed)} calls)",
                wrong=True,
            )
    if not alone["magnitude"][:, :, ~steady].any(axis=(0, 1, 3)).all():
        return Unmeasured("its outputs differ from run to run, so those of timed calls cannot be checked")
    return "its last bits differ from run to run: of timed outputs the sums were checked"


def summary(
    sizes: str, answers: Sequence[Timed], control: Timed, notes: Sequence[str], same_size: bool = True
) -> Measurement | Unmeasured:
    """One measurement from its processes' answers. ``control`` says how far equal code differs; where it was timed at
    the ``same_size``, also what the original takes by itself."""
    cold = [timed.cold for timed in answers]
    sets = min(timed.sets for timed in answers)
    doubt = _doubt(answers, control, sets, same_size)
    if doubt:
        return Unmeasured(doubt, again=True)
    found, own = interval(cold, sets), interval([control.cold], control.sets)
    warm = [timed.warm for timed in answers if timed.warm]
    return Measurement(
        sizes,
        found,
        interval(warm, sets) if warm else None,
        own,
        decide(found, own),
        seconds(cold, 0),
        seconds(cold, 1),
        (seconds(warm, 0), seconds(warm, 1)) if warm else None,
        tuple(answers),
        control,
        tuple(dict.fromkeys((*notes, *_remarks([*answers, control])))),
    )


def _doubt(answers: Sequence[Timed], control: Timed, sets: int, same_size: bool) -> str:
    """Why the times are not to be believed; empty where they are."""
    calls = sum(4 * len(timed.cold) + 4 * len(timed.warm) for timed in answers)
    odd = sum(timed.odd for timed in answers)
    if odd > ODD * calls:
        return f"host clock and events disagree on {odd} of {calls} calls"
    beside, alone = seconds([timed.cold for timed in answers], 0), seconds([control.cold], 0)
    own = interval([control.cold], control.sets)
    if same_size and control.sets == sets and beside > alone * (1 + APART) * max(own.high, 1 / own.low):
        return (
            f"the original takes {beside * 1e6:.1f} us beside the rewrite and {alone * 1e6:.1f} us in a process that "
            "never saw it"
        )
    return ""


def _remarks(answers: Sequence[Timed]) -> list[str]:
    found: list[str] = []
    held_down = sorted({word for timed in answers for word in timed.throttled})
    if held_down:
        found.append(f"clocks were held down: {', '.join(held_down)}")
    if any(timed.starved for timed in answers):
        found.append("more launches than a stream's queue holds: gaps between launches are part of the time")
    fixed = sorted({name for timed in answers for name in timed.fixed})
    if fixed:
        found.append(f"{', '.join(fixed)} held the same contents in every timed call")
    foreign = max(timed.foreign for timed in answers)
    if foreign:
        found.append(f"{foreign} other processes held a context on the card")
    return [*found, *dict.fromkeys(timed.unwatched for timed in answers if timed.unwatched)]


def other_sizes(declared: Mapping[str, int], rules: Mapping[str, Rule], most: int = 4) -> list[dict[str, int]]:
    """Up to ``most`` sizes beside the declared ones: half, three quarters, a quarter, and a quarter more (each and one,
    so that they fit no tile), as far as the contract's rules allow."""
    found: list[dict[str, int]] = []
    for factor, extra in ((0.5, 0), (0.75, 1), (1.25, 1), (0.25, 0)):
        sizes = {name: rules[name].fit(max(1, math.ceil(value * factor) + extra)) for name, value in declared.items()}
        if sizes and sizes != dict(declared) and sizes not in found:
            found.append(sizes)
    return found[:most]
