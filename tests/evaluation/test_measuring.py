"""From processes' answers to a measurement: what is believed, what is not, and what is caught."""

import numpy as np
import pytest
from attrs import evolve, field, frozen

from agent.evaluation.measures.floor import floor
from agent.evaluation.measures.measurement import Measurement
from agent.evaluation.measures.measuring import Unmeasured, check_outputs, judge_digests, other_sizes, summary
from agent.evaluation.sizes import Rule
from agent.execution.timing import Digests, Figures, Race, Timed, digest_layout

MS = 1e-3
LAYOUT = digest_layout(4)


def timed(old: float = 2 * MS, new: float = MS, **changes: object) -> Timed:
    plain = Timed("ok", cold=((old, old, new, new),) * 8, warm=((old, old, new, new),) * 3, first=(MS, MS))
    return evolve(plain, **changes)


CONTROL = timed(2 * MS, 2 * MS)


def digests(hashes: object, sums: object = 100.0, magnitude: float = 1000.0) -> Digests:
    """Six calls of one set and one output, in four groups."""
    made = np.zeros((6, 1, 1), LAYOUT)
    made["hash"] = np.broadcast_to(np.asarray(hashes, np.uint64).reshape(-1, 1, 1), (6, 1, 1))
    made["sum"] = np.broadcast_to(np.asarray(sums, np.float64).reshape(-1, 1, 1, 1), (6, 1, 1, 4))
    made["magnitude"] = magnitude
    return made


def test_a_measurement() -> None:
    found = summary("n=8", [timed()] * 3, CONTROL, ["a word"])
    assert isinstance(found, Measurement)
    assert (found.state, found.cold.ratio) == ("faster", pytest.approx(2.0))
    assert (found.original_seconds, found.candidate_seconds) == (2 * MS, MS)
    assert found.warm is not None and found.warm.ratio == pytest.approx(2.0)
    assert found.notes == ("a word",)


def test_an_original_that_is_slow_beside_the_rewrite_alone() -> None:
    """A candidate that slows the original down does not get faster by it."""
    found = summary("n=8", [timed(3 * MS, 2 * MS)], CONTROL, [])
    assert isinstance(found, Unmeasured) and not found.wrong
    assert "3000.0 us beside the rewrite and 2000.0 us" in found.reason


def test_clocks_that_disagree() -> None:
    found = summary("n=8", [timed(odd=30)], CONTROL, [])
    assert isinstance(found, Unmeasured) and "host clock and events disagree on 30 of 44 calls" in found.reason
    assert isinstance(summary("n=8", [timed(odd=3)], CONTROL, []), Measurement)


def test_what_a_reader_must_know() -> None:
    odd = timed(throttled=("power cap",), starved=True, fixed=("edges",), foreign=2, unwatched="no NVML")
    found = summary("n=8", [odd], CONTROL, [])
    assert isinstance(found, Measurement)
    text = "; ".join(found.notes)
    for words in ("power cap", "queue", "edges held the same contents", "2 other processes", "no NVML"):
        assert words in text


def test_timed_outputs_that_differ_from_those_alone_are_wrong() -> None:
    good, bad = digests(range(6)), digests([0, 1, 2, 3, 4, 77])
    found = judge_digests(bad, good, good)
    assert isinstance(found, Unmeasured) and found.wrong and "1 of 6 calls" in found.reason


def test_outputs_that_differ_from_run_to_run_are_compared_by_their_sums() -> None:
    one, other, third = digests(1, 100.0), digests(2, 100.001), digests(3, 100.002)
    assert judge_digests(third, one, other) == (
        "its last bits differ from run to run: of timed outputs the sums were checked"
    )
    far = judge_digests(digests(3, [100, 100, 100, 100, 100, 0]), one, other)
    assert isinstance(far, Unmeasured) and far.wrong and "1 of 6 calls" in far.reason


def test_whole_numbers_that_differ_from_run_to_run_cannot_be_checked() -> None:
    one, other, third = (digests(number, 0.0, 0.0) for number in (1, 2, 3))
    found = judge_digests(third, one, other)
    assert isinstance(found, Unmeasured) and not found.wrong and "cannot be checked" in found.reason


@frozen
class Answers:
    """A timer that answers with what it was given, in turn."""

    alone_: list[Timed] = field()

    def figures(self, cancelled: object = None) -> str:
        return "none"

    def ready(self, count: int) -> None: ...

    def begin(self, count: int) -> None: ...

    def race(self, race: Race) -> Timed:
        raise AssertionError

    def alone(self, race: Race, timed: Timed) -> Timed:
        return self.alone_.pop(0)


RACE = Race((None, None), "normal", 1)  # type: ignore[arg-type]


def test_equal_digests_need_one_run_alone() -> None:
    mine = timed(digests=digests(range(6)))
    assert check_outputs(Answers([mine]), RACE, mine) == ""


def test_a_run_alone_that_fails_leaves_the_timing_unverified() -> None:
    mine = timed(digests=digests(range(6)))
    found = check_outputs(Answers([Timed("timeout", "too long")]), RACE, mine)
    assert isinstance(found, Unmeasured) and not found.wrong and "too long" in found.reason


FIGURES = Figures("A card", "GPU-1", "1.0", 2e12, 1.5e12, 1.8e12, 50_000_000, 100_000_000)


def test_the_floor_shows_its_arithmetic() -> None:
    """4 GB, of which 50 MB of outputs may stay in the cache, at 2 TB/s: 1.975 ms."""
    found = floor(4e9, 2e9, FIGURES)
    assert found.seconds == pytest.approx(3.95e9 / 2e12)
    assert "3950.00 MB" in found.words and "2000 GB/s" in found.words and "1975.00 us" in found.words
    assert floor(1e6, 1e6, FIGURES).seconds == 0.0


def test_other_sizes_stay_inside_the_contract() -> None:
    rules = {"rows": Rule("rows"), "cols": Rule("cols", 4, 8)}
    found = other_sizes({"rows": 100, "cols": 64}, rules)
    assert found == [
        {"rows": 50, "cols": 32}, {"rows": 76, "cols": 52}, {"rows": 126, "cols": 84}, {"rows": 25, "cols": 16},
    ]  # fmt: skip
    assert other_sizes({}, {}) == []
