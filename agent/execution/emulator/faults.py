"""Faults seen so far in a run: one entry for each kind and source line, with a count and the first example."""

from collections.abc import Callable

from attrs import define, evolve, field

from agent.execution.device import Fault, Where

MOST_KINDS = 200
MOST_EVENTS = 20_000


class TooManyFaults(Exception):
    """The program has done so much that it must not do that going on shows nothing new."""


@define
class FaultLog:
    """``events`` counts faulting instructions executed (each may stand for many lanes)."""

    entries: dict[tuple[str, str, str, int, bool, int], Fault] = field(factory=dict)
    events: int = 0

    def record(
        self,
        kind: str,
        kernel: str,
        where: Callable[[], Where],
        message: Callable[[], str],
        count: int,
        line: tuple[str, int],
        other: Callable[[], Where] | None = None,
        other_line: int = 0,
        benign: bool = False,
    ) -> None:
        """Add ``count`` occurrences. Raises TooManyFaults when the run had better end here."""
        key = (kind, kernel, *line, benign, other_line)
        known = self.entries.get(key)
        if known is not None:
            self.entries[key] = evolve(known, count=known.count + count)
        else:
            party = other() if other else None
            self.entries[key] = Fault(kind, kernel, where(), message(), party, benign, count)
        self.events += not benign
        if self.events > MOST_EVENTS or len(self.entries) > MOST_KINDS:
            raise TooManyFaults

    def faults(self) -> tuple[Fault, ...]:
        return tuple(self.entries.values())
