"""Jobs of the server, real workers, and a blow for each of them. What must hold whatever falls: no verdict is wrong,
none is lost, no process is left, nor anything in the folder for temporary files, and then the next verdict is right."""

import contextlib
import os
import queue
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import define, field, frozen

from agent.source.document import Document, parse
from cuda_lsp.jobs import Job, Jobs
from cuda_lsp.jobs import pool as pools
from cuda_lsp.jobs.job import Listened
from cuda_lsp.worker.asked import Options
from tests.chaos.blows import ROLES, Blow, drawn, strike
from tests.chaos.changes import Change, change

DECIDED = ("right", "wrong", "less precise")
PATIENCE = 300.0
"""Seconds without any news after which whoever waits gives up."""


@frozen
class Text:
    uri: str
    document: Document
    version: int = 1


@frozen
class Told:
    """How a job ended: a verdict in a word, or ``failed`` with a message; ``ends`` is how often that was said."""

    change: Change
    blow: Blow | None
    struck: bool
    reason: str
    message: str
    ends: int

    @property
    def wrong(self) -> bool:
        """Whether a verdict was reached that is not so."""
        return self.reason in DECIDED and self.reason != ("right" if self.change.right else "wrong")


@frozen
class Toll:
    """``told``: each job under its blow; ``after``: those that nothing befell any more. ``left``: processes that were
    there half a minute after the end, by id; ``files``: what was in the folder for temporary files; ``parts``: halves
    of files in the caches, which are pruned in time."""

    told: tuple[Told, ...]
    after: tuple[Told, ...]
    left: tuple[int, ...]
    files: tuple[str, ...]
    parts: int
    seconds: float

    @property
    def counts(self) -> Counter[str]:
        return Counter(one.reason for one in self.told)


@define
class _Weather:
    """The jobs and their loop, which is run by whoever waits."""

    folder: Path
    device: str
    dice: random.Random
    at_once: int
    posted: "queue.SimpleQueue[Callable[[], None]]" = field(factory=queue.SimpleQueue)
    pool: pools.Pool = field(factory=lambda: pools.Pool(ROLES["worker"]))
    jobs: Jobs = field(init=False)
    due: list[tuple[float, Callable[[], bool]]] = field(factory=list)
    pending: dict[str, Blow] = field(factory=dict)
    struck: set[str] = field(factory=set)
    heard: Counter[str] = field(factory=Counter)
    ends: Counter[str] = field(factory=Counter)
    ended: dict[str, Job] = field(factory=dict)
    changes: dict[str, tuple[Change, Blow | None]] = field(factory=dict)
    news: float = field(factory=time.monotonic)

    def __attrs_post_init__(self) -> None:
        self.jobs = Jobs(self.posted.put, self.pool, self.at_once)
        self.jobs.subscribe(self._listen)

    def start(self, number: int, made: Change, blow: Blow | None, seconds: float) -> str:
        path = self.folder / f"job{number}.cu"
        path.write_text(made.before)
        text = Text(path.as_uri(), parse(made.after.encode(), str(path)))
        job = self.jobs.start("verify", text, made.kernel, Options(device=self.device, seconds=seconds))
        self.changes[job] = (made, blow)
        if blow is not None:
            self.pending[job] = blow
        return job

    def until(self, holds: Callable[[], bool]) -> None:
        """Run the loop. Gives up, and says so by what is missing, when nothing is heard for a long time."""
        while not holds() and time.monotonic() - self.news < PATIENCE:
            with contextlib.suppress(queue.Empty):
                self.posted.get(timeout=0.05)()
            now = time.monotonic()
            ready, self.due = [act for when, act in self.due if when <= now], [at for at in self.due if at[0] > now]
            self.due += [(now + 0.1, act) for act in ready if not act()]

    def told(self, jobs: list[str]) -> tuple[Told, ...]:
        return tuple(self._told(job) for job in jobs)

    def _told(self, job: str) -> Told:
        (made, blow), last = self.changes[job], self.ended.get(job)
        reason = "lost" if last is None else last.ended.reason if last.ended else last.state
        message = "" if last is None else last.message
        return Told(made, blow, job in self.struck, reason, message, self.ends[job])

    def _listen(self, job: Job, message: Listened) -> None:
        self.news = time.monotonic()
        if not job.active:
            self.ends[job.id] += 1
            self.ended[job.id] = job
        elif message is not None:
            self.heard[job.id] += 1
            blow = self.pending.get(job.id)
            if blow is not None and self.heard[job.id] > blow.after:
                del self.pending[job.id]
                self.due.append((time.monotonic() + blow.delay, lambda: self._strike(job.id, blow)))

    def _strike(self, job: str, blow: Blow) -> bool:
        """Whether it fell, or need not fall any more."""
        if job in self.ended:
            return True
        with self.pool._lock:
            workers = tuple(child for child in self.pool._all if child.alive)
        end = strike(blow, workers, self.dice)
        if end is None:
            return False
        self.struck.add(job)
        self.due.append((time.monotonic() + blow.pause, lambda: end() or True))
        return True


@contextlib.contextmanager
def surroundings(folder: Path, grace: float) -> Iterator[None]:
    """Caches, state and temporary files of all that is started lie in ``folder``; a worker that says nothing is given
    up ``grace`` seconds after its job's own limit."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "TMPDIR"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            patch.setenv(name, str(folder / name))
        patch.setattr(pools, "GRACE", grace)
        yield


def storm(
    folder: Path,
    count: int,
    seed: int,
    device: str,
    seconds: float,
    grace: float,
    roles: tuple[str, ...],
    at_once: int = 2,
) -> Toll:
    """``count`` jobs of at most ``seconds`` each, some at a time, and a blow for each; then two in calm weather."""
    begun = time.monotonic()
    with surroundings(folder, grace):
        weather = _Weather(folder, device, random.Random(seed), at_once)
        try:
            blows = drawn(seed, roles)
            jobs: list[str] = []
            for number in range(count):
                weather.until(lambda: sum(job not in weather.ended for job in jobs) < 2 * at_once)
                jobs.append(weather.start(number, change(number), next(blows), seconds))
            weather.until(lambda: all(job in weather.ended for job in jobs))
            calm = [weather.start(count + number, change(number, right), None, PATIENCE)
                    for number, right in enumerate((True, False))]  # fmt: skip
            weather.until(lambda: all(job in weather.ended for job in calm))
        finally:
            weather.jobs.close()
    told, after = weather.told(jobs), weather.told(calm)
    left = _left(folder)
    return Toll(told, after, left, _files(folder), _parts(folder), time.monotonic() - begun)


def _left(folder: Path, patience: float = 30.0) -> tuple[int, ...]:
    """Processes that were started in these surroundings and are still there, whoever is their parent by now."""
    mark = f"TMPDIR={folder / 'TMPDIR'}".encode()
    deadline = time.monotonic() + patience
    while found := tuple(pid for pid in _pids() if mark in _environment(pid)):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return found


def _pids() -> list[int]:
    return [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and int(entry.name) != os.getpid()
    ]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _files(folder: Path) -> tuple[str, ...]:
    """Not the locks of a card, which are there once and for all."""
    return tuple(sorted(path.name for path in (folder / "TMPDIR").iterdir() if path.suffix != ".lock"))


def _parts(folder: Path) -> int:
    return sum(1 for path in folder.rglob(".*") if path.is_file())
