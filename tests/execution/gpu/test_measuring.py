"""The timing's state machine on a card of ordinary memory: what is done between two events, and what around them."""

import ctypes

import numpy as np
import pytest
from attrs import evolve

from agent.execution.children import gpu_messages as gpu
from agent.execution.children import measuring
from agent.execution.children import timing_messages as say
from agent.execution.children.ground import ENTRY, fold, seed_of
from agent.execution.wire import Channel, decode, encode
from agent.workload.forms import Form
from tests.execution.gpu.fake import FakeCard, Kernel, quick

N = 64
SPACES = (say.Space("x", 4 * N, "in", Form("single uniform", "f32", N, 7)), say.Space("y", 4 * N, "out"))
OUTPUTS = (say.Output("y", N, 4, 2),)


def no_channel() -> Channel:
    def nothing() -> None:
        raise AssertionError("nothing was sent")

    return Channel(nothing, None)  # type: ignore[arg-type]


def doubling(seconds: float) -> Kernel:
    """y = 2 x in so many seconds."""

    def run(values: list[bytes]) -> float:
        x, y = (int.from_bytes(value, "little") for value in values)
        data = 2 * np.frombuffer(ctypes.string_at(x, 4 * N), np.float32)
        ctypes.memmove(y, data.tobytes(), 4 * N)
        return seconds

    return run


def side(entry: str, *spaces: say.Space) -> say.Side:
    arguments = (gpu.Argument("x", 0, b""), gpu.Argument("y", 0, b""))
    return say.Side(b"module", (gpu.LaunchStep(entry, entry, (1, 1, 1), (32, 1, 1), 0, arguments),), spaces)


def request(*sides: say.Side, **changes: object) -> say.Measure:
    plain = {
        "support": b"support", "sides": sides, "spaces": SPACES, "outputs": OUTPUTS, "seed": 5, "digested": 1,
        "flush": 1 << 16, "blocks": (4, 4), "warm": 2, "seconds": 10.0, "memory": 1 << 30,
    }  # fmt: skip
    return say.Measure(**(plain | changes))  # type: ignore[arg-type]


def alone(found: say.Measured, card: FakeCard, entry: str) -> say.Measured:
    asked = say.Recompute(b"support", side(entry), SPACES, OUTPUTS, 5, found.calls, found.sets)
    return measuring.recompute(card, card, asked, no_channel())


