"""Proposals on disk, one file for each document, in the user's state folder.

A file is written whole and renamed into place, and what another server wrote meanwhile stays in it. What cannot be
read (another version, a damaged file) is as if it were not there. A disk that cannot be written costs the memory across
a restart and nothing else.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cattrs
import platformdirs
from attrs import evolve, frozen, resolve_types

from cuda_lsp.proposals.locking import locked
from cuda_lsp.proposals.proposal import OUTDATED, READY, RUNNING, Proposal

SCHEMA = 2
MOST = 24
"""Proposals kept for one document; the oldest go first."""
FILES = 256
"""Documents remembered; those touched longest ago go first."""


@cache
def _converter() -> cattrs.Converter:
    from agent.evaluation.verdict import Verdict

    resolve_types(Proposal, localns={"Verdict": Verdict})
    converter = cattrs.Converter()
    converter.register_unstructure_hook(bytes, lambda data: data.decode("utf-8", "surrogateescape"))
    converter.register_structure_hook(bytes, lambda text, _: str(text).encode("utf-8", "surrogateescape"))
    converter.register_structure_hook(int | float, lambda value, _: value)
    return converter


def default_folder() -> Path:
    return Path(platformdirs.user_state_dir("cuda-lsp", appauthor=False)) / "proposals"


def bounded(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """The last :data:`MOST`; what was decided goes before what is still open."""
    order = sorted(range(len(proposals)), key=lambda at: (proposals[at].state in (READY, OUTDATED, RUNNING), at))
    dropped = set(order[: max(0, len(proposals) - MOST)])
    return tuple(proposal for at, proposal in enumerate(proposals) if at not in dropped)


class Unwritable(Exception):
    """Nothing can be remembered; the message says why, and what that costs."""


def _merged(there: Sequence[Proposal], before: Sequence[Proposal], after: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """``there`` with the changes from ``before`` to ``after``. What did not change here is as it is there; what went
    here stays where somebody else decided about it."""
    old = {proposal.id: evolve(proposal, job="") for proposal in before}
    changed = {proposal.id: proposal for proposal in after if old.get(proposal.id) != evolve(proposal, job="")}
    gone = set(old) - {proposal.id for proposal in after}
    known = {proposal.id for proposal in there}
    left = [proposal for proposal in there if not (proposal.id in gone and proposal == old[proposal.id])]
    kept = [changed.get(proposal.id, proposal) for proposal in left]
    return (*kept, *(proposal for proposal in changed.values() if proposal.id not in known))


@frozen
class Store:
    folder: Path

    def load(self, uri: str) -> tuple[Proposal, ...]:
        """What is known of a document, oldest first."""
        try:
            told = json.loads(self._file(uri).read_text(encoding="utf-8"))
            if told["schema"] != SCHEMA or told["uri"] != uri:
                return ()
            # the jobs that they are of ended with another server, or are another's
            return tuple(evolve(one, job="") for one in _converter().structure(told["proposals"], list[Proposal]))
        except (OSError, ValueError, KeyError, TypeError, cattrs.errors.BaseValidationError):
            return ()

    def save(self, uri: str, before: Sequence[Proposal], after: Sequence[Proposal]) -> tuple[Proposal, ...]:
        """Change what is remembered of a document as ``before`` was changed to ``after``, and give all that is then
        remembered: other servers of this user may have theirs there. Raises Unwritable."""
        _converter()  # takes a while the first time, and others wait for the lock
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.folder):
                merged = bounded(_merged(self.load(uri), before, after))
                self._write(uri, merged)
        except OSError as error:
            raise Unwritable(
                f"proposals cannot be kept in {self.folder} ({error.strerror or error}): "
                "they are there until the server ends, and gone then"
            ) from error
        return merged

    def _write(self, uri: str, proposals: Sequence[Proposal]) -> None:
        if not proposals:
            self._file(uri).unlink(missing_ok=True)
            return
        _replace(
            self._file(uri), {"schema": SCHEMA, "uri": uri, "proposals": _converter().unstructure(list(proposals))}
        )
        self._prune()

    def _file(self, uri: str) -> Path:
        return self.folder / f"{hashlib.sha256(uri.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"

    def _prune(self) -> None:
        files = list(self.folder.glob("*.json"))
        if len(files) > FILES:
            for file in sorted(files, key=lambda file: file.stat().st_mtime)[: len(files) - FILES]:
                file.unlink(missing_ok=True)


def _replace(file: Path, told: dict[str, Any]) -> None:
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as sink:
            sink.write(json.dumps(told))  # json.dump would take ten times as long
        os.replace(name, file)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise
