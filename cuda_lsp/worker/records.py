"""Proof records of the rewrites that an editor shows, in the user's state folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import platformdirs

from agent.evaluation.record import Unwritable
from agent.search.keeping import Kept
from agent.search.proposal import Proposal

FILES = 64
"""Records kept; those written longest ago go."""


def keep_records(kept: Kept, proposals: Sequence[Proposal]) -> tuple[Mapping[str, str], str]:
    """The files of the proposals' full verdicts by identifier, and what kept them from being written, if anything
    did: a rewrite is shown all the same."""
    folder = Path(platformdirs.user_state_dir("cuda-lsp", appauthor=False)) / "records"
    try:
        written = kept.write(folder, only={proposal.identifier for proposal in proposals})
        _prune(folder)
    except (Unwritable, OSError) as error:
        return {}, str(error)
    return {identifier: str(path) for identifier, path in written}, ""


def _prune(folder: Path) -> None:
    files = list(folder.glob("*.json"))
    for file in sorted(files, key=lambda file: file.stat().st_mtime)[: max(0, len(files) - FILES)]:
        file.unlink(missing_ok=True)
