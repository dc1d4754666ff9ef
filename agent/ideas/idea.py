"""Ideas in words, and candidates in code. A candidate is data: device source, a plan, a rationale."""

import enum

from attrs import frozen

from agent.workload.plan import Plan


class Scope(enum.Enum):
    """What a rewrite may change, narrowest first; the user's choice."""

    DROP_IN = "drop-in"
    RELAUNCH = "relaunch"
    PLAN = "plan"

    def allows(self, other: "Scope") -> bool:
        order = list(Scope)
        return order.index(other) <= order.index(self)


@frozen
class Expectation:
    """Which counter should move, and to what fraction of its value (0.5: half)."""

    counter: str
    factor: float
    words: str


@frozen
class Idea:
    """What to change, why it should help here, what should move, and what could break. Words first.

    ``name`` is the stable name of its kind (``index-exchange``), ``source`` who had it (``catalog``, ``user``,
    ``model``).
    """

    name: str
    title: str
    why: str
    expects: tuple[Expectation, ...]
    risk: str
    scope: Scope
    source: str
    line: int


@frozen
class Tunable:
    """A constant that an implementation leaves open (a tile's width, elements a thread): every one of ``values`` gives
    right code, ``default`` is the one to try first. ``words`` says what it is, for users."""

    name: str
    values: tuple[int, ...]
    default: int
    words: str


@frozen
class Candidate:
    """A rewrite of one kernel: ``code`` replaces the kernel's definition (helpers and further kernels included); the
    ``#include`` lines that it begins with go to the file's own.

    ``plan`` says how it is launched; ``variant`` tells implementations of the same idea apart; ``ideas`` lists the
    ideas applied from the original on, oldest first. ``tunables`` are the constants that may be chosen otherwise, and
    ``values`` what they are here. ``repairs`` counts the turns in which whoever wrote it mended it.
    """

    ideas: tuple[Idea, ...]
    variant: str
    code: str
    plan: Plan
    rationale: str
    scope: Scope
    tunables: tuple[Tunable, ...] = ()
    values: tuple[tuple[str, int], ...] = ()
    repairs: int = 0
