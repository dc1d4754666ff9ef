"""What the card's own counters say of a program, run once under Nsight Compute on contents of its workload."""

from collections.abc import Mapping

from agent.evaluation import runs
from agent.evaluation.sizes import bound_at, declared
from agent.execution.compiler import build
from agent.execution.compiler.result import CompileFailure, Options
from agent.execution.device import Request
from agent.execution.gpu import Gpu
from agent.execution.nsight import Counted
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.workload import Workload

_SEED = 0xCA2D
SECONDS = 300.0
"""Of one run under the profiler, which repeats each launch for its counters."""


def own_counters(
    gpu: Gpu, program: Program, workload: Workload, options: Options, sizes: Mapping[str, int] | None = None
) -> tuple[Counted, ...] | str:
    """Each launch of the plan, in order, at ``sizes`` or the declared ones; or why the card cannot tell."""
    built = build(program, options)
    if isinstance(built, CompileFailure):
        return f"{workload.kernel} does not compile for {gpu.name}: {built.message}"
    chosen = dict(sizes or declared(workload))
    bound = bound_at(workload, program, chosen)
    before = runs.contents(bound, runs.case(chosen, families(workload)[0], _SEED, lazy=True))
    return gpu.counters(Request(built, bound.steps, runs.images(before, runs.PRIORS[0]), (), seconds=SECONDS))
