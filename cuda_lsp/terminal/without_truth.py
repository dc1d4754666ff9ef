"""A change to a kernel that is itself broken: nothing can be compared with it, but the change can be run alone."""

from collections.abc import Callable

from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.evaluation.setting import Setting
from agent.workload.program import Program


def without_truth(
    original: Prepared,
    changed: Program,
    setting: Setting,
    names: tuple[str, str],
    progress: Callable[[str], None] | None = None,
) -> str:
    """Why a broken ``original`` judges nothing, and whether ``changed`` keeps its own contract where the same workload
    runs it. ``names`` are what the user calls the two."""
    old, new = names
    said = f"{old} is itself broken, so nothing can be compared with it: {original.contract.summary}"
    alone = prepare(changed, original.workload, setting, progress)
    if isinstance(alone, Failure):
        why = alone.message.replace("the original", new)
        return f"{said}. Whether {new} keeps its own contract is not known: {why}"
    if alone.contract.broken:
        return f"{said}. Run alone, {new} is broken too: {alone.contract.summary}"
    return (
        f"{said}. Run alone, {new} keeps its own contract ({alone.contract.summary}). That its results are the wanted "
        "ones was not checked, for want of anything to hold them against; later changes can be verified against it"
    )
