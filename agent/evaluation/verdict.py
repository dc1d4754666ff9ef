"""The verdict: three axes that are never mixed, and the evidence behind them."""

from collections.abc import Mapping

from attrs import frozen

from agent.execution.compiler.result import Resources
from agent.execution.device import Fault

SCHEMA = 1

IN_PYTORCH = " in PyTorch, float64"
"""Ends the name of an oracle that is a function of the user's."""


@frozen
class Correctness:
    """``state``: ``right``, ``wrong`` or ``undecided``. ``device`` is ``emulated`` or a card's name. ``largest`` is the
    largest size that ran whole (``rows=64 cols=4099``); ``sampled`` the declared size where only some blocks ran."""

    state: str
    device: str
    reason: str
    families: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    largest: str = ""
    sampled: str = ""
    fault: Fault | None = None


@frozen
class Precision:
    """``state``: ``same``, ``less``, ``better`` or ``unchecked``. Errors are relative to the output's scale, max over
    elements. ``oracle`` says what the truth was (``original promoted to float64``, or why there was none)."""

    state: str
    candidate_error: float | None = None
    original_error: float | None = None
    oracle: str = ""


@frozen
class SizeSpeed:
    """One size's measured ratio with its interval; ``state``: ``faster``, ``slower`` or ``same``."""

    size: str
    state: str
    ratio: float
    low: float
    high: float


@frozen
class Speed:
    """``state``: ``faster``, ``not faster``, ``mixed`` (measured), ``estimated``, ``timing not verified`` or ``none``.

    ``ratio`` is old time / new time. ``low``/``high`` are a 95 % interval and exist only when measured. An estimate
    carries the ``target`` card, the term that ``limits`` each side, both estimated times in seconds and, where they are
    not the declared ones, the sizes that it is for (``at``). A measurement is of the size ``at`` over a flushed cache;
    ``warm`` is the ratio with the inputs just read, ``others`` are further sizes, ``floor`` the part of the card's own
    peak bandwidth that the candidate reached on the bytes that no program can save.
    """

    state: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    target: str = ""
    original_seconds: float | None = None
    candidate_seconds: float | None = None
    original_limit: str = ""
    candidate_limit: str = ""
    note: str = ""
    at: str = ""
    warm: float | None = None
    others: tuple[SizeSpeed, ...] = ()
    floor: float | None = None


@frozen
class GateResult:
    """``outcome``: ``passed``, ``failed``, ``undecided``, ``not applicable``, ``not checked``, ``differs`` (a
    difference that the user's policy reports and does not refuse); ``reason`` in words."""

    gate: str
    outcome: str
    reason: str
    seconds: float = 0.0


@frozen
class Timing:
    """How a speed was measured, at the declared size. Times are medians in seconds for one call.

    ``clocks``: least and most MHz of the multiprocessors, then of the memory. ``processes`` of ``blocks`` blocks in
    all, four calls each; ``sets`` of buffers between two events. ``control_low``/``control_high``: the original against
    itself. ``first_*``: the very first call in a process. ``flush_bytes`` were read before each cold call.
    """

    card: str
    uuid: str
    driver: str
    clocks: tuple[int, ...]
    processes: int
    blocks: int
    sets: int
    original_seconds: float
    candidate_seconds: float
    control_low: float
    control_high: float
    warm_original_seconds: float | None
    warm_candidate_seconds: float | None
    first_original_seconds: float
    first_candidate_seconds: float
    overhead_seconds: float
    flush_bytes: int
    samples: tuple[tuple[float, float, float, float], ...]
    floor_seconds: float | None = None
    floor_words: str = ""
    notes: tuple[str, ...] = ()


@frozen
class Baseline:
    """A program beside the original that computes the same, and its median time in seconds, cold."""

    name: str
    seconds: float


@frozen
class Evidence:
    """What a reader needs to believe, or doubt, the verdict. What is missing stays missing and is listed. ``inexact``
    are opcodes of original and candidate whose results PTX leaves open to the last bits: where the device is
    ``emulated``, a card's may differ in these."""

    original_hash: str
    candidate_hash: str
    compiler: str
    flags: tuple[str, ...]
    arch: str
    device: str
    contract: str
    seeds: tuple[int, ...]
    mutants_killed: tuple[str, ...]
    mutants_not_applicable: tuple[str, ...]
    errors: Mapping[str, float]
    counters: Mapping[str, tuple[float, float]]
    resources: Mapping[str, tuple[Resources | None, Resources | None]]
    not_checked: tuple[str, ...]
    tool: str
    timing: Timing | None = None
    inexact: tuple[str, ...] = ()
    baselines: tuple[Baseline, ...] = ()


@frozen
class Verdict:
    correctness: Correctness
    precision: Precision
    speed: Speed
    gates: tuple[GateResult, ...]
    evidence: Evidence

    @property
    def shown(self) -> bool:
        """Whether this may be proposed at all: right, and not known to be less precise. ``unchecked`` precision (no
        float64 oracle fits the original) was still held to the original's own sensitivity, and its line says so."""
        return self.correctness.state == "right" and self.precision.state in ("same", "better", "unchecked")
