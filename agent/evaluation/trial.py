"""A candidate on its way through the gates: what is known of it so far, and what a gate rules."""

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, field, frozen

from agent.evaluation.comparators import Comparison, Expected
from agent.evaluation.declared import Sample
from agent.evaluation.doubts import Doubt, doubtful
from agent.evaluation.measures.floor import Floor
from agent.evaluation.measures.measurement import Measurement
from agent.evaluation.prepare import Prepared
from agent.evaluation.ran import Ran
from agent.evaluation.runs import Case
from agent.evaluation.verdict import Baseline, GateResult
from agent.execution.compiler.result import Build, Resources
from agent.execution.device import Fault
from agent.workload.binding import Bound
from agent.workload.program import Program

PASSED, FAILED, UNDECIDED = "passed", "failed", "undecided"
NOT_APPLICABLE, NOT_CHECKED = "not applicable", "not checked"
DIFFERS = "differs"
"""A difference that the user's own policy lets through: no pass, and no refusal."""


@frozen
class Trial:
    """Facts gathered by the gates so far. ``inexact``: opcodes that ran, of original and candidate, whose results the
    device gives within an error only. ``comparisons`` of all runs, but for ``doubts``, which are beyond their
    budget and not settled yet; ``sizes`` and ``families`` that ran;
    ``beyond``: sizes above the declared ones ran too, on sampled blocks. ``measured`` is the timing at the declared
    size, ``elsewhere`` those at others, ``untimed`` why there is none, where one was expected. ``runs`` are kept for a
    record where somebody wants one (``kept``)."""

    prepared: Prepared = field(repr=False)
    candidate: Program = field(repr=False)
    allow_lossy: bool
    scope: str
    bound: Bound | None = field(default=None, repr=False)
    build: Build | None = field(default=None, repr=False)
    comparisons: tuple[Comparison, ...] = field(default=(), repr=False)
    doubts: tuple[Doubt, ...] = field(default=(), repr=False)
    families: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    largest: str = ""
    sampled: str = ""
    seeds: tuple[int, ...] = ()
    oracle_used: bool = False
    beyond: bool = False
    inexact: frozenset[str] = frozenset()
    not_checked: tuple[str, ...] = ()
    measured: Measurement | None = field(default=None, repr=False)
    elsewhere: tuple[Measurement, ...] = field(default=(), repr=False)
    floor: Floor | None = None
    baselines: tuple[Baseline, ...] = ()
    untimed: str = ""
    resources: Mapping[str, tuple[Resources | None, Resources | None]] = field(factory=dict)
    kept: bool = False
    runs: tuple[Ran, ...] = field(default=(), repr=False)

    def unchecked(self, *words: str) -> "Trial":
        return evolve(self, not_checked=tuple(dict.fromkeys((*self.not_checked, *words))))

    def compared(
        self,
        chosen: Case,
        known: Sequence[Expected],
        found: Sequence[Comparison],
        cost: int,
        sample: Sample | None = None,
    ) -> "Trial":
        """With what was ``found`` of one case; ``cost`` in thread-instructions of the original."""
        doubted = [item for item in found if doubtful(item, known)]
        return evolve(
            self,
            comparisons=(*self.comparisons, *(item for item in found if item not in doubted)),
            doubts=(*self.doubts, *(Doubt(chosen, item, cost, sample) for item in doubted)),
        )


@frozen
class Ruling:
    """What a gate found. A ruling that is ``failed`` or ``undecided`` ends the trial; ``state`` is then the verdict on
    correctness (``wrong``, ``undecided``), or ``less`` where the candidate is right and less precise."""

    outcome: str
    reason: str
    trial: Trial
    state: str = ""
    fault: Fault | None = None


Run = Callable[[Trial], Ruling]


@frozen
class Gate:
    """``order``: cheap gates come first. ``reason``: why it exists. ``answers``: the cheat or fault that it answers."""

    name: str
    order: int
    reason: str
    answers: str
    run: Run = field(repr=False)


REGISTERED: dict[str, Gate] = {}


def gate(name: str, order: int, reason: str, answers: str) -> Callable[[Run], Run]:
    """Register a gate beside its definition."""

    def register(run: Run) -> Run:
        REGISTERED[name] = Gate(name, order, reason, answers, run)
        return run

    return register


def passed(trial: Trial, reason: str) -> Ruling:
    return Ruling(PASSED, reason, trial)


def wrong(trial: Trial, reason: str, fault: Fault | None = None) -> Ruling:
    return Ruling(FAILED, reason, trial, "wrong", fault)


def undecided(trial: Trial, reason: str) -> Ruling:
    return Ruling(UNDECIDED, reason, trial, "undecided")


def result(found: Gate, ruling: Ruling, seconds: float) -> GateResult:
    return GateResult(found.name, ruling.outcome, ruling.reason, seconds)
