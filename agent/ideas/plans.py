"""Changing the launches of one kernel in a plan."""

from collections.abc import Callable

from attrs import evolve

from agent.ideas.view import launches_kernel
from agent.source.kernel import Kernel
from agent.workload.plan import Launch, Plan, Repeat, Step


def each_launch(plan: Plan, kernel: Kernel, change: Callable[[Launch], Launch]) -> Plan:
    """The plan with ``change`` applied to each launch of the kernel, inside repeats too."""

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(_changed(step) for step in steps)

    def _changed(step: Step) -> Step:
        if isinstance(step, Repeat):
            return evolve(step, body=changed(step.body))
        return change(step) if isinstance(step, Launch) and launches_kernel(step, kernel) else step

    return evolve(plan, steps=changed(plan.steps))


def in_place_of_launches(plan: Plan, kernel: Kernel, steps_for: Callable[[Launch], tuple[Step, ...]]) -> Plan:
    """The plan with other steps in the place of each launch of the kernel, inside repeats too."""

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(new for step in steps for new in _changed(step))

    def _changed(step: Step) -> tuple[Step, ...]:
        if isinstance(step, Repeat):
            return (evolve(step, body=changed(step.body)),)
        return steps_for(step) if isinstance(step, Launch) and launches_kernel(step, kernel) else (step,)

    return evolve(plan, steps=changed(plan.steps))
