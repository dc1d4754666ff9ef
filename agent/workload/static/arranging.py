"""How blocks of a launch are arranged beyond its grid: clusters that an attribute asks for, cooperative launches."""

from typing import TYPE_CHECKING

from agent.source.kernel import Kernel
from agent.workload.expression import ExpressionError, number
from agent.workload.static import evaluate as ev
from agent.workload.static.state import State
from agent.workload.static.values import LaunchItem, Scalar, Unknown, Value

if TYPE_CHECKING:
    from agent.workload.static.assemble import Draft


def arranged(item: LaunchItem, kernel: Kernel, draft: "Draft") -> None:
    """Say what a plan leaves out of a launch. One in clusters that the kernel itself does not ask for has no plan: what
    bars it, and what to write, is told."""
    if item.cooperative:
        draft.facts.notes.append(f"`{kernel.name}` is launched cooperatively, and by the plan plainly")
    if item.cluster is None:
        return
    if isinstance(item.cluster, Unknown):
        draft.ask(f"clusters of `{kernel.name}`", item.cluster.reason, item.line)
        return
    axes = (item.cluster.x, item.cluster.y, item.cluster.z)
    asked = tuple(_number(axis, draft) for axis in axes)
    if None in asked:
        why = next(
            (axis.reason for axis in axes if isinstance(axis, Unknown)), "their shape is no number that is known"
        )
        draft.ask(f"clusters of `{kernel.name}`", why, item.line)
    elif asked not in ((1, 1, 1), _declared(kernel, item, draft)):
        shape = ", ".join(map(str, asked))
        why = (
            f"an attribute of its launch asks for clusters of ({shape}) blocks, which a plan cannot state: "
            f"write `__cluster_dims__({shape})` before the name of `{kernel.name}`"
        )
        draft.barred[why] = item.line
        draft.ask(f"clusters of `{kernel.name}`", why, item.line)


def _declared(kernel: Kernel, item: LaunchItem, draft: "Draft") -> tuple[int | None, ...]:
    """What ``__cluster_dims__`` says; one block where it says nothing."""
    state = draft.file_state or State()
    told = [_number(ev.evaluate_text(one, item.line, draft.facts, state), draft) for one in kernel.cluster_dims]
    return tuple([*told, 1, 1, 1][:3])


def _number(value: Value, draft: "Draft") -> int | None:
    """The number that the program has there, to which the workload is tied then."""
    if not isinstance(value, Scalar):
        return None
    try:
        told = value.expression.substitute({n: number(v) for n, v in draft.facts.values().items()}).integer({})
    except ExpressionError:
        return None
    draft.facts.pinned |= value.expression.names
    return told
