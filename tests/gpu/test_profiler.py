"""What a profiler is shown, and how what it says is read, without a card and without a profiler."""

import re
import sys
from pathlib import Path

import pytest

from agent.execution.children import ground
from agent.execution.wire import decode, encode
from tests.benchmarks import profiler
from tests.benchmarks.profiler import _theirs, command, durations, report
from tests.execution.gpu.fake import FakeCard
from tests.execution.gpu.test_measuring import doubling, request, side
from tests.gpu.launcher import Order, launched

SAID = """==PROF== Connected to process 450 (/usr/bin/python3.12)
conv2d 1980 1980
"ID","Process ID","Kernel Name","Block Size","Metric Name","Metric Unit","Metric Value"
"0","450","softmax(const float *, float *, int, int)","(256, 1, 1)","gpu__time_duration.sum","ns","1,605,280"
"1","450","_Z6conv2dPKf","(16, 16, 1)","gpu__time_duration.sum","nsecond","7032000"
"2","450","softmax","(256, 1, 1)","gpu__time_duration.sum","us","1600"
"3","450","softmax","(256, 1, 1)","sm__cycles_elapsed.max","cycle","3000"
"4","450","sweep","(256, 1, 1)","gpu__time_duration.sum","ns","5"
==PROF== Disconnected from process 450
"""


def test_durations_are_read_from_among_other_lines() -> None:
    found = durations(SAID.splitlines(), ("softmax", "conv2d", "matvec"))
    assert found == {"softmax": [pytest.approx(1605.28e-6), pytest.approx(1.6e-3)], "conv2d": [pytest.approx(7.032e-3)]}


def test_what_says_nothing_is_empty() -> None:
    assert durations(["==ERROR== no kernels were profiled"], ("softmax",)) == {}


def test_clocks_and_caches_are_left_alone_and_only_these_kernels_looked_at() -> None:
    asked = command(Path("/bin/ncu"), ("softmax", "conv2d"), Path("order"))
    for option in ("--clock-control", "--cache-control"):
        assert asked[asked.index(option) + 1] == "none"
    pattern = asked[asked.index("--kernel-name") + 1].removeprefix("regex:")
    assert [name for name in ("softmax", "_Z6conv2dPKf", "sweep", "make") if re.search(pattern, name)] == [
        "softmax", "_Z6conv2dPKf",
    ]  # fmt: skip


def test_each_call_is_cold_and_nothing_waits_behind_a_blocker() -> None:
    card = FakeCard({"old": doubling(3e-3), "new": doubling(2e-3)})
    order = decode(encode(Order((request(side("old"), side("new")),), 3)), Order)
    launched(ground.open_ground(card, card, b"support"), order.requests[0], order.calls)
    names = [name for name in card.log if name in ("make", "sweep", "hold", "event", "old", "new")]
    assert names == ["make", "sweep", "old"] * 3


@pytest.mark.skipif(sys.platform == "win32", reason="a script of the shell")
def test_what_ncu_says_is_read_and_kept_or_why_it_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LSP_SHARDS", str(tmp_path))
    order = Order((request(side("softmax"), side("softmax")),), 3)
    (tmp_path / "said").write_text(SAID)

    def ncu(script: str) -> Path:
        (tmp_path / "ncu").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "ncu").chmod(0o755)
        return tmp_path / "ncu"

    found = _theirs(ncu(f"cat '{tmp_path / 'said'}'"), order)
    assert isinstance(found, dict) and len(found["softmax"]) == 2
    assert (tmp_path / "profiler.csv").read_text() == SAID
    assert "be root" in str(_theirs(ncu("echo ERR_NVGPUCTRPERM; exit 1"), order))
    assert "exit code 3: no such option" in str(_theirs(ncu("echo no such option >&2; exit 3"), order))
    monkeypatch.setattr(profiler, "LIMIT", 0.2)
    assert "did not end" in str(_theirs(ncu("sleep 600"), order))


def test_the_report_says_how_far_they_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    report({"a": 1.02e-3, "b": 2e-3, "c": "out of memory", "d": 1e-3}, {"a": [1e-3, 1e-3, 9e-3], "b": [1e-3]})
    said = capsys.readouterr().out
    assert "+2.00%" in said and "+100.00%" in said and "out of memory" in said and "ncu saw none" in said
    assert "1 of 4 within 3%" in said
