"""What counting says about the rules' findings: a rule reads an index, the emulator ran it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.evaluation.line_costs import is_clean
from agent.source.kernel import Kernel
from cuda_lsp.facts.counts import Counted
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

if TYPE_CHECKING:
    from agent.analysis.rules import Finding

_GLOBAL = frozenset(("M1", "M2", "M3"))
_SHARED = frozenset(("S1", "S2"))
FORETELL = _GLOBAL | _SHARED
"""Rules that foretell what is counted: sectors of global memory, passes over shared memory."""


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
    number = snapshot.document.line(finding.span.start) - snapshot.document.line(kernel.span.start) + counted.first
    return is_clean(counted.counts, number, finding.rule in _SHARED)
