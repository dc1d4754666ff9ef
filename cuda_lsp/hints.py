"""The findings of the rules, kernel by kernel, kept across edits that cannot change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.source.kernel import Kernel
from cuda_lsp.session import Snapshot

if TYPE_CHECKING:
    from agent.analysis.rules import Finding
    from cuda_lsp.server import CudaServer


def hints_of(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> tuple[Finding, ...]:
    """The findings in one kernel and at its launches."""
    from agent.analysis.rules import check

    return check(snapshot.document, kernel) if server.session.settings.diagnostics else ()