def test_times_are_what_the_card_took(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    card = FakeCard({"old": doubling(3e-3), "new": doubling(2e-3)})
    found = measuring.measure(card, card, request(side("old"), side("new")), no_channel())
    assert (found.kind, found.message, found.sets) == ("", "", 1)
    assert len(found.cold) == 4 and len(found.warm) == 2
    for block in (*found.cold, *found.warm):
        assert block == pytest.approx((3e-3, 3e-3, 2e-3, 2e-3), rel=1e-6)
    assert found.overhead == pytest.approx(1e-6)  # what this card's events cost is taken off


def test_nothing_but_the_call_lies_between_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    card = FakeCard({"old": doubling(3e-3), "new": doubling(2e-3)})
    measuring.measure(card, card, request(side("old"), side("new")), no_channel())
    places = [index for index, name in enumerate(card.log) if name == "event"]
    inside = [card.log[start + 1 : stop] for start, stop in zip(places[::2], places[1::2], strict=True)]
    assert all(names in (["idle"], ["old"], ["new"]) for names in inside)
    timed = places[-12]  # a cold or warm call: made, poisoned, flushed or read, held, and only then begun
    assert card.log[timed - 4 : timed] == ["make", "fill 0xcb", "sweep", "hold"] or card.log[timed - 4 : timed] == [
        "make", "fill 0x34", "sweep", "hold",
    ]  # fmt: skip


def test_short_kernels_are_timed_by_the_dozen_over_sets_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    card = FakeCard({"old": doubling(9e-6), "new": doubling(6e-6)})
    found = measuring.measure(card, card, request(side("old"), side("new")), no_channel())
    assert found.sets == 32  # 250 us over the shorter one's 6 us would be 42
    assert found.cold[0] == pytest.approx((9e-6, 9e-6, 6e-6, 6e-6), rel=1e-6)
    assert len(found.digests) == len(found.calls) * 32 * ENTRY


@pytest.mark.parametrize(
    ("changes", "steps", "sets"),
    [({}, 1, 32), ({"memory": 1024}, 1, 2), ({}, 100, 4), ({"memory": 0}, 1, 1)],
    ids=["time", "memory", "queue", "at least one"],
)
def test_how_many_sets(changes: dict[str, object], steps: int, sets: int) -> None:
    assert measuring.sets_for(5e-6, steps, request(side("old"), side("new"), **changes)) == sets


def test_a_module_variable_that_is_written_exists_once() -> None:
    spaces = (SPACES[0], say.Space("y", 4 * N, "out", None, ("y", "y")))
    assert measuring.sets_for(5e-6, 1, request(side("old"), side("new"), spaces=spaces)) == 1


TABLE = say.Space("w", 4 * N, "in", Form("single uniform", "f32", N, 8), ("w_old", "w_new"))
"""An input that is a variable of each side's module, as a table of weights in constant memory is."""


def weighing(card: FakeCard, variable: str, seconds: float) -> Kernel:
    """y = x w in so many seconds, with w in the module."""

    def run(values: list[bytes]) -> float:
        x, y = (int.from_bytes(value, "little") for value in values)
        data, table = (np.frombuffer(ctypes.string_at(at, 4 * N), np.float32) for at in (x, card.variable(variable)))
        ctypes.memmove(y, (data * table).tobytes(), 4 * N)
        return seconds

    return run


@pytest.mark.parametrize("seconds", [6e-6, 3e-3], ids=["many sets", "one set"])
def test_a_table_in_the_module_is_one_for_all_sets_of_a_call(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Short kernels run over many sets, the variable exists once: each set alone must meet what it met among them."""
    quick(monkeypatch)
    card, fresh = FakeCard({}), FakeCard({})
    card.kernels |= {"old": weighing(card, "w_old", seconds), "new": weighing(card, "w_new", seconds)}
    fresh.kernels["new"] = weighing(fresh, "w_new", 1.0)
    tables: set[bytes] = set()
    for name in ("w_old", "w_new"):
        card.kernels[name[2:]] = _watching(card, card.kernels[name[2:]], name, tables)
    asked = request(side("old"), side("new"), spaces=(*SPACES, TABLE))
    found = measuring.measure(card, card, asked, no_channel())
    assert (found.kind, found.message) == ("", "") and (found.sets > 1) == (seconds < 1e-3)
    spaces = (*SPACES, evolve(TABLE, symbols=("w_new",)))
    again = say.Recompute(b"support", side("new"), spaces, OUTPUTS, 5, found.calls, found.sets)
    assert measuring.recompute(fresh, fresh, again, no_channel()).digests == found.digests
    assert len(tables) > len(found.calls)  # and it is new in every call


def _watching(card: FakeCard, kernel: Kernel, variable: str, seen: set[bytes]) -> Kernel:
    def run(values: list[bytes]) -> float:
        seen.add(ctypes.string_at(card.variable(variable), 4 * N))
        return kernel(values)

    return run


def test_every_call_has_contents_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    seen: list[bytes] = []

    def watch(values: list[bytes]) -> float:
        seen.append(ctypes.string_at(int.from_bytes(values[0], "little"), 4 * N))
        return doubling(1e-3)(values)

    card = FakeCard({"old": watch, "new": watch})
    measuring.measure(card, card, request(side("old"), side("new")), no_channel())
    assert len(seen) == len(set(seen)) >= 6 * 4


def test_what_is_timed_is_what_a_process_of_its_own_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    card = FakeCard({"old": doubling(9e-6), "new": doubling(6e-6)})
    found = measuring.measure(card, card, request(side("old"), side("new")), no_channel())
    fresh = FakeCard({"new": doubling(1.0)})
    assert alone(found, fresh, "new").digests == found.digests


def test_a_call_that_works_only_until_the_clock_runs_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    calls = 0

    def lazy(values: list[bytes]) -> float:
        nonlocal calls
        calls += 1
        return doubling(1e-3)(values) if calls < 10 else 1e-6

    card = FakeCard({"old": doubling(1e-3), "lazy": lazy})
    found = measuring.measure(card, card, request(side("old"), side("lazy")), no_channel())
    assert alone(found, FakeCard({"lazy": doubling(1e-3)}), "lazy").digests != found.digests


def test_a_process_of_its_own_forgets_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module keeps in its variables is loaded afresh for each call, or a candidate that tires would look the
    same there."""
    quick(monkeypatch)
    card = FakeCard({"old": doubling(1e-3), "new": doubling(1e-3)})
    found = measuring.measure(card, card, request(side("old"), side("new")), no_channel())
    fresh = FakeCard({"new": doubling(1e-3)})
    alone(found, fresh, "new")
    assert fresh.log.count("unload") == len(found.calls) == fresh.log.count("new")


def test_an_answer_left_by_the_original_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that does nothing hands back poison, not what the original left there."""
    quick(monkeypatch)
    seen: set[bytes] = set()

    def nothing(values: list[bytes]) -> float:
        seen.add(ctypes.string_at(int.from_bytes(values[1], "little"), 4 * N))
        return 1e-3

    card = FakeCard({"old": doubling(1e-3), "nothing": nothing})
    measuring.measure(card, card, request(side("old"), side("nothing")), no_channel())
    assert seen <= {bytes([0xCB]) * 4 * N, bytes([0x34]) * 4 * N}


def test_zeroing_scratch_is_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    card = FakeCard({"old": doubling(1e-3), "new": doubling(1e-3)}, bandwidth=1e6)
    sides = (side("old"), side("new", say.Space("tmp", 1000, "zeroed"), say.Space("rest", 1000, "scratch")))
    found = measuring.measure(card, card, request(*sides), no_channel())
    assert found.cold[0] == pytest.approx((1e-3, 1e-3, 2e-3, 2e-3), rel=1e-6)


def test_a_fault_names_the_side_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)

    def bad(values: list[bytes]) -> float:
        raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    card = FakeCard({"old": doubling(1e-3), "bad": bad})
    found = measuring.measure(card, card, request(side("old"), side("bad")), no_channel())
    assert (found.kind, found.side) == ("illegal address", 1)


def test_too_little_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    card = FakeCard({"old": doubling(1e-3), "new": doubling(1e-3)})
    card.capacity = 0
    found = measuring.measure(card, card, request(side("old"), side("new")), no_channel())
    assert (found.kind, found.side) == ("refused", -1) and "not enough memory" in found.message


def test_contents_without_a_form_come_once_and_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    data = np.arange(N, dtype=np.float32)
    frames = iter([("Chunk", {"region": "x", "start": 0, "data": 0}, [data.tobytes()])])
    spaces = (say.Space("x", 4 * N, "in"), SPACES[1])
    seen: set[bytes] = set()

    def watch(values: list[bytes]) -> float:
        seen.add(ctypes.string_at(int.from_bytes(values[0], "little"), 4 * N))
        return 1e-3

    card = FakeCard({"old": watch, "new": watch})
    found = measuring.measure(
        card,
        card,
        request(side("old"), side("new"), spaces=spaces),
        Channel(lambda: next(frames), None),  # type: ignore[arg-type]
    )
    assert found.kind == "" and found.fixed == ("x",)
    assert seen == {data.tobytes()}


def test_more_launches_than_the_queue_holds_do_not_wait_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    one = side("old")
    many = say.Side(b"module", one.steps * 500)
    card = FakeCard({"old": doubling(1e-6), "new": doubling(1e-6)})
    found = measuring.measure(card, card, request(many, side("new")), no_channel())
    assert found.kind == "" and found.starved and found.sets == 1


def test_the_flush_is_as_large_as_the_probe_says() -> None:
    times = {0.5: 1.0, 1.0: 1.4, 1.5: 1.95, 2.0: 2.0, 3.0: 2.0, 4.0: 2.0}
    assert measuring.flush_from(times, 1 << 20) == int(2.25 * (1 << 20)) // 4096 * 4096
    assert measuring.flush_from(dict.fromkeys(times, 1.0), 1 << 20) == 2 << 20


def test_peaks_of_a_card_with_a_known_bandwidth() -> None:
    card = FakeCard({}, bandwidth=1e9)
    found = measuring.calibrate(card, card, say.Calibrate(b"support"))
    assert found.problem == ""
    moved = (1 << 20) // 4  # of a megabyte of free memory
    for peak, factor in ((found.read, 1), (found.write, 1), (found.copy, 2)):
        assert peak == pytest.approx(factor * moved / (moved / 1e9 + 1e-6), rel=0.02)


def test_seeds_of_sets_differ() -> None:
    seeds = {seed_of(3, call, index) for call in range(50) for index in range(say.STREAMS)}
    assert len(seeds) == 50 * say.STREAMS


def test_digests_fold_in_one_order() -> None:
    partial = np.zeros(1024, [("hash", "<u8"), ("sum", "<f8"), ("magnitude", "<f8")])
    partial["hash"] = 2**63 + np.arange(1024, dtype=np.uint64)
    partial["sum"][17], partial["magnitude"][17] = -2.5, 2.5
    found = fold(partial)
    assert len(found) == ENTRY
    assert int.from_bytes(found[:8], "little") == (1024 * 2**63 + 1023 * 1024 // 2) % 2**64
    assert np.frombuffer(found[8:136], "<f8")[1] == -2.5 and np.frombuffer(found[136:], "<f8")[1] == 2.5


def test_messages_survive_the_wire() -> None:
    asked = request(side("old", say.Space("tmp", 8, "zeroed")), side("new"))
    assert decode(encode(asked), say.Measure) == asked
    bounded = say.Space("x", 8, "in", Form("uniform", "f64", 1, 2, (-0.0, 1.5), (3,), (-1.0, float("inf"), -1.0, 2.0)))
    again = decode(encode(say.Recompute(b"", side("a"), (bounded,), OUTPUTS, 2**62, (1, 2), 3)), say.Recompute)
    assert again.spaces[0] == bounded and str(again.spaces[0].form.reals[0]) == "-0.0"
    found = say.Measured("", "", cold=((1.0, 2.0, 3.0, 4.0),), digests=b"abc", calls=(7,), fixed=("x",))
    assert decode(encode(found), say.Measured) == found
