"""Structs that host code makes where it needs them: ``make_float4(...)``, ``Params{...}``, ``Op(0.5f)``, ``P p(n);``.

Each is a variable without a name of its own; constructors are run as the program runs them.
"""

import re

from tree_sitter import Node

from agent.source.nodes import descendants, text_of
from agent.source.nodes import field as child
from agent.workload import dtypes, types
from agent.workload.static import evaluate as ev
from agent.workload.static import members, parts, storing
from agent.workload.static.conversion import as_type
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Record, Scalar, Unknown, Value

_VECTOR = re.compile(r"make_([a-z]+[234])")


def vector(called: str, values: list[Value], line: int, facts: Facts) -> tuple[int, dict[str, Value]] | None:
    """The variable and lanes of ``make_float4(...)``; None for any other call."""
    told = _VECTOR.fullmatch(called)
    dtype = dtypes.from_c_type(told[1]) if told else None
    if told is None or dtype is None or len(values) != dtypes.base(dtype)[1]:
        return None
    scalar = dtypes.base(dtype)[0]
    lanes = [as_type(value, scalar, facts) if isinstance(value, Scalar) else value for value in values]
    return _nameless(told[1], line, facts), dict(zip("xyzw", lanes, strict=False))


def make_vector(called: str, values: list[Value], line: int, facts: Facts, state: State) -> Value | None:
    found = vector(called, values, line, facts)
    if found is None:
        return None
    owner, lanes = found
    for name, value in lanes.items():
        state.cells[parts.member(owner, name, f"{facts.names[owner]}.{name}", facts)] = value
    return Record(owner)


def literal(node: Node, facts: Facts, state: State) -> Value:
    """``Params{...}``."""
    type_node, line = child(node, "type"), facts.line(node)
    text = facts.type_text(type_node) if type_node is not None else ""
    found = made(text, child(node, "value"), facts, state, line)
    return found if found is not None else Unknown(f"`{text}{{...}}` is not followed", line)


def made(type_text: str, listed: Node | None, facts: Facts, state: State, line: int) -> Value | None:
    """A struct of the program made of an argument list or a list in braces; None where that is not followed."""
    bare = _bare(type_text)
    body = members.body_of(bare, facts)
    if body is None:
        return None
    owner = _nameless(type_text, line, facts)
    return Record(owner) if construct(owner, type_text, listed, facts, state, line) else None


def construct(owner: int, type_text: str, listed: Node | None, facts: Facts, state: State, line: int) -> bool:
    """Give the members of a struct variable what a constructor, a list in braces or their defaults say. Returns whether
    that is followed; what was known of a member that is set in another way is not kept."""
    bare = _bare(type_text)
    body = members.body_of(bare, facts)
    given = [part for part in listed.named_children if part.type != "comment"] if listed is not None else []
    values = [ev.evaluate(part, facts, state) for part in given]
    if body is None:
        return False
    facts.parts.setdefault(owner, {})
    constructors = [part for part in body.named_children if _constructs(part, bare, facts)]
    if not constructors:
        whole = listed if listed is not None and listed.type == "initializer_list" else None
        filled = members.fill(owner, type_text, whole, facts, state, line) if whole is not None or not given else False
        return filled or not given
    return run_constructor(owner, type_text, values, facts, state, line)


def run_constructor(owner: int, type_text: str, values: list[Value], facts: Facts, state: State, line: int) -> bool:
    """Run the one constructor that takes these values, or copy the struct that they are. Returns whether one does."""
    bare = _bare(type_text)
    body = members.body_of(bare, facts)
    if body is None:
        return False
    if len(values) == 1 and isinstance(values[0], Record) and _bare(facts.types.get(values[0].cell, "")) == bare:
        parts.copy(values[0].cell, owner, facts, state)
        return True
    fitting = [one for one in body.named_children if _constructs(one, bare, facts) and _takes(one, len(values))]
    if len(fitting) == 1:
        _run(owner, body, fitting[0], values, facts, state, line)
    return len(fitting) == 1


def _run(owner: int, body: Node, function: Node, values: list[Value], facts: Facts, state: State, line: int) -> None:
    from agent.workload.static.declarations import bind_parameter
    from agent.workload.static.execute import run_body

    with facts.original_text(), facts.call_scope():
        cells: dict[str, int] = {}
        for one in members.plain_members(body, facts):
            cell = cells[one.name] = parts.member(owner, one.name, f"{facts.names[owner]}.{one.name}", facts)
            facts.types[cell] = one.type
            state.cells[cell] = Unknown(f"nothing that is followed sets `{facts.names[cell]}`", line)
            if one.default is not None:
                storing.set_cell(cell, ev.evaluate(one.default, facts, state), facts, state, line)
        facts.scopes[-1] |= cells
        for index, parameter in enumerate(_parameters(function)):
            bind_parameter(parameter, values[index] if index < len(values) else None, None, facts, state)
        for part in descendants(function, "field_initializer"):
            named, told = part.named_children[0], part.named_children[-1]
            inner = [one for one in told.named_children if one.type != "comment"]
            member = cells.get(facts.node_text(named))
            if member is not None and len(inner) == 1:
                storing.set_cell(member, ev.evaluate(inner[0], facts, state), facts, state, line)
        run_body(function, facts, state)


def _constructs(node: Node, name: str, facts: Facts) -> bool:
    declarator = child(node, "declarator")
    inner = child(declarator, "declarator") if declarator is not None else None
    return node.type == "function_definition" and inner is not None and text_of(facts.document.text, inner) == name


def _parameters(function: Node) -> list[Node]:
    listed = child(function, "declarator", "parameters")
    return [part for part in (listed.named_children if listed is not None else ()) if "parameter" in part.type]


def _takes(function: Node, count: int) -> bool:
    parameters = _parameters(function)
    needed = sum(child(one, "default_value") is None for one in parameters)
    return needed <= count <= len(parameters)


def _nameless(type_text: str, line: int, facts: Facts) -> int:
    cell = facts.part(f"the {type_text} of line {line}")
    facts.types[cell] = type_text
    return cell


def _bare(type_text: str) -> str:
    return types.split_name(type_text.replace("const ", ""))[0].split("::")[-1].strip()
