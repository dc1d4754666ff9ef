"""A loop of launches that scans an array by doubling."""

from attrs import frozen

from agent.analysis.affine import Atom, number, unknown
from agent.analysis.patterns.doubling_step import DoublingStep, doubling_step
from agent.ideas.buffers import in_structs
from agent.ideas.view import View, evaluate, launches_kernel
from agent.workload.dtypes import from_c_type
from agent.workload.expression import Expression, ExpressionError
from agent.workload.plan import Launch, Repeat, Swap

INTEGERS = ("int", "unsigned", "unsigned int", "long long", "unsigned long long", "int32_t", "uint32_t", "uint")
TRIALS = (1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 1000, 1024, 1025, 65536, 1_000_003)
MOST_TURNS = 40


@frozen(eq=False)
class Scan:
    """``repeat`` is the loop in the plan, ``launch`` and ``swap`` its body. ``count`` is the number of elements."""

    step: DoublingStep
    repeat: Repeat
    launch: Launch
    swap: Swap
    count: Expression

    @property
    def type(self) -> str:
        return self.step.source.type


def scan_loop(view: View) -> Scan | str:
    repeats = [step for step in view.request.plan.steps if isinstance(step, Repeat) and _launches(step, view)]
    if len(repeats) != 1 or len(view.launches) != 1:
        return "no loop of launches in the plan consists of this kernel alone"
    body = repeats[0].body
    if len(body) != 2 or not isinstance(body[0], Launch) or not isinstance(body[1], Swap):
        return "the loop of launches does more than launch this kernel and swap two buffers"
    launch, swap = body[0], body[1]
    if view.block[0] is None or view.block[1:] != (1, 1):
        return "the block is not one-dimensional with a fixed size"
    own = number(view.block[0]) * unknown(Atom("blockIdx.x")) + unknown(Atom("threadIdx.x"))
    step = doubling_step(view.facts, own)
    if step is None:
        return "it is not shown to add to each element the one a distance before it, and nothing else"
    if (
        step.source.type not in INTEGERS
        or step.target.type != step.source.type
        or from_c_type(step.source.type) is None
    ):
        return (
            f"sums of {step.source.type} depend on the order, and the buffer that is left over holds the last but one "
            "of them, which follows exactly from the result for integers only"
        )
    return _checked(view, step, repeats[0], launch, swap)


def _checked(view: View, step: DoublingStep, repeat: Repeat, launch: Launch, swap: Swap) -> Scan | str:
    if in_structs(launch, view):
        return "the launch hands on buffers in a struct, and what the kernel does with them is not followed"
    places = {one.name: at for at, one in enumerate(view.kernel.parameters)}
    given = {one: launch.arguments[places[one.name]] for one in (step.source, step.target, step.count, step.distance)}
    if {str(given[step.source]), str(given[step.target])} != {swap.first, swap.second}:
        return "the loop does not swap the two buffers that it scans between"
    for buffer in (given[step.source], given[step.target]):
        if buffer.op != "name":
            return f"`{buffer}` is no whole buffer"
    count = given[step.count]
    for size in TRIALS:
        names = _at(view, count, size)
        if names is None:
            return f"`{count}` is no size that could be tried"
        distances = _distances(repeat, given[step.distance], names)
        if distances != [1 << turn for turn in range((size - 1).bit_length())]:
            return f"the distances at {size} elements are not 1, 2, 4, ... up to the length"
        blocks = evaluate(launch.grid[0], {**names, repeat.variable or "": 1})
        if blocks is None or blocks * (view.block[0] or 0) < size:
            return f"the grid has fewer threads than there are elements, at {size}"
    return Scan(step, repeat, launch, swap, count)


def _launches(repeat: Repeat, view: View) -> bool:
    return any(isinstance(step, Launch) and launches_kernel(step, view.kernel) for step in repeat.body)


def _at(view: View, count: Expression, size: int) -> dict[str, int | float] | None:
    """The plan's names where there are ``size`` elements."""
    sizes = {one.name for one in view.request.workload.sizes}
    if count.op != "name" or str(count.value) not in sizes:
        return None
    names: dict[str, int | float] = {one.name: one.value for one in view.request.workload.sizes}
    names[str(count.value)] = size
    try:
        for constant in view.request.workload.constants:
            names[constant.name] = constant.value.evaluate(names)
        for name, expression in view.request.plan.locals:
            names[name] = expression.evaluate(names)
    except ExpressionError:
        return None
    return names


def _distances(repeat: Repeat, distance: Expression, names: dict[str, int | float]) -> list[int] | None:
    """The distance of each turn of the loop; None where it has no number, or the loop does not end."""
    found: list[int] = []
    try:
        turn = 0 if repeat.start is None else repeat.start.integer(names)
        while len(found) <= MOST_TURNS:
            here = {**names, repeat.variable or "": turn}
            if repeat.condition is not None:
                goes_on = bool(repeat.condition.evaluate(here))
            else:
                goes_on = repeat.count is not None and turn < repeat.count.integer(names)
            if not goes_on:
                return found
            found.append(distance.integer(here))
            turn = turn + 1 if repeat.update is None else repeat.update.integer(here)
    except ExpressionError:
        pass
    return None
