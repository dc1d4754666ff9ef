"""Rounds build on one another: breadth first, by what ideas declare of each other, constants last."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from agent.evaluation.setting import Setting
from agent.execution.compiler import Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.ideas import registry
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Entry, Match, Refusal, Variant
from agent.ideas.rewriting import Rewrite
from agent.ideas.source import propose
from agent.ideas.view import View
from agent.search import events
from agent.search.options import SearchOptions
from agent.search.search import search
from agent.search.trace import Trace
from agent.source.document import parse
from agent.source.edits import Edit
from agent.source.span import Span
from agent.workload.directive import read_directive
from agent.workload.expression import Expression
from agent.workload.program import Program
from tests.ideas.running import ask

SOURCE = """\
// cuda-lsp: workload
//   size     n = 4194304
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   copy<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void copy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i];
    for (int k = 0; k < 16; ++k) if (x[(i * 33 + k * 1024) % n] == 3.0e38f) y[i] = 1.0f;
}
"""


def fewer(view: View, looks: int, mark: str) -> Rewrite:
    """The same kernel with fewer useless looks at x, in other blocks."""
    (launch,) = view.launches
    one = Expression.parse("1")
    changed = evolve(
        launch, grid=(Expression.parse("(n + 127) / 128"), one, one), block=(Expression.parse("128"), one, one)
    )
    at = view.document.text.index(b"k < 16") + len(b"k < ")
    return Rewrite(
        (Edit(Span(at, at + 2), f"{looks} /* {mark} */".encode()),), plan=evolve(view.request.plan, steps=(changed,))
    )


def entry(name: str, **declared: tuple[str, ...]) -> Entry:
    tunable = Tunable("looks", (1, 2, 4, 8), 8, "looks at x")

    def examine(view: View) -> Match | Refusal:
        ways = tuple(
            Variant(
                f"way {way}",
                "fewer looks",
                Scope.RELAUNCH,
                lambda looks, way=way: fewer(view, looks, f"{name} {way}"),
                (tunable,),
            )
            for way in "12"
        )
        return Match(1, name, "to see", (Expectation("DRAM bytes", 0.9, "less"),), ways)

    return Entry(name, name, "", (), "", "", "", examine, **declared)


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Entry]]:
    made: dict[str, Entry] = {}
    registry.entries()  # what registers itself has done so before
    monkeypatch.setattr(registry, "_entries", made)
    monkeypatch.setattr("agent.ideas.expert.entries", lambda: tuple(made[name] for name in sorted(made)))
    yield made


def test_ideas_go_against_and_make_room_for_each_other(catalogue: dict[str, Entry]) -> None:
    catalogue["a"] = entry("a", conflicts=("b",), enables=("d",))
    for name in "bcd":
        catalogue[name] = entry(name)
    request = evolve(ask(SOURCE), applied=("a",))
    found = propose(request)
    assert [idea.name for idea in found.ideas] == ["d", "c", "a"]
    assert dict(found.considered)["b"] == "goes against a, which was applied before"


def run(catalogue: dict[str, Entry], **options: int) -> tuple[list[events.Event], list[str]]:
    document = parse(SOURCE.encode(), "copy.cu")
    kernel = document.kernel("copy")
    workload = read_directive(document, kernel)
    assert workload is not None
    target = find_target("H200")
    seen: list[events.Event] = []
    outcome = search(
        Program(document, workload.plan, "original"),
        kernel,
        workload,
        Setting(Emulator(), target, Options(arch=target.arch)),
        SearchOptions(**options),
        Trace(Path("/dev/null")),
        seen.append,
    )
    return seen, [proposal.document.text.decode() for proposal in outcome.proposals]


def test_every_idea_is_tried_before_any_is_tried_twice(catalogue: dict[str, Entry]) -> None:
    for name in "ab":
        catalogue[name] = entry(name)
    seen, _ = run(catalogue, rounds=1, candidates=3, trials=0)
    (found,) = [event for event in seen if isinstance(event, events.RoundStarted)]
    assert found.candidates == 3
    judged = [event for event in seen if isinstance(event, events.CandidateJudged) and event.round == 1]
    assert [(event.title, event.variant) for event in judged][:1] == [("a", "way 1")]


def test_constants_are_tuned_inside_the_gates_and_the_directive_follows(catalogue: dict[str, Entry]) -> None:
    catalogue["a"] = entry("a")
    seen, shown = run(catalogue, rounds=1)
    tuned = [event for event in seen if isinstance(event, events.CandidateJudged) and event.note.startswith("tuned")]
    assert len(tuned) == 1
    assert tuned[0].verdict is not None and tuned[0].verdict.correctness.state == "right"
    assert "looks at x = 1" in tuned[0].note
    assert "k < 1 /* a " in shown[0]
    assert "//   launch   copy<<<(n + 127) / 128, 128>>>(x, y, n)" in shown[0]
