"""The event stream of a search: what every front end shows, in the order in which it happened."""

from attrs import frozen

from agent.evaluation.verdict import Verdict
from agent.ideas.idea import Idea


@frozen
class Started:
    kernel: str
    file: str
    line: int
    signature: str
    target: str
    device: str


@frozen
class WorkloadFound:
    """``arguments`` in words, ``origin`` in words (``launch at line 61, extents from cudaMalloc``)."""

    arguments: str
    origin: str


@frozen
class ContractFound:
    summary: str
    broken: bool


@frozen
class HeadroomFound:
    """``ratio`` to the nearer ``floor`` on ``target``; ``counted`` and ``needed`` are DRAM bytes. ``measured``: time
    and floor are the card's own, not estimates. ``at`` are the sizes that it is for, where not the declared ones."""

    ratio: float | None
    counted: int
    needed: int
    target: str
    note: str
    floor: str = "memory floor"
    measured: bool = False
    at: str = ""


@frozen
class IdeasFound:
    """Ideas for one parent (``0`` is the original), and the name and reason of each that does not apply."""

    parent: str
    ideas: tuple[Idea, ...]
    considered: tuple[tuple[str, str], ...]


@frozen
class IdeaDropped:
    """An idea of the user's or a model's that came to no candidate, or a model that gave none: ``title`` and why."""

    title: str
    reason: str


@frozen
class Note:
    """Something about the machine or the project that keeps a search from doing all that it could."""

    text: str


@frozen
class RoundStarted:
    number: int
    candidates: int


@frozen
class CandidateJudged:
    round: int
    identifier: str
    title: str
    variant: str
    verdict: Verdict | None
    note: str


@frozen
class RoundEnded:
    number: int
    right: int
    wrong: int
    less_precise: int
    duplicates: int
    undecided: int
    best: float | None


@frozen
class ModelUsed:
    """What a model cost: tokens (``exact`` is False where the endpoint did not count them) and, with a known price,
    dollars."""

    name: str
    place: str
    requests: int
    sent: int
    received: int
    exact: bool
    dollars: float | None


@frozen
class Finished:
    """``reason``: ``done``, ``budget``, ``cancelled``, ``nothing applicable``, ``no headroom``, ``broken original``,
    or the kind of failure that kept the original from being prepared."""

    reason: str
    message: str


Event = (
    Started
    | WorkloadFound
    | ContractFound
    | HeadroomFound
    | IdeasFound
    | IdeaDropped
    | Note
    | RoundStarted
    | CandidateJudged
    | RoundEnded
    | ModelUsed
    | Finished
)
