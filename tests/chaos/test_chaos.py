"""A few jobs under blows; a hundred of them are a benchmark (``python -m tests.benchmarks chaos``)."""

import os
import random
import sys
from itertools import islice
from pathlib import Path

import pytest

from agent.execution.gpu import open_gpu, why_no_gpu
from tests.chaos.blows import KINDS, Blow, drawn
from tests.chaos.changes import change
from tests.chaos.storm import Told, Toll, storm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")
JOBS = int(os.environ.get("CUDA_LSP_CHAOS", "8"))
SEED = int(os.environ.get("CUDA_LSP_SEED", "7"))


def test_whatever_befalls_the_processes_verdicts_are_right_or_missing(tmp_path: Path) -> None:
    holds(storm(tmp_path, JOBS, SEED, "emulator", 15.0, 5.0, ("worker", "compiler")))


@pytest.mark.gpu
def test_nor_does_a_card_change_that(tmp_path: Path) -> None:
    if open_gpu() is None:
        pytest.skip(f"needs an NVIDIA GPU: {why_no_gpu()}")
    holds(storm(tmp_path, JOBS, SEED, "gpu", 25.0, 10.0, ("worker", "compiler", "runner")))


def holds(toll: Toll) -> None:
    assert not [one for one in toll.told if one.wrong], "a verdict is wrong"
    assert [one.ends for one in toll.told] == [1] * len(toll.told), "each is told once"
    assert not [one for one in toll.told if not one.message], "and in words"
    assert [one.reason for one in toll.after] == ["right", "wrong"], "what comes after is as ever"
    assert (toll.left, toll.files) == ((), ())


def test_every_kind_falls_on_every_process_before_any_comes_twice() -> None:
    found = [(blow.kind, blow.role) for blow in islice(drawn(3, ("worker", "runner")), 2 * len(KINDS) - 1)]
    assert len(set(found)) == len(found) and {kind for kind, _ in found} == set(KINDS)
    assert list(islice(drawn(3, ("worker",)), 30)) == list(islice(drawn(3, ("worker",)), 30))


@pytest.mark.parametrize(
    ("right", "reason", "wrong"),
    [(True, "right", False), (True, "wrong", True), (True, "less precise", True), (False, "right", True),
     (False, "wrong", False), (True, "undecided", False), (False, "failed", False)],
)  # fmt: skip
def test_what_counts_as_a_wrong_verdict(right: bool, reason: str, wrong: bool) -> None:
    made = change(random.Random(1).randrange(100), right)
    assert Told(made, Blow("kill", "worker", 0, 0.0, 0.0), True, reason, "words", 1).wrong is wrong
