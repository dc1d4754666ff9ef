"""Mechanical fixes: which there are, and writing one once it is proved.

A fix inside a kernel is compiled and goes through the gates before it is written (``worker/tasks/fix.py``). What stands
outside of one is code of the host, which nobody but the user runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from agent.source.edits import Edit, reanchor
from agent.source.kernel import Kernel
from agent.source.span import Span
from cuda_lsp.jobs import Job
from cuda_lsp.putting import choose
from cuda_lsp.ruling import selection
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot, around_kernels, surroundings
from cuda_lsp.upheld import upheld
from cuda_lsp.worker.asked import Change, Written

if TYPE_CHECKING:
    from agent.analysis.rules import Finding

KIND = "fix"
_PROVED = ("right", "mended")
_AGAINST = ("wrong", "less precise")


def careful(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> tuple[Finding, ...]:
    """The findings in their places now, with their repairs: those that moved along have none."""
    from agent.analysis.rules import check

    return check(snapshot.document, kernel, selection=selection(server.session.ruling(snapshot.uri)))


def is_provable(kernel: Kernel, finding: Finding) -> bool:
    """Whether a finding's repair changes its kernel and nothing else, so that it can be run beside the original."""
    edits = finding.repair.edits if finding.repair else ()
    return bool(edits) and all(_inside(edit.span, kernel) for edit in edits)


def _inside(span: Span, kernel: Kernel) -> bool:
    return kernel.span.start <= span.start and span.end <= kernel.span.end


def change_of(title: str, edits: Sequence[Edit]) -> Change:
    written = (Written(edit.span.start, edit.span.end, edit.text.decode()) for edit in edits)
    return Change(title, tuple(written))


def safe_change(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> Change | None:
    """Every change of one kernel that anybody would make, as one; None where there is none."""
    edits: list[Edit] = []
    mended: list[Finding] = []
    for finding in upheld(server, snapshot, kernel, careful(server, snapshot, kernel)):
        if finding.repair is None or not finding.repair.sure or not is_provable(kernel, finding):
            continue
        if not any(_overlap(new.span, old.span) for new in finding.repair.edits for old in edits):
            edits += finding.repair.edits
            mended.append(finding)
    if not edits:
        return None
    return change_of(_title(mended), edits)


def _title(mended: Sequence[Finding]) -> str:
    (first, *others) = mended
    assert first.repair is not None
    rules = ", ".join(dict.fromkeys(one.rule for one in mended))
    return f"{len(mended)} fixes ({rules})" if others else first.repair.title


def _overlap(one: Span, other: Span) -> bool:
    """Two insertions at one place count: which comes first would be chance."""
    return (one.start < other.end and other.start < one.end) or one.start == other.start


async def finish(server: CudaServer, job: Job) -> None:
    """Write what a job proved, and say so; ask where nothing could be said of it; else say what is against it."""
    assert job.ended is not None and job.options.change is not None
    told = f"{job.kernel}: {job.options.change.title}"
    if job.ended.reason in _PROVED:
        await _write(server, job, f"{told}: written. {job.ended.message}")
    elif job.ended.reason in _AGAINST:
        server.say(f"{told}: not written. {job.ended.message}")
    else:

        async def anyway() -> None:
            await _write(server, job, f"{told}: written, not proved")

        async def leave() -> None:
            return None

        text = f"{told}: not written, as it could not be proved. {job.ended.message}"
        await choose(server, text, {"Write it unproved": anyway, "Leave it": leave})


async def _write(server: CudaServer, job: Job, text: str) -> None:
    assert job.options.change is not None
    snapshot = server.session.snapshot(job.uri)
    edits = _moved(job, snapshot) if snapshot is not None else None
    if snapshot is None or edits is None:
        server.say(f"{job.kernel}: {job.options.change.title}: the file was edited or closed meanwhile; not written")
        return
    applied = await server.applier.apply(snapshot, edits, f"cuda-lsp: {job.options.change.title}")
    told = text if applied.ok else f"{job.kernel}: {job.options.change.title}: {applied.message}"
    server.say(told, types.MessageType.Info if applied.ok else types.MessageType.Warning)


def _moved(job: Job, snapshot: Snapshot) -> tuple[Edit, ...] | None:
    """The edits where their kernel stands now; None where it, or anything around the kernels, is not what was tried."""
    assert job.options.change is not None
    before = job.document.kernel(job.kernel)
    now = reanchor(before, job.document, snapshot.read())
    if now is None or snapshot.once(surroundings) != around_kernels(job.document):
        return None
    by = now.span.start - before.span.start
    edits = job.options.change.edits
    return tuple(Edit(Span(one.start + by, one.end + by), one.text.encode()) for one in edits)
