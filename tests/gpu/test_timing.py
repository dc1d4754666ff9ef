"""Timing on a real card: known ratios are found, equal code is never faster, timed calls that cheat are caught."""

import pytest

from agent.evaluation.measures.measuring import Unmeasured, check_outputs, summary
from agent.evaluation.measures.statistics import decide, interval
from agent.execution.gpu import Gpu
from agent.execution.timing import Figures
from tests.fixtures.cases import CASES, Case
from tests.gpu.racing import ATOMIC, SPIN, SUM, TABLE, entry, fixture, race

pytestmark = pytest.mark.gpu

TICKS = 600_000
FEW = ("softmax", "matvec", "reduction", "transpose", "bias_gelu", "histogram", "scan")


def test_the_card_was_measured(card: Gpu) -> None:
    found = card.figures()
    assert isinstance(found, Figures), found
    assert found.card == card.name and found.uuid and found.driver
    assert 1e11 < found.read < 2e13 and 1e11 < found.write < 2e13 and 1e11 < found.copy < 2e13
    assert found.flush >= 2 * found.l2 > 0


@pytest.mark.parametrize("ratio", [1.05, 1.3, 2.0, 5.0])
def test_the_interval_holds_a_known_ratio(ratio: float, card: Gpu) -> None:
    slow, family = entry(SPIN.replace("TICKS", str(int(TICKS * ratio))), card)
    fast, _ = entry(SPIN.replace("TICKS", str(TICKS)), card)
    timed = card.race(race(slow, fast, family))
    assert timed.status == "ok", timed.message
    found = interval([timed.cold], timed.sets)
    assert found.low <= ratio <= found.high, found
    control = card.race(race(fast, fast, family))
    assert decide(found, interval([control.cold], control.sets)) == "faster"


@pytest.mark.parametrize("case", [case for case in CASES if case.name in FEW], ids=lambda case: case.name)
def test_equal_code_is_not_faster(case: Case, card: Gpu) -> None:
    one, family = fixture(case.file, case.kernel, card)
    control, timed = (card.race(race(one, one, family)) for _ in range(2))
    assert timed.status == "ok", timed.message
    found = summary(case.name, [timed], control, [])
    assert not isinstance(found, Unmeasured), found
    assert found.state == "same", found
    assert check_outputs(card, race(one, one, family), timed) in ("", _LAST_BITS)


_LAST_BITS = "its last bits differ from run to run: of timed outputs the sums were checked"


@pytest.mark.parametrize(
    "body",
    [
        "calls >= 12ull * n ? 0.0f : 2 * x[i]; atomicAdd(&calls, 1ull)",
        "calls >= n + n / 10 ? x[i] : 2 * x[i]; atomicAdd(&calls, 1ull)",
    ],
    ids=["works a few times", "only the first time"],
)
def test_a_timed_call_that_does_not_do_its_work_is_caught(body: str, card: Gpu) -> None:
    honest, family = entry(SUM.replace("BODY", "2 * x[i]"), card)
    cheat, _ = entry(SUM.replace("BODY", body), card)
    asked = race(honest, cheat, family)
    timed = card.race(asked)
    assert timed.status == "ok", timed.message
    found = check_outputs(card, asked, timed)
    assert isinstance(found, Unmeasured) and found.wrong
    assert "a timed call gave another output" in found.reason


def test_sums_by_atomics_are_checked_as_sums(card: Gpu) -> None:
    one, family = entry(ATOMIC, card)
    asked = race(one, one, family)
    timed = card.race(asked)
    assert timed.status == "ok", timed.message
    assert check_outputs(card, asked, timed) in ("", _LAST_BITS)


def test_a_table_in_constant_memory_is_one_for_all_sets_of_a_call(card: Gpu) -> None:
    """Short enough that one pair of events goes over many sets of buffers; the variable exists once."""
    one, family = entry(TABLE, card)
    other, _ = entry(TABLE.replace("weights[i % 64] * x[i]", "x[i] * weights[i % 64]"), card)
    asked = race(one, other, family)
    timed = card.race(asked)
    assert timed.status == "ok" and timed.sets > 1, timed
    assert check_outputs(card, asked, timed) == ""


def test_a_candidate_that_faults_while_it_is_timed(card: Gpu) -> None:
    honest, family = entry(SUM.replace("BODY", "2 * x[i]"), card)
    bad, _ = entry(SUM.replace("BODY", "x[i + (1ull << 40)]"), card)
    timed = card.race(race(honest, bad, family))
    assert (timed.status, timed.side) == ("fault", 1), timed
    assert card.race(race(honest, honest, family)).status == "ok"


def test_an_endless_candidate_is_killed(card: Gpu) -> None:
    honest, family = entry(SPIN.replace("TICKS", "1000"), card)
    endless, _ = entry(SPIN.replace("TICKS", str(2**62)), card)
    timed = card.race(race(honest, endless, family, seconds=6.0))
    assert timed.status == "timeout", timed
    assert card.race(race(honest, honest, family)).status == "ok"
