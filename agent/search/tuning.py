"""The best nodes of a search once more, with other values for what their ideas leave open."""

from collections.abc import Callable

from attrs import evolve, frozen

from agent.evaluation.estimates.estimate import estimate
from agent.evaluation.prepare import Prepared
from agent.evaluation.verdict import Verdict
from agent.execution.compiler import build
from agent.execution.compiler.result import CompileFailure
from agent.ideas.idea import Candidate, Tunable
from agent.ideas.source import retune
from agent.search.node import Node
from agent.search.run import Run, child_of, machine_key_of, request_for
from agent.search.tuner import Values, best_values
from agent.workload.errors import WorkloadError

Judge = Callable[[Node], Verdict | None]

ATTEMPTS = 3
"""How many of the tuner's best are judged before the node's own values stay: one that is faster may be wrong."""


@frozen
class _Open:
    """A number left open: by the idea of the ``level``-th node from the original on."""

    level: int
    tunable: Tunable
    value: int


def tuned(node: Node, prepared: Prepared, run: Run, judge: Judge) -> Node | None:
    """The node with better values, judged; None where its ideas leave nothing open or nothing better was found.

    On a card each trial is judged and measured; in the emulator trials are compared by estimate, and only the best go
    through the gates.
    """
    open_ = _open(node)
    if not open_ or run.stopped():
        return None
    verdicts: dict[Values, Node] = {}

    def score(values: Values) -> float | None:
        if run.stopped():
            return None
        made = _with(node, open_, values, run)
        if made is None:
            return None
        if prepared.setting.device.emulated:
            return _forecast(made, prepared)
        verdicts[values] = made = evolve(made, verdict=judge(made))
        # an estimate is no better than what was measured, however much it promises
        known = made.verdict is not None and made.verdict.shown and made.untimed <= node.untimed
        return made.ratio if known else None

    start = tuple(one.value for one in open_)
    found = best_values([one.tunable for one in open_], start, node.ratio, score, run.options.trials)
    for values in found[:ATTEMPTS]:
        made = verdicts.get(values) or _with(node, open_, values, run)
        if made is None or machine_key_of(made, run) in run.seen:
            continue
        if made.verdict is None:
            made = evolve(made, verdict=judge(made))
        better = made.ratio > node.ratio and made.untimed <= node.untimed
        if made.verdict is not None and made.verdict.shown and better:
            return made
    return None


def words(node: Node) -> str:
    """The values of a node, for users: ``tile = 32, rows a thread = 4``."""
    return ", ".join(f"{one.tunable.words} = {one.value}" for one in _open(node))


def _open(node: Node) -> list[_Open]:
    found: list[_Open] = []
    for level, one in enumerate(_chain(node)):
        assert one.candidate is not None
        values = dict(one.candidate.values)
        found += [
            _Open(level, tunable, values[tunable.name])
            for tunable in one.candidate.tunables
            if len(tunable.values) > 1 and tunable.name in values
        ]
    return found


def _chain(node: Node) -> list[Node]:
    """From the first idea to the node itself."""
    nodes = [node]
    while nodes[-1].parent is not None and nodes[-1].parent.candidate is not None:
        nodes.append(nodes[-1].parent)
    return nodes[::-1]


def _with(node: Node, open_: list[_Open], values: Values, run: Run) -> Node | None:
    """The same ideas in the same variants, from the original on, with other values."""
    chosen = {(one.level, one.tunable.name): value for one, value in zip(open_, values, strict=True)}
    chain = _chain(node)
    parent = chain[0].parent
    assert parent is not None
    for level, one in enumerate(chain):
        assert one.candidate is not None
        wanted = {name: chosen.get((level, name), value) for name, value in one.candidate.values}
        candidate: Candidate | None = retune(one.candidate, request_for(parent, run), wanted)
        if candidate is None:
            return None
        parent = child_of(candidate, parent, f"{node.identifier}t", run)
    return parent


def _forecast(node: Node, prepared: Prepared) -> float | None:
    """Old time over new time by estimate; None where it does not compile or cannot be counted."""
    known = prepared.original_estimate
    built = build(node.program, prepared.setting.options, cancelled=prepared.setting.cancelled)
    if isinstance(known, str) or isinstance(built, CompileFailure):
        return None
    try:
        found = estimate(node.program, built, prepared.workload, prepared.setting, [known.recipe])
    except WorkloadError:
        return None
    if isinstance(found, str) or found.recipe != known.recipe or not found.seconds:
        return None
    return known.seconds / found.seconds
