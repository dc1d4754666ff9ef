"""What an idea source is asked about, and what it answers."""

from attrs import frozen

from agent.ideas.adviser import Adviser
from agent.ideas.idea import Idea, Scope
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.plan import Plan
from agent.workload.workload import Workload


@frozen
class Request:
    """A kernel to improve. For a later round, ``document``, ``kernel`` and ``plan`` are those of the parent
    candidate; the workload stays the original's. ``tried`` holds (title, how it ended) of what was tried on this
    kernel before, ``applied`` the names of the ideas that the parent holds, oldest first. ``lossy``: the user allows
    less precise arithmetic (tf32, half) and asks for it. ``architectures`` (``sm_90``) are all that a rewrite must run
    on, none where that is not known.

    For whoever reasons in words: ``facts`` are what is known of the kernel as it is, a sentence each; ``counters``
    (name, value) what was counted of it; ``target`` the card. ``adviser`` is asked for ideas beside the catalogue."""

    document: Document
    kernel: Kernel
    workload: Workload
    plan: Plan
    scope: Scope = Scope.PLAN
    tried: tuple[tuple[str, str], ...] = ()
    lossy: bool = False
    applied: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    counters: tuple[tuple[str, float], ...] = ()
    target: str = ""
    adviser: Adviser | None = None


@frozen
class Proposal:
    """``considered`` gives, for each idea of the catalogue that does not apply, its name and the reason in words;
    ``dropped`` likewise what came of asking elsewhere and is no idea to follow."""

    ideas: tuple[Idea, ...]
    considered: tuple[tuple[str, str], ...]
    dropped: tuple[tuple[str, str], ...] = ()
