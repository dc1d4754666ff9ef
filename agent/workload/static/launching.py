"""A launch expression met while host code is read."""

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload.static import calls, parts, structs
from agent.workload.static import evaluate as ev
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ZERO, Content, LaunchItem, Pointer, Unknown, Value, leading
from agent.workload.types import split_name


def launch(node: Node, facts: Facts, state: State) -> Value:
    """Record ``k<<<grid, block, shared>>>(arguments)``; afterwards what its pointers lead to may have changed."""
    callee, arguments = child(node, "function"), child(node, "arguments")
    configuration = next(part for part in node.children if part.type == "kernel_call_syntax")
    dimensions = [part for part in configuration.named_children if part.type != "comment"]
    if callee is None or len(dimensions) < 2:
        return Unknown("a broken launch", facts.line(node))
    name, template = split_name(facts.node_text(callee))
    given = [part for part in arguments.named_children if part.type != "comment"] if arguments else []
    values = tuple(structs.snapshot(ev.evaluate(part, facts, state), facts, state) for part in given)
    grid, block = (calls.dim3_of(_dimension(part, facts, state)) for part in dimensions[:2])
    facts.items.append(
        LaunchItem(
            name.split("::")[-1],
            tuple(_template_argument(text, facts.line(node), facts, state) for text in template),
            grid,
            block,
            ev.as_scalar(ev.evaluate(dimensions[2], facts, state)) if len(dimensions) > 2 else ZERO,
            values,
            facts.line(node),
            dict(state.contents),
            facts.conditional > 0,
            pinned=frozenset(facts.pinned),
        )
    )
    for value in values:
        for _, held in leading(value):
            if isinstance(held, Pointer):
                domain = state.contents[held.memory].domain
                parts.refill(held.memory, Content("kernel", domain), facts, state)
    return ZERO


def _dimension(node: Node, facts: Facts, state: State) -> Value:
    if node.type == "initializer_list":
        from agent.workload.static.library import make_dim3

        return make_dim3([ev.evaluate(part, facts, state) for part in node.named_children if part.type != "comment"])
    return ev.evaluate(node, facts, state)


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
