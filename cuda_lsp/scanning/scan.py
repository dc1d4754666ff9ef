"""The scan: files are listed and kernels are looked at in processes of their own, each with a limit on its time."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from attrs import evolve, frozen

from agent.execution.process import ChildCancelled, ChildDied, ChildTimeout
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.scanning.kernel import AGAIN
from cuda_lsp.scanning.values import Cause, ListedFile, Scanned
from cuda_lsp.worker.asked import Options, Task
from cuda_lsp.worker.messages import Ended

STARTING = 30.0
"""Seconds beyond a kernel's own limit after which its process is ended: starting and reading are in them."""


@frozen
class Limits:
    """``ends``: by the monotonic clock, when the scan stops; ``seconds`` are for one kernel; ``jobs`` at a time."""

    ends: float
    seconds: float
    jobs: int


@frozen
class Progress:
    """``done`` of ``total`` kernels that are known by now; ``name`` was looked at last."""

    done: int
    total: int
    name: str


Found = ListedFile | Scanned | Progress


def scan(
    paths: Iterable[str], options: Options, limits: Limits, stopped: Callable[[], bool], pool: Pool
) -> Iterator[Found]:
    """Each file once, when its kernels are known, and each kernel once, when it was looked at or will not be.

    Files come first, so that a scan which ends early can say what it did not reach. Paths stay as they were given.
    """
    run = _Run(options, limits, stopped, pool)
    with ThreadPoolExecutor(limits.jobs) as threads:
        waiting: list[tuple[Scanned, int]] = []
        for listing in as_completed([threads.submit(run.file, path) for path in paths]):
            one = listing.result()
            yield one
            waiting += [(kernel, index) for index, kernel in enumerate(one.kernels)]
        # those first that their own file launches: the others seldom have a workload, and time may run out
        waiting.sort(key=lambda pair: (not pair[0].launches, pair[0].path))
        yield Progress(0, len(waiting), "")
        for done, looked in enumerate(as_completed([threads.submit(run.kernel, *pair) for pair in waiting]), 1):
            found = looked.result()
            yield found
            yield Progress(done, len(waiting), found.kernel)


@frozen
class _Run:
    options: Options
    limits: Limits
    stopped: Callable[[], bool]
    pool: Pool

    def file(self, path: str) -> ListedFile:
        answer = self._ask(path, "", self.limits.seconds + STARTING)
        if isinstance(answer, Ended) and answer.listed is not None:
            kernels = tuple(evolve(one, path=path) for one in answer.listed.kernels)
            return ListedFile(path, kernels)
        cause, message = _trouble(answer)
        if cause is Cause.TIME:
            message = f"reading it took more than {self.limits.seconds:g} s; exclude it, or raise --kernel-seconds"
        return ListedFile(path, problem=message.removeprefix(os.path.abspath(path)).strip())  # noqa: PTH100

    def kernel(self, one: Scanned, index: int) -> Scanned:
        if one.cause is not Cause.LEFT:
            return one
        answer = self._ask(one.path, str(index), self.limits.seconds + STARTING)
        if isinstance(answer, Ended) and answer.scanned is not None:
            return evolve(answer.scanned, path=one.path)
        cause, message = _trouble(answer)
        if cause is Cause.TIME:
            message = f"took more than {self.limits.seconds:g} s; {AGAIN}"
        return one if cause is Cause.LEFT else evolve(one, cause=cause, message=message)

    def _ask(self, path: str, kernel: str, seconds: float) -> Ended | Exception:
        """The answer of a process; ChildCancelled where the scan is over, ChildTimeout where this took too long."""
        ends = time.monotonic() + seconds
        task = Task("scan", os.path.abspath(path), b"", kernel, self.options)  # noqa: PTH100 (links stay links)
        try:
            if self._over():
                raise ChildCancelled
            return self.pool.run(task, lambda message: None, lambda: self._over() or time.monotonic() > ends)
        except ChildCancelled as cancelled:
            return cancelled if self._over() else ChildTimeout()
        except (ChildTimeout, ChildDied) as error:
            return error

    def _over(self) -> bool:
        return self.stopped() or time.monotonic() > self.limits.ends


def _trouble(answer: Ended | Exception) -> tuple[Cause, str]:
    match answer:
        case ChildCancelled():
            return Cause.LEFT, "the scan ended before it was read"
        case ChildTimeout():
            return Cause.TIME, ""
        case ChildDied():
            return Cause.FAULT, f"the process that looked at it ended ({answer}), most likely for want of memory"
        case Ended(reason="failed"):
            return Cause.STATED, answer.message
        case _:
            return Cause.FAULT, answer.message if isinstance(answer, Ended) else str(answer)
