"""Parameter packs: the arguments of a call as the elements of ``Args... args``, and what ``f(args)...`` makes of
them."""

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from agent.source.nodes import declared_name, descendants
from agent.source.nodes import field as child
from agent.workload.static import parts
from agent.workload.static.state import MAX_ARGUMENTS, Facts, State
from agent.workload.static.values import Record, Value


def bind(parameter: Node, values: Sequence[Value], shared: Sequence[int | None], facts: Facts, state: State) -> None:
    """The pack that is a function's last parameter gets these arguments; ``shared`` are the variables of those that are
    passed by reference."""
    name_node = declared_name(child(parameter, "declarator"))
    if name_node is None:
        return
    with facts.original_text():
        name = facts.node_text(name_node)
    values = values[:MAX_ARGUMENTS]
    facts.scopes[-1][_size(name)] = len(values)
    for index, (value, cell) in enumerate(zip(values, shared, strict=False)):
        if cell is None:
            cell = facts.part(name)
            if isinstance(value, Record):
                parts.copy(value.cell, cell, facts, state)
            else:
                state.cells[cell] = value
        facts.scopes[-1][_element(name, index)] = cell


def each(nodes: Sequence[Node], facts: Facts) -> Iterator[Node]:
    """The nodes of a list, with the pattern of an expansion once for each element of its packs: while it is given, the
    pack's name stands for that element."""
    for node in nodes:
        pattern, names = _expansion(node, facts)
        if pattern is None:
            yield node
            continue
        for index in range(min(_length(name, facts) for name in names)):
            with facts.scope():
                for name in names:
                    cell = facts.find(_element(name, index))
                    if cell is not None:
                        facts.scopes[-1][name] = cell
                yield pattern


def count(nodes: Sequence[Node], facts: Facts) -> int:
    """How many a list has with its packs expanded."""
    return sum(1 for _ in each(nodes, facts))


def _expansion(node: Node, facts: Facts) -> tuple[Node | None, tuple[str, ...]]:
    """What is expanded, and the packs in it that are known; None where there are none."""
    pattern = child(node, "pattern") if node.type == "parameter_pack_expansion" else None
    if pattern is None:
        return None, ()
    told = {facts.node_text(one) for one in (pattern, *descendants(pattern, "identifier")) if one.type == "identifier"}
    names = tuple(sorted(name for name in told if facts.find(_size(name)) is not None))
    return (pattern, names) if names else (None, ())


def _length(name: str, facts: Facts) -> int:
    return facts.find(_size(name)) or 0


def _size(name: str) -> str:
    """No name of a program: under it a scope holds how many elements a pack has."""
    return f"{name}..."


def _element(name: str, index: int) -> str:
    return f"{name}...{index}"
