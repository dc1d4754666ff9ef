"""A plan's loop over time steps, two buffers changing roles after each, and the same with several steps a launch."""

from attrs import evolve, frozen

from agent.ideas.buffers import in_structs
from agent.ideas.view import View, launches_kernel
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch, Plan, Repeat, Step, Swap


@frozen
class TimeLoop:
    """``repeat`` is a step of the plan: ``count`` times ``launch``, then the swap of the buffers that the kernel gets
    as ``planes``."""

    repeat: Repeat
    launch: Launch
    swap: Swap
    count: Expression
    planes: tuple[str, str]


def time_loop(view: View) -> TimeLoop | str:
    """The loop that launches the kernel, or why there is none."""
    none = "the plan has no loop that launches the kernel and then exchanges two of its buffers, and does nothing else"
    for step in view.request.plan.steps:
        if not isinstance(step, Repeat) or len(step.body) != 2 or len(view.launches) != 1:
            continue
        launch, swap = step.body
        if not isinstance(launch, Launch) or not launches_kernel(launch, view.kernel) or not isinstance(swap, Swap):
            continue
        if step.count is None or step.start is not None:
            return none
        if in_structs(launch, view):
            return "the launch hands on buffers in a struct, and what the kernel does with them is not followed"
        if step.variable is not None and any(step.variable in part.names for part in _expressions(launch)):
            return "the launch hangs on the number of the time step"
        names = {str(given): p.name for p, given in zip(view.kernel.parameters, launch.arguments, strict=False)}
        if swap.first not in names or swap.second not in names:
            return none
        return TimeLoop(step, launch, swap, step.count, (names[swap.first], names[swap.second]))
    return none


def _expressions(launch: Launch) -> tuple[Expression, ...]:
    return (*launch.grid, *launch.block, launch.shared, *launch.arguments)


def with_several(loop: TimeLoop, view: View, several: Launch, steps: int) -> Plan:
    """The plan with ``steps`` steps a launch while so many are left, and single ones at the end: at least one, so that
    both buffers hold what they held before; and so many that they end up in the same roles."""
    left = build("-", [loop.count, number(1)])
    if steps % 2:
        launches = build("/", [left, number(steps)])
    else:
        launches = build("*", [number(2), build("/", [left, number(2 * steps)])])
    rest = build("-", [loop.count, build("*", [number(steps), launches])])
    together = Repeat((several, loop.swap), launches)
    single = evolve(loop.repeat, count=rest)
    found: list[Step] = []
    for step in view.request.plan.steps:
        found += [together, single] if step is loop.repeat else [step]
    return evolve(view.request.plan, steps=tuple(found))
