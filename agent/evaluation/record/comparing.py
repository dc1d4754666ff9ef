"""A verdict and the same verdict found again, side by side: what agrees, what does not, and what cannot be compared."""

from collections.abc import Iterator, Sequence

from attrs import frozen

from agent.evaluation.judge import Judged
from agent.evaluation.measures.statistics import EFFECT
from agent.evaluation.ran import Ran
from agent.evaluation.record.form import Environment, Record
from agent.evaluation.verdict import Speed, Verdict

_MEASURED = ("faster", "not faster", "mixed")


@frozen
class Counts:
    """Runs of the same size and family in both: ``inputs`` had the same contents, and of the outputs of those, of which
    ``hashed`` have digests on both sides, ``original`` and ``candidate`` have the same bits. ``missing`` ran only then,
    ``new`` only now."""

    runs: int
    inputs: int
    hashed: int
    original: int
    candidate: int
    missing: int
    new: int


@frozen
class Compared:
    """``against`` are the points that speak against the record: with none it is confirmed here. ``notes`` say what
    could not be compared and why. ``environment``: (what, then, now) where they differ."""

    same_place: bool
    counts: Counts
    against: tuple[str, ...]
    notes: tuple[str, ...]
    environment: tuple[tuple[str, str, str], ...]


@frozen
class Replayed:
    """``then`` is the record's verdict, ``now`` the one found here with the same numbers, ``fresh`` the one found with
    numbers that nobody knew. ``confirmed``: nothing speaks ``against`` the record."""

    kernel: str
    made: str
    tool: str
    depth: str
    then: Verdict
    now: Verdict
    fresh: Verdict
    compared: Compared
    against: tuple[str, ...]
    confirmed: bool


def replayed(record: Record, again: Judged, fresh: Judged, found: Compared) -> Replayed:
    """All of a replay in one value."""
    against = (*found.against, *(f"with fresh seeds: {words}" for words in states(record.verdict, fresh.verdict)))
    return Replayed(
        kernel=record.kernel,
        made=record.made,
        tool=record.tool,
        depth=record.settings.depth,
        then=record.verdict,
        now=again.verdict,
        fresh=fresh.verdict,
        compared=found,
        against=against,
        confirmed=not against,
    )


def compare(record: Record, again: Judged, here: Environment, tool: str, deterministic: bool) -> Compared:
    """``again`` was found with the record's own numbers, in ``here``; ``deterministic`` as the original was found to be
    here."""
    differing = tuple(_environment(record, here, tool))
    same = record.environment.device == here.device and record.environment.compiler == here.compiler
    counts = count(record.runs, again.runs)
    against = tuple(states(record.verdict, again.verdict))
    own, other = _bits(record, counts, same, record.tool == tool, deterministic and record.contract.deterministic)
    timed, untimed = timing(record.verdict, again.verdict)
    return Compared(same, counts, (*against, *own, *timed), (*other, *untimed), differing)


def states(then: Verdict, now: Verdict) -> Iterator[str]:
    """Where two verdicts contradict each other in correctness or in precision."""
    if then.correctness.state != now.correctness.state:
        reason = f" ({now.correctness.reason})" if now.correctness.reason else ""
        yield f"correctness: {then.correctness.state} then, {now.correctness.state} now{reason}"
    elif then.correctness.state == "right" and (then.precision.state == "less") != (now.precision.state == "less"):
        yield f"precision: {then.precision.state} then, {now.precision.state} now"


def count(then: Sequence[Ran], now: Sequence[Ran]) -> Counts:
    """Runs are the same when size, family and contents are. Where as many of a size and family ran on both sides, those
    with other contents are counterparts that were altered; else they were left out on one side."""
    before, after = _by_kind(then), _by_kind(now)
    pairs: list[tuple[Ran, Ran]] = []
    altered = missing = new = 0
    for kind in dict.fromkeys((*before, *after)):
        old, rest = before.get(kind, []), list(after.get(kind, []))
        mine = [(one, other) for one in old if (other := _take(rest, one.inputs)) is not None]
        pairs += mine
        lost = len(old) - len(mine)
        altered += lost if lost == len(rest) else 0
        missing += lost if lost != len(rest) else 0
        new += len(rest) if lost != len(rest) else 0
    seen = [
        (old, new)
        for one, other in pairs
        for old, new in zip(one.outputs, other.outputs, strict=False)
        if old.output == new.output and old.original and new.original and old.candidate and new.candidate
    ]
    return Counts(
        runs=len(pairs) + altered,
        inputs=len(pairs),
        hashed=len(seen),
        original=sum(old.original == new.original for old, new in seen),
        candidate=sum(old.candidate == new.candidate for old, new in seen),
        missing=missing,
        new=new,
    )


