"""The gates of speed, on a card that runs in the emulator and whose clock says what a test wants."""

from collections.abc import Callable

import numpy as np
import pytest
from attrs import define, evolve, field

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.verdict import Speed, Verdict
from agent.execution.device import Answer, Request
from agent.execution.emulator import Emulator
from agent.execution.timing import Figures, Race, Timed, digest_layout
from agent.workload.program import Program
from cuda_lsp.terminal.render import duration, speed_text, timing_text
from tests.evaluation.kernels import original, rewrite, setting

TEXT = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
OTHER = TEXT.replace("2.0f * x[i]", "x[i] + x[i]")
BLOCKS = 8
OLD = 1e-3


@define
class Clock:
    """``times`` gives both sides' seconds from the size and which race it is of that kind; ``cheats``: the outputs of
    timed calls differ from those of calls alone."""

    times: Callable[[int, bool], tuple[float, float]] = lambda n, control: (OLD, OLD if control else OLD / 2)
    cheats: bool = False
    status: str = "ok"
    name: str = "Test card"
    emulated: bool = False
    peak: float = 1e12
    races: list[Race] = field(factory=list)
    original: object = None

    def run(self, request: Request) -> Answer:
        answer = Emulator().run(evolve(request, blocks=None, checks=frozenset(), count=False))
        return evolve(answer, written=None, counters=())

    def figures(self, cancelled: object = None) -> Figures:
        return Figures(self.name, "GPU-1", "580", self.peak, self.peak, self.peak, 0, 1 << 20)

    def ready(self, count: int) -> None: ...

    def begin(self, count: int) -> None: ...

    def race(self, race: Race) -> Timed:
        self.races.append(race)
        control = race.sides[0] == race.sides[1]
        old, new = self.times(race.sides[0].bound.sizes["n"], control)
        if self.status != "ok" and not control:
            return Timed(self.status, "illegal address in scale: so says CUDA", side=1)
        block = (old, old, new, new)
        return Timed(
            "ok", cold=(block,) * BLOCKS, warm=(block,) * 3, first=(1.0, 2.0), calls=(1, 2), digests=_digests(7),
            clocks=(1900, 1980, 3200, 3201), sets=100,
        )  # fmt: skip

    def alone(self, race: Race, timed: Timed) -> Timed:
        return Timed("ok", digests=_digests(8 if self.cheats else 7))


def _digests(value: int) -> "np.ndarray":
    made = np.zeros((2, 1, 1), digest_layout(16))
    made["hash"] = value
    return made


def verdict(card: Clock, depth: str = "screen") -> Verdict:
    program, workload = original(TEXT)
    prepared = prepare(program, workload, setting(device=card, depth=depth))
    assert isinstance(prepared, Prepared)
    found = judge(prepared, rewrite(OTHER, program.plan))
    assert isinstance(found, Verdict)
    return found


def gates(found: Verdict) -> dict[str, tuple[str, str]]:
    return {gate.gate: (gate.outcome, gate.reason) for gate in found.gates}


def test_a_screen_is_one_process_and_its_control() -> None:
    card = Clock()
    found = verdict(card)
    assert (found.correctness.state, found.speed.state) == ("right", "faster")
    assert (found.speed.ratio, found.speed.at) == (pytest.approx(2.0), "n=20000")
    assert found.speed.low is not None and found.speed.high is not None
    assert found.speed.low <= 2.0 <= found.speed.high and found.speed.high - found.speed.low < 0.01
    assert len(card.races) == 2 and gates(found)["confirmation"][0] == "not applicable"
    timing = found.evidence.timing
    assert timing is not None
    assert (timing.card, timing.driver, timing.clocks) == ("Test card", "580", (1900, 1980, 3200, 3201))
    assert (timing.processes, timing.blocks, timing.first_candidate_seconds) == (1, BLOCKS, 2.0)
    assert (timing.original_seconds, timing.candidate_seconds) == (OLD, OLD / 2)


def test_what_is_shown_comes_from_three_new_processes_and_other_sizes() -> None:
    card = Clock()
    found = verdict(card, "full")
    assert found.speed.state == "faster" and len(found.speed.others) == 4
    assert found.evidence.timing is not None and found.evidence.timing.processes == 3
    seeds = [race.seed for race in card.races]
    assert len(seeds) == len(set(seeds)) == 2 + 4 + 4
    text = speed_text(found.speed)
    assert text.startswith("faster, 2.0") or text.startswith("faster, 1.99")
    assert "at n=20000, " in text and "at 4 other sizes" in text and "of the floor" in text


def test_what_a_user_sees_of_a_timing() -> None:
    text = timing_text(verdict(Clock()).evidence.timing)
    for words in (
        "1 ms -> 500 us", "Test card at 1900 to 1980 MHz, driver 580", "8 blocks of four calls in 1 process;",
        "the original against itself 1.000 to 1.000", "inputs in the cache: 1 ms -> 500 us",
        "the first call in a process: 1 s -> 2 s",
    ):  # fmt: skip
        assert words in text
    assert timing_text(None) == ""


def test_times_in_the_unit_that_suits_them() -> None:
    assert [duration(value) for value in (2.5, 0.0123, 147.81e-6, 4e-9)] == ["2.5 s", "12.3 ms", "147.8 us", "4 ns"]


