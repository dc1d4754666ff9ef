"""The search: rounds of ideas and candidates, each judged before it counts."""

import math
import time
from collections import deque

from attrs import evolve, frozen

from agent.evaluation.contracts.probed import ShortExtent
from agent.evaluation.measures.room import room
from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.evaluation.setting import Setting
from agent.evaluation.verdict import Verdict
from agent.ideas.adviser import Adviser
from agent.models.budget import Metered
from agent.search import events
from agent.search.drafts import drafts
from agent.search.formatting.formatter import formatter
from agent.search.keeping import Kept
from agent.search.node import Node, fingerprint
from agent.search.options import SearchOptions
from agent.search.proposal import Proposal
from agent.search.proposal import propose as to_proposal
from agent.search.repairs import mended
from agent.search.run import Emit, Run, machine_key_of, verdict_of
from agent.search.select import WORTH_SHOWING, best_ratio, front, repeats, survivors
from agent.search.trace import Trace
from agent.search.tuning import tuned, words
from agent.source.kernel import Kernel
from agent.workload.describe import arguments, origin
from agent.workload.program import Program
from agent.workload.workload import Workload


@frozen
class Outcome:
    """How a search ended: ``reason`` as in :class:`agent.search.events.Finished`, at most three proposals."""

    reason: str
    message: str
    proposals: tuple[Proposal, ...] = ()


def search(
    original: Program,
    kernel: Kernel,
    workload: Workload,
    setting: Setting,
    options: SearchOptions,
    trace: Trace,
    emit: Emit,
    adviser: Adviser | None = None,
    kept: Kept | None = None,
) -> Outcome:
    """Look for faster, right rewrites of ``kernel``. Each step is an event; none is proposed without a full verdict.
    ``adviser`` is asked for ideas beside the catalogue. ``kept`` is given the verdicts that it wants, for records to be
    written when the search is over."""
    root = Node("0", original, None, None, None)
    options = evolve(options, lossy=options.lossy or workload.lossy)
    run = Run(kernel, workload, root, setting, options, trace, emit, adviser, kept)
    run.emit(
        events.Started(
            kernel.qualified_name,
            original.document.path,
            kernel.line,
            " ".join(original.document.slice_text(kernel.signature).split()),
            setting.target.name,
            setting.device.name,
        )
    )
    run.formatted = formatter(original.document.path, lambda text: run.emit(events.Note(text)))
    run.emit(events.WorkloadFound(arguments(workload), origin(workload)))
    prepared = prepare(original, workload, run.limited)
    try:
        outcome = _end_before_search(prepared, run) or _rounds(prepared, run)  # type: ignore[arg-type]
    except ShortExtent as error:
        outcome = Outcome("workload", str(error))
    if adviser is not None and isinstance(adviser.model, Metered):
        run.emit(model_used(adviser.model))
    run.emit(events.Finished(outcome.reason, outcome.message))
    return outcome


def _end_before_search(prepared: Prepared | Failure, run: Run) -> Outcome | None:
    """The reasons not to search at all: the original does not run, breaks its contract, or leaves nothing to gain."""
    if isinstance(prepared, Failure):
        if prepared.kind == "cancelled" and not run.setting.cancelled():
            return Outcome("budget", f"the search ended before the original was known: {prepared.message}")
        return Outcome(prepared.kind, prepared.message)
    contract = prepared.contract
    run.emit(events.ContractFound(contract.summary, contract.broken))
    if contract.broken:
        return Outcome("broken original", contract.summary)
    found = room(prepared)
    card = run.setting.device.name if found.measured else run.setting.target.name
    run.emit(
        events.HeadroomFound(
            found.ratio, found.counted, found.needed, card, found.note, found.floor, found.measured, found.at
        )
    )
    if found.exhausted:
        at = f" at {found.at}" if found.at else ""
        near = f"{found.ratio:.2f}x of its {found.floor} on {card}{at}, {found.how}"
        return Outcome("no headroom", f"the kernel is within {near}")
    return None


def model_used(meter: Metered) -> events.ModelUsed:
    """What a model was asked and what it cost."""
    used = meter.used
    return events.ModelUsed(meter.name, meter.place, used.requests, used.sent, used.received, used.exact, meter.dollars)


def _rounds(prepared: Prepared, run: Run) -> Outcome:
    run.prepared = prepared
    parents: tuple[Node, ...] = (run.original,)
    best = 1.0
    run.seen |= {fingerprint(run.original.program), machine_key_of(run.original, run) or ""}
    for number in range(1, run.options.rounds + 1):
        fresh = _round(number, parents, prepared, run)
        if not fresh and number == 1 and not run.stopped():
            return Outcome("nothing applicable", _nothing(run))
        run.expanded |= {parent.identifier for parent in parents}
        parents = survivors([node for node in run.judged if node.identifier not in run.expanded], run.options.beam)
        reached = best_ratio(run.judged) or 1.0
        if not parents or run.stopped() or (number > 1 and reached < best * WORTH_SHOWING):
            break
        best = reached
    _tune(prepared, run)
    if run.setting.cancelled():
        return Outcome("cancelled", "cancelled; run the same command again to go on from here", ())
    ended_early = run.exhausted()
    shown = _confirm(prepared, run)
    reason = "budget" if ended_early or run.exhausted() else "done"
    if run.undone:
        run.emit(events.Note(f"the {run.options.seconds:g} s did not suffice for: {'; '.join(run.undone)}"))
    message = "" if shown else _without_proposal(run)
    return Outcome(reason, message, shown)


