"""How long does this kernel take? Measured where there is a card; without one, an estimate that says so."""

from agent.evaluation.measures.own_counters import own_counters
from agent.evaluation.measures.room import original_seconds, room
from agent.evaluation.prepare import Prepared
from agent.execution.compiler.result import Options
from agent.execution.device import Device
from agent.execution.gpu import Gpu, why_no_gpu
from agent.execution.nsight import of_kernel
from agent.execution.timing import Timer
from agent.execution.toolkit import tool
from cuda_lsp.terminal.profile_card import MOST, words
from cuda_lsp.terminal.render import down, duration, size
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Staged
from cuda_lsp.worker.opening import open_task, setting_of
from cuda_lsp.worker.tasks import Tell
from cuda_lsp.worker.tasks.verify import prepared_or_error


def run(task: Task, tell: Tell) -> Ended:
    """The time on the card, or an estimate for the target with what limits it; and how far that is from the floor."""
    opened = open_task(task)
    setting = setting_of(task, opened)
    prepared = prepared_or_error(opened, setting, tell)
    name = opened.kernel.qualified_name
    taken: float | str = original_seconds(prepared) if isinstance(setting.device, Timer) else ""
    if isinstance(taken, float):
        message = f"{name}: measured on {setting.device.name}: {duration(taken)}{_floor(prepared)}"
        own = _own(setting.device, setting.options, prepared, opened.kernel.name, tell)
        if isinstance(own, str):
            return Ended("measured", message, lines=(*_lines(prepared), *([own] if own else ())))
        where = f"counted by {setting.device.name} itself (Nsight Compute)"
        return Ended("measured", f"{message}; {where}: {own[0]}", lines=(where, *own))
    missing = why_no_gpu()
    why = f"nothing was measured: {taken}" if taken else "nothing can be measured here"
    why += f" ({missing})" if missing and not taken else ""
    estimated = prepared.original_estimate
    if isinstance(estimated, str):
        return Ended("no figure", f"{name}: {why}, and there is no estimate either: {estimated}")
    limit = f"{duration(estimated.seconds)}, limited by {estimated.limit}{_floor(prepared)}"
    at = f" at {estimated.at}, not at the declared size" if estimated.at else ""
    message = f"{name}: {why}. Estimated on {setting.target.name}{at}: {limit}"
    return Ended("estimated", message, lines=_lines(prepared))


def _own(device: Device, options: Options, prepared: Prepared, kernel: str, tell: Tell) -> tuple[str, ...] | str:
    """What the card itself counted of each launch, in the place of what the emulator did; why nothing, or no words
    where there is no ncu to ask."""
    if not isinstance(device, Gpu) or tool("ncu") is None:
        return ""
    tell(Staged("reading the card's own counters (ncu)"))
    found = own_counters(device, prepared.original, prepared.workload, options)
    if isinstance(found, str):
        return f"the card's own counters were not read: {found}"
    launches = tuple(map(words, of_kernel(found, kernel)[:MOST]))
    return launches or "the card's own counters were not read: ncu saw none of its launches"


def _floor(prepared: Prepared) -> str:
    found = room(prepared)
    return f"; {down(found.ratio)} above its floor there" if found.ratio is not None else ""


def _lines(prepared: Prepared) -> tuple[str, ...]:
    """What was counted, and what the figures rest on."""
    estimated = prepared.original_estimate
    if isinstance(estimated, str):
        return (f"no counters: {estimated}",)
    counted = f"{size(estimated.dram_bytes)} of DRAM traffic counted, {size(estimated.needed_bytes)} needed"
    figures = [f"{counter}: {value:.4g}" for counter, value in estimated.counts.items()]
    found = room(prepared)
    note = found.note if found.measured else estimated.note
    return (counted, *figures, *([note] if note else []))
