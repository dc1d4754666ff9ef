"""A proposal as a value: a rewrite with its verdict, where it belongs, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from cuda_lsp.proposals.anchors import Anchors

if TYPE_CHECKING:  # takes long to import, and the server's start must not wait for it
    from agent.evaluation.verdict import Verdict

RUNNING, READY, OUTDATED = "running", "ready", "outdated"
ACCEPTED, REJECTED, FAILED = "accepted", "rejected", "failed"
SHOWN = 3
"""Proposals that one search may show."""


@frozen
class Proposal:
    """``state`` is one of the six above. ``running`` and ``failed`` have no verdict and no anchors. ``note`` says why a
    proposal is outdated, was rejected or failed. ``by_hand`` says what keeps us from applying it. ``proof`` is the key
    of what the verdict rests on; ``folder`` is where an unsaved document looks for settings; ``created`` is in seconds
    since 1970. ``taken_back``: it was accepted, and that was undone. ``origin`` says whose idea it is where it is not
    the catalogue's. ``job`` is empty for one of an earlier server. ``record`` is the file of the verdict's proof
    record."""

    id: str
    uri: str
    kernel: str
    job: str
    state: str
    title: str
    ideas: tuple[str, ...] = ()
    variant: str = ""
    why: str = ""
    verdict: Verdict | None = None
    anchors: Anchors | None = None
    proof: str = ""
    diff: str = ""
    by_hand: str = ""
    changed_lines: int = 0
    note: str = ""
    folder: str = ""
    created: float = 0.0
    taken_back: bool = False
    origin: str = ""
    record: str = ""

    @property
    def named(self) -> str:
        """The title as users see it."""
        return f"{self.title} ({self.origin})" if self.origin else self.title

    @property
    def open(self) -> bool:
        """Whether it may still be accepted, now or after an undo."""
        return self.state in (READY, OUTDATED)
