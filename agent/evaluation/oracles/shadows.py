"""The float64 shadow of the emulator as an oracle: for originals that cannot be promoted, and to check those that can.

It needs no other source: the compiled original runs with float64 beside every number (``docs/emulator.md``). Lanes that
the shadow marks (a branch parted, bits were lost) are as the original has them.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from attrs import frozen

from agent.evaluation import runs
from agent.evaluation.comparators import Expected
from agent.evaluation.runs import PRIORS, Blocks, Contents
from agent.evaluation.setting import Setting, checker
from agent.evaluation.values import EPSILON, Floats, Mask, lane_bytes, to_floats
from agent.execution.compiler.result import Build
from agent.execution.device import Answer, Bytes
from agent.workload.dtypes import base

SECONDS = 10.0
"""A run with its shadow that takes longer is left out: that case is judged without an oracle."""

CHECK_SECONDS = 3.0
"""The same, where it only checks the promoted original: one that takes longer is believed."""

MOST_ON_A_CARD = 1 << 22
"""Bytes of all buffers: on a card larger sizes run in no time, and would only wait for the emulator in vain."""

MOST_UNKNOWN = 1 / 4
"""Where more lanes than this are marked, the shadow is no oracle for the output."""

_STRAYS = 0.01
"""This part of the lanes may be anywhere: a branch may go another way in one of two oracles."""

_SHADOWED = ("f16", "bf16", "f32")

Places = npt.NDArray[np.int64]


@frozen
class Wide:
    """An output without rounding, lane by lane; ``known`` marks lanes that the shadow could follow, ``flags`` says why
    not (1: a branch parted, 2: bits were lost)."""

    value: Floats
    flags: Bytes

    @property
    def known(self) -> Mask:
        return np.asarray(self.flags == 0)


def shadowed(
    setting: Setting, build: Build, before: Contents, blocks: Blocks | None = None, seconds: float = SECONDS
) -> Answer | None:
    """The original in the emulator with its shadow, or None where that did not end well in ``seconds``."""
    if not setting.device.emulated and sum(buffer.nbytes for buffer in before.bound.buffers) > MOST_ON_A_CARD:
        return None
    answer = runs.run(
        setting, build, before, prior=PRIORS[0], blocks=blocks, seconds=seconds, device=checker(setting), shadow=True
    )
    return answer if answer.status == "ok" and answer.shadows is not None else None


def wide_of(answer: Answer, name: str, dtype: str, at: Places | None = None) -> Wide | None:
    """What output ``name`` would hold without rounding, ``at`` these lanes or at all; None for a type that has no
    shadow."""
    kind = base(dtype)[0]
    if kind not in _SHADOWED or answer.shadows is None:
        return None
    own = own_of(answer, name, dtype, at)
    found = answer.shadows.outputs.get(name)
    if found is None:
        return Wide(own, np.zeros(len(own), np.uint8))
    value, flags = found.numbers(kind, own, at)
    return Wide(value, flags)


def own_of(answer: Answer, name: str, dtype: str, at: Places | None = None) -> Floats:
    """The output as the program left it, ``at`` these lanes or at all."""
    data = answer.outputs[name]
    if at is not None:
        data = np.ascontiguousarray(data.reshape(-1, lane_bytes(dtype))[at]).reshape(-1)
    return to_floats(data, dtype)


def as_oracle(
    answer: Answer, name: str, dtype: str, original: Bytes, lanes: Mask, at: Places | None = None
) -> Wide | None:
    """The truth about the ``lanes`` that count: the original's own value where the shadow could not follow. None where
    it could follow too few. ``original`` and ``lanes`` are those ``at`` these places, where only some are held."""
    wide = wide_of(answer, name, dtype, at)
    if wide is None or not lanes.any():
        return None
    if (~wide.known & lanes).sum() > MOST_UNKNOWN * lanes.sum():
        return None
    return Wide(np.where(wide.known, wide.value, to_floats(original, dtype)), wide.flags)


def disagreement(answer: Answer, expected: Mapping[str, Expected]) -> str:
    """The first output of which the promoted original and the shadow say different things, in words; empty where they
    agree: within half of the original's own error and two units in the last place, in the root mean square."""
    for name, item in expected.items():
        wide = wide_of(answer, name, item.dtype) if item.oracle is not None else None
        if wide is None or item.oracle is None:
            continue
        own = to_floats(item.original, item.dtype)
        lanes = item.written & wide.known & np.isfinite(wide.value) & np.isfinite(item.oracle) & np.isfinite(own)
        if not lanes.any():
            continue
        apart, error = np.abs(item.oracle - wide.value)[lanes], np.abs(item.oracle - own)[lanes]
        kept = np.sort(apart)[: max(1, int(len(apart) * (1 - _STRAYS)))]
        unit = EPSILON[base(item.dtype)[0]] * _rms(item.oracle[lanes])
        if _rms(kept) > 0.5 * _rms(error) + 2 * unit:
            return f"{name}: {_rms(kept):.1e} apart in the root mean square"
    return ""


def _rms(values: Floats) -> float:
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.square(values).mean())) if len(values) else 0.0
