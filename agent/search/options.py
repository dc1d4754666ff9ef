"""What a search may do and spend."""

from attrs import frozen

from agent.ideas.idea import Scope


@frozen
class SearchOptions:
    """``seconds`` and ``candidates`` are hard caps over the whole search. ``beam`` parents go on to the next round.

    ``only`` restricts the search to these idea names; ``without`` leaves ideas out. ``fresh`` ignores an interrupted
    search's trace. ``lossy`` also admits rewrites that are less precise than the original. ``trials`` caps how many
    values the tuner tries for each rewrite that it works on.
    """

    rounds: int = 3
    beam: int = 2
    candidates: int = 36
    seconds: float = 300.0
    scope: Scope = Scope.RELAUNCH
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    lossy: bool = False
    fresh: bool = False
    proposals: int = 3
    trials: int = 12
