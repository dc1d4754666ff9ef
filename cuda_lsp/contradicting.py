"""Whether what was counted of a line contradicts a rule that foretold it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.evaluation.lines.costs import CountedLine, LineCounts

if TYPE_CHECKING:  # the rules take long to import, and the server's start must not wait for them
    from agent.analysis.rules.counted import Counted as Told
    from agent.analysis.rules.counted import Executed

FORETELL = frozenset(("M1", "M2", "M3", "M4", "S1", "S2", "R1"))
"""Rules that foretell what is counted of a line: sectors of global memory, passes over shared memory, local memory."""


def contradicts(counts: LineCounts, number: int, rule: str) -> bool:
    """Whether the counts of line ``number`` say that a finding of ``rule`` there is wrong. Numbers that were made up
    say nothing against a rule."""
    if counts.made_up or rule not in FORETELL:
        return False
    from agent.analysis.rules.counted import decide

    return decide(rule, _told(counts, number)) is False


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
