"""Launches whose blocks shrink with a small size (``min(n, 256)`` threads), taken as launches of whole blocks."""

from collections.abc import Mapping

from attrs import evolve

from agent.ideas.plans import each_launch
from agent.ideas.view import View, declared_names, evaluate, view
from agent.workload.expression import Expression, number
from agent.workload.plan import Launch


def with_whole_blocks(seen: View) -> View | None:
    """The kernel with blocks of 256 threads wherever a launch has ``min(n, 256)`` in a dimension and these are 256 at
    the declared sizes; None where no launch is of that kind. Threads beyond ``n`` come into being at small sizes, and
    the grid stays as it is: whoever uses this must know that a test of the kernel keeps them away."""
    names = declared_names(seen.request.workload, seen.request.plan)
    plan = each_launch(seen.request.plan, seen.kernel, lambda launch: _whole(launch, names))
    return None if plan == seen.request.plan else view(evolve(seen.request, plan=plan))


def _whole(launch: Launch, names: Mapping[str, int | float]) -> Launch:
    x, y, z = (_most(extent, names) for extent in launch.block)
    return evolve(launch, block=(x, y, z))


def _most(extent: Expression, names: Mapping[str, int | float]) -> Expression:
    if extent.op != "call" or extent.value != "min":
        return extent
    most = [part.constant for part in extent.operands if isinstance(part.constant, int)]
    return number(most[0]) if len(most) == 1 and evaluate(extent, names) == most[0] else extent
