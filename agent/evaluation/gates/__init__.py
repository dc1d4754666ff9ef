"""One file per gate, cheap to dear; each names the cheat or fault that it answers."""

import importlib
import pkgutil

from agent.evaluation.trial import REGISTERED, Gate


def gates() -> tuple[Gate, ...]:
    """All gates in order. A gate is found by being a module of this package; nobody keeps a list."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(REGISTERED.values(), key=lambda gate: (gate.order, gate.name)))
