"""Host loops that are run turn by turn: those whose conditions are known at the program's own numbers, and short."""

from attrs import define
from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload.static import evaluate as ev
from agent.workload.static.execute import run
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ONE, ZERO, End, Value

MAX_TURNS = 256
MAX_WORK = 3_000
MAX_ALL_WORK = 15_000


@define
class _Trial:
    """A loop that is being run: what it has changed so far, and whether it may tie the workload to its numbers."""

    node: Node
    facts: Facts
    state: State
    ties: bool


def unrolled(node: Node, lasting: list[int], facts: Facts, state: State) -> "tuple[End | None] | None":
    """Run a loop that launches nothing as the program does. None, with nothing changed, where a turn's condition is not
    known or the loop is long; else how it ended: None, or the ``return`` that left the function with it.

    ``lasting`` are the numbers from before it that it changes: where one of them comes out known, it is run at the
    program's own sizes, which the workload is tied to; else only where its turns are known whatever the sizes are.
    """
    if facts.unrolled > MAX_ALL_WORK:
        return None
    trial, mark, start = _Trial(node, facts, state.fork(), bool(lasting)), facts.mark(), facts.work
    ended = _turns(trial, start)
    told = any(ev.truth(trial.state.cells.get(cell, ZERO), facts) is not None for cell in lasting)
    if ended == (None,) and facts.pinned - mark[3] and not told:
        ended = None
    facts.unrolled += facts.work - start
    facts.work = start
    if ended is None:
        facts.back_to(mark)
    else:
        state.cells, state.contents = trial.state.cells, trial.state.contents
    return ended


def _turns(trial: _Trial, start: int) -> "tuple[End | None] | None":
    facts, body, update = trial.facts, child(trial.node, "body"), child(trial.node, "update")
    for turn in range(MAX_TURNS):
        goes_on = True if turn == 0 and trial.node.type == "do_statement" else _goes_on(trial)
        if goes_on is None or facts.work > start + MAX_WORK:
            return None
        if not goes_on:
            return (None,)
        ended = run(body, facts, trial.state) if body is not None else None
        if ended is not None and ended.how != "continue":
            return (None if ended.how == "break" else ended,)
        if update is not None:
            facts.plain_numbers += 1
            ev.evaluate(update, facts, trial.state)
            facts.plain_numbers -= 1
    return None


def _goes_on(trial: _Trial) -> bool | None:
    condition = child(trial.node, "condition")
    inner = child(condition, "value") or condition if condition is not None else None
    value: Value = ev.evaluate(inner, trial.facts, trial.state) if inner is not None else ONE
    expression = ev.expression_of(value)
    if expression is None or (expression.names and not trial.ties):
        return None
    trial.facts.pinned |= expression.names
    return ev.truth(value, trial.facts)
