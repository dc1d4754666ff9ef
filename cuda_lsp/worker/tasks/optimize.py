"""Look for faster rewrites: the search of ``cuda-lsp optimize`` on the editor's text."""

from pathlib import Path

from attrs import evolve

from agent.evaluation.setting import Setting
from agent.ideas.idea import Scope
from agent.search.keeping import Kept
from agent.search.options import SearchOptions
from agent.search.proposal import Proposal
from agent.search.search import search
from agent.search.trace import open_trace
from agent.source.diff import unified
from agent.source.document import Document
from cuda_lsp.proposals.anchors import anchor
from cuda_lsp.proposals.proof import proof_key
from cuda_lsp.proposals.proposal import SHOWN
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Opened, trace_key
from cuda_lsp.worker.advising import Heard, adviser_of, origin
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Rewrite
from cuda_lsp.worker.opening import open_task, setting_of
from cuda_lsp.worker.records import keep_records
from cuda_lsp.worker.referring import referring
from cuda_lsp.worker.tasks import Tell

_ANSWERS = ("done", "budget", "nothing applicable", "no headroom")
"""How a search ends that looked; any other end says why it could not."""

_NOT_OURS = "this rewrite changes more of the file than the kernel and its launches; apply its diff by hand"


def run(task: Task, tell: Tell) -> Ended:
    """At most three rewrites, fastest first, each with its full verdict."""
    opened = open_task(task)
    with referring(task, opened) as (reference, words):
        setting = evolve(setting_of(task, opened), reference=reference)
        ended = _searched(task, opened, setting, tell)
    return evolve(ended, lines=(*ended.lines, *words))


def _searched(task: Task, opened: Opened, setting: Setting, tell: Tell) -> Ended:
    asked = task.options
    options = SearchOptions(
        rounds=asked.rounds,
        candidates=asked.candidates,
        seconds=asked.seconds,
        scope=Scope(asked.scope),
        only=asked.only,
        lossy=asked.lossy,
        # what was turned down is found again, and others are to be shown in its place
        proposals=SHOWN + len(asked.rejected),
    )
    adviser = adviser_of(task, opened, tell)
    heard = Heard(tell, adviser)
    trace = open_trace(trace_key(opened, setting), fresh=False)
    kept = Kept(asked.lossy, screens=False)
    outcome = search(opened.program, opened.kernel, opened.workload, setting, options, trace, heard, adviser, kept)
    if outcome.reason == "broken original":
        return Ended(outcome.reason, f"the kernel breaks its own contract, mend it first: {outcome.message}")
    if outcome.reason not in _ANSWERS:
        raise CommandError(Exit.INPUT, f"{outcome.reason}: {outcome.message}")
    key = proof_key(opened.document, opened.kernel, opened.workload, opened.settings)
    records, problem = keep_records(kept, outcome.proposals)
    rewrites = tuple(
        evolve(
            _rewrite(opened, proposal, key, asked.folder),
            origin=origin(proposal.candidate.ideas, adviser, asked.suggested),
            record=records.get(proposal.identifier, ""),
        )
        for proposal in outcome.proposals
    )
    lines = (*heard.lines, *filter(None, (trace.problem, problem)))
    return Ended(outcome.reason, outcome.message, rewrites, lines=lines, trouble=heard.trouble)


def _rewrite(opened: Opened, proposal: Proposal, key: str, folder: str) -> Rewrite:
    anchors = None if proposal.by_hand else anchor(opened.document, opened.kernel, proposal.document)
    return Rewrite(
        title=proposal.title,
        ideas=tuple(dict.fromkeys(idea.name for idea in proposal.candidate.ideas)),
        variant=proposal.candidate.variant,
        why=proposal.candidate.rationale,
        verdict=proposal.verdict,
        anchors=anchors,
        proof=key,
        diff=_diff(opened.document, proposal.document, folder),
        by_hand=proposal.by_hand or ("" if anchors else _NOT_OURS),
        changed_lines=proposal.changed_lines,
    )


def _diff(old: Document, new: Document, folder: str) -> str:
    """With the path as it is called in the workspace, so that ``git apply`` there takes it; outside of one, by the
    file's name."""
    path = Path(old.path)
    inside = bool(folder) and path.is_relative_to(folder)
    name = path.relative_to(folder).as_posix() if inside else path.name
    return unified(evolve(old, path=name), evolve(new, path=name))
