"""Which bytes of shared memory have been written."""

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.patterns import Pattern


@define(eq=False)
class Known:
    """One row of marks stands for all blocks until they differ."""

    blocks: int
    nbytes: int
    marks: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.marks = np.zeros((1, max(self.nbytes, 1)), bool)

    def missing(self, pattern: Pattern) -> Array | None:
        """Lanes that access bytes which nobody has written; None where there are none."""
        if pattern.known:
            return None
        first, flat = self._first(pattern), self.marks.reshape(-1)
        known: Array = flat.take(first)
        for k in range(1, pattern.span):
            known = known & flat.take(first + k)
        if known.all():
            # what is known stays known
            pattern.known = True
            return None
        return ~known

    def mark(self, pattern: Pattern) -> None:
        if pattern.known:
            return
        if len(self.marks) == 1 and not pattern.alike:
            self.marks = np.repeat(self.marks, self.blocks, axis=0)
        first, flat = self._first(pattern), self.marks.reshape(-1)
        for k in range(pattern.span):
            flat[first + k] = True
        pattern.known = True

    def _first(self, pattern: Pattern) -> Array:
        """Indices into the flattened marks of each access's first byte."""
        if len(self.marks) == 1:
            return pattern.offsets
        return pattern.elements(1, self.marks.shape[1])
