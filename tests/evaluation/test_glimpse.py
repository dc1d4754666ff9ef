"""Large outputs in a screen on a card: what parts and digests tell is believed, all else is compared whole."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field

from agent.evaluation import declared as declaring
from agent.evaluation import glimpse as looking
from agent.evaluation import runs
from agent.evaluation.comparators.base import SAME
from agent.evaluation.glimpse import glimpse
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.sizes import bound_at, declared
from agent.execution.compiler import Build, build
from agent.execution.device import Answer, Digest, Request
from agent.execution.emulator import Emulator
from tests.evaluation.kernels import original, rewrite, setting

N = 20_000
TEXT = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   triple<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void triple(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = 3.0f * x[i];
}
"""
WHOLE = (
    TEXT.replace("f32", "i32").replace("normal", "integers(-1000, 1000)").replace("float", "int").replace("3.0f", "3")
)
GROUPS = 16


@define
class Card:
    """Runs in the emulator and gives back parts, as a card does; ``fetched`` bytes of y, run by run."""

    name: str = "Test card"
    emulated: bool = False
    reads_parts: bool = True
    fetched: list[int] = field(factory=list)

    def run(self, request: Request) -> Answer:
        if request.blocks is not None:
            return Answer("refused", {}, None, (), (), "a card runs whole launches", 0.0)
        answer = Emulator().run(evolve(request, checks=frozenset(), count=False, parts={}))
        if answer.status != "ok":
            return evolve(answer, written=None, counters=())
        outputs, digests = dict(answer.outputs), {}
        for name, wanted in request.parts.items():
            digests[name] = digest(outputs[name], wanted.dtype, wanted.key)
            outputs[name] = np.concatenate([outputs[name][start:stop] for start, stop in wanted.ranges])
        self.fetched.append(len(outputs["y"]))
        return evolve(answer, outputs=outputs, digests=digests, written=None, counters=())


