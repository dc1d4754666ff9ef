"""All attacks and all honest controls."""

from tests.attacks import answers, arithmetic, clock, hidden, knowing, races
from tests.attacks.entry import Attack
from tests.attacks.honest import CONTROLS

ATTACKS: tuple[Attack, ...] = (
    *answers.ATTACKS,
    *knowing.ATTACKS,
    *arithmetic.ATTACKS,
    *races.ATTACKS,
    *clock.ATTACKS,
    *hidden.ATTACKS,
)

__all__ = ["ATTACKS", "CONTROLS"]
