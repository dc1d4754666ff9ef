"""Selection: what lives on, and what is shown."""

from types import SimpleNamespace

import pytest
from attrs import evolve

from agent.evaluation.verdict import Correctness, Evidence, Precision, Speed, Verdict
from agent.ideas.idea import Candidate, Expectation, Idea, Scope
from agent.search.node import Node
from agent.search.select import best_ratio, changed_lines, front, moved_its_counter, repeats, survivors
from agent.workload.plan import Plan

EVIDENCE = Evidence("a", "b", "nvrtc", (), "sm_90", "emulated", "", (), (), (), {}, {}, {}, (), "test")
IDEA = Idea("fuse", "Fuse", "why", (Expectation("dram bytes", 0.5, "half"),), "", Scope.DROP_IN, "catalog", 1)


def node(name: str, text: str = "", ratio: float | None = 1.5, state="right", precision="same", counters=None, stale=0):
    verdict = Verdict(
        Correctness(state, "emulated", ""),
        Precision(precision),
        Speed("estimated", ratio),
        (),
        evolve(EVIDENCE, counters=counters or {}),
    )
    candidate = Candidate((IDEA,), name, "", Plan(()), "", Scope.DROP_IN)
    program = SimpleNamespace(document=SimpleNamespace(text=text.encode()), plan=Plan(()))
    return Node(name, program, candidate, None, verdict, stale, changed_lines(ORIGINAL, text.encode()))


ORIGINAL = b"a\nb\nc\n"


def test_survivors_are_the_fastest_right_ones():
    nodes = [
        node("slow", ratio=1.1),
        node("fast", ratio=2.0),
        node("wrong", ratio=9.0, state="wrong"),
        node("mid", ratio=1.5),
    ]
    assert [n.identifier for n in survivors(nodes, 2)] == ["fast", "mid"]


def test_a_slower_child_is_kept_one_round_if_its_counter_moved():
    moved = node("moved", ratio=0.9, counters={"dram bytes": (100.0, 60.0)})
    still = node("still", ratio=0.9, counters={"dram bytes": (100.0, 95.0)})
    kept = survivors([moved, still], 2)
    assert [n.identifier for n in kept] == ["moved"]
    assert survivors(list(kept), 2) == ()


@pytest.mark.parametrize(("new", "expected"), [(75.0, True), (76.0, False), (200.0, False)])
def test_moved_means_half_of_what_was_expected(new, expected):
    assert moved_its_counter(node("n", counters={"dram bytes": (100.0, new)})) is expected


def test_front_refuses_the_wrong_the_lossy_and_the_slow():
    nodes = [
        node("wrong", ratio=3.0, state="wrong"),
        node("undecided", ratio=3.0, state="undecided"),
        node("lossy", ratio=3.0, precision="less"),
        node("tiny", ratio=1.019),
        node("unknown", ratio=None),
    ]
    assert front(nodes, 3, lossy=False) == ()
    assert [n.identifier for n in front(nodes, 3, lossy=True)] == ["lossy"]


def test_what_was_checked_comes_before_what_was_not():
    nodes = [node("unchecked", ratio=2.0, precision="unchecked"), node("checked", ratio=2.0)]
    assert [n.identifier for n in front(nodes, 3, lossy=False)] == ["checked"]
    assert [n.identifier for n in front(nodes[:1], 3, lossy=False)] == ["unchecked"]


def test_front_keeps_the_shorter_of_two_equally_fast_ones():
    short, long = node("short", "a\nB\nc\n", 2.0), node("long", "x\ny\nz\nw\n", 2.0)
    assert [n.identifier for n in front([long, short], 3, lossy=False)] == ["short"]


def test_front_shows_a_slower_but_smaller_change_too():
    small, fast = node("small", "a\nB\nc\n", 1.5), node("fast", "x\ny\nz\nw\n", 2.0)
    assert [n.identifier for n in front([small, fast], 3, lossy=False)] == ["fast", "small"]


def test_a_small_win_in_many_lines_never_comes_first():
    many = node("many", "\n".join(f"line {i}" for i in range(200)), 1.05)
    small = node("small", "a\nB\nc\n", 1.03)
    assert [n.identifier for n in front([many, small], 3, lossy=False)] == ["small", "many"]


def test_changed_lines_counts_both_sides():
    assert changed_lines(ORIGINAL, b"a\nB\nc\nd\n") == 3


def test_of_equals_the_first_is_shown():
    one, other = node("one", "a\nB\nc\n", 2.0), node("other", "a\nC\nc\n", 2.001)
    assert [n.identifier for n in front([one, other], 3, lossy=False)] == ["one"]


def test_a_second_way_to_write_the_same_is_shown_only_where_it_is_much_faster():
    shown = [node("first", ratio=2.0)]
    other = evolve(IDEA, name="stage")
    assert repeats(node("near", ratio=1.9), shown)
    assert not repeats(node("far", ratio=1.7), shown)
    assert not repeats(node("better", ratio=1.9, precision="better"), shown)
    another = node("else", ratio=1.9)
    assert not repeats(evolve(another, candidate=evolve(another.candidate, ideas=(other,))), shown)


def measured(name: str, state: str, ratio: float, text: str = "x\nb\nc\n") -> Node:
    found = node(name, text, ratio)
    assert found.verdict is not None
    speed = Speed(state, ratio, ratio * 0.99, ratio * 1.01)
    return evolve(found, verdict=evolve(found.verdict, speed=speed))


def untimed(name: str, ratio: float) -> Node:
    found = node(name, "x\nb\nc\n", ratio)
    assert found.verdict is not None
    return evolve(found, verdict=evolve(found.verdict, speed=Speed("timing not verified", ratio)))


def test_where_it_was_timed_a_ratio_is_not_enough():
    noise = measured("noise", "not faster", 1.05)
    assert survivors([noise], 2) == () and front([noise], 3, False) == ()
    assert [n.identifier for n in front([noise, measured("won", "faster", 1.05)], 3, False)] == ["won"]
    assert [n.identifier for n in survivors([measured("some", "mixed", 1.3)], 2)] == ["some"]


def test_an_estimate_never_stands_before_a_measurement():
    nodes = [untimed("guess", 3.0), measured("fact", "faster", 1.2)]
    assert [n.identifier for n in survivors(nodes, 2)] == ["fact", "guess"]
    assert [n.identifier for n in front(nodes, 3, False)] == ["fact", "guess"]
    assert [n.identifier for n in front(nodes, 1, False)] == ["fact"]


def test_the_best_figure_is_a_measured_one_where_there_is_any():
    guess = node("guess", ratio=9.0)
    guess = evolve(guess, verdict=evolve(guess.verdict, speed=Speed("timing not verified", 9.0)))
    assert best_ratio([guess, node("timed", ratio=1.4)]) == 1.4
    assert best_ratio([guess]) == 9.0 and best_ratio([]) is None
