"""A scan that ends early: what it has is told, and what it did not reach."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import evolve

from agent.execution.process import ChildCancelled, ChildDied
from agent.execution.targets import find_target
from agent.source.document import parse
from agent.workload.settings import Settings
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.scanning.kernel import Asked, listed, scanned
from cuda_lsp.scanning.report import Report, report
from cuda_lsp.scanning.scan import Limits, scan
from cuda_lsp.scanning.values import Cause, Cost, ListedFile, Scanned
from cuda_lsp.settings import Settings as HintSettings
from cuda_lsp.terminal.scan.page import page
from cuda_lsp.worker.asked import Options, Task
from cuda_lsp.worker.messages import Ended

COST = Cost(2e-3, 1e-3, "memory floor", 1e-3, 0.0, "", "latency", {"latency": 2e-3}, "", 1, 32, 0.5, "so")

ENDLESS = """\
__global__ void endless(float* x) { while (x[threadIdx.x] < 1e30f) x[threadIdx.x] *= 1.0f; }
int main() { float* x; cudaMalloc(&x, 1024); cudaMemset(x, 0, 1024); endless<<<1, 256>>>(x); return 0; }
"""


class Stuck(Pool):
    """Files have three kernels each: the first is found at once, the second ends its process, the third never ends."""

    def run(self, task: Task, tell: Callable[[Any], None], cancelled: Callable[[], bool]) -> Ended:
        kernels = tuple(Scanned(task.path, f"k{n}", n + 1, "", cause=Cause.LEFT, message="late") for n in range(3))
        if not task.kernel:
            return Ended("done", "", listed=ListedFile(task.path, kernels))
        if task.kernel == "0":
            return Ended("done", "", scanned=evolve(kernels[0], cause=None, message="", cost=COST))
        if task.kernel == "1":
            raise ChildDied("it was ended by SIGKILL")
        while not cancelled():
            time.sleep(0.01)
        raise ChildCancelled


def told(limits: Limits, enough: Callable[[Scanned], bool] = lambda one: False) -> Report:
    """What a scan of two files says that is asked to stop once a kernel is ``enough``."""
    kernels: list[Scanned] = []
    stop = threading.Event()
    for one in scan(["a.cu", "b.cu"], Options(), limits, stop.is_set, Stuck()):
        if isinstance(one, Scanned):
            kernels.append(one)
            if enough(one):
                stop.set()
    return report("H200", ["."], 2, kernels, (), {}, "the time ended")


def outcome(found: Report) -> dict[tuple[str, str], str]:
    pairs = {(one.scanned.path, one.scanned.kernel): "estimated" for one in found.ranked}
    return pairs | {(one.path, one.kernel): group.cause.name for group in found.groups for one in group.kernels}


EACH = {
    **{(file, "k0"): "estimated" for file in ("a.cu", "b.cu")},
    **{(file, "k1"): "FAULT" for file in ("a.cu", "b.cu")},
}


def test_when_the_time_of_the_scan_ends_the_rest_is_not_reached() -> None:
    found = told(Limits(time.monotonic() + 2, 300, 2))
    assert outcome(found) == {**EACH, ("a.cu", "k2"): "LEFT", ("b.cu", "k2"): "LEFT"}
    assert "Not all of it" in page(found) and "the time ended" in page(found)


def test_a_request_to_stop_ends_what_is_under_way() -> None:
    found = told(Limits(time.monotonic() + 300, 300, 1), lambda one: one.cause is Cause.FAULT)
    left = [name for name, state in outcome(found).items() if state == "LEFT"]
    assert left and all(state in ("estimated", "FAULT", "LEFT") for state in outcome(found).values())


def test_a_kernel_that_takes_too_long_costs_its_own_time_only(monkeypatch: Any) -> None:
    monkeypatch.setattr("cuda_lsp.scanning.scan.STARTING", 0.5)
    found = told(Limits(time.monotonic() + 300, 0.5, 2))
    assert outcome(found) == {**EACH, ("a.cu", "k2"): "TIME", ("b.cu", "k2"): "TIME"}
    assert all("--kernel-seconds" in one.message for group in found.groups if group.cause is Cause.TIME
               for one in group.kernels)  # fmt: skip


def test_what_had_to_end_is_no_fault_of_the_scan() -> None:
    found = told(Limits(time.monotonic() + 2, 300, 2))
    died = next(group for group in found.groups if group.cause is Cause.FAULT)
    assert "SIGKILL" in died.words and "memory" in died.words


def test_a_kernel_without_end_is_given_up(tmp_path: Path) -> None:
    document = parse(ENDLESS.encode(), str(tmp_path / "endless.cu"))
    asked = Asked(find_target("H200"), 1.0, (), Settings(), HintSettings())
    found = scanned(listed(document)[0], document, document.kernels[0], asked)
    assert found.cause is Cause.TIME and "more than" in found.message and found.workload