def test_an_interval_is_never_rounded_inwards() -> None:
    text = speed_text(Speed("faster", 1.6666, 1.6664, 1.6701, at="n=8"))
    assert text == "faster, 1.66x (95 %: 1.66 to 1.68) at n=8"


def test_sizes_above_the_declared_one_run_whole_on_a_card() -> None:
    """Right up to the declared size, and past 16 bits, and wrong between: for what is shown that is wrong."""
    between = "logf((float)n) > 10.1267f && logf((float)n) < 11.0f ? 0.0f : 2.0f * x[i]"  # 25,002 to 59,874
    card, late = Clock(), TEXT.replace("2.0f * x[i]", between)
    program, workload = original(TEXT)
    for depth, state in (("screen", "right"), ("full", "wrong")):
        prepared = prepare(program, workload, setting(device=card, depth=depth))
        assert isinstance(prepared, Prepared)
        found = judge(prepared, rewrite(late, program.plan))
        assert found.correctness.state == state, found.correctness
    assert "n=30001" in found.correctness.reason
    good = verdict(card, "full")
    assert "n=30001" in good.correctness.sizes
    assert "sizes above the declared ones" not in good.evidence.not_checked


def test_equal_times_are_not_faster() -> None:
    found = verdict(Clock(times=lambda n, control: (OLD, OLD)), "full")
    assert (found.correctness.state, found.speed.state) == ("right", "not faster")


def test_slower_at_another_size_is_mixed() -> None:
    found = verdict(
        Clock(times=lambda n, control: (OLD, OLD if control else OLD / 2 if n >= 20000 else 2 * OLD)), "full"
    )
    assert found.speed.state == "mixed"
    assert {other.state for other in found.speed.others} == {"faster", "slower"}


def test_slower_at_once_is_not_confirmed() -> None:
    card = Clock(times=lambda n, control: (OLD, OLD if control else 2 * OLD))
    found = verdict(card, "full")
    assert found.speed.state == "not faster" and len(card.races) == 2
    assert gates(found)["confirmation"][0] == "not applicable"


def test_a_timed_call_that_answers_otherwise_makes_the_rewrite_wrong() -> None:
    found = verdict(Clock(cheats=True))
    assert found.correctness.state == "wrong" and found.speed.state == "none"
    assert found.gates[-1].gate == "timing" and "a timed call gave another output" in found.correctness.reason


def test_a_fault_while_it_is_timed_makes_the_rewrite_wrong() -> None:
    found = verdict(Clock(status="fault"))
    assert found.correctness.state == "wrong" and "while it was timed: illegal address" in found.correctness.reason


def test_a_timing_that_fails_leaves_an_estimate() -> None:
    found = verdict(Clock(status="timeout"))
    assert (found.correctness.state, found.speed.state) == ("right", "timing not verified")
    assert found.speed.low is None and "while it was timed" in found.speed.note
    assert found.evidence.timing is None


def test_below_the_floor_nothing_is_believed() -> None:
    """160 kB in half a millisecond are 320 MB/s: more than a card that does 100 MB/s can move."""
    found = verdict(Clock(peak=1e8))
    assert found.correctness.state == "right" and found.speed.state == "timing not verified"
    outcome, reason = gates(found)["floor"]
    assert outcome == "not checked" and "500.00 us is below the floor" in reason and "take 1600.00 us" in reason


def test_the_fraction_of_the_floor() -> None:
    found = verdict(Clock(peak=1e9))
    assert found.speed.floor == pytest.approx(160_000 / 1e9 / (OLD / 2), rel=0.01)


def test_the_original_beside_the_rewrite_must_not_slow_down() -> None:
    found = verdict(Clock(times=lambda n, control: (OLD, OLD) if control else (2 * OLD, OLD)))
    assert found.speed.state == "timing not verified" and "in a process that never saw it" in found.speed.note


def test_an_original_that_seemed_slower_once_is_timed_again() -> None:
    """As when the clocks were others in the two processes; and with a control of its own."""
    races = iter([(OLD, OLD), (2 * OLD, OLD), (OLD, OLD), (OLD, OLD / 2)])
    card = Clock(times=lambda n, control: next(races))
    found = verdict(card)
    assert (found.speed.state, found.speed.ratio) == ("faster", pytest.approx(2.0))
    assert len(card.races) == 4 and next(races, None) is None


def test_the_control_is_timed_once_for_all_screens() -> None:
    card = Clock()
    program, workload = original(TEXT)
    prepared = prepare(program, workload, setting(device=card))
    assert isinstance(prepared, Prepared)
    for text in (OTHER, TEXT.replace("2.0f * x[i]", "x[i] * 2.0f + 0.0f")):
        assert judge(prepared, rewrite(text, program.plan)).speed.state == "faster"
    assert len(card.races) == 3


def test_a_screen_tells_no_seed_of_contents_that_it_uses_again() -> None:
    card = Clock()
    program, workload = original(TEXT)
    prepared = prepare(program, workload, setting(device=card))
    assert isinstance(prepared, Prepared)
    found = judge(prepared, rewrite(OTHER, program.plan))
    kept = prepared.cache.declared
    assert kept is not None and kept.seed not in found.evidence.seeds
    again = judge(prepared, Program(rewrite(OTHER, program.plan).document, program.plan, "again"))
    assert prepared.cache.declared == kept and again.correctness.state == "right"