def _without_proposal(run: Run) -> str:
    best = front(run.judged, 1, run.options.lossy)
    if not best or (run.options.proposals and not run.spent()):
        return "no rewrite was right and faster; the original stays"
    why = "no rewrite was to be confirmed"
    if run.options.proposals:
        why = "the time was over before a rewrite was confirmed (the same command goes on from here)"
    return f"{why}; the best that was screened is {best[0].ratio:.2f}x ({best[0].title})"


def _nothing(run: Run) -> str:
    beside = " and the other ideas came to no code" if run.adviser is not None else ""
    return f"no idea of the catalogue applies to this kernel{beside}; see `considered`"


def _share(number: int, run: Run) -> int:
    """How many candidates a round may judge: an equal part of what is left, so that later rounds have theirs."""
    left = run.options.candidates - len(run.judged)
    return math.ceil(left / max(1, run.options.rounds - number + 1))


TUNED = 2
"""How many of the best nodes have their constants tuned."""


def _tune(prepared: Prepared, run: Run) -> None:
    """The constants of what would be shown, before it is confirmed."""
    for node in front(run.judged, TUNED, run.options.lossy) if run.options.trials else ():
        if (better := tuned(node, prepared, run, lambda one: _verdict(one, prepared, run))) is not None:
            run.judged.append(better)
            run.emit(_judged(0, better, better.verdict, f"tuned: {words(better)}"))
        elif run.spent():
            run.undone.append(f"the constants of {node.identifier}")


def _round(number: int, parents: tuple[Node, ...], prepared: Prepared, run: Run) -> list[Node]:
    """One round: ideas for each parent, candidates for each idea, a screen verdict for each candidate."""
    found, duplicates = drafts(number, parents, run)
    if not found:
        return []
    waiting = deque(found[: _share(number, run)])
    run.emit(events.RoundStarted(number, len(waiting)))
    nodes: list[Node] = []
    while waiting and not run.stopped():
        node = waiting.popleft()
        key = machine_key_of(node, run)
        if key is not None and key in run.seen:
            duplicates += 1
            run.emit(_judged(number, node, None, "compiles to the same code as another candidate"))
            continue
        if key is not None:
            run.seen.add(key)
        begun = time.monotonic()
        verdict = _verdict(node, prepared, run)
        if verdict is None:
            waiting.appendleft(node)
            break
        run.judging.append(time.monotonic() - begun)
        node = evolve(node, verdict=verdict)
        nodes.append(node)
        run.judged.append(node)
        run.tried.append((node.title, _how_it_ended(verdict)))
        run.emit(_judged(number, node, verdict, ""))
        if (again := mended(node, run)) is not None:
            waiting.appendleft(again)
    if waiting and run.spent():
        run.undone.append(f"{len(waiting)} candidate{'s' * (len(waiting) != 1)} of round {number}")
    run.emit(_round_ended(number, nodes, duplicates, run))
    return nodes


def _verdict(node: Node, prepared: Prepared, run: Run) -> Verdict | None:
    """The screen verdict, from the trace of an interrupted search where it has one. None when it was cut short."""
    key = fingerprint(node.program)
    if key in run.trace.verdicts:
        return run.trace.verdicts[key]
    verdict = verdict_of(node, prepared, run)
    if prepared.setting.cancelled():
        return None
    run.trace.judged(key, verdict)
    return verdict


def _confirm(prepared: Prepared, run: Run) -> tuple[Proposal, ...]:
    """The full verdict for what would be shown. What does not hold up is not shown, and the next in line is tried."""
    deep = evolve(prepared, setting=evolve(prepared.setting, depth="full"))
    shown: list[Node] = []
    waiting = list(run.judged)
    # The search keeps seconds back for the best; further ones are confirmed while there is time.
    while waiting and len(shown) < run.options.proposals and not run.setting.cancelled():
        best = front(waiting, 1, run.options.lossy)
        if not best:
            break
        waiting.remove(best[0])
        if repeats(best[0], shown):
            continue
        verdict = None if run.spent() else verdict_of(best[0], deep, run)
        if verdict is None or deep.setting.cancelled():
            run.undone.append(f"confirming {best[0].identifier} ({best[0].ratio:.2f}x)")
            break
        node = evolve(best[0], verdict=verdict)
        if front([node], 1, run.options.lossy):
            shown.append(node)
        else:
            run.emit(_judged(0, node, verdict, "did not hold up in the full verdict"))
    ordered = front(shown, run.options.proposals, run.options.lossy)
    return tuple(to_proposal(node, run.original, run.workload, run.setting.options, run.formatted) for node in ordered)


def _judged(number: int, node: Node, verdict: Verdict | None, note: str) -> events.CandidateJudged:
    variant = node.candidate.variant if node.candidate else ""
    return events.CandidateJudged(number, node.identifier, node.title, variant, verdict, note)


def _round_ended(number: int, nodes: list[Node], duplicates: int, run: Run) -> events.RoundEnded:
    states = [node.verdict.correctness.state for node in nodes if node.verdict]
    less = sum(1 for node in nodes if node.verdict and node.verdict.precision.state == "less")
    return events.RoundEnded(
        number,
        right=states.count("right") - less,
        wrong=states.count("wrong"),
        less_precise=less,
        duplicates=duplicates,
        undecided=states.count("undecided"),
        best=best_ratio(run.judged),
    )


def _how_it_ended(verdict: Verdict) -> str:
    if verdict.correctness.state != "right":
        return f"{verdict.correctness.state}: {verdict.correctness.reason}"
    speed = f"{verdict.speed.ratio:.2f}x {verdict.speed.state}" if verdict.speed.ratio else verdict.speed.state
    return f"right; {verdict.precision.state} precision; {speed}"
