"""The least time that the bytes of a problem take on a card, from the card's own measured peaks."""

from attrs import frozen

from agent.execution.timing import Figures


@frozen
class Floor:
    """``seconds`` that moving ``nbytes`` takes at ``peak`` bytes a second; ``words`` show the arithmetic."""

    nbytes: float
    peak: float
    words: str

    @property
    def seconds(self) -> float:
        return self.nbytes / self.peak


def floor(needed: float, written: float, figures: Figures) -> Floor:
    """``needed`` bytes cross the card's memory at least once; as many of the ``written`` ones as fit may stay in the
    level-2 cache after the last launch. The peak is the best of reading, writing and copying: they share one bus."""
    stay = min(written, figures.l2)
    moved, peak = max(0.0, needed - stay), max(figures.read, figures.write, figures.copy)
    kept = f" ({needed / 1e6:.2f} MB less {stay / 1e6:.2f} MB that the cache may hold)" if stay else ""
    words = f"{moved / 1e6:.2f} MB{kept} at {peak / 1e9:.0f} GB/s, the best that {figures.card} was measured to do"
    return Floor(moved, peak, f"{words}, take {moved / peak * 1e6:.2f} us")
