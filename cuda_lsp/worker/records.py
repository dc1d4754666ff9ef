"""Proof records of what an editor shows, in the user's state folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import platformdirs

from agent.evaluation.judge import Judged
from agent.evaluation.prepare import Prepared
from agent.evaluation.record import Unwritable, record, write
from agent.search.keeping import Kept, file_name
from agent.search.proposal import Proposal
from agent.workload.program import Program

FILES = 64
"""Records kept; those written longest ago go."""


def keep_records(kept: Kept, proposals: Sequence[Proposal]) -> tuple[Mapping[str, str], str]:
    """The files of the proposals' full verdicts by identifier, and what kept them from being written, if anything
    did: a rewrite is shown all the same."""
    try:
        written = kept.write(_folder(), only={proposal.identifier for proposal in proposals})
        _prune()
    except (Unwritable, OSError) as error:
        return {}, str(error)
    return {identifier: str(path) for identifier, path in written}, ""


def keep_record(prepared: Prepared, candidate: Program, judged: Judged, lossy: bool) -> str:
    """A line that says where the record of a change's verdict is, or why there is none."""
    path = _folder() / file_name(prepared, "change", judged)
    try:
        write(record(prepared, candidate, judged, lossy), path)
        _prune()
    except (Unwritable, OSError) as error:
        return str(error)
    return f"proof record: {path}"


def _folder() -> Path:
    return Path(platformdirs.user_state_dir("cuda-lsp", appauthor=False)) / "records"


def _prune() -> None:
    files = list(_folder().glob("*.json"))
    for file in sorted(files, key=lambda file: file.stat().st_mtime)[: max(0, len(files) - FILES)]:
        file.unlink(missing_ok=True)
