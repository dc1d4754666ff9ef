"""Which of the workload's buffers a kernel's pointer parameters are handed."""

from agent.analysis.accesses import Access
from agent.analysis.symbols import Symbol
from agent.ideas.view import View, evaluate
from agent.workload.plan import Launch
from agent.workload.workload import Buffer


def handed(view: View, parameter: str, launch: Launch) -> frozenset[str]:
    """The buffers (scratch included) that one launch hands to a parameter."""
    names = [one.name for one in view.kernel.parameters]
    if parameter not in names or names.index(parameter) >= len(launch.arguments):
        return frozenset()
    known = {buffer.name for buffer in view.request.workload.buffers} | {one.name for one in view.request.plan.scratch}
    return launch.arguments[names.index(parameter)].names & known


def may_be_one(view: View, one: Symbol, other: Symbol) -> bool:
    """Whether some launch hands one buffer to both parameters, or nothing says which buffers they get."""
    if one is other:
        return True
    pairs = [(handed(view, one.name, launch), handed(view, other.name, launch)) for launch in view.launches]
    return any(not first or not second or first & second for first, second in pairs)


def in_structs(launch: Launch, view: View) -> frozenset[str]:
    """The buffers (scratch included) that a launch hands on in structs passed by value: what a kernel does with these
    pointers is not followed to a parameter."""
    known = {buffer.name for buffer in view.request.workload.buffers} | {one.name for one in view.request.plan.scratch}
    return frozenset[str]().union(*(one.names & known for one in launch.arguments if one.op == "record"))


def buffer_of(view: View, parameter: str) -> Buffer | None:
    """The one buffer that every launch hands to a parameter; None where there are several, or it is scratch."""
    given = frozenset().union(*(handed(view, parameter, launch) for launch in view.launches))
    return next((one for one in view.request.workload.buffers if given == {one.name}), None)


def elements(view: View, access: Access) -> int | None:
    """How many elements what an access touches has at the declared sizes; None where that is not known."""
    if access.root is None or access.root.space != "parameter":
        return None
    buffer = buffer_of(view, access.root.name)
    extent = None if buffer is None else evaluate(buffer.extent, view.sizes)
    return extent if isinstance(extent, int) else None
