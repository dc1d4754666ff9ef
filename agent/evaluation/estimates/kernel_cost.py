"""What the launches of one kernel take at the sizes that its workload states, where running them there takes too long.

No contract is found first: sizes are cut by what the workload says of them, and where the counts do not lie on a line
nothing is claimed.
"""

from collections.abc import Mapping

from attrs import frozen

from agent.evaluation.estimates.counting import count, lines_to
from agent.evaluation.lines.profile import ProfiledLaunch, launches_of, mine_of
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import Rule, bases, declared, loop_sizes
from agent.execution.compiler.result import Build
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.program import Program
from agent.workload.workload import Workload

TRIES = 4
"""Recipes that are followed before it is given up."""


@frozen
class _Stated:
    """As far as the workload states it."""

    base: Mapping[str, int]
    rules: Mapping[str, Rule]


def extrapolated(
    document: Document, kernel: Kernel, workload: Workload, setting: Setting, built: Build, seconds: float
) -> tuple[tuple[ProfiledLaunch, ...], str] | None:
    """The launches of the kernel at the declared sizes, by counts at three smaller ones, and how that was done, in
    words; None where it cannot be. ``seconds`` caps each run. Raises WorkloadError."""
    program = Program(document, workload.plan, kernel.name)
    top = declared(workload)
    rules = {size.name: Rule(size.name, size.multiple, size.minimum) for size in workload.sizes}
    stated = _Stated(next(iter(bases(workload, program)), top), rules)
    recipes = lines_to([top], stated, loop_sizes(workload, program), frozenset(top))
    found = count(program, built, workload, setting, recipes[:TRIES], seconds)
    if isinstance(found, str):
        return None
    mine = mine_of(found, kernel)
    return (launches_of(found, mine, built, setting), found.recipe.note) if mine else None
