"""What a search ends with: rewrites to show, each with its verdict and its diff."""

from attrs import frozen

from agent.evaluation.verdict import Verdict
from agent.ideas.idea import Candidate
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


def propose(node: Node, original: Node, workload: Workload) -> Proposal:
    """The proposal of a judged node."""
    assert node.candidate is not None and node.verdict is not None
    edits = _checked(host_edits(original.program, node.program, workload), node, original, workload)
    return Proposal(
        identifier=node.identifier,
        title=node.title,
        candidate=node.candidate,
        verdict=node.verdict,
        document=edits.document,
        diff=unified(original.program.document, edits.document),
        changed_lines=node.changed_lines,
        by_hand=edits.by_hand,
    )


def _checked(edits: HostEdits, node: Node, original: Node, workload: Workload) -> HostEdits:
    """What we wrote into the host code is read back like anybody's: it has to launch what was verified."""
    if edits.by_hand or node.program.plan == original.program.plan:
        return edits
    problem = contradiction(original.program, node.program, edits.document, workload)
    return HostEdits(node.program.document, problem) if problem else edits