def _by_kind(runs: Sequence[Ran]) -> dict[object, list[Ran]]:
    found: dict[object, list[Ran]] = {}
    for one in runs:
        found.setdefault((one.sizes, one.family, one.planted, one.alike), []).append(one)
    return found


def _take(runs: list[Ran], inputs: str) -> Ran | None:
    """The first of those with these contents, taken out."""
    at = next((at for at, one in enumerate(runs) if one.inputs == inputs), None)
    return None if at is None else runs.pop(at)


def _bits(
    record: Record, counts: Counts, same_place: bool, same_tool: bool, deterministic: bool
) -> tuple[list[str], list[str]]:
    """What speaks against the record, and what only differs."""
    against: list[str] = []
    notes: list[str] = []
    if counts.inputs < counts.runs:
        words = f"{counts.runs - counts.inputs} of {counts.runs} runs had other contents than the record's"
        why = "" if same_tool else "another version made them"
        why = why or ("" if same_place else "another kind of device takes other runs")
        (notes if why else against).append(f"{words}: {why}" if why else words)
    if counts.missing or counts.new:
        notes.append(f"{counts.missing} runs of the record did not run here, {counts.new} ran only here")
    for side, equal in (("original", counts.original), ("rewrite", counts.candidate)):
        if equal == counts.hashed:
            continue
        words = f"{counts.hashed - equal} of {counts.hashed} outputs of the {side} have other bits"
        why = "" if same_place else "another device or compiler"
        why = why or ("" if deterministic else "the original is not deterministic")
        (notes if why else against).append(f"{words}: {why}" if why else words)
    return against, notes


def timing(then: Verdict, now: Verdict) -> tuple[list[str], list[str]]:
    """Against, and notes."""
    old, new = then.speed, now.speed
    if not _measured(old):
        return [], _estimates(old, new)
    if not _measured(new):
        missing = "no GPU here" if now.correctness.device == "emulated" else new.note or new.state
        return [], [f"timing not replayed: {missing}"]
    one, other = _card(then), _card(now)
    words = f"{_span(old)} then, {_span(new)} now"
    overlap = "the intervals overlap" if _overlap(old, new, 1.0) else "the intervals do not overlap"
    if one != other:
        names = f"{one[0]} then, {other[0]} now" if one[0] != other[0] else f"another {one[0]}"
        return [], [f"timing on another card ({names}): {overlap}: {words}"]
    if _overlap(old, new, EFFECT):
        return [], [f"timing: {overlap}: {words}"]
    return [f"timing: {overlap}: {words}"], []


def _measured(speed: Speed) -> bool:
    return speed.state in _MEASURED and None not in (speed.ratio, speed.low, speed.high)


def _estimates(old: Speed, new: Speed) -> list[str]:
    if old.ratio is None or new.ratio is None:
        return []
    kind = "measured" if _measured(new) else "estimated"
    return [f"speed: estimated {old.ratio:.2f}x then, {kind} {new.ratio:.2f}x now"]


def _card(verdict: Verdict) -> tuple[str, str]:
    """Name and identity of the card that a verdict was measured on."""
    timed = verdict.evidence.timing
    return (timed.card, timed.uuid) if timed is not None else ("", "")


def _overlap(old: Speed, new: Speed, slack: float) -> bool:
    """Whether the intervals meet, or are apart by less than the factor ``slack``: other processes on another day differ
    by a little more than one interval can know."""
    assert old.low is not None and old.high is not None and new.low is not None and new.high is not None
    return old.low <= new.high * slack and new.low <= old.high * slack


def _span(speed: Speed) -> str:
    return f"{speed.ratio:.3f}x ({speed.low:.3f} to {speed.high:.3f})"


def _environment(record: Record, here: Environment, tool: str) -> Iterator[tuple[str, str, str]]:
    if record.tool != tool:
        yield "tool", record.tool, tool
    there = record.environment
    for name in ("device", "system", "python", "numpy", "compiler"):
        old, new = getattr(there, name), getattr(here, name)
        if old != new:
            yield name, old, new
    if there.options != here.options:
        yield "options", " ".join(there.options), " ".join(here.options)
    for name in sorted({*there.machine, *here.machine} - {"python"}):
        old, new = there.machine.get(name, "none"), here.machine.get(name, "none")
        if old != new:
            yield name, old, new
