"""The candidate as text and as a plan, before anything is compiled."""

from attrs import evolve

from agent.evaluation.bystanders import changed, doubled
from agent.evaluation.sizes import Sizes, bound_at, declared, describe
from agent.evaluation.trial import Ruling, Trial, gate, passed, wrong
from agent.source.errors import SourceError
from agent.workload.binding import Bound
from agent.workload.errors import WorkloadError
from agent.workload.plan import Plan, Repeat, Step
from agent.workload.types import kernel_of


@gate(
    "source",
    order=10,
    reason="what cannot be parsed, launched or fed with the workload's arguments is no rewrite",
    answers=(
        "launches beyond the hardware's limits, hidden scratch, other signatures than were asked for, "
        "a second kernel by the name of the one that is judged"
    ),
)
def source(trial: Trial) -> Ruling:
    document = trial.candidate.document
    try:
        for launch in trial.candidate.plan.launches():
            kernel, _ = kernel_of(document, launch.kernel)
            if kernel.damage is not None:
                return wrong(trial, f"`{kernel.name}` cannot be parsed: {kernel.damage}")
        bound = bound_at(trial.prepared.workload, trial.candidate)
        _ends_alike(trial, bound)
        for sizes in trial.prepared.contract.tried.values():
            _fits(trial, sizes)
    except (SourceError, WorkloadError) as error:
        return wrong(trial, str(error))
    original = trial.prepared.original
    problem = _scratch(trial, bound) or _outside_scope(trial) or doubled(original, trial.candidate)
    if problem:
        return wrong(trial, problem)
    trial = trial.unchecked(*(f"{what}, which changes as well" for what in changed(original, trial.candidate)))
    workload = trial.prepared.workload
    trial = trial.unchecked(
        *(workload.notes if workload.origin.kind == "launch" else ())
    )  # as it was read, so it is run
    return passed(
        evolve(trial, bound=bound), f"parses; the plan is valid at {describe(declared(trial.prepared.workload))}"
    )


def _fits(trial: Trial, sizes: Sizes) -> None:
    """The plan must be valid at every size of the original's contract, not only at the declared one."""
    try:
        _ends_alike(trial, bound_at(trial.prepared.workload, trial.candidate, sizes))
    except WorkloadError as error:
        raise WorkloadError(f"at {describe(sizes)}, inside the original's contract: {error}") from None


def _ends_alike(trial: Trial, bound: Bound) -> None:
    """What follows the plan in the user's program goes by the names of pointers, not by the memories that they had."""
    prepared = trial.prepared
    own = {buffer.name for buffer in prepared.workload.buffers}
    sides = (bound_at(prepared.workload, prepared.original, bound.sizes), bound)
    before, after = ({name: held for name, held in side.exchanged if name in own} for side in sides)
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name, name), after.get(name, name)
        if was != now:
            raise WorkloadError(f"`{name}` stands for the memory of `{now}` after the plan, the original's for `{was}`")


def _scratch(trial: Trial, bound: Bound) -> str:
    scratch = sum(buffer.nbytes for buffer in bound.buffers if buffer.scratch)
    total = sum(buffer.nbytes for buffer in bound.buffers)
    target = trial.prepared.setting.target
    if scratch and total > target.dram_bytes:
        return (
            f"needs {scratch / 1e9:.1f} GB of scratch, which does not fit {target.name} beside the workload's buffers"
        )
    return ""


def _outside_scope(trial: Trial) -> str:
    """What a narrower scope than ``plan`` forbids."""
    if trial.scope == "plan":
        return ""
    old, new = trial.prepared.original, trial.candidate
    if _shape(old.plan) != _shape(new.plan):
        return f"scope {trial.scope} allows no other launches than the original's"
    for launch in old.plan.launches():
        before, _ = kernel_of(old.document, launch.kernel)
        after, _ = kernel_of(new.document, launch.kernel)
        if [item.type for item in before.parameters] != [item.type for item in after.parameters]:
            return f"scope {trial.scope} allows no other signature of `{before.name}`"
    if trial.scope == "drop-in" and old.plan != new.plan:
        return "scope drop-in allows no other launch expressions"
    return ""


def _shape(plan: Plan) -> object:
    """A plan without its numbers."""

    def shape(step: Step) -> object:
        if isinstance(step, Repeat):
            return tuple(map(shape, step.body))
        return getattr(step, "kernel", None) or type(step).__name__

    return tuple(map(shape, plan.steps)), tuple(scratch.name for scratch in plan.scratch)
