"""The search: rounds of ideas and candidates, each judged before it counts."""

import time
from collections.abc import Callable

from attrs import define, evolve, field, frozen

from agent.evaluation.estimate import headroom
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.evaluation.setting import Setting
from agent.evaluation.verdict import Verdict
from agent.execution.compiler import build
from agent.execution.compiler.result import CompileFailure
from agent.ideas.idea import Candidate, Idea
from agent.ideas.source import Request, implement, program, propose
from agent.search import events
from agent.search.duplicates import machine_key
from agent.search.host.edits import host_edits
from agent.search.node import Node, fingerprint
from agent.search.options import SearchOptions
from agent.search.proposal import Proposal
from agent.search.proposal import propose as to_proposal
from agent.search.select import changed_lines, front, survivors
from agent.search.trace import Trace
from agent.source.kernel import Kernel
from agent.workload.bind import bind
from agent.workload.describe import arguments, origin
from agent.workload.program import Program
from agent.workload.workload import Workload

Emit = Callable[[events.Event], None]

ENOUGH = 1.05
"""Headroom below which no search is worth its time: the original is within five per cent of the floor."""


@frozen
class Outcome:
    """How a search ended: ``reason`` as in :class:`agent.search.events.Finished`, at most three proposals."""

    reason: str
    message: str
    proposals: tuple[Proposal, ...] = ()


@define
class _Run:
    """The mutable state of one search: what was spent, what was seen."""

    kernel: Kernel
    workload: Workload
    original: Node
    setting: Setting
    options: SearchOptions
    trace: Trace
    listener: Emit
    began: float = field(factory=time.monotonic)
    judged: list[Node] = field(factory=list)
    seen: set[str] = field(factory=set)
    expanded: set[str] = field(factory=set)
    tried: list[tuple[str, str]] = field(factory=list)

    def emit(self, event: events.Event) -> None:
        self.trace.event(event)
        self.listener(event)

    def exhausted(self) -> bool:
        return len(self.judged) >= self.options.candidates or time.monotonic() - self.began > self.options.seconds

    def stopped(self) -> bool:
        return self.setting.cancelled() or self.exhausted()


def search(
    original: Program,
    kernel: Kernel,
    workload: Workload,
    setting: Setting,
    options: SearchOptions,
    trace: Trace,
    emit: Emit,
) -> Outcome:
    """Look for faster, right rewrites of ``kernel``. Each step is an event; none is proposed without a full verdict."""
    root = Node("0", original, None, None, None)
    run = _Run(kernel, workload, root, setting, options, trace, emit)
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
    run.emit(events.WorkloadFound(arguments(workload), origin(workload)))
    prepared = prepare(original, workload, setting)
    outcome = _end_before_search(prepared, run) or _rounds(prepared, run)  # type: ignore[arg-type]
    run.emit(events.Finished(outcome.reason, outcome.message))
    return outcome


def _end_before_search(prepared: Prepared | Failure, run: _Run) -> Outcome | None:
    """The reasons not to search at all: the original does not run, breaks its contract, or leaves nothing to gain."""
    if isinstance(prepared, Failure):
        return Outcome(prepared.kind, prepared.message)
    contract = prepared.contract
    run.emit(events.ContractFound(contract.summary, contract.broken))
    if contract.broken:
        return Outcome("broken original", contract.summary)
    room = headroom(prepared)
    run.emit(events.HeadroomFound(room.ratio, room.counted, room.needed, run.setting.target.name, room.note))
    if room.ratio is not None and room.ratio < ENOUGH:
        near = f"{room.ratio:.2f}x of its memory floor on {run.setting.target.name}"
        return Outcome("no headroom", f"the kernel is within an estimated {near}")
    return None


def _rounds(prepared: Prepared, run: _Run) -> Outcome:
    parents: tuple[Node, ...] = (run.original,)
    run.seen |= {fingerprint(run.original.program), _machine_key(run.original, run) or ""}
    for number in range(1, run.options.rounds + 1):
        fresh = _round(number, parents, prepared, run)
        if not fresh and number == 1 and not run.stopped():
            return Outcome("nothing applicable", "no idea of the catalogue applies to this kernel; see `considered`")
        run.expanded |= {parent.identifier for parent in parents}
        parents = survivors([node for node in run.judged if node.identifier not in run.expanded], run.options.beam)
        if not parents or run.stopped():
            break
    if run.setting.cancelled():
        return Outcome("cancelled", "cancelled; run the same command again to go on from here", ())
    shown = _confirm(prepared, run)
    reason = "budget" if run.exhausted() else "done"
    message = "" if shown else "no rewrite was right and faster; the original stays"
    return Outcome(reason, message, shown)


def _round(number: int, parents: tuple[Node, ...], prepared: Prepared, run: _Run) -> list[Node]:
    """One round: ideas for each parent, candidates for each idea, a screen verdict for each candidate."""
    drafts, duplicates = _drafts(number, parents, run)
    if not drafts:
        return []
    run.emit(events.RoundStarted(number, len(drafts)))
    nodes: list[Node] = []
    for node in drafts:
        if run.stopped():
            break
        key = _machine_key(node, run)
        if key is not None and key in run.seen:
            duplicates += 1
            run.emit(_judged(number, node, None, "compiles to the same code as another candidate"))
            continue
        if key is not None:
            run.seen.add(key)
        verdict = _verdict(node, prepared, run)
        if verdict is None:
            break
        node = evolve(node, verdict=verdict)
        nodes.append(node)
        run.judged.append(node)
        run.tried.append((node.title, _how_it_ended(verdict)))
        run.emit(_judged(number, node, verdict, ""))
    run.emit(_round_ended(number, nodes, duplicates, run))
    return nodes


