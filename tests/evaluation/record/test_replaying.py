"""A verdict found again: on the same device, on another, on a card that says otherwise, and without one."""

import math
from functools import cache

import pytest
from attrs import evolve

from agent.evaluation.judge import Judged, examine
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.ran import Ran, Seen
from agent.evaluation.record import read
from agent.evaluation.record.comparing import Compared, compare, count, replayed, states, timing
from agent.evaluation.record.environment import environment
from agent.evaluation.record.form import Record
from agent.evaluation.record.making import record
from agent.evaluation.record.replaying import reopened, rerun
from agent.evaluation.verdict import Speed
from agent.execution.device import Device
from agent.execution.emulator import Emulator
from tests.evaluation.kernels import original, rewrite, setting
from tests.evaluation.record.samples import GOLDEN
from tests.evaluation.test_timing import OTHER, TEXT, Clock


@cache
def measured() -> Record:
    """A screen on a card whose clock says twice as fast."""
    program, workload = original(TEXT)
    prepared = prepare(program, workload, setting(device=Clock(), depth="screen"))
    assert isinstance(prepared, Prepared)
    candidate = rewrite(OTHER, program.plan)
    return record(prepared, candidate, examine(prepared, candidate))


def _replay(found: Record, device: Device, fresh: bool = False) -> tuple[Judged, Compared]:
    with reopened(found) as opened:
        again = rerun(opened, device, "sm_90", 60.0, lambda: False, fresh)
    assert again.prepared is not None and again.judged is not None
    here = environment(again.prepared, again.judged.verdict)
    return again.judged, compare(found, again.judged, here, found.tool, again.prepared.contract.deterministic)


def test_a_measured_verdict_on_the_same_card() -> None:
    found = measured()
    card = found.environment.card
    assert card is not None and (card.name, card.uuid, card.read) == ("Test card", "GPU-1", 1e12)
    timed = found.verdict.evidence.timing
    assert (
        timed is not None and len(timed.samples) == timed.blocks == 8 and timed.samples[0] == (1e-3, 1e-3, 5e-4, 5e-4)
    )
    judged, compared = _replay(found, Clock())
    assert compared.against == () and compared.same_place and compared.environment == ()
    assert compared.counts.inputs == compared.counts.runs > 5
    assert compared.counts.original == compared.counts.candidate == compared.counts.hashed > 5
    assert any(note.startswith("timing: the intervals overlap") for note in compared.notes)
    assert judged.secret == found.secrets.candidate


def test_a_card_that_says_otherwise_speaks_against_it() -> None:
    slower = Clock(times=lambda n, control: (1e-3, 1e-3 if control else 0.8e-3))
    _, compared = _replay(measured(), slower)
    assert len(compared.against) == 1 and "the intervals do not overlap: 2.0" in compared.against[0]


def test_intervals_that_lie_beside_one_another_are_no_contradiction() -> None:
    """What is less than two per cent is no effect anywhere else either."""
    verdict = measured().verdict

    def timed(low: float, high: float, uuid: str = "GPU-1"):
        shown = verdict.evidence.timing
        assert shown is not None
        return evolve(
            verdict,
            speed=evolve(verdict.speed, ratio=(low + high) / 2, low=low, high=high),
            evidence=evolve(verdict.evidence, timing=evolve(shown, uuid=uuid)),
        )

    assert timing(timed(1.99, 2.0), timed(2.01, 2.02)) == (
        [], ["timing: the intervals do not overlap: 1.995x (1.990 to 2.000) then, 2.015x (2.010 to 2.020) now"],
    )  # fmt: skip
    against, notes = timing(timed(1.99, 2.0), timed(2.05, 2.06))
    assert len(against) == 1 and notes == []
    against, notes = timing(timed(1.99, 2.0), timed(2.05, 2.06, "GPU-2"))
    assert against == [] and notes[0].startswith("timing on another card (another Test card): the intervals do not")


def test_another_card_is_said_and_held_against_nobody() -> None:
    slower = Clock(times=lambda n, control: (1e-3, 1e-3 if control else 0.8e-3), name="Other card")
    _, compared = _replay(measured(), slower)
    assert compared.against == () and not compared.same_place
    assert any(note.startswith("timing on another card (Test card then, Other card now)") for note in compared.notes)
    assert ("device", "Test card", "Other card") in compared.environment


def test_without_a_card_speed_is_not_replayed() -> None:
    judged, compared = _replay(measured(), Emulator())
    assert compared.against == () and judged.verdict.correctness.state == "right"
    assert "timing not replayed: no GPU here" in compared.notes
    assert compared.counts.inputs > 0


def test_fresh_numbers_are_others() -> None:
    judged, _ = _replay(measured(), Emulator(), fresh=True)
    assert judged.secret != measured().secrets.candidate
    assert not {run.inputs for run in judged.runs} & {run.inputs for run in measured().runs if run.family == "normal"}


