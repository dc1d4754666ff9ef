"""What the server and its worker say to each other: one Task, then events and stages, then one Ended."""

from typing import get_args

from attrs import field, frozen

from agent.evaluation.line_costs import LineCounts
from agent.evaluation.verdict import Verdict
from agent.ideas.idea import Idea
from agent.search import events
from cuda_lsp.proposals.anchors import Anchors


@frozen
class ModelUse:
    """A language model that the user allowed, with the key for it and where that came from."""

    name: str
    endpoint: str
    key: str = field(default="", repr=False)
    origin: str = ""


@frozen
class Options:
    """What a job may do and spend. ``scope`` and ``only`` as in a search; ``against`` is ``saved`` or a git revision;
    ``folder`` is the document's workspace folder: where an unsaved one looks for the project's settings, and what paths
    in diffs are relative to. ``idea`` is one in the user's own words; ``rejected`` holds (title, reason) of what the
    user turned down; ``model`` is one that may be asked."""

    scope: str = "relaunch"
    only: tuple[str, ...] = ()
    target: str = ""
    device: str = "auto"
    seconds: float = 300.0
    rounds: int = 3
    candidates: int = 36
    lossy: bool = False
    against: str = "saved"
    folder: str = ""
    idea: str = ""
    rejected: tuple[tuple[str, str], ...] = ()
    model: ModelUse | None = None


@frozen
class Task:
    """One job. ``text`` is the document as the editor holds it; ``path`` is empty where it was never saved."""

    kind: str
    path: str
    text: bytes = field(repr=False)
    kernel: str
    options: Options


@frozen
class Staged:
    """What is being done now. ``done`` of ``total`` where that is known, else both 0."""

    text: str
    done: int = 0
    total: int = 0


@frozen
class Rewrite:
    """A rewrite that passed, with what is needed to find its place again. ``proof`` is the key of what it was proved
    on; ``by_hand`` says what keeps it from being applied by us."""

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


@frozen
class Ended:
    """How a job ended. ``reason`` is ``done``, ``failed`` (the message says why and what to do), ``fault`` (ours;
    ``detail`` is the traceback), or a search's own. ``directive`` is a comment to put above the kernel; ``counts`` is
    what its lines cost."""

    reason: str
    message: str
    rewrites: tuple[Rewrite, ...] = ()
    verdict: Verdict | None = None
    lines: tuple[str, ...] = ()
    ideas: tuple[Idea, ...] = ()
    directive: str = ""
    detail: str = ""
    counts: LineCounts | None = None


Message = events.Event | Staged | Ended
MESSAGES: tuple[type, ...] = get_args(Message)
