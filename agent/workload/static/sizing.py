"""Which starting numbers of a program become sizes, which constants, and which are folded in."""

from agent.workload.expression import Expression, ExpressionError, number
from agent.workload.expression import name as name_of
from agent.workload.plan import Launch, Plan, Repeat, Step
from agent.workload.static import contents
from agent.workload.static.state import Facts
from agent.workload.workload import Buffer, Constant, Size


def numbers(
    facts: Facts, steps: tuple[Step, ...], buffers: list[Buffer]
) -> tuple[tuple[Size, ...], tuple[Constant, ...], dict[str, Expression]]:
    """Roots that are varied, roots that are named but not varied, and roots that are folded in.

    Varied are those that a buffer's extent or the number of turns depends on; where some of these come from the command
    line or from the user, only those. What decides the block, a template argument or a branch of the host code is
    folded in, as the kernel may be written for that value only.
    """
    roots = facts.roots
    extents = frozenset[str]().union(*(buffer.extent.names for buffer in buffers))
    blocks, turns, others, grids = _names(steps)
    pinned = (blocks | facts.pinned) & roots.keys()
    free = [n for n in roots if n in extents | turns and n not in pinned]
    if not free:
        pinned -= {n for n in extents if n in blocks and n not in facts.pinned}
    stated = {n for n in free if roots[n].origin.kind not in ("literal", "macro")}
    if stated:
        pinned |= set(free) - stated
    domains = frozenset[str]().union(*(contents.names(buffer.domain) for buffer in buffers))
    sizes, constants, fixed = [], [], {}
    for name, root in roots.items():
        if name not in extents | blocks | turns | others | grids | domains or root.value is None:
            continue
        if name in pinned:
            fixed[name] = number(root.value)
        elif name in extents | turns and isinstance(root.value, int):
            sizes.append(Size(name, root.value, root.origin, 1, _multiple(name, steps)))
        else:
            constants.append(Constant(name, number(root.value), root.origin))
    return tuple(sizes), tuple(constants), fixed


def _multiple(name: str, steps: tuple[Step, ...]) -> int:
    """``n / 16`` blocks without rounding up say that n is a multiple of 16."""
    found = 1
    for launch in Plan(steps).launches():
        for part in launch.grid:
            if part.op == "/" and part.operands[0] == name_of(name) and isinstance(part.operands[1].constant, int):
                found = max(found, part.operands[1].constant)
    return found


def _names(steps: tuple[Step, ...]) -> tuple[set[str], set[str], set[str], set[str]]:
    """Names that occur in blocks, in repeat heads, in arguments and shared bytes, in grids."""
    blocks: set[str] = set()
    turns: set[str] = set()
    others: set[str] = set()
    grids: set[str] = set()
    for step in steps:
        if isinstance(step, Launch):
            blocks |= set().union(*(part.names for part in step.block))
            grids |= set().union(*(part.names for part in step.grid))
            others |= step.shared.names.union(*(part.names for part in step.arguments))
        elif isinstance(step, Repeat):
            heads = [part for part in (step.count, step.start, step.update, step.condition) if part is not None]
            turns |= set().union(*(part.names for part in heads))
            inner = _names(step.body)
            blocks, turns, others, grids = blocks | inner[0], turns | inner[1], others | inner[2], grids | inner[3]
    return blocks, turns, others, grids


def simple(expression: Expression, fixed: dict[str, Expression]) -> Expression:
    try:
        return expression.substitute(fixed).simplify()
    except ExpressionError:
        return expression


def substituted(step: Step, fixed: dict[str, Expression]) -> Step:
    if isinstance(step, Launch):
        gx, gy, gz = (simple(part, fixed) for part in step.grid)
        bx, by, bz = (simple(part, fixed) for part in step.block)
        arguments = tuple(simple(part, fixed) for part in step.arguments)
        return Launch(step.kernel, (gx, gy, gz), (bx, by, bz), simple(step.shared, fixed), arguments)
    if isinstance(step, Repeat):
        heads = [None if p is None else simple(p, fixed) for p in (step.count, step.start, step.update, step.condition)]
        body = tuple(substituted(part, fixed) for part in step.body)
        return Repeat(body, heads[0], step.variable, heads[1], heads[2], heads[3])
    return step