def digest(data: Any, dtype: str, key: int) -> Digest:
    signs = np.random.default_rng(key).choice([-1.0, 1.0], len(data))
    if not dtype.startswith("f"):
        return Digest(hash(data.tobytes()), (0.0,) * GROUPS, (0.0,) * GROUPS)
    values = data.view({"f32": "<f4", "f64": "<f8"}[dtype]).astype(np.float64)
    signed = values * signs[: len(values)]
    groups = [signed[start::GROUPS] for start in range(GROUPS)]
    sums, sizes = (tuple(float(each(group).sum()) for group in groups) for each in (np.asarray, np.abs))
    return Digest(hash(data.tobytes()), sums, sizes)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight pieces of 256 bytes stand for an output of 80 kB."""
    monkeypatch.setattr(looking, "LARGE", 1 << 14)
    monkeypatch.setattr(looking, "PIECE", 256)
    monkeypatch.setattr(looking, "PIECES", 8)


def prepared(card: Card, text: str = TEXT, depth: str = "screen") -> Prepared:
    program, workload = original(text)
    found = prepare(program, workload, setting(device=card, depth=depth))
    assert isinstance(found, Prepared)
    return found


def look(side: Prepared, text: str) -> Any:
    program = rewrite(text, side.original.plan)
    built = build(program, side.setting.options)
    assert isinstance(built, Build)
    chosen = runs.case(declared(side.workload), "normal" if "f32" in text else "uniform", 5, lazy=True)
    return glimpse(side, built, bound_at(side.workload, program), chosen)


def body(text: str, statement: str) -> str:
    return text.replace("y[i] = 3.0f * x[i];", statement).replace("y[i] = 3 * x[i];", statement)


@pytest.fixture(scope="module")
def floats() -> Prepared:
    return prepared(Card())


@pytest.mark.parametrize("statement", ["y[i] = x[i] * 3.0f;", "y[i] = x[i] + x[i] + x[i];"], ids=["bits", "last bits"])
def test_right_ones_are_seen_to_be_right_and_nothing_whole_is_fetched(floats: Prepared, statement: str) -> None:
    card: Any = floats.setting.device
    card.fetched.clear()
    known, found = look(floats, body(TEXT, statement))
    assert [item.grade for item in found] == [SAME] and known.oracle
    assert max(card.fetched) <= 2 * 8 * 256  # the float64 twin's parts are twice as large


@pytest.mark.parametrize(
    "statement",
    [
        "y[i] = i == 12345 ? 3.1f * x[i] + 0.1f : 3.0f * x[i];",
        "if (i != 12345) y[i] = 3.0f * x[i];",
        "if (n < 20000 || i < 12000 || i > 12100) y[i] = 3.0f * x[i];",
        "y[i] = 3.0f * x[i ^ (i == 12345)];",
    ],
    ids=["another value", "one lane unwritten", "a tile unwritten", "from another place"],
)
def test_what_goes_wrong_between_the_parts_is_compared_whole(floats: Prepared, statement: str) -> None:
    assert look(floats, body(TEXT, statement)) is None


def test_what_goes_wrong_in_the_parts_is_compared_whole_too(floats: Prepared) -> None:
    assert look(floats, body(TEXT, "y[i] = 3.01f * x[i];")) is None


def test_whole_numbers_must_be_the_same_to_the_bit() -> None:
    side = prepared(Card(), WHOLE)
    _, found = look(side, body(WHOLE, "y[i] = x[i] + x[i] + x[i];"))
    assert [item.grade for item in found] == [SAME]
    assert look(side, body(WHOLE, "y[i] = 3 * x[i] + (i == 12345);")) is None


def test_an_original_that_leaves_lanes_alone_is_compared_whole() -> None:
    text = TEXT.replace("if (i < n)", "if (i < n && i % 2)")
    side = prepared(Card(), text)
    assert look(side, text) is None


def test_a_verdict_by_parts_says_so_and_a_full_one_fetches_everything() -> None:
    words = f"every lane at n={N}"
    for depth, whole in (("screen", False), ("full", True)):
        card = Card()
        side = prepared(card, depth=depth)
        card.fetched.clear()
        found = judge(side, rewrite(body(TEXT, "y[i] = x[i] * 3.0f;"), side.original.plan))
        assert found.correctness.state == "right"
        assert any(note.startswith(words) for note in found.evidence.not_checked) is not whole
        assert (4 * N in card.fetched) is whole


@pytest.mark.parametrize(
    ("statement", "state"),
    [("y[i] = x[i] * 3.0f;", "right"), ("if ((long long)n * i != 246900000ll) y[i] = 3.0f * x[i];", "undecided")],
)
def test_outputs_larger_than_memory_are_never_fetched(
    statement: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen times the output are more than is free: a full verdict goes by parts and digests, and what these leave in
    doubt is nobody's to say here."""
    monkeypatch.setattr(looking, "free_bytes", lambda: 16.0 * 4 * N - 1)
    monkeypatch.setattr(declaring, "MOST_ON_A_CARD", 4 * N)  # nor do others run whole that are as large
    card = Card()
    side = prepared(card, depth="full")
    card.fetched.clear()
    found = judge(side, rewrite(body(TEXT, statement), side.original.plan))
    assert found.correctness.state == state, found.correctness
    assert 4 * N not in card.fetched
    told = "\n".join((found.correctness.reason, *found.evidence.not_checked))
    assert f"n={N}" in told and "comparing all of it takes 0.0 GB of memory" in told
    assert ("state smaller sizes" in told) is (state == "undecided")


def test_a_device_that_gives_no_parts_is_asked_for_none() -> None:
    assert look(prepared(Card(reads_parts=False)), TEXT) is None


def test_pieces_cover_both_ends_and_never_overlap() -> None:
    side = prepared(Card())
    buffer = bound_at(side.workload, side.original).buffers[1]
    for seed in range(50):
        ranges = looking._parts(buffer, runs.case({}, "normal", seed)).ranges
        assert ranges[0][0] == 0 and ranges[-1][1] == buffer.nbytes
        assert all(stop <= start for (_, stop), (start, _) in pairwise(ranges))
