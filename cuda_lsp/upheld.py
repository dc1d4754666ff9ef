"""What counting says about the rules' findings: a rule reads an index, the emulator ran it. What the counts contradict
is taken back, and what they show and no rule names is added.

Both only while the counts are of the text as it is: while somebody types in a kernel, nothing that was counted before
is said of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.source.kernel import Kernel
from cuda_lsp.contradicting import FORETELL, contradicts
from cuda_lsp.facts.counts import Counted
from cuda_lsp.ruling import selection
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

if TYPE_CHECKING:  # the rules take long to import, and the server's start must not wait for them
    from agent.analysis.rules import Finding


def upheld(server: CudaServer, snapshot: Snapshot, kernel: Kernel, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that counting does not contradict, and those that are made from the counts, in text order."""
    foretold = any(finding.rule in FORETELL for finding in findings)
    if not foretold and kernel.qualified_name not in server.counts.telling(snapshot):
        return list(findings)  # at every key: whether counts are of this text is found by reading all of it
    known = server.counts.of(snapshot, kernel)
    if known is None or not known[1] or known[0].counts is None:
        return list(findings)
    kept = [one for one in findings if not _contradicted(known[0], snapshot, kernel, one)]
    if not known[0].findings or not server.session.settings.diagnostics:
        return kept
    return sorted((*kept, *_added(server, snapshot, kernel, known[0])), key=lambda one: one.span)


def _contradicted(counted: Counted, snapshot: Snapshot, kernel: Kernel, finding: Finding) -> bool:
    number = snapshot.document.line(finding.span.start) - snapshot.document.line(kernel.span.start) + counted.first
    return counted.counts is not None and contradicts(counted.counts, number, finding.rule)


def _added(server: CudaServer, snapshot: Snapshot, kernel: Kernel, counted: Counted) -> list[Finding]:
    """What was found by counting, where it stands now, by the rules that the user wants."""
    from agent.analysis.rules.from_counts import moved
    from agent.analysis.rules.registry import by_id

    wanted = selection(server.session.ruling(snapshot.uri))
    return [moved(one, kernel.span.start) for one in counted.findings if wanted.admits(by_id()[one.rule])]
