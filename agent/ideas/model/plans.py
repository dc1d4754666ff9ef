"""Launches as a model writes them: statements of our own little language, read as data."""

from collections.abc import Sequence

from attrs import evolve

from agent.ideas.idea import Scope
from agent.ideas.request import Request
from agent.workload.errors import WorkloadError
from agent.workload.plan import Plan, Repeat, Step
from agent.workload.statements import read_statements
from agent.workload.workload import Origin

_MOST_LINES, _LONGEST = 64, 1000


class BadPlan(Exception):
    """The launches cannot be used; the message says why."""


def read_plan(lines: Sequence[str], request: Request) -> Plan:
    """The plan that ``lines`` state; without any, the request's own. Raises BadPlan."""
    told = [line.strip().removesuffix(";") for line in lines if line.strip()]
    if not told:
        return request.plan
    if len(told) > _MOST_LINES or any(len(line) > _LONGEST for line in told):
        raise BadPlan(f"a plan has at most {_MOST_LINES} lines of {_LONGEST} characters")
    try:
        read = read_statements("\n".join(told), request.workload.kernel, Origin("model"))
    except WorkloadError as error:
        raise BadPlan(f"the plan cannot be read: {error}") from None
    for name, stated in (
        ("size", read.sizes),
        ("const", read.constants),
        ("buffer", read.buffers),
        ("compare", read.comparators),
        ("flags", read.flags),
        ("lossy", read.lossy),
    ):
        if stated:
            raise BadPlan(f"a plan states launches, scratch and locals; `{name}` is the user's to state")
    if not read.plan.launches():
        raise BadPlan("the plan launches nothing; leave it empty to keep the launches as they are")
    # Locals and scratch that a plan does not state again are still what its expressions may be written with.
    names = {name for name, _ in read.plan.locals}
    scratch = {one.name for one in read.plan.scratch}
    return evolve(
        read.plan,
        locals=(*(pair for pair in request.plan.locals if pair[0] not in names), *read.plan.locals),
        scratch=(*(one for one in request.plan.scratch if one.name not in scratch), *read.plan.scratch),
    )


def scope_of(old: Plan, new: Plan) -> Scope:
    """The narrowest scope that a change of the launches fits in."""
    if old == new:
        return Scope.DROP_IN
    return Scope.RELAUNCH if _shape(old) == _shape(new) else Scope.PLAN


def _shape(plan: Plan) -> object:
    """A plan without the numbers that a relaunch may change."""

    def shape(step: Step) -> object:
        if isinstance(step, Repeat):
            return evolve(step, body=()), tuple(map(shape, step.body))
        arguments = getattr(step, "arguments", None)
        return (step.kernel, arguments) if arguments is not None else step  # type: ignore[union-attr]

    return tuple(map(shape, plan.steps)), plan.scratch
