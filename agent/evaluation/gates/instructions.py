"""What the compiled code may do: nothing that escapes the clock, the cache or the launch, unless the original does."""

from agent.evaluation.ptx import traits
from agent.evaluation.trial import Ruling, Trial, gate, passed, wrong


@gate(
    "instructions",
    order=30,
    reason="a kernel needs no clock and no memory of earlier launches to compute its outputs",
    answers=(
        "detecting warm-up or the checker by time or by multiprocessor, persisting-cache hints that survive a flush, "
        "results kept in device variables between calls, work left to launched children"
    ),
)
def instructions(trial: Trial) -> Ruling:
    assert trial.build is not None
    new, old = traits(trial.build.ptx), trial.prepared.traits
    features = sorted(new.features - old.features)
    if features:
        return wrong(trial, f"the compiled code {' and '.join(features)}; the original does not")
    calls = sorted(new.externals - old.externals)
    if calls:
        return wrong(trial, f"calls {', '.join(calls)}, which the original does not")
    state = sorted(new.mutable - old.mutable)
    if state:
        return wrong(trial, f"keeps state between launches in {', '.join(state)}; the original does not")
    return passed(trial, "no clock, cache hint, child launch or state that the original lacks")
