"""What a search ends with: rewrites to show, each with its verdict and its diff."""

from attrs import evolve, frozen

from agent.evaluation.gates.compile import WHOLE_FILE
from agent.evaluation.verdict import Verdict
from agent.execution.compiler import check_file
from agent.execution.compiler.result import CompileFailure, Options
from agent.ideas.idea import Candidate
from agent.search.formatting.formatter import Formatter, unformatted
from agent.search.host.edits import HostEdits, host_edits
from agent.search.host.readback import contradiction
from agent.search.node import Node
from agent.source.diff import unified
from agent.source.document import Document
from agent.workload.workload import Workload


@frozen
class Proposal:
    """A rewrite worth showing. ``document`` is the user's file with it applied, launch sites included; where a launch
    site cannot be edited by us, ``by_hand`` says what the user has to change, and applying it alone would be wrong."""

    identifier: str
    title: str
    candidate: Candidate
    verdict: Verdict
    document: Document
    diff: str
    changed_lines: int
    by_hand: str


def propose(
    node: Node, original: Node, workload: Workload, options: Options, formatted: Formatter = unformatted
) -> Proposal:
    """The proposal of a judged node. Host code that we wrote is read back, and compiled where nvcc is there."""
    assert node.candidate is not None and node.verdict is not None
    edits = host_edits(original.program, node.program, workload, formatted)
    verdict = node.verdict
    if not edits.by_hand and node.program.plan != original.program.plan:
        launched = evolve(node.program, plan=edits.plan)
        problem = contradiction(original.program, launched, edits.document, workload)
        compiled = None if problem else check_file(edits.document, options)
        problem = problem or _uncompiled(compiled, original.program.document, options)
        if problem:
            edits = HostEdits(node.program.document, problem, node.program.plan)
        elif not isinstance(compiled, CompileFailure):
            verdict = _with_whole_file(verdict)
    return Proposal(
        identifier=node.identifier,
        title=node.title,
        candidate=node.candidate,
        verdict=verdict,
        document=edits.document,
        diff=unified(original.program.document, edits.document),
        changed_lines=node.changed_lines,
        by_hand=edits.by_hand,
    )


def _uncompiled(found: object, original: Document, options: Options) -> str:
    """What nvcc has against the edited file, where there is an nvcc and it takes the file as it was."""
    if not isinstance(found, CompileFailure) or found.kind != "source":
        return ""
    if isinstance(check_file(original, options), CompileFailure):
        return ""
    return f"the host code that was written for this plan does not compile: {found.message}"


def _with_whole_file(verdict: Verdict) -> Verdict:
    """The gates could not compile the file, as its launches were not edited yet; now it was."""
    left = tuple(one for one in verdict.evidence.not_checked if not one.startswith(WHOLE_FILE))
    return evolve(verdict, evidence=evolve(verdict.evidence, not_checked=left))
