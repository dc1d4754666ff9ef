"""How long does this kernel take? Measured nowhere yet but on a card; without one, an estimate that says so."""

from agent.evaluation.estimate import headroom
from agent.execution.gpu import why_no_gpu
from cuda_lsp.terminal.render import down, size
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended
from cuda_lsp.worker.opening import open_task, setting_of
from cuda_lsp.worker.tasks import Tell
from cuda_lsp.worker.tasks.verify import prepared_or_error


def run(task: Task, tell: Tell) -> Ended:
    """The estimated time on the target, with what limits it and how far it is from the floor."""
    opened = open_task(task)
    setting = setting_of(task, opened)
    prepared = prepared_or_error(opened, setting, tell)
    name, target = opened.kernel.qualified_name, setting.target.name
    missing = why_no_gpu()
    why = f"nothing can be measured here ({missing})" if missing else "nothing was measured: no timing on a card yet"
    estimated = prepared.original_estimate
    if isinstance(estimated, str):
        return Ended("no figure", f"{name}: {why}, and there is no estimate either: {estimated}")
    room = headroom(prepared)
    floor = f"; {down(room.ratio)} above its floor there" if room.ratio is not None else ""
    message = f"{name}: {why}. Estimated on {target}: {_time(estimated.seconds)}, limited by {estimated.limit}{floor}"
    counted = f"{size(estimated.dram_bytes)} of DRAM traffic counted, {size(estimated.needed_bytes)} needed"
    figures = [f"{counter}: {value:.4g}" for counter, value in estimated.counts.items()]
    return Ended("estimated", message, lines=(counted, *figures, *([estimated.note] if estimated.note else [])))


def _time(seconds: float) -> str:
    """``1.12 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
