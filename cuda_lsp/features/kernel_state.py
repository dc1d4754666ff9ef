"""What can be done to a kernel, is being done to it, or waits to be reviewed: the end of its lens."""

from __future__ import annotations

from collections.abc import Iterator

from agent.source.kernel import Kernel
from cuda_lsp import protocol
from cuda_lsp.jobs import Job
from cuda_lsp.jobs.job import RUNNING, Listened
from cuda_lsp.proposals.proposal import READY, Proposal
from cuda_lsp.reviewing import best
from cuda_lsp.server import CudaServer, Offer
from cuda_lsp.session import Snapshot


def register(server: CudaServer) -> None:
    def offers(snapshot: Snapshot, kernel: Kernel) -> Iterator[Offer]:
        job = server.jobs.active(snapshot.uri, kernel.qualified_name)
        if job is not None:
            yield Offer(f"{job.kind}: {'running' if job.state == RUNNING else 'waiting'} (cancel)", protocol.CANCEL)
        else:
            yield Offer("Suggest ideas", protocol.SUGGEST)
            yield Offer("Optimize", protocol.OPTIMIZE)
        found = best(server.proposals.all(snapshot.uri), kernel.qualified_name)
        if found is not None:
            yield Offer(f"{short(found)}: Review", protocol.REVIEW)

    def heard(job: Job, message: Listened) -> None:
        # The lens does not tell stages: a client that draws it anew for each would flicker.
        if message is None or job.state != RUNNING:
            server.refresh()

    server.lens_sources.append(offers)
    server.jobs.subscribe(heard)


def short(proposal: Proposal) -> str:
    """``verified, est. 1.33x on H200, not measured``."""
    if proposal.state != READY or proposal.verdict is None:
        return proposal.state
    speed, correctness = proposal.verdict.speed, proposal.verdict.correctness
    if speed.ratio is None:
        return f"{correctness.state}, no speed"
    from cuda_lsp.terminal.render import down  # brings in what the server starts without

    if speed.low is None:
        at = f" at {speed.at}" if speed.at else ""
        return f"{correctness.state}, est. {down(speed.ratio)} on {speed.target}{at}, not measured"
    return f"{correctness.state}, {speed.state}, {down(speed.ratio)} on {correctness.device}"
