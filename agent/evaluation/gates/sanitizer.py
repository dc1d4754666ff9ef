"""compute-sanitizer's four tools on the card, against what they say of the original."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from agent.evaluation import runs
from agent.evaluation.contracts.contract import place
from agent.evaluation.setting import FULL
from agent.evaluation.sizes import bound_at
from agent.evaluation.trial import NOT_APPLICABLE, Ruling, Trial, gate, passed, undecided, wrong
from agent.execution.compiler.result import Build
from agent.execution.device import Fault, Request
from agent.execution.sanitizing import TOOLS, Sanitized, Sanitizes
from agent.workload.program import Program

SECONDS = 30.0


@gate(
    "sanitizer",
    order=85,
    reason="the emulator runs one interleaving of code for its own machine; the card runs its own",
    answers="stray accesses, uninitialised reads, races in shared memory and barriers gone wrong in the machine code",
)
def sanitizer(trial: Trial) -> Ruling:
    """A full verdict on a card: each tool once, at the base size. A report refuses only if the original has none of
    its kind."""
    prepared = trial.prepared
    card = prepared.setting.device
    if prepared.setting.depth != FULL or not isinstance(card, Sanitizes) or trial.build is None:
        return Ruling(NOT_APPLICABLE, "a screen, or no card", trial)
    found = _under(trial, card, trial.candidate, trial.build, TOOLS)
    if any(report.status == "cancelled" for report in found.values()):
        return undecided(trial, "cancelled")
    missing = {tool: report.message for tool, report in found.items() if report.status != "ok"}
    for message in dict.fromkeys(missing.values()):
        tools = ", ".join(tool for tool, said in missing.items() if said == message)
        trial = trial.unchecked(f"memory and races on the card ({tools}): {message}")
    raised = [tool for tool in found if found[tool].faults]
    before = _under(trial, card, prepared.original, prepared.build, raised)
    for tool in raised:
        allowed = {fault.kind for fault in before[tool].faults}
        new = [fault for fault in found[tool].faults if fault.kind not in allowed]
        if new and before[tool].status == "ok":
            return wrong(trial, f"{tool}: {_said(new[0])}; the original has none", new[0])
        if new:
            trial = trial.unchecked(f"{tool} reports {_said(new[0])}; of the original it gave no report")
    seen = [tool for tool in TOOLS if tool not in missing]
    if not seen:
        return Ruling(NOT_APPLICABLE, next(iter(missing.values())), trial)
    return passed(trial, f"{', '.join(seen)}: nothing that the original lacks")


def _under(trial: Trial, card: Sanitizes, program: Program, build: Build, tools: Sequence[str]) -> dict[str, Sanitized]:
    """The reports, each tool in a process of its own, side by side."""
    prepared = trial.prepared
    first = prepared.cases[0]
    sizes = prepared.contract.base
    bound = bound_at(prepared.workload, program, sizes)
    before = runs.contents(bound, runs.case(sizes, first.family, first.seed))
    images, cancelled = runs.images(before, runs.PRIORS[0]), prepared.setting.cancelled
    request = Request(build, bound.steps, images, (), seconds=SECONDS, cancelled=cancelled)
    with ThreadPoolExecutor(max(1, len(tools))) as pool:
        return dict(zip(tools, pool.map(lambda tool: card.sanitize(request, tool), tools), strict=True))


def _said(fault: Fault) -> str:
    where = f" in {fault.kernel}" if fault.kernel else ""
    return f"{fault.kind}{where}, {place(fault)}"
