"""What a card can do at most, measured once for each card and driver and kept on disk."""

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from attrs import asdict, evolve

from agent.execution.children.gpu_messages import Card
from agent.execution.children.timing_messages import Calibrate, Calibrated
from agent.execution.compiler import cache
from agent.execution.compiler.result import CompileFailure
from agent.execution.gpu.support import support
from agent.execution.nvml import watch
from agent.execution.timing import Figures

_SCHEMA = 1
"""Part of each file's name: raise it when what is measured changes."""


def figures(card: Card, arch: str, measure: Callable[[Calibrate], Calibrated]) -> Figures | str:
    """The card's figures, or why there are none. ``measure`` asks a runner."""
    built = support(arch)
    if isinstance(built, CompileFailure):
        return f"our own kernels do not compile: {built.message}"
    known = _identity(card)
    path = _path(known)
    kept = _read(path, known)
    if kept is not None:
        return kept
    found = measure(Calibrate(built.cubin))
    if found.problem:
        return f"the card could not be measured: {found.problem}"
    made = evolve(known, read=found.read, write=found.write, copy=found.copy, l2=found.l2, flush=found.flush)
    with contextlib.suppress(OSError, RuntimeError):  # no home, no room: measured again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(made)), encoding="utf-8")
    return made


def _identity(card: Card) -> Figures:
    """Which card and driver; without NVML the address on the bus has to do."""
    watching = watch(card.address)
    if isinstance(watching, str):
        return Figures(card.name, card.address, f"CUDA {card.driver}", 0.0, 0.0, 0.0, 0, 0)
    return Figures(card.name, watching.uuid or card.address, watching.driver, 0.0, 0.0, 0.0, 0, 0)


def _path(known: Figures) -> Path:
    name = re.sub(r"[^0-9A-Za-z.-]+", "-", f"{known.card}-{known.uuid}-{known.driver}")
    return cache.folder().parent / "cards" / f"{name}-{_SCHEMA}.json"


def _read(path: Path, known: Figures) -> Figures | None:
    with contextlib.suppress(OSError, RuntimeError, ValueError, TypeError):
        kept = Figures(**json.loads(path.read_text(encoding="utf-8")))
        same = (kept.card, kept.uuid, kept.driver) == (known.card, known.uuid, known.driver)
        if same and min(kept.read, kept.write, kept.copy, kept.flush) > 0:
            return kept
    return None
