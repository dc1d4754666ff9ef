"""Jobs: one per kernel, a fair queue, killed in time, restarted after a crash, nothing left behind."""

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve, frozen

from agent.source.document import Document, parse
from cuda_lsp.jobs import Job, JobRefused, Jobs
from cuda_lsp.jobs.job import CANCELLED, DONE, FAILED, HELD, QUEUED, RUNNING, Listened
from cuda_lsp.jobs.jobs import MOST_WAITING
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.jobs.waiting import Turns
from cuda_lsp.worker.asked import ModelUse, Options
from cuda_lsp.worker.messages import Ended, Staged
from tests.server.texts import SCALE

SCRIPTED = "tests.server.scripted_worker"


@frozen
class Text:
    """A snapshot of the least kind."""

    uri: str
    document: Document
    version: int = 1


class Loop:
    """Jobs with a loop of their own: what is posted is run when a test waits."""

    def __init__(self, limit: int = 2, module: str = SCRIPTED) -> None:
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.pool = Pool(module)
        self.jobs = Jobs(self.posted.put, self.pool, limit)
        self.heard: list[tuple[Job, Listened]] = []
        self.jobs.subscribe(lambda job, message: self.heard.append((job, message)))

    def start(self, *script: str, kernel: str = "scale", uri: str = "file:///a.cu", kind: str = "optimize") -> str:
        text = Text(uri, parse(SCALE.encode(), "/a.cu"))
        return self.jobs.start(kind, text, kernel, Options(only=script))

    def until(self, holds: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            left = deadline - time.monotonic()
            assert left > 0, "it did not happen in time"
            try:
                self.posted.get(timeout=min(left, 0.05))()
            except queue.Empty:
                continue

    def ended(self, *identifiers: str) -> None:
        self.until(lambda: all(self.state(one) not in (QUEUED, RUNNING) for one in identifiers))

    def state(self, identifier: str) -> str:
        job = self.jobs.get(identifier)
        assert job is not None
        return job.state

    def stages(self, identifier: str) -> list[str]:
        return [message.text for job, message in self.heard if job.id == identifier and isinstance(message, Staged)]


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.jobs.close()


def gone(pid: int) -> bool:
    """Whether a process is gone, or waits only to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def soon(holds: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def test_a_job_tells_its_stages_and_ends(loop: Loop) -> None:
    job = loop.start("stage:one", "noise", "stage:two", "end:done")
    assert loop.state(job) == RUNNING
    loop.ended(job)
    assert loop.stages(job) == ["one", "two"]
    last = loop.jobs.get(job)
    assert last is not None and last.state == DONE and last.ended == Ended("done", "done: scale")
    assert list(dict.fromkeys(job.state for job, _ in loop.heard)) == [QUEUED, RUNNING, DONE]


def test_a_rewrite_arrives_as_it_was_sent(loop: Loop) -> None:
    job = loop.start("launch")
    loop.ended(job)
    ended = loop.heard[-1][1]
    assert isinstance(ended, Ended)
    (rewrite,) = ended.rewrites
    remembered = loop.jobs.get(job)
    assert remembered is not None and remembered.ended == evolve(ended, rewrites=())
    assert loop.heard[-1][0].document.text == SCALE.encode() and remembered.document.text == b""
    assert rewrite.anchors is not None and rewrite.verdict.speed.candidate_seconds == float("inf")
    assert rewrite.anchors.sites == (b"scale<<<(n + 255) / 256, 256>>>(x, y, n)",)
    assert rewrite.anchors.launches == (b"scale<<<(n + 255) / 256, 128>>>(x, y, n)",)


def test_a_failure_is_a_failure_with_its_words(loop: Loop) -> None:
    job = loop.start("end:failed")
    loop.ended(job)
    assert loop.state(job) == FAILED
    assert loop.jobs.get(job).message == "failed: scale"  # type: ignore[union-attr]


def test_one_job_per_kernel(loop: Loop) -> None:
    first = loop.start("sleep:30")
    with pytest.raises(JobRefused, match=r"already running on scale \(optimize, "):
        loop.start()
    other = loop.start(kernel="shift")
    elsewhere = loop.start(uri="file:///b.cu")
    loop.jobs.cancel(first)
    loop.ended(other, elsewhere)
    again = loop.start()
    loop.ended(again)
    assert loop.state(again) == DONE


def test_what_is_no_kernel_and_what_is_damaged_is_refused(loop: Loop) -> None:
    with pytest.raises(JobRefused, match="no kernel 'nope'"):
        loop.start(kernel="nope")
    damaged = Text("file:///a.cu", parse(b"__global__ void bad(float* x) { x[0] = = 1; )( }\n", "/a.cu"))
    with pytest.raises(JobRefused):
        loop.jobs.start("optimize", damaged, "bad")


@pytest.mark.skipif(sys.platform == "win32", reason="/proc and process groups")
def test_cancelling_kills_the_worker_and_what_it_started_within_a_second(loop: Loop, tmp_path: Path) -> None:
    job = loop.start(f"child:{tmp_path / 'pid'}", "stage:there", "sleep:60")
    loop.until(lambda: loop.stages(job) == ["there"])
    workers = loop.pool.pids
    child = int((tmp_path / "pid").read_text())
    assert not gone(workers[0]) and not gone(child)
    assert loop.jobs.cancel(job)
    assert loop.state(job) == CANCELLED
    assert soon(lambda: gone(workers[0]) and gone(child))
    assert not loop.jobs.cancel(job), "it has ended already"


def test_a_cancelled_job_says_nothing_more_and_the_next_gets_its_place() -> None:
    loop = Loop(limit=1)
    try:
        first, second = loop.start("stage:a", "sleep:60"), loop.start("stage:b", kernel="shift")
        loop.until(lambda: bool(loop.stages(first)))
        assert loop.state(second) == QUEUED
        loop.jobs.cancel(first)
        loop.ended(second)
        assert (loop.state(first), loop.state(second)) == (CANCELLED, DONE)
        after = [job.state for job, _ in loop.heard if job.id == first]
        assert after[after.index(CANCELLED) :] == [CANCELLED]
    finally:
        loop.jobs.close()


def test_a_waiting_job_can_be_cancelled() -> None:
    loop = Loop(limit=1)
    try:
        first, second = loop.start("sleep:0.3"), loop.start(kernel="shift")
        assert loop.jobs.cancel(second)
        loop.ended(first)
        assert loop.state(second) == CANCELLED and loop.stages(second) == []
        assert not loop.jobs.cancel("job-99")
    finally:
        loop.jobs.close()


def test_a_worker_that_dies_is_started_again_and_it_is_said(loop: Loop, tmp_path: Path) -> None:
    job = loop.start("stage:one", f"die-once:{tmp_path / 'died'}", "stage:two")
    loop.ended(job)
    assert loop.state(job) == DONE
    said = loop.stages(job)
    assert (
        said[0] == "one" and "died (it was ended by SIGKILL); started again" in said[1] and said[2:] == ["one", "two"]
    )


def test_a_worker_that_dies_twice_fails_the_job_and_no_other(loop: Loop) -> None:
    job, other = loop.start("die"), loop.start("sleep:0.2", kernel="shift")
    loop.ended(job, other)
    assert (loop.state(job), loop.state(other)) == (FAILED, DONE)
    assert "died twice" in loop.jobs.get(job).message  # type: ignore[union-attr]
    after = loop.start("stage:alive")
    loop.ended(after)
    assert loop.state(after) == DONE


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="known from /proc")
def test_an_idle_worker_that_somebody_stopped_is_replaced(loop: Loop) -> None:
    first = loop.start("stage:one")
    loop.ended(first)
    (pid,) = loop.pool.pids
    os.kill(pid, signal.SIGSTOP)
    assert soon(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    after = loop.start("stage:two")
    loop.ended(after)
    assert loop.state(after) == DONE and pid not in loop.pool.pids and gone(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_worker_killed_from_outside_is_replaced(loop: Loop) -> None:
    job = loop.start("stage:there", "sleep:1")
    loop.until(lambda: bool(loop.stages(job)))
    os.kill(loop.pool.pids[0], signal.SIGKILL)
    loop.ended(job)
    assert loop.state(job) == DONE and any("started again" in text for text in loop.stages(job))


def test_a_worker_is_used_again(loop: Loop) -> None:
    loop.ended(loop.start())
    first = loop.pool.pids
    loop.ended(loop.start())
    assert loop.pool.pids == first
    loop.pool.rest()
    assert loop.pool.pids == () and soon(lambda: gone(first[0]))


def test_no_more_than_the_limit_run_at_once() -> None:
    loop = Loop(limit=2)
    try:
        jobs = [loop.start("sleep:0.1", uri=f"file:///{n}.cu") for n in range(6)]
        most = 0

        def holds() -> bool:
            nonlocal most
            most = max(most, sum(loop.state(job) == RUNNING for job in jobs))
            return all(loop.state(job) == DONE for job in jobs)

        loop.until(holds)
        assert most == 2
    finally:
        loop.jobs.close()


def test_documents_take_turns() -> None:
    jobs = [
        Job(f"{uri}{n}", "optimize", uri, 1, f"k{n}", Options(), parse(b""))
        for uri, count in (("a", 4), ("b", 2), ("c", 1))
        for n in range(count)
    ]
    turns, order = Turns(), []
    waiting = list(jobs)
    while waiting:
        job = turns.next(waiting, [])
        waiting.remove(job)
        order.append(job.id)
    assert order == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]
    busy = [evolve(jobs[0], state=RUNNING)]
    assert Turns().next(jobs[1:], busy).uri == "b"


def test_the_queue_is_bounded() -> None:
    loop = Loop(limit=1)
    try:
        for n in range(MOST_WAITING + 1):
            loop.start("sleep:30", uri=f"file:///{n}.cu")
        with pytest.raises(JobRefused, match="are waiting already"):
            loop.start(uri="file:///more.cu")
    finally:
        loop.jobs.close()


def test_a_renamed_file_keeps_its_job_and_a_deleted_one_loses_it(loop: Loop) -> None:
    job = loop.start("sleep:30")
    loop.jobs.renamed("file:///a.cu", "file:///z.cu")
    assert loop.jobs.active("file:///z.cu", "scale") is not None
    assert loop.jobs.active("file:///a.cu", "scale") is None
    loop.jobs.leave("file:///z.cu")
    assert loop.state(job) == CANCELLED


def test_closing_leaves_no_process_and_takes_no_job(loop: Loop) -> None:
    running = [loop.start("stage:there", "sleep:60"), loop.start("stage:there", "sleep:60", kernel="shift")]
    loop.until(lambda: all(loop.stages(job) for job in running))
    pids = loop.pool.pids
    assert len(pids) == 2
    loop.jobs.close()
    assert soon(lambda: all(map(gone, pids)))
    with pytest.raises(JobRefused, match="shutting down"):
        loop.start()


_ORPHAN = """
import sys, time
from tests.server.test_jobs import Loop
loop = Loop()
job = loop.start("stage:there", "sleep:60")
loop.until(lambda: bool(loop.stages(job)))
print(*loop.pool.pids, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="/proc and signals")
def test_a_worker_notices_that_its_server_was_killed() -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", _ORPHAN], stdout=subprocess.PIPE, cwd=root, text=True) as server:
        assert server.stdout is not None
        pids = [int(word) for word in server.stdout.readline().split()]
        assert pids and not any(map(gone, pids))
        server.kill()
    assert soon(lambda: all(map(gone, pids)))


def test_the_environment_of_a_worker_holds_no_keys(monkeypatch: pytest.MonkeyPatch, loop: Loop) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    job = loop.start("stage:there", "sleep:30")
    loop.until(lambda: bool(loop.stages(job)))
    environment = Path(f"/proc/{loop.pool.pids[0]}/environ")
    if environment.exists():
        assert b"secret" not in environment.read_bytes()


def held(loop: Loop, *script: str, kernel: str = "scale") -> str:
    text = Text("file:///a.cu", parse(SCALE.encode(), "/a.cu"))
    return loop.jobs.start("optimize", text, kernel, Options(only=script), held=True)


def test_a_held_job_has_its_kernel_and_begins_when_it_is_released(loop: Loop) -> None:
    job = held(loop, "never")
    other = loop.start("stage:one", kernel="shift")
    loop.ended(other)
    assert loop.state(job) == HELD and loop.pool.pids and not loop.jobs.busy, "a question keeps no processor busy"
    with pytest.raises(JobRefused, match="already running on scale"):
        loop.start()
    loop.jobs.waits(job, "waiting for an answer")
    assert loop.heard[-1][0].stage == "waiting for an answer"
    loop.jobs.release(job, Options(only=("model",), model=ModelUse("tiny", "http://127.0.0.1:9/v1")))
    loop.ended(job)
    assert loop.stages(job) == ["may ask tiny"] and loop.state(job) == DONE


def test_a_held_job_is_cancelled_without_a_process(loop: Loop) -> None:
    job = held(loop, "sleep:60")
    assert loop.jobs.cancel(job) and not loop.pool.pids
    loop.jobs.release(job, Options())
    loop.jobs.waits(job, "too late")
    assert loop.state(job) == CANCELLED and loop.heard[-1][0].stage == "cancelled"
    again = loop.start("stage:one")
    loop.ended(again)


def test_what_a_model_may_cost_is_not_spent_twice_where_a_worker_dies(loop: Loop, tmp_path: Path) -> None:
    use = ModelUse("tiny", "http://127.0.0.1:9/v1", "sk-secret")
    text = Text("file:///a.cu", parse(SCALE.encode(), "/a.cu"))
    script = ("model", f"die-once:{tmp_path / 'died'}")
    job = loop.jobs.start("optimize", text, "scale", Options(only=script, model=use))
    loop.ended(job)
    assert [one for one in loop.stages(job) if one.startswith("may")] == ["may ask tiny", "may ask nobody"]
    own = loop.jobs.start("idea", text, "scale", Options(only=("model", "die"), model=use, idea="swap"))
    loop.ended(own)
    assert loop.stages(own) == ["may ask tiny"] and loop.state(own) == FAILED
    assert "sk-secret" not in repr(loop.heard)
