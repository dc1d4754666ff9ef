"""D1: neighbouring lanes that do different work."""

from collections.abc import Iterator

import numpy as np
from tree_sitter import Node

from agent.analysis.coalescing import WARP
from agent.analysis.guards import decide, decided
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import LOOPS, contains, statements, text

FIRES = """\
__global__ void both(const float* x, float* y, int n) {
    float s = 0.0f;
    if (threadIdx.x % 2 == 0) {  // D1
        for (int k = 0; k < n; ++k) s += x[k];
    } else {
        for (int k = 0; k < n; ++k) s -= x[k] * x[k];
    }
    y[threadIdx.x] = s;
}
"""
WHOLE = """\
__global__ void both(const float* x, float* y, int n) {
    float s = 0.0f;
    if (threadIdx.x / 32 % 2 == 0) {
        for (int k = 0; k < n; ++k) s += x[k];
    } else {
        for (int k = 0; k < n; ++k) s -= x[k] * x[k];
    }
    if (threadIdx.x % 2 == 0) s += 1.0f; else s -= 1.0f;
    y[threadIdx.x] = s;
}
"""
CHANGES = 4


@rule(
    id="D1",
    name="split-warps",
    title="Neighbouring lanes do different work",
    why="A warp runs both branches, one after the other, with the lanes of the other one idle.",
    cost=Cost.LANES,
    severity=Severity.INFORMATION,
    silent_when=(
        "the condition cannot be followed for each lane, or parts a warp in two or three pieces",
        "a branch is short: compilers run such without a jump",
    ),
    fires=(FIRES,),
    silent=(WHOLE,),
)
def split_warps(view: View) -> Iterator[Hit]:
    for branch in view.nodes("if_statement"):
        condition, other = branch.child_by_field_name("condition"), branch.child_by_field_name("alternative")
        if condition is None or other is None or not _long(other, view):
            continue
        if _long(branch.child_by_field_name("consequence"), view) and _alternates(condition, view):
            yield hit(
                branch,
                f"`{' '.join(text(condition).strip('()').split())[:60]}` changes from lane to lane, so each warp runs "
                "both branches: give whole warps the one or the other",
            )


def _alternates(condition: Node, view: View) -> bool:
    if not view.warps:
        return False
    decision = decide(condition, view.facts.scope, view.warps[0])
    if not decided(decision) or np.ndim(decision[0]) == 0:
        return False
    return int(np.count_nonzero(np.diff(decision[0][:WARP].astype(np.int8)))) >= CHANGES


def _long(branch: Node | None, view: View) -> bool:
    if branch is None:
        return False
    if branch.type == "else_clause":
        inside = [child for child in branch.named_children if child.type != "comment"]
        branch = inside[0] if inside else branch
    if len(statements(branch)) > CHANGES:
        return True
    return any(contains(branch, loop) for kind in LOOPS for loop in view.nodes(kind))
