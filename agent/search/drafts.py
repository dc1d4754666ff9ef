"""From the nodes of one round to the drafts of the next: ideas for each parent, candidates for each idea."""

import itertools
from collections.abc import Iterator, Sequence

from agent.ideas.idea import Candidate, Idea
from agent.ideas.source import NoCode, Request, implement, propose
from agent.search import events
from agent.search.node import Node, fingerprint
from agent.search.options import SearchOptions
from agent.search.run import Run, child_of, request_for


def drafts(number: int, parents: Sequence[Node], run: Run) -> tuple[list[Node], int]:
    """The candidates of a round, none written before, and how many duplicates were left out.

    Breadth first: the first way to write each idea of each parent, then the second ways. A budget that ends within a
    round has then tried every idea once.
    """
    found: list[Node] = []
    duplicates = 0
    for candidate, parent in _breadth_first([_written(parent, run) for parent in parents]):
        child = child_of(candidate, parent, f"{number}.{len(found) + 1}", run)
        key = fingerprint(child.program)
        if key in run.seen:
            duplicates += 1
            continue
        run.seen.add(key)
        found.append(child)
    return found, duplicates


def _written(parent: Node, run: Run) -> list[Iterator[tuple[Candidate, Node]]]:
    """For each idea that a parent brings up, its implementations."""
    request = request_for(parent, run)
    proposed = propose(request)
    ideas = [idea for idea in proposed.ideas if _wanted(idea, run.options)]
    run.emit(events.IdeasFound(parent.identifier, tuple(ideas), proposed.considered))
    for title, reason in proposed.dropped:
        run.emit(events.IdeaDropped(title, reason))
    return [_implemented(idea, request, parent, run) for idea in ideas]


def _implemented(idea: Idea, request: Request, parent: Node, run: Run) -> Iterator[tuple[Candidate, Node]]:
    if run.stopped():
        return
    try:
        for candidate in implement(idea, request):
            yield candidate, parent
    except NoCode as problem:
        run.emit(events.IdeaDropped(idea.title, str(problem)))


def _breadth_first(
    families: Sequence[list[Iterator[tuple[Candidate, Node]]]],
) -> Iterator[tuple[Candidate, Node]]:
    waiting = [one for group in itertools.zip_longest(*families) for one in group if one is not None]
    while waiting:
        still: list[Iterator[tuple[Candidate, Node]]] = []
        for ways in waiting:
            if (following := next(ways, None)) is not None:
                yield following
                still.append(ways)
        waiting = still


def _wanted(idea: Idea, options: SearchOptions) -> bool:
    return (not options.only or idea.name in options.only) and idea.name not in options.without
