"""What counting says about the rules' findings: a rule reads an index, the emulator ran it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.evaluation.line_costs import CountedLine, LineCounts
from agent.source.kernel import Kernel
from cuda_lsp.facts.counts import Counted
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

if TYPE_CHECKING:  # the rules take long to import, and the server's start must not wait for them
    from agent.analysis.rules import Finding
    from agent.analysis.rules.counted import Counted as Told
    from agent.analysis.rules.counted import Executed

FORETELL = frozenset(("M1", "M2", "M3", "M4", "S1", "S2", "R1"))
"""Rules that foretell what is counted of a line: sectors of global memory, passes over shared memory, local memory."""


def upheld(server: CudaServer, snapshot: Snapshot, kernel: Kernel, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that counting does not contradict."""
    if all(finding.rule not in FORETELL for finding in findings):
        return list(findings)
    known = server.counts.of(snapshot, kernel)
    if known is None or not known[1]:
        return list(findings)
    return [finding for finding in findings if not _contradicted(known[0], snapshot, kernel, finding)]


def _contradicted(counted: Counted, snapshot: Snapshot, kernel: Kernel, finding: Finding) -> bool:
    if counted.counts is None or counted.counts.made_up or finding.rule not in FORETELL:
        return False  # numbers that were made up say nothing against a rule
    from agent.analysis.rules.counted import decide

    number = snapshot.document.line(finding.span.start) - snapshot.document.line(kernel.span.start) + counted.first
    return decide(finding.rule, _told(counted.counts, number)) is False


def _told(counts: LineCounts, number: int) -> Told:
    """What was counted, as the rules' deciders take it."""
    from agent.analysis.rules.counted import Counted as Told

    every = {line.number: _executed(line) for line in counts.lines}
    return Told((every[number],) if number in every else (), tuple(every.values()))


def _executed(line: CountedLine) -> Executed:
    from agent.analysis.rules.counted import Executed

    return Executed(
        warps=line.instructions,
        lanes=line.lanes,
        requests=line.requests,
        sectors=line.sectors,
        ideal_sectors=line.ideal_sectors,
        shared=line.shared_requests,
        passes=line.passes,
        ideal_passes=line.shared_requests * line.ideal_passes,
        local=line.local_requests,
        atomics=line.atomics,
    )
