"""A node of the search tree: the original, or a candidate with its verdict."""

import hashlib

from attrs import frozen

from agent.evaluation.verdict import Verdict
from agent.ideas.idea import Candidate
from agent.workload.program import Program


@frozen
class Node:
    """``identifier`` is ``2.3`` for the third candidate of round two, ``0`` for the original. ``stale`` counts the
    rounds that a slower node has been kept for the sake of the counter that it moved. ``changed_lines`` is what a
    reviewer has to read, launch sites included."""

    identifier: str
    program: Program
    candidate: Candidate | None
    parent: "Node | None"
    verdict: Verdict | None
    stale: int = 0
    changed_lines: int = 0

    @property
    def ratio(self) -> float:
        """Old time / new time as far as known; 1.0 for the original and where there is no figure."""
        if self.verdict is None or self.verdict.speed.ratio is None:
            return 1.0
        return self.verdict.speed.ratio

    @property
    def faster(self) -> bool:
        """Whether it is faster as far as is known: where it was timed, a ratio above one is not enough."""
        if self.verdict is not None and self.verdict.speed.low is not None:
            return self.verdict.speed.state in ("faster", "mixed") and self.ratio > 1.0
        return self.ratio > 1.0

    @property
    def untimed(self) -> bool:
        """On a card, where others are timed, there is only an estimate of this one."""
        return self.verdict is not None and self.verdict.speed.state == "timing not verified"

    @property
    def title(self) -> str:
        return " + ".join(idea.title for idea in self.candidate.ideas) if self.candidate else "original"


def fingerprint(program: Program) -> str:
    """A hash of a program's text and plan: equal programs are judged once."""
    digest = hashlib.sha256(program.document.text)
    digest.update(repr(program.plan).encode())
    return digest.hexdigest()
