"""Whatever a card has: it is said, with what to do; the job after it is judged as ever, by the same worker."""

import time
from pathlib import Path

import pytest
from attrs import evolve

from agent.source.document import parse
from cuda_lsp.worker.asked import Options
from cuda_lsp.worker.messages import Ended
from tests.server.test_jobs import Loop, Text

TEXT = """
// cuda-lsp: workload
//   size     n = LENGTH
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""

SAID: dict[str, tuple[str, tuple[str, ...]]] = {
    "killed": ("undecided", ("two processes that ran it were killed by somebody: it was ended by SIGKILL", "again")),
    "crashed": ("wrong", ("crashed: two processes that ran it died: it was ended by SIGSEGV",)),
    "endless": ("undecided", ("the run did not end within", "its process was killed", "the original ends after")),
    "memory": ("undecided", ("the card has not enough memory for", "try smaller sizes")),
    "address": ("wrong", ("illegal address in scale",)),
    "misaligned": ("wrong", ("misaligned access in scale",)),
    "driver": ("undecided", ("driver and CUDA libraries do not fit together: update the driver", "DRIVER_MISMATCH")),
    "gone": ("undecided", ("does not run any more what it ran before", "the card is gone", "dmesg", "Run it again")),
    "small": ("right", ()),
}  # fmt: skip
"""By illness: what the job ends with, and what a user reads."""


def queued(loop: Loop, folder: Path, illness: str, length: int = 1000) -> str:
    text = TEXT.replace("LENGTH", str(length))
    path = folder / f"{illness}.cu"
    path.write_text(text)
    changed = text.replace("2.0f * x[i]", "x[i] + x[i]")
    return loop.jobs.start("verify", Text(path.as_uri(), parse(changed.encode(), str(path))), "scale",
                           Options(device="gpu", seconds=120.0))  # fmt: skip


def ended(loop: Loop, job: str) -> Ended:
    found = loop.jobs.get(job)
    assert found is not None and isinstance(found.ended, Ended), found and found.message
    return found.ended


def test_each_illness_is_said_and_the_next_verdict_is_right(tmp_path: Path) -> None:
    loop = Loop(limit=1, module="tests.server.ailing_worker")
    try:
        jobs = {name: queued(loop, tmp_path, name, 400_000 if name == "small" else 1000) for name in SAID}
        well = queued(loop, tmp_path, "well")
        begun = time.monotonic()
        loop.until(lambda: all(loop.state(job) not in ("queued", "running") for job in (*jobs.values(), well)), 600)
        found = {name: ended(loop, job) for name, job in jobs.items()}
        assert ended(loop, well).reason == "right", ended(loop, well).message
        workers = len(loop.pool._all)
    finally:
        loop.jobs.close()
    assert workers == 1, "one worker lived through all of it"
    for name, (reason, words) in SAID.items():
        told = found[name]
        assert told.reason == reason, (name, told.message)
        assert not [word for word in words if word not in told.message], (name, told.message)
        assert "Traceback" not in told.message and time.monotonic() > begun
    unchecked = "\n".join(found["small"].lines)
    assert "the original does not run there: the card has not enough memory for" in unchecked, unchecked


def test_what_is_too_large_at_any_size_is_said_before_a_verdict(tmp_path: Path) -> None:
    """A buffer of fixed length that the card has no room for."""
    loop = Loop(limit=1, module="tests.server.ailing_worker")
    text = TEXT.replace("LENGTH", "1000").replace("f32[n] in", "f32[1000000] in")
    path = tmp_path / "small.cu"
    path.write_text(text)
    changed = Text(path.as_uri(), parse(text.replace("2.0f * x[i]", "x[i] + x[i]").encode(), str(path)))
    try:
        job = loop.jobs.start("verify", changed, "scale", evolve(Options(), device="gpu", seconds=120.0))
        well = queued(loop, tmp_path, "well")
        loop.ended(job, well)
        failed = loop.jobs.get(job)
        assert failed is not None and failed.state == "failed"
        assert "the card has not enough memory for" in failed.message and "try smaller sizes" in failed.message
        assert ended(loop, well).reason == "right"
    finally:
        loop.jobs.close()


@pytest.mark.parametrize("name", SAID)
def test_a_message_says_what_and_what_to_do_or_whose_fault_it_is(name: str) -> None:
    """So that nobody adds an illness without words."""
    assert name == "small" or SAID[name][1]
