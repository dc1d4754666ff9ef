"""Launches met while host code is read: ``k<<<grid, block>>>(...)``, of a kernel or through a pointer to one."""

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload.static import calls, packs, parts, queues, structs
from agent.workload.static import evaluate as ev
from agent.workload.static.state import Facts, State
from agent.workload.static.values import (
    ANY,
    ZERO,
    Called,
    Content,
    Dim3,
    LaunchItem,
    Pointer,
    Scalar,
    Unknown,
    Value,
    leading,
)
from agent.workload.types import split_name


def launch(node: Node, facts: Facts, state: State) -> Value:
    """Record ``k<<<grid, block, shared>>>(arguments)``; afterwards what its pointers lead to may have changed."""
    callee, arguments = child(node, "function"), child(node, "arguments")
    configuration = next(part for part in node.children if part.type == "kernel_call_syntax")
    dimensions = [part for part in configuration.named_children if part.type != "comment"]
    if callee is None or len(dimensions) < 2:
        return Unknown("a broken launch", facts.line(node))
    given = [part for part in arguments.named_children if part.type != "comment"] if arguments else []
    values = [ev.evaluate(part, facts, state) for part in packs.each(given, facts)]
    grid, block = (calls.dim3_of(dimension(part, facts, state)) for part in dimensions[:2])
    shared = ev.as_scalar(ev.evaluate(dimensions[2], facts, state)) if len(dimensions) > 2 else ZERO
    stream = ev.evaluate(dimensions[3], facts, state) if len(dimensions) > 3 else ZERO
    record(_called(callee, facts, state), grid, block, shared, values, node, facts, state, stream=stream)
    return ZERO


def record(
    called: Called, grid: Dim3 | Unknown, block: Dim3 | Unknown, shared: Scalar | Unknown, arguments: list[Value],
    node: Node, facts: Facts, state: State, cluster: Dim3 | Unknown | None = None, cooperative: bool = False,
    stream: Value = ZERO,
) -> None:  # fmt: skip
    """Note a launch; afterwards what its pointers lead to may have changed."""
    values = tuple(structs.snapshot(value, facts, state) for value in arguments)
    item = LaunchItem(
        called.kernel,
        called.template,
        grid,
        block,
        shared,
        values,
        facts.line(node),
        dict(state.contents),
        facts.conditional > 0,
        pinned=frozenset(facts.pinned),
        cluster=cluster,
        cooperative=cooperative,
        granted=_granted(called, facts),
    )
    facts.items.append(item)
    queues.put_launch(item, stream, facts)
    for value in values:
        for _, held in leading(value):
            if isinstance(held, Pointer):
                domain = state.contents[held.memory].domain
                parts.refill(held.memory, Content("kernel", domain), facts, state)


def _granted(called: Called, facts: Facts) -> Scalar | Unknown | None:
    """What a kernel is allowed by now: as it is launched, or under its name alone where its arguments are deduced."""
    told = [
        held
        for one, held in facts.granted.items()
        if one in (called, ANY) or (one.kernel == called.kernel and not (one.template and called.template))
    ]
    return told[-1] if told else None


def kernel(name: str, line: int, facts: Facts, state: State) -> Called | None:
    """The kernel that is named where a value stands (``ns::k<float>``); None for any other name."""
    bare, template = split_name(name)
    bare = bare.split("::")[-1].strip()
    if bare not in facts.kernels:
        return None
    return Called(bare, tuple(_template_argument(text, line, facts, state) for text in template))


def _called(callee: Node, facts: Facts, state: State) -> Called:
    """What stands in front of ``<<<``: a pointer that holds a kernel, or the kernel itself."""
    text, line = facts.node_text(callee), facts.line(callee)
    if callee.type not in ("identifier", "qualified_identifier", "template_function") or facts.find(text) is not None:
        held = ev.evaluate(callee, facts, state)
        if isinstance(held, Called):
            return held
    name, template = split_name(text)
    return Called(name.split("::")[-1], tuple(_template_argument(one, line, facts, state) for one in template))


def dimension(node: Node, facts: Facts, state: State) -> Value:
    """A grid or block, ``{x, y, z}`` too."""
    if node.type == "initializer_list":
        from agent.workload.static.library import make_dim3

        return make_dim3([ev.evaluate(part, facts, state) for part in node.named_children if part.type != "comment"])
    return ev.evaluate(node, facts, state)


def assigned(target: Node, node: Node, facts: Facts, state: State) -> Value:
    """The value of an expression that is assigned: ``grid = {x, y, z}`` too."""
    cell = ev.cell_of(target, facts, state) if node.type == "initializer_list" else None
    is_grid = cell is not None and isinstance(state.cells.get(cell), Dim3)
    return dimension(node, facts, state) if is_grid else ev.evaluate(node, facts, state)


def _template_argument(text: str, line: int, facts: Facts, state: State) -> str:
    """A number where the argument is one at the program's own values (these are compiled in), else the text."""
    text = facts.bound(text)
    value = ev.evaluate_text(text, line, facts, state) if text[:1].isdigit() or facts.known(text) else None
    expression = ev.expression_of(value) if value is not None else None
    if expression is None:
        return text
    facts.pinned |= expression.names
    try:
        return str(expression.evaluate(facts.values()))
    except ValueError:
        return text
