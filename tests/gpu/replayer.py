"""A process for a profiler to look at: each launch of some packs, once, and no other kernel.

``python -m tests.gpu.replayer FILE...``. Buffers are laid out and steps made by the functions of the product's own
runner, here in one process, as a profiler loses what a process has not told it when that is killed. Launches follow one
another in the order of the files and of their steps, so that the n-th that the profiler sees is the n-th of these.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.execution.children import gpu_messages as say
from agent.execution.children import runner
from agent.execution.device import Request
from agent.execution.gpu.jobs import contents, make_job
from tests.gpu import packs


class _Pieces:
    """What stands for a conversation: only the contents of buffers come out of it."""

    def __init__(self, request: Request) -> None:
        self._chunks: Iterator[say.Chunk] = (chunk for image in request.images for chunk in contents(image))

    def receive(self, *_: type[Any]) -> say.Chunk:
        return next(self._chunks)


def main(paths: list[str]) -> None:
    from cupy.cuda import driver, runtime

    memory = runner.Memory()
    for path in paths:
        problem = replayed(driver, runtime, memory, packs.read(Path(path)).request())
        print(path, problem or "ran", file=sys.stderr)


def replayed(driver: Any, runtime: Any, memory: runner.Memory, request: Request) -> str:
    """Run one; why it could not be, or nothing."""
    job = make_job(request, exact=True)
    prepared = runner._prepare(driver, runtime, job, memory, _Pieces(request))  # type: ignore[arg-type]
    if prepared.problem:
        return prepared.problem
    ran = runner._run(driver, runtime, say.Card("", 0, 0, 0, 0), job, memory)
    return f"{ran.kind}: {ran.message}" if ran.kind else ""


if __name__ == "__main__":
    main(sys.argv[1:])
