"""What assignments do: a value goes into a variable, a member, a part of a dim3, or memory."""

from attrs import evolve
from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload.static import arguments, calls, launching, parts
from agent.workload.static import evaluate as ev
from agent.workload.static.combining import combine
from agent.workload.static.conversion import as_type, repointed
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ONE, Dim3, Pointer, Record, Scalar, Unknown, Value
from agent.workload.workload import Origin


def assign(node: Node, facts: Facts, state: State) -> Value:
    """``a = b``, ``a += b``: the value that it gives."""
    left, right = child(node, "left"), child(node, "right")
    if left is None or right is None:
        return Unknown("a broken expression", facts.line(node))
    value = launching.assigned(left, right, facts, state)
    op = facts.node_text(child(node, "operator") or node.children[1])
    if op != "=":
        value = combine(op[:-1], ev.evaluate(left, facts, state), value, facts)
        _store_plain(left, value, facts, state, node)
    else:
        store(left, value, facts, state, node)
    return _kept(left, value, facts)


def _store_plain(target: Node, value: Value, facts: Facts, state: State, node: Node) -> None:
    """Store what was computed from an earlier value: no number that the program starts from."""
    facts.plain_numbers += 1
    store(target, value, facts, state, node)
    facts.plain_numbers -= 1


def update(node: Node, facts: Facts, state: State) -> Value:
    """``++a``, ``a--``."""
    operand = child(node, "argument")
    if operand is None:
        return Unknown("a broken expression", facts.line(node))
    before = ev.evaluate(operand, facts, state)
    after = combine("+" if "++" in facts.node_text(node) else "-", before, ONE, facts)
    _store_plain(operand, after, facts, state, node)
    return before if node.children[0] == operand else _kept(operand, after, facts)


def _kept(target: Node, value: Value, facts: Facts) -> Value:
    """What an assignment of ``value`` gives: what the variable then holds."""
    cell = facts.find(facts.node_text(target)) if target.type == "identifier" else None
    dtype = held_type(cell, facts) if cell is not None else None
    return as_type(value, dtype, facts) if isinstance(value, Scalar) and dtype is not None else value


def held_type(cell: int, facts: Facts) -> str | None:
    """The type of the numbers that a variable holds, where one is known; ``auto`` is what its first value was."""
    text = facts.types.get(cell, "")
    return facts.integers.get(cell) if text in ("", "auto") else facts.dtype(text)


def store(target: Node, value: Value, facts: Facts, state: State, node: Node) -> None:
    """``target = value``: into a variable, a member, a part of a dim3, or memory."""
    if target.type == "field_expression":
        base = child(target, "argument")
        cell = ev.cell_of(base, facts, state) if base is not None else None
        held = state.cells.get(cell) if cell is not None else None
        if isinstance(held, Dim3) and cell is not None:
            part = facts.node_text(child(target, "field") or target)
            state.cells[cell] = evolve(held, **{part: ev.as_scalar(value)}) if part in ("x", "y", "z") else held
            return
    if target.type == "subscript_expression":
        calls.store_element(target, value, facts, state)
        return
    cell = ev.cell_of(target, facts, state)
    if cell is None:
        calls.store_through(target, value, facts, state)
    else:
        line = facts.line(node)
        set_cell(cell, value, facts, state, line, arguments.origin(facts.node_text(node), line, facts))
        if target.type != "identifier":
            calls.store_through(target, value, facts, state, known=True)


def set_cell(cell: int, value: Value, facts: Facts, state: State, line: int, origin: Origin | None = None) -> None:
    """Give a variable its value, converted to its type; a positive number written down becomes a root, and so does one
    that only the command line gives."""
    type_text, told = facts.types.get(cell, ""), origin or Origin("literal", line)
    if arguments.answered(facts.names[cell], value, told, facts):
        value = Unknown(arguments.MARK, line)
    if arguments.is_asked(value):
        value = arguments.root(facts.names[cell], value, facts)
    if isinstance(value, Record):
        parts.copy(value.cell, cell, facts, state)
        state.cells[cell] = Unknown("it is a struct", line)
        return
    parts.forget(cell, f"`{facts.names[cell]}` is set as a whole", line, facts, state)
    if isinstance(value, Unknown) and not arguments.is_asked(value) and not value.reason.endswith("has no value yet"):
        opened = facts.opened(cell, value.reason, value.line or line)
        state.cells[cell] = opened if isinstance(opened, Scalar) else value
        return
    if isinstance(value, Pointer) and "*" in type_text and value.element != type_text.split("*")[0].strip():
        value = repointed(value, type_text.split("*")[0].strip(), facts)
    if isinstance(value, Scalar) and not type_text.endswith("*"):
        if type_text == "auto":
            facts.integers.setdefault(cell, value.dtype)
        dtype = held_type(cell, facts)
        value = as_type(value, dtype, facts) if dtype is not None or type_text not in ("", "auto") else value
        constant = value.expression.constant
        if isinstance(constant, int) and constant > 0 and not facts.plain_numbers and "bool" not in type_text:
            made = facts.root(facts.names[cell], constant, told, file_level=cell in facts.file_cells)
            value = evolve(made, dtype=value.dtype)
    state.cells[cell] = value
