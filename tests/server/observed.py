"""The real server, with jobs that a script answers and with questions about its inside that no client could ask."""

import sys
from pathlib import Path
from typing import Any

from agent.source.document import parse
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.lines import decoded
from cuda_lsp.proposals.anchors import Anchors
from cuda_lsp.server import CudaServer
from tests.source.same import differences

COMMAND = [
    sys.executable, "-c",
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
    "from tests.server.observed import main; main()",
]  # fmt: skip
TEXT, PROPOSALS, BUSY, TREE = "test.text", "test.proposals", "test.busy", "test.tree"
"""Commands, as pygls makes a class of its own for the parameters of each message of a kind that it does not know."""
TEXT_SECONDS = 0.3
"""An editor that says the wrong thing is not waited for as long as a user's is."""


def main() -> None:
    server = CudaServer(workers=Pool("tests.server.scripted_worker"))
    server.applier._text_seconds = TEXT_SECONDS

    @server.command(TEXT)
    def text(uri: str) -> dict[str, Any] | None:
        """Of a document that is open: its version and all of its text."""
        snapshot = server.session.snapshot(uri)
        return None if snapshot is None else {"version": snapshot.version, "text": decoded(snapshot.lines.text)}

    @server.command(PROPOSALS)
    def proposals(uri: str) -> list[dict[str, Any]]:
        """All of a document, with what they replace."""
        return [
            {"id": p.id, "state": p.state, "kernel": p.kernel, "anchors": p.anchors and written(p.anchors)}
            for p in server.proposals.all(uri)
        ]

    @server.command(BUSY)
    def busy() -> bool:
        """Whether a job waits or runs."""
        return server.jobs.busy

    @server.command(TREE)
    def tree(uri: str) -> str:
        """In what a document as it is known differs from one that is parsed from scratch; empty where in nothing."""
        snapshot = server.session.snapshot(uri)
        return "" if snapshot is None else differences(snapshot.read(), parse(snapshot.text, snapshot.path))

    server.serve()


def written(anchors: Anchors) -> dict[str, Any]:
    """What is replaced by what, in pairs: the kernel first, then the comment above it, launches and functions."""
    pairs = [(anchors.comment, anchors.note), *zip(anchors.sites, anchors.launches, strict=True)]
    pairs += [(one.old, one.new) for one in anchors.definitions]
    return {
        "kernel": (decoded(anchors.old), decoded(anchors.new)),
        "above": decoded(anchors.above),
        "others": [(decoded(old), decoded(new)) for old, new in dict.fromkeys(pairs) if old != new],
    }