def _drafts(number: int, parents: tuple[Node, ...], run: _Run) -> tuple[list[Node], int]:
    drafts: list[Node] = []
    duplicates = 0
    for parent in parents:
        request = _request(parent, run)
        found = propose(request)
        ideas = [idea for idea in found.ideas if _wanted(idea, run.options)]
        run.emit(events.IdeasFound(parent.identifier, tuple(ideas), found.considered))
        for idea in ideas:
            for candidate in implement(idea, request):
                child = _child(candidate, parent, f"{number}.{len(drafts) + 1}", run)
                key = fingerprint(child.program)
                if key in run.seen:
                    duplicates += 1
                    continue
                run.seen.add(key)
                drafts.append(child)
    return drafts, duplicates


def _wanted(idea: Idea, options: SearchOptions) -> bool:
    return (not options.only or idea.name in options.only) and idea.name not in options.without


def _request(parent: Node, run: _Run) -> Request:
    document = parent.program.document
    return Request(
        document=document,
        kernel=document.kernel(run.kernel.qualified_name),
        workload=run.workload,
        plan=parent.program.plan,
        scope=run.options.scope,
        tried=tuple(run.tried),
    )


def _child(candidate: Candidate, parent: Node, identifier: str, run: _Run) -> Node:
    document = parent.program.document
    made = program(document, document.kernel(run.kernel.qualified_name), candidate, f"candidate {identifier}")
    if parent.candidate is not None:
        candidate = evolve(candidate, ideas=(*parent.candidate.ideas, *candidate.ideas))
    whole = host_edits(run.original.program, made, run.workload)
    lines = changed_lines(run.original.program.document.text, whole.document.text)
    return Node(identifier, made, candidate, parent, None, changed_lines=lines)


def _machine_key(node: Node, run: _Run) -> str | None:
    """None where the candidate does not compile: its verdict will say so."""
    built = build(node.program, run.setting.options)
    if isinstance(built, CompileFailure):
        return None
    try:
        return machine_key(built, bind(run.workload, node.program.plan, document=node.program.document))
    except ValueError:
        return None


def _verdict(node: Node, prepared: Prepared, run: _Run) -> Verdict | None:
    """The screen verdict, from the trace of an interrupted search where it has one. None when cancelled."""
    key = fingerprint(node.program)
    if key in run.trace.verdicts:
        return run.trace.verdicts[key]
    verdict = judge(prepared, node.program, allow_lossy=run.options.lossy)
    if run.setting.cancelled():
        return None
    run.trace.judged(key, verdict)
    return verdict


def _confirm(prepared: Prepared, run: _Run) -> tuple[Proposal, ...]:
    """The full verdict for what would be shown. What does not hold up is not shown, and the next in line is tried."""
    deep = evolve(prepared, setting=evolve(prepared.setting, depth="full"))
    shown: list[Node] = []
    waiting = list(run.judged)
    while waiting and len(shown) < run.options.proposals and not run.setting.cancelled():
        best = front(waiting, 1, run.options.lossy)
        if not best:
            break
        waiting.remove(best[0])
        verdict = judge(deep, best[0].program, allow_lossy=run.options.lossy)
        node = evolve(best[0], verdict=verdict)
        if front([node], 1, run.options.lossy):
            shown.append(node)
        else:
            run.emit(_judged(0, node, verdict, "did not hold up in the full verdict"))
    ordered = front(shown, run.options.proposals, run.options.lossy)
    return tuple(to_proposal(node, run.original, run.workload) for node in ordered)


def _judged(number: int, node: Node, verdict: Verdict | None, note: str) -> events.CandidateJudged:
    variant = node.candidate.variant if node.candidate else ""
    return events.CandidateJudged(number, node.identifier, node.title, variant, verdict, note)


def _round_ended(number: int, nodes: list[Node], duplicates: int, run: _Run) -> events.RoundEnded:
    states = [node.verdict.correctness.state for node in nodes if node.verdict]
    less = sum(1 for node in nodes if node.verdict and node.verdict.precision.state == "less")
    ratios = [node.ratio for node in run.judged if node.verdict and node.verdict.shown]
    return events.RoundEnded(
        number,
        right=states.count("right") - less,
        wrong=states.count("wrong"),
        less_precise=less,
        duplicates=duplicates,
        undecided=states.count("undecided"),
        best=max(ratios) if ratios else None,
    )


def _how_it_ended(verdict: Verdict) -> str:
    if verdict.correctness.state != "right":
        return f"{verdict.correctness.state}: {verdict.correctness.reason}"
    speed = f"{verdict.speed.ratio:.2f}x {verdict.speed.state}" if verdict.speed.ratio else verdict.speed.state
    return f"right; {verdict.precision.state} precision; {speed}"
