"""Where the threads of a block part."""

import numpy as np
from tree_sitter import Node

from agent.analysis.facts import Facts
from agent.analysis.guards import decide, decided
from agent.analysis.rules.view import View
from agent.analysis.syntax import callee
from agent.analysis.values import dependence

BARRIERS = frozenset(("__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"))


def barriers(facts: Facts) -> tuple[Node, ...]:
    """The calls that wait for all threads of a block."""
    return tuple(call for call in facts.calls if callee(call) in BARRIERS)


def divergent(condition: Node, view: View) -> bool:
    """Whether a condition depends on the thread's index, and on nothing that is not known; and is not the same for all
    threads of the block where that is known."""
    sources = dependence(condition, view.facts.scope)
    if "unknown" in sources or not any(source.startswith("threadIdx") for source in sources):
        return False
    if view.threads is None or view.everyone is None:
        return True
    decision = decide(condition, view.facts.scope, view.everyone)
    return not decided(decision) or bool(np.any(decision[0]) and np.any(decision[1]))
