"""The trace: an interrupted search goes on, a finished one starts anew, and a bad disk costs nothing but the trace."""

import json

import pytest

from agent.evaluation.plain import structure, unstructure
from agent.evaluation.verdict import Correctness, Evidence, GateResult, Precision, Speed, Verdict
from agent.execution.compiler.result import Resources
from agent.execution.device import Fault, Where
from agent.search import events
from agent.search.trace import folder, open_trace

WHERE = Where("a.cu", 31, (0, 0, 0), (32, 0, 0))
FAULT = Fault("shared-memory race", "k", WHERE, "s[1]", other=WHERE)
VERDICT = Verdict(
    Correctness("wrong", "emulated", "race", ("normal",), ("n=3",), "n=3", "", FAULT),
    Precision("less", 3e-5, float("inf"), "promoted"),
    Speed("estimated", 1.9, target="H200"),
    (GateResult("source", "passed", "", 0.1),),
    Evidence(
        "a", "b", "nvrtc", ("-DX",), "sm_90", "emulated", "any n", (1, 2), ("zeros",), (), {"y": 1e-7},
        {"requests": (2.0, 1.0)}, {"k": (Resources(32, 0, 0, 0, 128, 1), None)}, ("the user's nvcc",), "cuda-lsp",
    ),
)  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_a_verdict_survives_the_disk_whole():
    text = json.dumps(unstructure(VERDICT), allow_nan=False)
    assert structure(json.loads(text), Verdict) == VERDICT


def test_an_interrupted_search_goes_on():
    first = open_trace("key", fresh=False)
    first.judged("p1", VERDICT)
    first.event(events.Finished("cancelled", ""))
    assert open_trace("key", fresh=False).verdicts == {"p1": VERDICT}
    assert open_trace("other", fresh=False).verdicts == {}


def test_fresh_and_finished_searches_start_anew():
    open_trace("key", fresh=False).judged("p1", VERDICT)
    assert open_trace("key", fresh=True).verdicts == {}
    again = open_trace("key", fresh=False)
    again.judged("p1", VERDICT)
    again.event(events.Finished("done", ""))
    assert open_trace("key", fresh=False).verdicts == {}


def test_a_line_cut_off_by_a_crash_loses_that_line_only():
    trace = open_trace("key", fresh=False)
    trace.judged("p1", VERDICT)
    trace.judged("p2", VERDICT)
    text = trace.path.read_bytes()
    trace.path.write_bytes(text[:-40])
    assert set(open_trace("key", fresh=False).verdicts) == {"p1"}


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{}\n", b'{"schema": 99}\n', b"[1]\n", b"7\n"])
def test_a_trace_that_is_none_of_ours_is_ignored(content):
    path = open_trace("key", fresh=False).path
    path.write_bytes(content)
    assert open_trace("key", fresh=False).verdicts == {}


def test_a_verdict_of_another_version_is_judged_again():
    trace = open_trace("key", fresh=False)
    trace.judged("p1", VERDICT)
    records = [json.loads(line) for line in trace.path.read_text().splitlines()]
    del records[-1]["verdict"]["precision"]
    trace.path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert open_trace("key", fresh=False).verdicts == {}


def test_a_folder_that_cannot_be_written_costs_the_trace_only(home):
    (home / "cuda-lsp").write_text("a file where the folder should be")
    trace = open_trace("key", fresh=False)
    trace.judged("p1", VERDICT)
    assert trace.verdicts == {"p1": VERDICT}
    assert str(folder()) in trace.problem
