"""Which starting numbers of a program become sizes, which constants, and which are folded in."""

from collections.abc import Iterator, Mapping, Set

from attrs import evolve

from agent.workload.expression import Expression, ExpressionError, number
from agent.workload.expression import name as name_of
from agent.workload.plan import Copy, Fill, Launch, Plan, Repeat, Step, Swap
from agent.workload.static import contents
from agent.workload.static.state import Facts
from agent.workload.textures import Texture
from agent.workload.workload import Buffer, Constant, Size, Workload


def numbers(
    facts: Facts, steps: tuple[Step, ...], buffers: list[Buffer]
) -> tuple[tuple[Size, ...], tuple[Constant, ...], dict[str, Expression]]:
    """Roots that are varied, roots that are named but not varied, and roots that are folded in.

    Varied are those that a buffer's extent or the number of turns depends on; where some of these come from the command
    line or from the user, only those. What decides the block, a template argument or a branch of the host code is
    folded in, as the kernel may be written for that value only.
    """
    extents = frozenset[str]().union(*(buffer.extent.names for buffer in buffers))
    domains = frozenset[str]().union(*(contents.names(buffer.domain) for buffer in buffers))
    blocks, turns, others, grids = _names(steps)
    used = extents | blocks | turns | others | grids | domains
    values = {n: root.value for n, root in facts.roots.items() if n in used and root.value is not None}
    pinned = _pinned(facts, extents | turns, extents, blocks)
    fixed = {name: number(value) for name, value in values.items() if name in pinned}
    folded = tuple(substituted(step, fixed) for step in steps)
    sizes, constants = [], []
    for name, value in values.items():
        origin = facts.roots[name].origin
        if name in extents | turns and name not in pinned and isinstance(value, int):
            sizes.append(Size(name, value, origin, 1, _multiple(name, value, folded)))
        elif name not in pinned:
            constants.append(Constant(name, number(value), origin))
    return tuple(sizes), tuple(constants), fixed


def _pinned(facts: Facts, varied: Set[str], extents: Set[str], blocks: Set[str]) -> set[str]:
    roots = facts.roots
    pinned = (blocks | facts.pinned) & roots.keys()
    free = {name for name in roots if name in varied and name not in pinned}
    if not free:
        pinned -= (extents & blocks) - facts.pinned
    stated = {name for name in free if roots[name].origin.kind not in ("literal", "macro")}
    return pinned | (free - stated) if stated else pinned


def _multiple(name: str, value: int, steps: tuple[Step, ...]) -> int:
    """``n / 16`` blocks without rounding up say that n is a multiple of 16, if it is one."""
    found = 1
    for launch in Plan(steps).launches():
        for part in launch.grid:
            divisor = part.operands[1].constant if part.op == "/" and part.operands[0] == name_of(name) else None
            if isinstance(divisor, int) and value % divisor == 0:
                found = max(found, divisor)
    return found


def shortened(workload: Workload, short: Mapping[str, str]) -> Workload:
    """With ``short`` names for those that kept equal ones apart, where nothing needs them any more."""
    taken = {size.name for size in workload.sizes} | {constant.name for constant in workload.constants}
    taken |= {buffer.name for buffer in workload.buffers} | set(_variables(workload.plan.steps))
    names: dict[str, str] = {}
    for name in sorted(taken & short.keys()):
        bare = short[name]
        if bare not in taken and bare not in names.values():
            names[name] = bare
    if not names:
        return workload
    told = {name: name_of(bare) for name, bare in names.items()}
    return evolve(
        workload,
        sizes=tuple(evolve(size, name=names.get(size.name, size.name)) for size in workload.sizes),
        constants=tuple(evolve(part, name=names.get(part.name, part.name)) for part in workload.constants),
        buffers=tuple(
            evolve(
                buffer,
                name=names.get(buffer.name, buffer.name),
                extent=buffer.extent.substitute(told),
                domain=contents.substituted(buffer.domain, told),
            )
            for buffer in workload.buffers
        ),
        plan=Plan(tuple(_renamed(substituted(step, told), names) for step in workload.plan.steps)),
        textures=tuple(evolve(shown(one, told), buffer=names.get(one.buffer, one.buffer)) for one in workload.textures),
    )


def _variables(steps: tuple[Step, ...]) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Repeat):
            if step.variable:
                yield step.variable
            yield from _variables(step.body)


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    """The names that stand outside expressions."""
    if isinstance(step, Swap):
        return Swap(names.get(step.first, step.first), names.get(step.second, step.second))
    if isinstance(step, Fill):
        return Fill(names.get(step.buffer, step.buffer), step.byte)
    if isinstance(step, Copy):
        return Copy(names.get(step.target, step.target), names.get(step.source, step.source))
    if isinstance(step, Repeat):
        body = tuple(_renamed(part, names) for part in step.body)
        return evolve(step, body=body, variable=names.get(step.variable, step.variable) if step.variable else None)
    return step


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


def shown(texture: Texture, fixed: dict[str, Expression]) -> Texture:
    """The same for a texture."""
    extents = tuple(simple(extent, fixed) for extent in texture.extents)
    return evolve(texture, extents=extents, pitch=None if texture.pitch is None else simple(texture.pitch, fixed))


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
