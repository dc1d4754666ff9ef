"""Whether the original computes what the user's PyTorch function does, before anything is held against that."""

import numpy as np
from attrs import frozen

from agent.evaluation import runs
from agent.evaluation.comparators import compare
from agent.evaluation.comparators.base import SAME, Expected
from agent.evaluation.oracles.referred import referred
from agent.evaluation.oracles.truth import EXACT_FAMILY, Bench, Truth, truth
from agent.evaluation.sizes import Sizes
from agent.evaluation.values import from_floats, to_floats
from agent.execution.device import Answer


@frozen
class Doubt:
    """``refuted``: the two differ; otherwise the function gave no answer. ``words`` say so."""

    refuted: bool
    words: str


def doubt(bench: Bench, base: Sizes, families: tuple[str, ...]) -> Doubt | None:
    """What speaks against the function as an oracle. None where its outputs, rounded to the original's types, would
    pass for a rewrite of the same precision, on the first family and on small integers. ``bench`` has the oracle that
    stands where there is no such function: what the original loses is no licence to differ from it."""
    asked, said = bench.setting.reference, bench.workload.reference
    assert asked is not None
    for family in dict.fromkeys((families[0], *(name for name in families if name == EXACT_FAMILY))):
        chosen = runs.case(base, family, runs.draw_seed())
        found = truth(bench, chosen)
        if isinstance(found, Answer):
            continue  # the original's own trouble: it is told where it is looked for
        answer = referred(asked, bench.workload, found.before.bound, found.before.given, bench.setting)
        if isinstance(answer, str):
            return Doubt(False, answer)
        if not answer.outputs:
            names = ", ".join(item.name for item in found.expected if item.kind == "numeric")
            return Doubt(False, f"{said} gives none of the outputs that are floats ({names})")
        words = _apart(found, answer)
        if words:
            return Doubt(True, f"it does not compute what {said} does: {words} ({chosen})")
    return None


def _apart(found: Truth, answer: Answer) -> str:
    """The element that is furthest from what the function says, of the first output that differs."""
    for item in found.expected:
        if item.kind != "numeric" or item.name not in answer.outputs:
            continue
        theirs = answer.outputs[item.name].view(np.float64)
        if compare(item, _rounded(item, theirs)).grade == SAME:
            continue
        ours = to_floats(item.original, item.dtype)
        with np.errstate(invalid="ignore"):
            apart = np.where(item.written, np.nan_to_num(np.abs(ours - theirs), nan=np.inf), 0.0)
        apart[np.isnan(ours) & np.isnan(theirs)] = 0.0
        at = int(np.argmax(apart))
        return f"{item.name}[{at}] is {ours[at]:.9g}, not {theirs[at]:.9g}"
    return ""


def _rounded(item: Expected, values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> "np.ndarray":
    """As a rewrite would have left it: where the original writes nothing, nothing."""
    before = to_floats(item.original, item.dtype)
    return from_floats(np.where(item.written, values, before), item.dtype)
