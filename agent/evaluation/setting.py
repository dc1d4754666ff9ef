"""What a verdict is asked for: where, for which card, how deep, and for how long."""

from collections.abc import Callable

from attrs import field, frozen

from agent.evaluation.draws import fresh_root
from agent.evaluation.oracles.referred import Refers
from agent.execution.compiler.result import Options
from agent.execution.device import Device
from agent.execution.targets import Target

SCREEN = "screen"
FULL = "full"


@frozen
class Setting:
    """``depth``: ``screen`` (for a search: seconds) or ``full`` (for what is shown).

    ``seconds`` caps one verdict, whatever its depth; ``step_cap`` caps one run, in thread-instructions. ``special`` is
    the policy for NaN and infinity in the inputs: ``report`` a difference from the original, or ``refuse`` it.
    ``architectures`` names further ones that the project compiles for. ``secret`` is the root of all that is drawn for
    the original; candidates have their own. ``reference`` is the PyTorch function that the workload names, where the
    user lets it run.
    """

    device: Device
    target: Target
    options: Options
    depth: str = SCREEN
    seconds: float = 300.0
    step_cap: int = 2_000_000_000
    cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)
    special: str = "report"
    architectures: tuple[str, ...] = ()
    secret: str = field(factory=fresh_root, repr=False, eq=False)
    reference: Refers | None = field(default=None, repr=False, eq=False)


def checker(setting: Setting) -> Device:
    """The device that has the checks: the emulator, whatever else there is."""
    if setting.device.emulated:
        return setting.device
    from agent.execution.emulator import Emulator

    return Emulator("auto")
