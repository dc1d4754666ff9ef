"""A change to a kernel that is itself broken: nothing can be compared with it, but the change can be run alone."""

from collections.abc import Callable

from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.evaluation.setting import Setting
from agent.workload.program import Program
from agent.workload.workload import Workload


def without_truth(
    original: Prepared,
    changed: Program,
    setting: Setting,
    old: str,
    progress: Callable[[str], None] | None = None,
) -> tuple[bool, str]:
    """Why a broken ``original`` judges nothing, after whether ``changed`` keeps its own contract where the same
    workload runs it. ``old`` is what the user calls the original."""
    kept, said = alone(changed, original.workload, setting, progress)
    return kept, f"{old} is itself broken, so nothing can be compared with it: {original.contract.summary}. {said}"


def alone(
    changed: Program,
    workload: Workload,
    setting: Setting,
    progress: Callable[[str], None] | None = None,
) -> tuple[bool, str]:
    """Whether a program keeps its own contract, and what is known of that, in words."""
    name = changed.label
    ran = prepare(changed, workload, setting, progress)
    if isinstance(ran, Failure):
        return False, f"Whether {name} keeps its own contract is not known: {ran.message.replace('the original', name)}"
    if ran.contract.broken:
        return False, f"Run alone, {name} is broken too: {ran.contract.summary}"
    return True, (
        f"Run alone, {name} keeps its own contract ({ran.contract.summary}). That its results are the wanted "
        "ones was not checked, for want of anything to hold them against; later changes can be verified against it"
    )
