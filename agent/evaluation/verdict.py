"""The verdict: three axes that are never mixed, and the evidence behind them."""

from collections.abc import Mapping

from attrs import frozen

from agent.execution.compiler.result import Resources
from agent.execution.device import Fault

SCHEMA = 1


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
class Speed:
    """``state``: ``faster``, ``not faster``, ``mixed`` (measured), ``estimated``, ``timing not verified`` or ``none``.

    ``ratio`` is old time / new time. ``low``/``high`` are a 95 % interval and exist only when measured. An estimate
    carries the ``target`` card, the term that ``limits`` each side and both estimated times in seconds.
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


@frozen
class GateResult:
    """``outcome``: ``passed``, ``failed``, ``undecided``, ``not applicable``, ``not checked``; ``reason`` in words."""

    gate: str
    outcome: str
    reason: str
    seconds: float = 0.0


@frozen
class Evidence:
    """What a reader needs to believe, or doubt, the verdict. What is missing stays missing and is listed."""

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


@frozen
class Verdict:
    correctness: Correctness
    precision: Precision
    speed: Speed
    gates: tuple[GateResult, ...]
    evidence: Evidence

    @property
    def shown(self) -> bool:
        """Whether this may be proposed at all: right, and not known to be less precise. ``unchecked`` precision (a
        16-bit kernel has no float64 oracle) was still held to the original's own sensitivity, and its line says so."""
        return self.correctness.state == "right" and self.precision.state in ("same", "better", "unchecked")
