"""What a rule finds, as values."""

import enum

from attrs import evolve, field, frozen
from tree_sitter import Node

from agent.source.edits import Edit
from agent.source.span import Span


class Severity(enum.Enum):
    """How a finding is shown. A warning is a fault or a cost that is certain; a hint is a habit worth a thought."""

    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


class Cost(enum.Enum):
    """What is lost."""

    RESULT = "the result may be wrong, or the launch may fail"
    TRAFFIC = "memory traffic"
    PASSES = "passes over shared memory"
    ARITHMETIC = "arithmetic throughput"
    WAITING = "threads that wait for each other"
    LANES = "lanes that do nothing"


@frozen
class Related:
    """Another place that belongs to a finding, and what is to be said about it."""

    span: Span
    words: str


@frozen
class Repair:
    """A change of the text that mends a finding: ``title`` says what it does, as an order. ``sure``: it is what anybody
    would do; else one of several ways, or one with a side that the title names."""

    title: str
    edits: tuple[Edit, ...]
    sure: bool = True


@frozen
class Finding:
    """One finding. ``message`` is one line; ``cost`` is the expected cost in words (``32 sectors per request, 4 would
    do``), empty where the message says it all; ``fix`` names a catalogue idea that may mend it; ``repair`` is a change
    that does, where there is a mechanical one. ``counted``: it was made from the counts of a run, and not read off the
    text."""

    rule: str
    message: str
    span: Span
    severity: Severity
    related: tuple[Related, ...] = ()
    cost: str = ""
    fix: str | None = None
    repair: Repair | None = field(default=None, eq=False)
    counted: bool = False


@frozen
class Place:
    """Where something is: in the kernel (``launch`` is None; offsets from its start), or in a part of one of its
    launches (``grid``, ``block``, ``shared`` or the whole ``launch``)."""

    start: int = 0
    end: int = 0
    launch: int | None = None
    part: str = "launch"


@frozen
class Mend:
    """A repair before it has its place in a file: places, and what is written there."""

    title: str
    changes: tuple[tuple[Place, str], ...]
    sure: bool = True


@frozen
class Hit:
    """A finding before it has its place in a file. ``related`` are places with words; ``fix`` names a catalogue idea
    where that depends on what was found, and not on the rule alone."""

    at: Place
    message: str
    cost: str = ""
    related: tuple[tuple[Place, str], ...] = ()
    rule: str = ""
    mend: Mend | None = None
    fix: str | None = None


def at(node: Node) -> Place:
    return Place(node.start_byte, node.end_byte)


def at_launch(launch: int, part: str = "launch") -> Place:
    return Place(launch=launch, part=part)


def hit(
    place: Node | Place,
    message: str,
    cost: str = "",
    related: tuple[tuple[Node | Place, str], ...] = (),
    mend: Mend | None = None,
    fix: str | None = None,
) -> Hit:
    """What a rule yields."""
    others = tuple((other if isinstance(other, Place) else at(other), words) for other, words in related)
    return Hit(
        place if isinstance(place, Place) else at(place), " ".join(message.split()), cost, others, mend=mend, fix=fix
    )


def named(found: Hit, rule: str) -> Hit:
    return evolve(found, rule=rule)
