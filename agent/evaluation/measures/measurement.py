"""What a timing of a candidate came to, as a value."""

from collections.abc import Sequence

from attrs import field, frozen

from agent.evaluation.measures.floor import Floor
from agent.evaluation.measures.statistics import Interval, overall
from agent.evaluation.verdict import SizeSpeed, Speed, Timing
from agent.execution.timing import Figures, Timed


@frozen
class Measurement:
    """``cold``: over a flushed cache; ``warm``: inputs just read. ``control``: the original against itself.
    ``races`` are the processes' answers, ``alone`` the control's. ``notes``: what a reader must know."""

    sizes: str
    cold: Interval
    warm: Interval | None
    control: Interval
    state: str
    original_seconds: float
    candidate_seconds: float
    warm_seconds: tuple[float, float] | None
    races: tuple[Timed, ...] = field(repr=False)
    alone: Timed = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def short(self) -> SizeSpeed:
        return SizeSpeed(self.sizes, self.state, self.cold.ratio, self.cold.low, self.cold.high)


def measured_speed(found: Measurement, elsewhere: Sequence[Measurement], least: Floor | None) -> Speed:
    """The verdict's third axis from the declared size's measurement and those at other sizes."""
    return Speed(
        overall(found.state, [other.state for other in elsewhere]),
        found.cold.ratio,
        found.cold.low,
        found.cold.high,
        original_seconds=found.original_seconds,
        candidate_seconds=found.candidate_seconds,
        note="; ".join(found.notes),
        at=found.sizes,
        warm=found.warm.ratio if found.warm else None,
        others=tuple(other.short for other in elsewhere),
        floor=min(1.0, least.seconds / found.candidate_seconds) if least else None,
    )


def evidence_of(found: Measurement, least: Floor | None, figures: Figures | str) -> Timing:
    """What a reader needs to believe the speed."""
    clocks = [race.clocks for race in found.races if race.clocks]
    named = ("", "", "", 0) if isinstance(figures, str) else (figures.card, figures.uuid, figures.driver, figures.flush)
    columns = list(zip(*clocks, strict=True))
    return Timing(
        card=named[0],
        uuid=named[1],
        driver=named[2],
        clocks=tuple(pick(column) for pick, column in zip((min, max, min, max), columns, strict=False)),
        processes=len(found.races),
        blocks=sum(len(race.cold) for race in found.races),
        sets=min(race.sets for race in found.races),
        original_seconds=found.original_seconds,
        candidate_seconds=found.candidate_seconds,
        control_low=found.control.low,
        control_high=found.control.high,
        warm_original_seconds=found.warm_seconds[0] if found.warm_seconds else None,
        warm_candidate_seconds=found.warm_seconds[1] if found.warm_seconds else None,
        first_original_seconds=found.races[0].first[0],
        first_candidate_seconds=found.races[0].first[1],
        overhead_seconds=found.races[0].overhead,
        flush_bytes=named[3],
        samples=tuple(block for race in found.races for block in race.cold),
        floor_seconds=least.seconds if least else None,
        floor_words=least.words if least else "",
        notes=found.notes,
    )
