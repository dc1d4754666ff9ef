"""Events, verdicts and proposals as the lines that a terminal shows."""

import math
from collections.abc import Callable, Iterable

from agent.evaluation.verdict import IN_PYTORCH, Correctness, Evidence, Precision, Speed, Timing, Verdict
from agent.search import events
from agent.search.proposal import Proposal

_LABEL = 11


def line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}".rstrip()


def size(count: float) -> str:
    """A byte count in words: 4.3 GB. Decimal units, as bandwidths have them."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def down(ratio: float) -> str:
    """A ratio with two decimals, rounded towards no effect: never in our favour."""
    return f"{int(ratio * 100) / 100:.2f}x"


def event_lines(event: events.Event) -> list[str]:
    """The lines for one event; none for those that only a progress display shows."""
    writer = _WRITERS.get(type(event))
    return list(writer(event)) if writer else []


def _started(event: events.Started) -> Iterable[str]:
    yield f"{event.signature}      {event.file}:{event.line}"


def _workload(event: events.WorkloadFound) -> Iterable[str]:
    yield line("workload", f"{event.arguments}     {event.origin}")


def _contract(event: events.ContractFound) -> Iterable[str]:
    yield line("contract", ("BROKEN: " if event.broken else "") + event.summary)


def _headroom(event: events.HeadroomFound) -> Iterable[str]:
    if event.ratio is None:
        yield line("headroom", f"unknown: {event.note}")
    else:
        traffic = f"{size(event.counted)} counted, {size(event.needed)} needed"
        note = f"; {event.note}" if event.note else ""
        where = f"the {event.floor} on {event.target}{_at(event.at)}"
        how = "measured" if event.measured else "estimated"
        yield line("headroom", f"{down(event.ratio)} to {where}, {how} ({traffic}){note}")


def _at(sizes: str) -> str:
    """The sizes that a figure is for, where they have to be named."""
    return f" at {sizes}" if sizes else ""


def _ideas(event: events.IdeasFound) -> Iterable[str]:
    if event.parent != "0":
        titles = ", ".join(idea.name for idea in event.ideas)
        yield line("ideas", f"on top of {event.parent}: {titles or 'none'}")
        return
    if not event.ideas:
        for name, reason in event.considered:
            yield line("considered", f"{name}: {reason}")
    for number, idea in enumerate(event.ideas, 1):
        expects = "; ".join(expectation.words for expectation in idea.expects) or "no counter to move"
        yield line(
            "ideas" if number == 1 else "",
            f"{number} {idea.title}   [{idea.name}, {idea.scope.value}]   expects {expects}",
        )
        yield line("", f"  {idea.why}")
        if idea.risk:
            yield line("", f"  may break: {idea.risk}")


def _dropped(event: events.IdeaDropped) -> Iterable[str]:
    yield line("dropped", f"{event.title}: {event.reason}")


def _note(event: events.Note) -> Iterable[str]:
    yield line("note", event.text)


def _model(event: events.ModelUsed) -> Iterable[str]:
    about = "" if event.exact else "about "
    money = "" if event.dollars is None else f", {about}${event.dollars:.4f}"
    asked = f"{event.requests} request{'s' * (event.requests != 1)}"
    tokens = f"{about}{event.sent:,} tokens sent, {about}{event.received:,} received"
    yield line("model", f"{event.name} at {event.place}: {asked}, {tokens}{money}")


def _judged(event: events.CandidateJudged) -> Iterable[str]:
    text = verdict_text(event.verdict) if event.verdict else event.note
    if event.verdict and event.note:
        text = f"{text}; {event.note}"
    yield line("", f"{event.identifier} {event.variant}: {text}")


def _round_ended(event: events.RoundEnded) -> Iterable[str]:
    total = event.right + event.wrong + event.less_precise + event.duplicates + event.undecided
    counts = [
        f"{count} {name}"
        for count, name in (
            (event.right, "right"),
            (event.wrong, "wrong"),
            (event.less_precise, "less precise"),
            (event.undecided, "undecided"),
            (event.duplicates, "duplicate" + "s" * (event.duplicates != 1)),
        )
        if count
    ]
    best = f"    best so far {down(event.best)}" if event.best else ""
    yield line(f"round {event.number}", f"{total} candidate{'s' * (total != 1)}: {', '.join(counts)}{best}")


_WRITERS: dict[type, Callable[..., Iterable[str]]] = {
    events.Started: _started,
    events.WorkloadFound: _workload,
    events.ContractFound: _contract,
    events.HeadroomFound: _headroom,
    events.IdeasFound: _ideas,
    events.IdeaDropped: _dropped,
    events.Note: _note,
    events.ModelUsed: _model,
    events.CandidateJudged: _judged,
    events.RoundEnded: _round_ended,
}


def verdict_text(verdict: Verdict) -> str:
    """The three axes on one line, each with what it rests on."""
    if verdict.correctness.state == "wrong":
        return correctness_text(verdict.correctness)
    return "; ".join(
        (correctness_text(verdict.correctness), precision_text(verdict.precision), speed_text(verdict.speed)),
    )


def correctness_text(correctness: Correctness) -> str:
    if correctness.state != "right":
        return f"{correctness.state} ({correctness.reason})"
    ran = [f"{len(correctness.families)} families", f"{len(correctness.sizes)} sizes"]
    if correctness.largest:
        ran[-1] += f" up to {correctness.largest}"
    if correctness.sampled:
        ran.append(correctness.sampled)
    return f"right ({correctness.device}: {', '.join(ran)})"


def precision_text(precision: Precision) -> str:
    if precision.state == "unchecked":
        return f"precision not checked ({precision.oracle})"
    parts = []
    if precision.state != "same" and precision.candidate_error is not None and precision.original_error is not None:
        parts.append(f"{precision.candidate_error:.1e} against {precision.original_error:.1e}")
    if precision.oracle.endswith(IN_PYTORCH):
        parts.append(f"held against {precision.oracle.removesuffix(IN_PYTORCH)}")
    said = "; ".join(parts)
    return f"{precision.state} precision{f' ({said})' if said else ''}"


def speed_text(speed: Speed) -> str:
    if speed.state in ("estimated", "timing not verified") and speed.ratio is not None:
        unverified = "timing not verified, " if speed.state != "estimated" else ""
        return f"{unverified}est. {down(speed.ratio)} on {speed.target}{_at(speed.at)}, not measured"
    if speed.ratio is not None and speed.low is not None and speed.high is not None:
        return _measured_text(speed, speed.ratio, speed.low, speed.high)
    return (
        f"{speed.state}{f' ({speed.note})' if speed.note else ''}"
        if speed.state != "none"
        else f"no speed ({speed.note})"
    )


def _measured_text(speed: Speed, ratio: float, low: float, high: float) -> str:
    span = f"95 %: {math.floor(low * 100) / 100:.2f} to {math.ceil(high * 100) / 100:.2f}"
    parts = [f"{speed.state}, {down(ratio)} ({span}){_at(speed.at)}"]
    ratios = [other.ratio for other in speed.others]
    if ratios:
        least, most = down(min(ratios)), down(max(ratios))
        span = least if least == most else f"{least} to {most}"
        parts.append(f"{span} at {len(ratios)} other size{'s' * (len(ratios) != 1)}")
    if speed.warm is not None and abs(speed.warm / ratio - 1) > 0.05:
        parts.append(f"{down(speed.warm)} with its inputs in the cache")
    text = ", ".join(parts)
    return f"{text}; {speed.floor:.0%} of the floor" if speed.floor else text


def why_text(verdict: Verdict) -> str:
    """The counters that moved by more than a per cent, old -> new."""
    moved = [
        f"{name} {_number(old)} -> {_number(new)}"
        for name, (old, new) in verdict.evidence.counters.items()
        if abs(new - old) > 0.01 * max(abs(old), abs(new))
    ]
    registers = [
        f"registers {old.registers} -> {new.registers}"
        for old, new in verdict.evidence.resources.values()
        if old and new and old.registers != new.registers
    ]
    return ", ".join([*moved, *registers])


def timing_text(timing: Timing | None) -> str:
    """How a speed was measured: times, card, clocks, processes, the original against itself, first calls, what to
    know."""
    if timing is None:
        return ""
    parts = [f"{duration(timing.original_seconds)} -> {duration(timing.candidate_seconds)}"]
    clocks = f" at {timing.clocks[0]} to {timing.clocks[1]} MHz" if timing.clocks else ""
    parts.append(f"{timing.card}{clocks}, driver {timing.driver}")
    processes = f"{timing.processes} process{'es' * (timing.processes != 1)}"
    parts.append(f"{timing.blocks} blocks of four calls in {processes}")
    parts.append(f"the original against itself {timing.control_low:.3f} to {timing.control_high:.3f}")
    if timing.warm_original_seconds is not None and timing.warm_candidate_seconds is not None:
        warm = f"{duration(timing.warm_original_seconds)} -> {duration(timing.warm_candidate_seconds)}"
        parts.append(f"inputs in the cache: {warm}")
    first = f"{duration(timing.first_original_seconds)} -> {duration(timing.first_candidate_seconds)}"
    parts.append(f"the first call in a process: {first}")
    return "; ".join((*parts, *timing.notes))


def told_text(verdict: Verdict) -> str:
    """The three axes on one line, and what else was timed beside them."""
    beside = _beside(verdict.evidence) if verdict.correctness.state == "right" else ""
    return "; ".join(filter(None, (verdict_text(verdict), beside)))


def _beside(evidence: Evidence) -> str:
    others = beside_text(evidence)
    ours = f", the rewrite {duration(evidence.timing.candidate_seconds)}" if evidence.timing else ""
    return f"beside it on this card: {others}{ours}" if others else ""


def beside_text(evidence: Evidence) -> str:
    """What else computes the same on this card, and how long it takes; empty where nothing was timed."""
    return ", ".join(f"{one.name} {duration(one.seconds)}" for one in evidence.baselines)


def duration(seconds: float) -> str:
    """A time in the unit that suits it: 147.8 us."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def evidence_lines(verdict: Verdict) -> tuple[str, ...]:
    """What the verdict rests on: what moved, how it was timed, what each gate said, what was not checked."""
    gates = [f"{gate.gate}: {gate.outcome}{f', {gate.reason}' if gate.reason else ''}" for gate in verdict.gates]
    unchecked = [f"not checked: {text}" for text in verdict.evidence.not_checked]
    timed = timing_text(verdict.evidence.timing)
    beside = _beside(verdict.evidence)
    truth = f"held against: {verdict.precision.oracle}" if verdict.precision.oracle else ""
    return tuple(text for text in (why_text(verdict), timed, beside, truth, *gates, *unchecked) if text)


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 100_000:
        return str(int(value))
    return f"{value:.3g}"


def proposal_lines(number: int, proposal: Proposal) -> list[str]:
    lines = [
        line(f"result {number}", f"{proposal.title}   [{proposal.candidate.variant}]"),
        line("", verdict_text(proposal.verdict)),
    ]
    why = why_text(proposal.verdict)
    lines += [line("why", why)] if why else []
    timed = timing_text(proposal.verdict.evidence.timing)
    lines += [line("timed", timed)] if timed else []
    beside = beside_text(proposal.verdict.evidence)
    lines += [line("beside", beside)] if beside else []
    unchecked = proposal.verdict.evidence.not_checked
    lines += [line("unchecked", "; ".join(unchecked))] if unchecked else []
    lines += [line("by hand", proposal.by_hand)] if proposal.by_hand else []
    return lines