def test_the_golden_record_of_schema_1_is_still_read_and_still_holds() -> None:
    found = read(GOLDEN)
    assert (found.schema, found.kernel, found.settings.depth) == (1, "row_sums", "full")
    assert (found.verdict.correctness.state, found.verdict.precision.state) == ("right", "same")
    assert len(found.runs) == 62 and found.contract.base == {"rows": 3, "cols": 320}
    judged, _ = _replay(found, Emulator())
    assert list(states(found.verdict, judged.verdict)) == []


def _claiming(found: Record, **speed: object) -> Record:
    return evolve(found, verdict=evolve(found.verdict, speed=evolve(found.verdict.speed, **speed)))


def test_what_a_record_claims_of_speed_need_not_make_sense() -> None:
    """A hostile one may say `faster` without an interval."""
    found, now = read(GOLDEN), read(GOLDEN).verdict
    for claim in (
        Speed("faster"),
        Speed("faster", 2.0),
        Speed("faster", math.nan, math.nan, math.nan),
        Speed("x", 1.0),
    ):
        against, notes = timing(evolve(found.verdict, speed=claim), now)
        assert against == [] and all(isinstance(note, str) for note in notes)


@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        ("right", "wrong", "right then, wrong now"),
        ("wrong", "right", "wrong then"),
        ("right", "undecided", "undecided now"),
    ],
)
def test_another_state_speaks_against_it(then: str, now: str, words: str) -> None:
    verdict = read(GOLDEN).verdict
    old, new = (evolve(verdict, correctness=evolve(verdict.correctness, state=state)) for state in (then, now))
    assert words in "".join(states(old, new))
    assert list(states(old, old)) == []


def test_precision_counts_where_it_is_less_on_one_side() -> None:
    verdict = read(GOLDEN).verdict

    def precise(state: str):
        return evolve(verdict, precision=evolve(verdict.precision, state=state))

    assert list(states(precise("same"), precise("better"))) == []
    assert list(states(precise("same"), precise("less"))) == ["precision: same then, less now"]


def _run(size: int, inputs: str, old: str = "o", new: str = "c") -> Ran:
    return Ran(f"n={size}", "normal", inputs, (Seen("y", "numeric", "same", old, new),))


def test_runs_are_matched_by_size_family_and_contents() -> None:
    then = (_run(1, "a"), _run(1, "b"), _run(2, "c"), _run(3, "d"), _run(5, "e"), _run(5, "f"))
    now = (_run(1, "b", new="X"), _run(1, "a"), _run(2, "other"), _run(4, "d", "", ""), _run(5, "f"))
    found = count(then, now)
    assert (found.runs, found.inputs, found.hashed) == (4, 3, 3)  # a, b and f; c has other contents
    assert (found.original, found.candidate) == (3, 2)
    assert (found.missing, found.new) == (2, 1)  # d and e; n=4


def test_other_bits_count_on_the_same_kind_of_device_only() -> None:
    """Where the record was made with another compiler, or the original is not deterministic, they are only noted."""
    found = read(GOLDEN)
    changed = tuple(
        evolve(run, outputs=tuple(evolve(seen, candidate="0" * 64) for seen in run.outputs)) for run in found.runs
    )
    again, here = Judged(found.verdict, "", changed), found.environment
    same = compare(found, again, here, found.tool, deterministic=True)
    assert same.against == ("62 of 62 outputs of the rewrite have other bits",)
    loose = compare(found, again, here, found.tool, deterministic=False)
    assert loose.against == () and any("not deterministic" in note for note in loose.notes)
    newer = compare(found, again, evolve(here, compiler="NVRTC 99.0"), found.tool, deterministic=True)
    assert newer.against == () and any("another device or compiler" in note for note in newer.notes)
    assert ("compiler", here.compiler, "NVRTC 99.0") in newer.environment


def test_other_contents_count_with_the_same_version_only() -> None:
    found = read(GOLDEN)
    again = Judged(found.verdict, "", tuple(evolve(run, inputs="0" * 64) for run in found.runs))
    same = compare(found, again, found.environment, found.tool, deterministic=True)
    assert same.against == ("62 of 62 runs had other contents than the record's",)
    other = compare(found, again, found.environment, "cuda-lsp 9", deterministic=True)
    assert other.against == () and other.environment[0] == ("tool", found.tool, "cuda-lsp 9")


def test_fresh_numbers_may_speak_against_it_alone() -> None:
    found = read(GOLDEN)
    good = Judged(found.verdict, "", found.runs)
    compared = compare(found, good, found.environment, found.tool, deterministic=True)
    bad = evolve(found.verdict, correctness=evolve(found.verdict.correctness, state="wrong", reason="y[0] is 0"))
    assert replayed(found, good, good, compared).confirmed
    result = replayed(found, good, Judged(bad, "", ()), compared)
    assert not result.confirmed and result.against == (
        "with fresh seeds: correctness: right then, wrong now (y[0] is 0)",
    )
