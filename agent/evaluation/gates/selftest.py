"""The checker itself, on wrong answers made from the original's own."""

from agent.evaluation.trial import Ruling, Trial, gate, passed, undecided


@gate(
    "self-test",
    order=40,
    reason="a checker that accepts zeros proves nothing about a kernel",
    answers="outputs smaller than the tolerance, sums near zero, inputs that influence nothing, stale outputs",
)
def self_test(trial: Trial) -> Ruling:
    found = trial.prepared.selftest
    if found.survived:
        return undecided(
            trial, f"this workload cannot tell a right kernel from a wrong one: {'; '.join(found.survived)}"
        )
    notes = (
        [f"inputs whose change showed in no output of these runs: {', '.join(found.silent)}"] if found.silent else []
    )
    if not found.killed:
        return undecided(trial, "; ".join(["every output is what a wrong kernel would give too", *notes]))
    captured = [buffer.name for buffer in trial.prepared.workload.buffers if buffer.domain.kind == "data"]
    left = [f"contents of {', '.join(captured)} other than those captured"] if captured else []
    return passed(trial.unchecked(*notes, *left), "; ".join([f"{len(found.killed)} mutants killed", *notes]))
