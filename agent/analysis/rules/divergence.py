"""Where the threads of a block part."""

import numpy as np
from tree_sitter import Node

from agent.analysis.facts import Facts
from agent.analysis.guards import decide, decided
from agent.analysis.rules.view import View
from agent.analysis.syntax import bare, callee, descendants, text
from agent.analysis.values import dependence, is_uniform, value

TAKES_MASK = frozenset(
    (
        *("__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "__ballot_sync", "__any_sync"),
        *("__all_sync", "__syncwarp", "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync"),
    )
)
"""Warp functions whose first argument names lanes."""

BARRIERS = frozenset(("__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"))


def barriers(facts: Facts) -> tuple[Node, ...]:
    """The calls that wait for all threads of a block."""
    return tuple(call for call in facts.calls if callee(call) in BARRIERS)


def divergent(condition: Node, view: View) -> bool:
    """Whether a condition depends on the thread's index, and on nothing that is not known; and is not the same for all
    threads of the block where that is known."""
    sources = dependence(condition, view.facts.scope)
    found = parts(condition)
    if len(found) > 1 and "unknown" not in sources and not any(divergent(part, view) for part in found):
        return False  # `row >= n || t >= 32` in blocks of 32
    if "unknown" in sources or not any(source.startswith("threadIdx") for source in sources):
        return False
    if view.threads is None or view.everyone is None:
        return True
    decision = decide(condition, view.facts.scope, view.everyone)
    return not decided(decision) or bool(np.any(decision[0]) and np.any(decision[1]))


def parts(condition: Node) -> list[Node]:
    """The operands of ``&&`` and ``||``."""
    inner = bare(condition)
    if inner is None or text(inner.child_by_field_name("operator")) not in ("&&", "||"):
        return [condition]
    sides = (inner.child_by_field_name("left"), inner.child_by_field_name("right"))
    return [part for side in sides if side is not None for part in parts(side)]


def lets_most_through(condition: Node, view: View) -> bool:
    """A condition that is the same for all threads, or a comparison of an index with a bound."""
    if is_uniform(condition, view.facts.scope):
        return True
    if any(descendants(condition, "subscript_expression", "call_expression", "pointer_expression")):
        return False
    tests = list(descendants(condition, "binary_expression"))
    compared = {text(test.child_by_field_name("operator")) for test in tests}
    return bool(tests) and not compared & {"==", "!=", "&", "%", "||"} and _against_bounds(condition, view)


def _against_bounds(condition: Node, view: View) -> bool:
    """Whether the thread's index alone decides, and it is compared with a name and not with a number."""
    if dependence(condition, view.facts.scope) & {"memory", "unknown"}:
        return False
    for test in descendants(condition, "binary_expression"):
        if text(test.child_by_field_name("operator")) in ("<", "<=", ">", ">="):
            sides = [value(test.child_by_field_name(side), view.facts.scope) for side in ("left", "right")]
            if any(side.constant is not None for side in sides) and "threadIdx" in str(sides):
                return False
    return True
