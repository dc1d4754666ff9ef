"""The candidate through the compiler, for the target and for every architecture that the project names."""

from collections.abc import Mapping
from math import prod

from attrs import evolve

from agent.evaluation.nvcc_view import told_apart
from agent.evaluation.setting import FULL
from agent.evaluation.shared_limit import ungranted
from agent.evaluation.trial import PASSED, Ruling, Trial, gate, passed, undecided, wrong
from agent.execution.compiler import build, check_file
from agent.execution.compiler.result import Build, CompileFailure, Resources
from agent.execution.emulator.ptx.decode import PtxError, decode
from agent.execution.occupancy import occupancy
from agent.workload.binding import Bound, BoundLaunch


@gate(
    "compile",
    order=20,
    reason="a rewrite must compile as strictly as nvcc compiles it, and every launch must fit a multiprocessor",
    answers=(
        "code for one card or one compiler only; launches that fail for want of registers or shared memory and leave "
        "stale outputs"
    ),
)
def compile_(trial: Trial) -> Ruling:
    options = trial.prepared.setting.options
    cancelled = trial.prepared.setting.cancelled
    built = build(trial.candidate, options, cancelled=cancelled)
    if isinstance(built, CompileFailure):
        return _refused(trial, built, options.arch)
    for arch in trial.prepared.setting.architectures:
        other = build(trial.candidate, evolve(options, arch=arch), cancelled=cancelled)
        if isinstance(other, CompileFailure):
            return _refused(trial, other, arch)
    assert trial.bound is not None
    problem = _does_not_fit(trial.bound, built)
    if problem:
        return wrong(trial, problem)
    static = {kernel: held.static_shared for kernel, held in built.resources.items()}
    limit = ungranted(trial.prepared.original, trial.candidate, trial.bound, static)
    if limit is not None and limit.fails:
        return wrong(trial, limit.words)
    trial = trial.unchecked(*([limit.words] if limit is not None else []))
    pairs = _pairs(trial.prepared.build.resources, built.resources)
    known = evolve(trial, build=built, resources=pairs)
    apart = _told_apart(trial)
    if apart:
        return wrong(trial, apart)
    whole = _whole_file(known)
    if whole.outcome != PASSED:
        return whole
    return passed(whole.trial, "; ".join([f"{built.compiler} for {built.arch}{whole.reason}", *_in_words(pairs)]))


def _told_apart(trial: Trial) -> str:
    """A rewrite that asks which compiler reads it; where the original does too, that is how the user wants it."""
    setting = trial.prepared.setting
    if setting.depth != FULL:
        return ""
    found = told_apart(trial.candidate, setting.options, setting.cancelled)
    if not found or told_apart(trial.prepared.original, setting.options, setting.cancelled):
        return ""
    return f"{found}; the original does not"


WHOLE_FILE = "the whole file was not compiled with nvcc"


def _whole_file(trial: Trial) -> Ruling:
    """The user's file, host code and all, with nvcc where there is one; a screen leaves that to the full verdict."""
    what = WHOLE_FILE
    prepared = trial.prepared
    setting = prepared.setting
    if setting.depth != FULL:
        return passed(trial.unchecked(what), "")
    found = check_file(trial.candidate.document, setting.options, cancelled=setting.cancelled)
    if not isinstance(found, CompileFailure):
        return passed(trial, " and nvcc for the whole file")
    if found.kind != "source":
        return passed(trial.unchecked(f"{what} ({found.message})"), "")
    if trial.candidate.plan != prepared.original.plan:
        return passed(trial.unchecked(f"{what}: its launch sites are edited when the rewrite is accepted"), "")
    before = check_file(prepared.original.document, setting.options, cancelled=setting.cancelled)
    if isinstance(before, CompileFailure):
        return passed(trial.unchecked(f"{what}: the original's does not compile there either"), "")
    return wrong(trial, found.message)


def _refused(trial: Trial, failure: CompileFailure, arch: str) -> Ruling:
    if failure.kind == "source":
        return wrong(trial, f"does not compile for {arch}: {failure.message}")
    return undecided(trial, failure.message)


def _does_not_fit(bound: Bound, built: Build) -> str:
    for step in bound.steps:
        if not isinstance(step, BoundLaunch) or step.kernel not in built.resources:
            continue
        held = occupancy(built.arch, built.resources[step.kernel], prod(step.block), step.shared)
        if held.blocks_per_sm == 0:
            what = f"`{step.kernel}` with {prod(step.block)} threads"
            return f"{what} does not launch on {built.arch}: too much for its {held.limiter}"
    return _beyond_bounds(bound, built)


def _beyond_bounds(bound: Bound, built: Build) -> str:
    """A block larger than ``__launch_bounds__`` promises: the driver refuses that launch and leaves stale outputs."""
    try:
        functions = decode(built.ptx).functions
    except PtxError:
        return ""
    for step in bound.steps:
        if not isinstance(step, BoundLaunch) or built.entries.get(step.kernel) not in functions:
            continue
        most = functions[built.entries[step.kernel]].max_threads
        if most is not None and prod(step.block) > prod(most):
            what = f"`{step.kernel}` promises at most {prod(most)} threads a block"
            return f"{what} and is launched with {prod(step.block)}: that fails on a card"
    return ""


def _pairs(
    old: Mapping[str, Resources], new: Mapping[str, Resources]
) -> dict[str, tuple[Resources | None, Resources | None]]:
    return {name: (old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new))}


def _in_words(pairs: Mapping[str, tuple[Resources | None, Resources | None]]) -> list[str]:
    found: list[str] = []
    for name, (old, new) in pairs.items():
        if new is None:
            continue
        was = f"{old.registers} -> " if old else ""
        spills = f", {new.spill_stores + new.spill_loads} bytes spilled" if new.spill_stores + new.spill_loads else ""
        found.append(f"{name}: {was}{new.registers} registers, {new.static_shared} bytes shared{spills}")
    return found
