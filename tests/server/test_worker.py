"""What the worker does with each kind of task, in this process and over its pipes."""

import subprocess
from pathlib import Path

import pytest
from attrs import evolve

from agent.execution.nsight import Counted
from agent.execution.timing import Race, Timed
from agent.search import events
from agent.source.document import parse
from agent.workload.directive import read_directive
from cuda_lsp.describing import insertion
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.jobs.stages import stage
from cuda_lsp.terminal.exits import CommandError
from cuda_lsp.worker.asked import Options, Task
from cuda_lsp.worker.messages import Ended, Message, Staged
from cuda_lsp.worker.tasks import benchmark, kinds, run
from tests.evaluation.test_timing import Clock
from tests.server.texts import SCALE

RACE = """
__global__ void total(const float* x, float* y, int n) {
    __shared__ float s[256];
    s[threadIdx.x] = blockIdx.x * 256 + threadIdx.x < n ? x[blockIdx.x * 256 + threadIdx.x] : 0.0f;
    for (int stride = 128; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) s[threadIdx.x] += s[threadIdx.x + stride];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}
int main() {
    int n = 4096; float *x, *y;
    cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&y, 16 * sizeof(float));
    total<<<16, 256>>>(x, y, n);
}
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def task(kind: str, text: str, kernel: str, path: Path | str = "", **options: object) -> Task:
    return Task(kind, str(path), text.encode(), kernel, Options(device="emulator", **options))  # type: ignore[arg-type]


def done(asked: Task) -> tuple[Ended, list[Message]]:
    told: list[Message] = []
    return run(asked, told.append), told


def test_the_kinds_are_those_that_the_commands_start() -> None:
    from cuda_lsp.features.execute_command import KINDS

    assert set(kinds()) == {*KINDS.values(), "fix", "code", "count", "scan"}, "and what the server and a scan ask for"
    assert done(task("nope", SCALE, "scale"))[0].reason == "failed"


def test_over_the_pipes_each_answer_is_what_it_is_in_this_process(tmp_path: Path) -> None:
    pool = Pool()
    try:
        for kind in ("suggest", "describe", "benchmark"):
            asked = task(kind, SCALE, "scale", tmp_path / "a.cu")
            told: list[Message] = []
            here, there = done(asked), pool.run(asked, told.append, lambda: False)
            assert here[0] == there and here[1] == told
        unknown = pool.run(task("benchmark", SCALE, "nope"), told.append, lambda: False)
        assert unknown.reason == "failed" and "no kernel 'nope'" in unknown.message
    finally:
        pool.close()


def test_a_fault_of_ours_is_said_with_its_traceback_and_the_worker_lives(tmp_path: Path) -> None:
    pool = Pool()
    try:
        bad = evolve(task("suggest", SCALE, "scale"), options=Options(scope="no scope"))
        fault = pool.run(bad, lambda message: None, lambda: False)
        assert fault.reason == "fault" and "ValueError" in fault.message and "Traceback" in fault.detail
        pid = pool.pids
        assert pool.run(task("suggest", SCALE, "scale"), lambda message: None, lambda: False).reason != "fault"
        assert pool.pids == pid
    finally:
        pool.close()


def test_an_unsaved_text_takes_the_settings_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".cuda-lsp.toml").write_text(
        '[workload.lone]\nsizes = { n = 64 }\nbuffers = { x = "f32[n] inout" }\nplan = "launch lone<<<1, 64>>>(x, n)"\n'
    )
    lone = "__global__ void lone(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2.0f; }\n"
    ended, _ = done(task("describe", lone, "lone", folder=str(tmp_path)))
    assert "x f32[n] inout" in ended.message
    without, _ = done(task("describe", lone, "lone"))
    assert without.reason == "done" and "x: f32[" in without.directive and "] probed inout" in without.directive
    assert "nothing is known of bounds" in without.message
    lone = lone.replace("float* x, int n", "float* x, const int* n").replace(
        "x[threadIdx.x] *=", "x[n[threadIdx.x]] *="
    )
    asked, told = done(task("describe", lone.replace("< n", "< 8"), "lone"))
    assert asked.reason == "questions" and "x: f32[?] probed inout" in asked.directive
    assert any("depends on values loaded from `n`" in line for line in asked.lines)
    assert any(isinstance(one, Staged) and one.text.startswith("running lone") for one in told)


def test_a_directive_is_written_where_it_is_read(tmp_path: Path) -> None:
    for text in (
        SCALE,
        SCALE.replace("\n", "\r\n"),
        SCALE.replace("__global__ void scale", "  static __global__ void scale"),
    ):
        ended, _ = done(task("describe", text, "scale"))
        document = parse(text.encode())
        edit = insertion(document, document.kernel("scale"), ended.directive)
        assert edit is not None
        new = document.text[: edit.span.start] + edit.text + document.text[edit.span.end :]
        found = parse(new)
        workload = read_directive(found, found.kernel("scale"))
        assert workload is not None and [buffer.name for buffer in workload.buffers] == ["x", "y"]
        assert new.count(b"\r\n") == (new.count(b"\n") if b"\r\n" in document.text else 0)
        with pytest.raises(CommandError, match="already, at line"):
            done(task("describe", new.decode(), "scale"))
    crowded = parse(b"int a; __global__ void k(float* x) { x[0] = 1; }\n")
    assert insertion(crowded, crowded.kernel("k"), "// cuda-lsp: workload\n") is None


def test_verify_against_the_saved_file_and_against_a_revision(tmp_path: Path) -> None:
    file = tmp_path / "scale.cu"
    file.write_text(SCALE)
    for command in (
        ["init", "-q"],
        ["add", "scale.cu"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    changed = SCALE.replace("y[i] = twice(x[i])", "y[i] = x[i] + x[i]")
    ended, told = done(task("verify", changed, "scale", file))
    assert ended.reason == "right" and ended.message.startswith("scale against the saved file: right (emulated")
    assert [staged for staged in told if isinstance(staged, Staged) and staged.total][-1].done > 3
    file.write_text(changed)
    assert done(task("verify", changed, "scale", file))[0].reason == "unchanged"
    wrong = changed.replace("x[i] + x[i]", "x[i] + x[0]")
    ended, _ = done(task("verify", wrong, "scale", file, against="HEAD"))
    assert ended.reason == "wrong" and "scale against the file at HEAD: wrong" in ended.message
    with pytest.raises(CommandError, match="no-such-branch"):
        done(task("verify", wrong, "scale", file, against="no-such-branch"))
    with pytest.raises(CommandError, match="is no revision"):
        done(task("verify", wrong, "scale", file, against="--output=/tmp/x"))
    with pytest.raises(CommandError, match="never saved"):
        done(task("verify", wrong, "scale"))
    with pytest.raises(CommandError, match="fresh is not in the saved file"):
        done(task("verify", SCALE.replace("scale", "fresh"), "fresh", file))


def test_a_change_that_mends_the_saved_text_is_run_alone(tmp_path: Path) -> None:
    file = tmp_path / "total.cu"
    file.write_text(RACE)
    mended = RACE.replace("stride];\n", "stride];\n        __syncthreads();\n").replace(
        "0.0f;\n", "0.0f; __syncthreads();\n"
    )
    ended, told = done(task("verify", mended, "total", file))
    assert ended.reason == "broken original" and ended.verdict is None
    assert "total: the saved file is itself broken" in ended.message and "shared-memory race in total" in ended.message
    assert "Run alone, your change keeps its own contract (in bounds, free of races" in ended.message
    assert any(isinstance(staged, Staged) and staged.text.startswith("your change: ") for staged in told)
    ended, _ = done(task("verify", RACE.replace("= 128; stride", "= 64; stride"), "total", file))
    assert ended.reason == "broken original" and "Run alone, your change is broken too: " in ended.message


def test_a_broken_original_is_said_and_nothing_is_proposed() -> None:
    ended, told = done(task("optimize", RACE, "total"))
    assert ended.reason == "broken original" and "mend it first" in ended.message and ended.rewrites == ()
    assert any(isinstance(event, events.ContractFound) and event.broken for event in told)
    with pytest.raises(CommandError, match="breaks its own contract"):
        done(task("benchmark", RACE, "total"))


def test_what_does_not_compile_is_a_failure() -> None:
    with pytest.raises(CommandError, match="does not compile"):
        done(task("optimize", SCALE.replace("twice(x[i])", "thrice(x[i])"), "scale"))


def test_a_benchmark_says_that_nothing_was_measured() -> None:
    ended, _ = done(task("benchmark", SCALE, "scale", target="A100"))
    assert "measured" in ended.message and "Estimated on A100: " in ended.message and "limited by" in ended.message


class Crowded(Clock):
    """A card that has no room to time anything."""

    def race(self, race: Race) -> Timed:
        return Timed("refused", "the card is full")


def test_a_benchmark_is_measured_where_there_is_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, card = benchmark.setting_of, Clock(peak=1e9)
    monkeypatch.setattr(benchmark, "setting_of", lambda asked, opened: evolve(plain(asked, opened), device=card))
    ended, _ = done(task("benchmark", SCALE, "scale"))
    assert ended.reason == "measured" and "scale: measured on Test card: 1 ms" in ended.message
    assert "above its floor there" in ended.message and "stimated" not in ended.message
    assert any("Test card was measured to do" in line for line in ended.lines)
    card = Crowded()
    ended, _ = done(task("benchmark", SCALE, "scale"))
    assert ended.reason == "estimated"
    assert "nothing was measured: " in ended.message and "the card is full" in ended.message


def test_the_cards_own_counters_take_the_place_of_the_emulators(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, card = benchmark.setting_of, Clock(peak=1e9)
    monkeypatch.setattr(benchmark, "setting_of", lambda asked, opened: evolve(plain(asked, opened), device=card))
    monkeypatch.setattr(benchmark, "Gpu", Clock)
    monkeypatch.setattr(benchmark, "tool", lambda name: Path(name))
    seen = Counted("scale(const float *)", "(4, 1, 1)", "(256, 1, 1)", 8, 32, 8, 64, 0, 9, 320, 2e-6)
    other = evolve(seen, kernel="other(int)", grid="(7, 1, 1)")
    monkeypatch.setattr(benchmark, "own_counters", lambda *about: (other, seen))
    ended, _ = done(task("benchmark", SCALE, "scale"))
    told = "(4, 1, 1) blocks of (256, 1, 1): 8 loads of 4 sectors on average; 8 stores of 8 sectors on average"
    assert ended.lines[0] == "counted by Test card itself (Nsight Compute)" and ended.lines[1].startswith(told)
    assert ended.message.startswith("scale: measured on Test card: 1 ms") and told in ended.message
    assert len(ended.lines) == 2
    for answer, why in (("be root", "be root"), ((other,), "ncu saw none of its launches")):
        monkeypatch.setattr(benchmark, "own_counters", lambda *about, answer=answer: answer)
        ended, _ = done(task("benchmark", SCALE, "scale"))
        assert ended.lines[-1] == f"the card's own counters were not read: {why}"
        assert "counted" in ended.lines[0] and "Nsight" not in ended.message


def test_every_event_has_words_or_changes_nothing() -> None:
    assert stage(Staged("a", 1, 2)) == ("a", 1, 2)
    assert stage(events.Finished("done", "")) is None
    assert stage(events.RoundStarted(2, 5)) == ("round 2: judging 5 candidates", 0, 0)
    assert stage(events.IdeasFound("1.1", (), ())) == ("0 ideas on top of 1.1", 0, 0)
    assert stage(events.CandidateJudged(1, "1.2", "t", "v", None, "compiles to the same code")) == (
        "round 1: 1.2 compiles to the same code", 0, 0,
    )  # fmt: skip
