"""What an ``mbarrier`` in shared memory holds, and how arrivals and byte counts end its phases. PTX ISA 9.7.13.15.

The object is one 64-bit word, which PTX keeps opaque: pending arrivals (20 bits), arrivals that the next phase expects
(20), bytes that are still to come (21, signed), the parity of the phase, and a bit that says it was initialised.
"""

import numpy as np
from attrs import evolve, frozen

from agent.execution.emulator.addresses import Array

MOST_ARRIVALS = (1 << 20) - 1
_COUNT = (1 << 20) - 1
_BYTES = (1 << 21) - 1
_PARITY, _VALID = 61, 62


@frozen
class State:
    """``pending`` of ``expected`` arrivals are missing in this phase, and ``nbytes`` bytes."""

    pending: int
    expected: int
    nbytes: int = 0
    parity: int = 0

    @property
    def word(self) -> int:
        flags = self.parity << _PARITY | 1 << _VALID
        return self.pending | self.expected << 20 | (self.nbytes & _BYTES) << 40 | flags

    @property
    def over(self) -> bool:
        """Whether the phase is complete."""
        return self.pending == 0 and self.nbytes == 0

    @property
    def next(self) -> "State":
        """The phase after this one, where this one is complete; else this one."""
        return State(self.expected, self.expected, 0, 1 - self.parity) if self.over else self


def read(word: int) -> State | None:
    """What the word holds; None where no barrier was initialised there."""
    if not word >> _VALID & 1:
        return None
    nbytes = word >> 40 & _BYTES
    signed = nbytes - (1 << 21) if nbytes >> 20 else nbytes
    return State(word & _COUNT, word >> 20 & _COUNT, signed, word >> _PARITY & 1)


def initialised(words: Array) -> Array:
    """Whether there is a barrier, for each word."""
    found: Array = (words >> np.uint64(_VALID) & np.uint64(1)) != 0
    return found


def parity(words: Array) -> Array:
    """The parity of the phase of each word, or of each token that an arrival gave."""
    return (words >> np.uint64(_PARITY) & np.uint64(1)).astype(np.uint32)


def pending(words: Array) -> Array:
    """Arrivals that were pending before the arrival that gave each token."""
    return (words & np.uint64(_COUNT)).astype(np.uint32)


@frozen
class Arrivals:
    """What arrivals of several lanes, one after the other, lead to. ``tokens`` has the word before each; ``ends`` the
    numbers of lanes after which a phase ended; ``taken`` how many lanes' arrivals the barrier had room for."""

    state: State
    tokens: Array
    ends: tuple[int, ...]
    taken: int


def arrive(
    state: State, counts: Array, nbytes: Array | None = None, drop: bool = False, stays: bool = False
) -> Arrivals:
    """``counts`` arrivals of each lane, in order; ``nbytes`` more bytes to come before each lane's, ``drop`` takes them
    off what later phases expect. ``stays`` (``.noComplete``): arrivals that may not end the phase."""
    total = np.cumsum(counts)
    if nbytes is not None or drop or stays or total[-1] > state.pending:
        return _one_by_one(state, counts, nbytes, drop, stays)
    tokens = np.uint64(evolve(state, pending=0).word) | (state.pending - total + counts).astype(np.uint64)
    state = evolve(state, pending=state.pending - int(total[-1]))
    return Arrivals(state.next, tokens, (len(counts),) if state.over else (), len(counts))


def _one_by_one(state: State, counts: Array, nbytes: Array | None, drop: bool, stays: bool) -> Arrivals:
    tokens = np.zeros(len(counts), np.uint64)
    ends: list[int] = []
    for lane, count in enumerate(counts.tolist()):
        if count > state.pending or (stays and count == state.pending):
            return Arrivals(state, tokens, tuple(ends), lane)
        tokens[lane] = state.word
        more = 0 if nbytes is None else int(nbytes[lane])
        state = State(state.pending - count, state.expected - (count if drop else 0), state.nbytes + more, state.parity)
        if state.over:
            state = state.next
            ends.append(lane + 1)
    return Arrivals(state, tokens, tuple(ends), len(counts))


def transfer(state: State, nbytes: int) -> tuple[State, bool]:
    """``nbytes`` more to come (or, negative, fewer); and whether that ended the phase."""
    state = evolve(state, nbytes=state.nbytes + nbytes)
    return state.next, state.over
