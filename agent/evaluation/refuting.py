"""Whether the original computes what the user's PyTorch function does, before anything is held against that."""

import numpy as np
from attrs import evolve, frozen

from agent.evaluation import runs
from agent.evaluation.referred import referred
from agent.evaluation.sizes import Sizes
from agent.evaluation.truth import EXACT_FAMILY, Bench, Truth, truth
from agent.evaluation.values import to_floats
from agent.execution.device import Answer


@frozen
class Doubt:
    """``refuted``: the two differ; otherwise the function gave no answer. ``words`` say so."""

    refuted: bool
    words: str


def doubt(bench: Bench, base: Sizes, families: tuple[str, ...]) -> Doubt | None:
    """What speaks against the function as an oracle: None where it gives the original's outputs, within what rounding
    explains, on the first family and on small integers."""
    asked, said = bench.setting.reference, bench.workload.reference
    assert asked is not None
    referring = evolve(bench, referred=True)
    for family in dict.fromkeys((families[0], *(name for name in families if name == EXACT_FAMILY))):
        chosen = runs.case(base, family, runs.draw_seed())
        found = truth(referring, chosen)
        if isinstance(found, Answer):
            continue  # the original's own trouble: it is told where it is looked for
        answer = referred(asked, bench.workload, found.before.bound, found.before.given, bench.setting.cancelled)
        if isinstance(answer, str):
            return Doubt(False, answer)
        if not answer.outputs:
            return Doubt(False, f"{said} gives none of the outputs that are floats")
        words = _apart(found, answer)
        if words:
            return Doubt(True, f"it does not compute what {said} does: {words} ({chosen})")
    return None


def _apart(found: Truth, answer: Answer) -> str:
    """The element that is furthest from what the function says, of the first output that does not fit."""
    for item in found.expected:
        if item.kind != "numeric" or item.oracle is not None or item.name not in answer.outputs:
            continue
        ours, theirs = to_floats(item.original, item.dtype), answer.outputs[item.name].view(np.float64)
        with np.errstate(invalid="ignore"):
            apart = np.where(item.written, np.nan_to_num(np.abs(ours - theirs), nan=np.inf), 0.0)
        apart[np.isnan(ours) & np.isnan(theirs)] = 0.0
        at = int(np.argmax(apart))
        return f"{item.name}[{at}] is {ours[at]:.9g}, not {theirs[at]:.9g}"
    return ""
