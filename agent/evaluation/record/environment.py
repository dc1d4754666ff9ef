"""Where a verdict was found: device, compilers, driver and packages. Never a key, a variable or a host's name."""

import functools
import platform

import numpy as np

from agent.evaluation.prepare import Prepared
from agent.evaluation.record.form import Card, Environment
from agent.evaluation.verdict import Verdict
from agent.execution.compiler.flags import nvrtc_options, translate
from agent.execution.machine import capabilities
from agent.execution.timing import Figures, Timer

_PLACES = ("CUDA headers",)
"""What the doctor describes by where it is."""


def environment(prepared: Prepared, verdict: Verdict) -> Environment:
    """This machine. Asks compilers and driver for their versions, which takes a second."""
    options = prepared.setting.options
    return Environment(
        device=prepared.setting.device.name,
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        numpy=np.__version__,
        compiler=prepared.build.compiler,
        options=nvrtc_options(options, translate(options.flags).passed),
        machine=dict(_machine()),
        card=_card(prepared, verdict),
    )


@functools.cache
def _machine() -> tuple[tuple[str, str], ...]:
    """What the doctor finds, asked once."""
    return tuple((one.name, one.detail) for one in capabilities() if one.present and one.name not in _PLACES)


def _card(prepared: Prepared, verdict: Verdict) -> Card | None:
    """Peaks where something was timed: they were measured for that."""
    timer = prepared.setting.device
    if verdict.evidence.timing is None or not isinstance(timer, Timer):
        return None
    found = timer.figures()
    if not isinstance(found, Figures):
        return None
    return Card(found.card, found.uuid, found.driver, found.read, found.write, found.copy, found.l2, found.flush)
