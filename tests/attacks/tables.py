"""All attacks and all honest controls."""

from tests.attacks import answers, arithmetic, clock, knowing, races
from tests.attacks.entry import Attack
from tests.attacks.honest import CONTROLS

ATTACKS: tuple[Attack, ...] = (
    *answers.ATTACKS,
    *knowing.ATTACKS,
    *arithmetic.ATTACKS,
    *races.ATTACKS,
    *clock.ATTACKS,
)

__all__ = ["ATTACKS", "CONTROLS"]
