"""Which nodes live on, and which are shown."""

import difflib
from collections.abc import Sequence

from attrs import evolve

from agent.search.node import Node

WORTH_SHOWING = 1.02
"""An effect below two per cent is not called faster (design of the timing gate); an estimate is no finer."""

LARGE_CHANGE = 60
"""Changed lines above which a small win is not worth a reader's time ..."""

LARGE_CHANGE_NEEDS = 1.1
"""... unless it brings this much."""


def survivors(nodes: Sequence[Node], beam: int) -> tuple[Node, ...]:
    """The parents of the next round: the ``beam`` fastest right nodes, and beside them, for one round, a right node
    that is no faster yet moved the counter that its idea named by at least half of what was expected. Winners of
    published searches came through such steps (four of thirteen in CRFM's convolution)."""
    right = [node for node in nodes if node.verdict and node.verdict.shown]
    faster = sorted((node for node in right if node.faster), key=lambda node: (node.untimed, -node.ratio))[:beam]
    kept = [evolve(node, stale=node.stale + 1) for node in right if node not in faster and moved_its_counter(node)]
    return (*faster, *[node for node in kept if node.stale <= 1][:1])


def best_ratio(nodes: Sequence[Node]) -> float | None:
    """The best figure of the right ones: measured, where any was measured."""
    right = [node for node in nodes if node.verdict and node.verdict.shown]
    timed = [node.ratio for node in right if not node.untimed]
    return max(timed or [node.ratio for node in right], default=None)


def moved_its_counter(node: Node) -> bool:
    if node.candidate is None or node.verdict is None:
        return False
    counters = node.verdict.evidence.counters
    for expectation in node.candidate.ideas[-1].expects:
        if expectation.counter not in counters:
            continue
        old, new = counters[expectation.counter]
        if old > 0 and new / old <= 1 - (1 - expectation.factor) / 2:
            return True
    return False


def changed_lines(old: bytes, new: bytes) -> int:
    """How many lines a reviewer has to read: added plus removed."""
    blocks = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False).get_opcodes()
    return sum((i2 - i1) + (j2 - j1) for tag, i1, i2, j1, j2 in blocks if tag != "equal")


def front(nodes: Sequence[Node], most: int, lossy: bool) -> tuple[Node, ...]:
    """The nodes worth proposing: right, no less precise as far as it could be told, better than the original, on the
    front of speed, error and size of the change; fastest first, but a small win in a large change never comes first."""
    accepted = ("same", "better", "unchecked", *(("less",) if lossy else ()))
    worthy = [
        node
        for node in nodes
        if node.verdict is not None
        and node.verdict.correctness.state == "right"
        and node.verdict.precision.state in accepted
        and node.ratio >= WORTH_SHOWING
        and node.faster
    ]
    # An estimate never stands before, or in the way of, what was measured.
    timed, rest = ([node for node in worthy if node.untimed is untimed] for untimed in (False, True))
    return (*_front(timed), *_front(rest))[:most]


def _front(worthy: Sequence[Node]) -> tuple[Node, ...]:
    best: list[Node] = []
    # In the order of their costs, a node is dominated by an earlier one or by none; of equals the first stays.
    for node in sorted(worthy, key=_costs):
        if not any(_no_worse(_costs(other), _costs(node)) for other in best):
            best.append(node)

    def order(node: Node) -> tuple[bool, float]:
        return node.changed_lines > LARGE_CHANGE and node.ratio < LARGE_CHANGE_NEEDS, -node.ratio

    return tuple(sorted(best, key=order))


def _costs(node: Node) -> tuple[float, float, float]:
    assert node.verdict is not None
    lossy = {"less": 2.0, "unchecked": 1.0}.get(node.verdict.precision.state, 0.0)
    # Ratios within one per cent are one figure: a longer rewrite has to earn its lines.
    return (-round(node.ratio, 2), lossy, float(node.changed_lines))


def _no_worse(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


ANOTHER = 1.1
"""Two ways to write the same ideas are two proposals only where one is this much faster than the other."""


def repeats(node: Node, shown: Sequence[Node]) -> bool:
    """Whether a node is much the same as one that is shown: the same ideas, no other precision, and no faster by
    :data:`ANOTHER`."""
    return any(
        _kinds(node) == _kinds(other)
        and _precision(node) == _precision(other)
        and max(node.ratio, other.ratio) < ANOTHER * min(node.ratio, other.ratio)
        for other in shown
    )


def _kinds(node: Node) -> frozenset[str]:
    ideas = node.candidate.ideas if node.candidate else ()
    return frozenset(idea.name if idea.source == "catalog" else idea.title for idea in ideas)


def _precision(node: Node) -> str:
    return node.verdict.precision.state if node.verdict else ""
