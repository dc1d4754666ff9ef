"""Precision: the candidate's error against the original's own, both measured against float64."""

from agent.evaluation.comparators.base import LESS, worst
from agent.evaluation.trial import FAILED, NOT_APPLICABLE, Ruling, Trial, gate, passed


@gate(
    "numerics",
    order=70,
    reason="no loss of precision goes unseen: the budget is four times the original's own error and two units",
    answers="half or tf32 arithmetic inside a float kernel, dropped compensation, unstable one-pass formulas",
)
def numerics(trial: Trial) -> Ruling:
    found = [item for item in trial.comparisons if item.errors is not None]
    if not found:
        return Ruling(NOT_APPLICABLE, "outputs are compared exactly", trial)
    bad = worst(found)
    if bad.grade == LESS:
        if trial.allow_lossy:
            return passed(trial, f"less precise, as allowed: {bad.message}")
        return Ruling(FAILED, f"less precise: {bad.message}", trial, "less")
    peak = max(found, key=lambda item: item.errors.candidate if item.errors else 0.0).errors
    assert peak is not None
    return passed(
        trial,
        f"error {peak.candidate:.1e} of the output's scale, the original's {peak.original:.1e}, "
        f"allowed {peak.limit:.1e}",
    )
