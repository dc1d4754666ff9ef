"""Whether the blocks that an estimate counts stand for the rest: else a rewrite that lets one block do it all, or work
for nothing where nobody looks, would be taken for a fast one."""

from math import prod

from agent.evaluation import runs
from agent.evaluation.estimates.counting import interior
from agent.evaluation.sizes import Sizes, bound_at, declared, describe
from agent.evaluation.trial import Trial
from agent.execution.compiler.result import Build
from agent.workload.generators import families
from agent.workload.program import Program

MORE = 1.5
"""All blocks together may do so many times as much as those that are counted let expect, and as the original's do."""

SECONDS = 10.0


def uneven(trial: Trial) -> bool:
    """Whether blocks that are not counted do more, at the largest size that the rewrite ran at whole."""
    assert trial.build is not None
    sizes = _sizes(trial)
    mine = _excess(trial, trial.candidate, trial.build, sizes) if sizes else 1.0
    return mine > MORE and mine > MORE * _excess(trial, trial.prepared.original, trial.prepared.build, sizes)


def _sizes(trial: Trial) -> Sizes:
    prepared = trial.prepared
    top = declared(prepared.workload)
    if describe(top) in trial.sizes:
        return top
    held = prepared.cache.largest.get(prepared.setting.depth)
    return dict(held.sizes) if held is not None else {}


def _excess(trial: Trial, program: Program, build: Build, sizes: Sizes) -> float:
    """Thread-instructions of a whole run over those that the counted blocks let expect; 1 where nobody can say."""
    setting, workload = trial.prepared.setting, trial.prepared.workload
    bound = bound_at(workload, program, sizes)
    before = runs.contents(bound, runs.case(sizes, families(workload)[0], 1))
    few = runs.run(setting, build, before, blocks=interior, count=True, seconds=SECONDS, checks=frozenset())
    whole = runs.run(setting, build, before, seconds=SECONDS, checks=frozenset())
    if few.status != "ok" or whole.status != "ok":
        return 1.0
    expected = sum(
        counted.total("thread_instructions") * prod(counted.grid) / max(1, counted.blocks_run)
        for counted in few.counters
    )
    return whole.thread_instructions / max(1.0, expected)
