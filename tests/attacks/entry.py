"""What an attack and a control are made of, and how they are judged: by all gates, in full depth, in the emulator."""

from collections.abc import Callable
from functools import cache

from attrs import evolve, field, frozen

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.verdict import Verdict
from agent.execution.compiler.result import Options
from agent.execution.gpu import Gpu
from agent.execution.targets import find_target
from agent.workload.plan import Plan
from agent.workload.program import Program
from tests.attacks.originals import ORIGINALS
from tests.evaluation.kernels import original, rewrite, setting

Change = tuple[str, str]


@frozen
class Attack:
    """A wrong rewrite of ``ORIGINALS[of]``: each change replaces text once. ``rows`` are those of the catalogue in
    ``catalogue.py``. ``gate`` must refuse it, and say one of the ``words``. ``plan`` (a directive's steps) stands in
    place of the original's. ``special``, ``scope`` and ``architectures`` are
    the setting it is judged under. ``small``: its error is at times no more than lost precision. ``card``: state, gate
    and words by which a card, which does not say what was read and written, refuses it as well.

    What correctness sees in a few values may be luck: then numerics looks at it on further contents, and is the one
    that finds it wrong."""

    name: str
    rows: tuple[str, ...]
    of: str
    changes: tuple[Change, ...]
    gate: str
    words: str
    plan: str | Plan = ""
    scope: str = "plan"
    special: str = "report"
    state: str = "wrong"
    architectures: tuple[str, ...] = ()
    small: bool = False
    card: tuple[tuple[str, str, str], ...] = ()

    @property
    def refusals(self) -> set[tuple[str, str]]:
        """The states and gates that refuse it for its reason."""
        found = {(self.state, self.gate)}
        if (self.state, self.gate) == ("wrong", "correctness"):
            found.add(("wrong", "numerics"))
        return found | {("right", "numerics")} if self.small else found

    @property
    def refusals_on_card(self) -> set[tuple[str, str, str]]:
        """With their words. What the emulator would see in the accesses shows on a card first in the outputs."""
        found = {(state, gate, self.words) for state, gate in self.refusals} | set(self.card)
        return found | {("wrong", "correctness", "y[")} if self.gate == "memory" else found


@frozen
class Control:
    """An honest rewrite that must be accepted. ``rows`` of the catalogue say which false alarm it stands for."""

    name: str
    of: str
    changes: tuple[Change, ...] = ()
    plan: str = ""
    rows: tuple[str, ...] = ()
    precision: tuple[str, ...] = ("same", "better", "unchecked")
    lossy: bool = field(default=False)


@cache
def prepared(name: str, special: str = "report", card: Gpu | None = None) -> Prepared:
    """An original, found out about once for all its rewrites: in the emulator, or on a ``card``."""
    program, workload = original(ORIGINALS[name])
    where = setting(depth="full", special=special, options=Options(flags=workload.flags))
    if card is not None:
        options = evolve(where.options, arch=card.arch)
        where = evolve(where, device=card, options=options, target=find_target(card.name))
    found = prepare(program, workload, where)
    assert isinstance(found, Prepared), found
    assert not found.contract.broken, found.contract.summary
    return found


def candidate(entry: Attack | Control) -> Program:
    """The rewrite as a program: the original's text, changed, with the plan that the entry states."""
    text = ORIGINALS[entry.of]
    for old, new in entry.changes:
        assert text.count(old) == 1, (entry.name, old, text.count(old))
        text = text.replace(old, new)
    return rewrite(text, plan_of(entry, text), entry.name)


def plan_of(entry: Attack | Control, text: str) -> Plan:
    """The entry's own plan, read as a directive beside the original's sizes and buffers."""
    if isinstance(entry.plan, Plan):
        return entry.plan
    if not entry.plan:
        return original(ORIGINALS[entry.of])[0].plan
    kept = [line for line in text.splitlines() if not line.startswith(("//   launch", "//   fill", "//   scratch"))]
    last = max(number for number, line in enumerate(kept) if line.startswith("//   "))
    stated = [f"//   {line.strip()}" for line in entry.plan.strip().splitlines()]
    return original("\n".join((*kept[: last + 1], *stated, *kept[last + 1 :])))[0].plan


def verdict(entry: Attack | Control, find: Callable[[str, str], Prepared] = prepared) -> Verdict:
    """Judged by all gates; ``find`` gives the original by name and by what special values are to it."""
    if isinstance(entry, Control):
        return judge(find(entry.of, "report"), candidate(entry), allow_lossy=entry.lossy)
    found = find(entry.of, entry.special)
    found = evolve(found, setting=evolve(found.setting, architectures=entry.architectures))
    return judge(found, candidate(entry), scope=entry.scope)
