"""What a worker answers to a task: events and stages, then one Ended."""

from typing import get_args

from attrs import frozen

from agent.analysis.rules.finding import Finding
from agent.evaluation.lines.costs import LineCounts
from agent.evaluation.verdict import Verdict
from agent.ideas.idea import Idea
from agent.search import events
from cuda_lsp.proposals.anchors import Anchors
from cuda_lsp.scanning.values import ListedFile, Scanned


@frozen
class Staged:
    """What is being done now. ``done`` of ``total`` where that is known, else both 0."""

    text: str
    done: int = 0
    total: int = 0


@frozen
class Rewrite:
    """A rewrite that passed, with what is needed to find its place again. ``proof`` is the key of what it was proved
    on; ``by_hand`` says what keeps it from being applied by us. ``origin`` says whose idea it is where it is not the
    catalogue's. ``record`` is the file of its verdict's proof record, if it could be written."""

    title: str
    ideas: tuple[str, ...]
    variant: str
    why: str
    verdict: Verdict
    anchors: Anchors | None
    proof: str
    diff: str
    by_hand: str
    changed_lines: int
    origin: str = ""
    record: str = ""


@frozen
class Ended:
    """How a job ended. ``reason`` is ``done``, ``failed`` (the message says why and what to do), ``fault`` (ours;
    ``detail`` is the traceback), or a search's own. ``directive`` is a comment to put above the kernel; ``counts`` is
    what its lines cost, ``found`` the findings that are made from that, in the task's text. ``trouble`` is what kept a
    language model from helping, beside what was found without it. ``listed`` and ``scanned`` are what a scan asks
    for."""

    reason: str
    message: str
    rewrites: tuple[Rewrite, ...] = ()
    verdict: Verdict | None = None
    lines: tuple[str, ...] = ()
    ideas: tuple[Idea, ...] = ()
    directive: str = ""
    detail: str = ""
    counts: LineCounts | None = None
    found: tuple[Finding, ...] = ()
    trouble: str = ""
    listed: ListedFile | None = None
    scanned: Scanned | None = None


Message = events.Event | Staged | Ended
MESSAGES: tuple[type, ...] = get_args(Message)
