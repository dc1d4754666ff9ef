"""``const Params p(argc, argv);``: a constructor of the program is run like any function, with the members in sight.

Only for objects that are ``const``: what methods, which are not followed, do to others is not known.
"""

from attrs import frozen
from tree_sitter import Node

from agent.source.nodes import field as child
from agent.source.nodes import text_of
from agent.workload.static import evaluate as ev
from agent.workload.static import members, parts
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Unknown, Value


@frozen
class Constructor:
    """Of a struct whose ``body`` it stands in."""

    body: Node
    function: Node


def constructor(type_text: str, count: int, facts: Facts) -> Constructor | None:
    """The one that takes ``count`` arguments, where it can be followed: the only one of that many parameters, with its
    body in the struct, without a list of initial values, of a struct without bases."""
    bare = type_text.split("::")[-1].strip()
    body = members.body_of(bare, facts)
    function = _constructor(body, bare, count, facts) if body is not None else None
    return Constructor(body, function) if body is not None and function is not None else None


def construct(
    name: str, type_text: str, made: Constructor, values: list[Value], facts: Facts, state: State, line: int
) -> None:
    """Declare a struct variable and run its constructor on these arguments."""
    from agent.workload.static.declarations import bind_parameter
    from agent.workload.static.execute import run_body

    cell = facts.declare(name, Unknown(f"`{name}` is a struct", line), type_text, state)
    with facts.original_text(), facts.call_scope():
        for member, text, default in _members(made.body, facts):
            part = parts.member(cell, member, f"{name}.{member}", facts)
            facts.types[part], facts.scopes[-1][member] = text, part
            state.cells[part] = Unknown(f"nothing that is followed sets `{name}.{member}`", line)
            if default is not None:
                ev.set_cell(part, ev.evaluate(default, facts, state), facts, state, facts.line(default))
        for parameter, value in zip(_parameters(made.function), values, strict=True):
            bind_parameter(parameter, value, None, facts, state)
        run_body(made.function, facts, state)


def _constructor(body: Node, name: str, count: int, facts: Facts) -> Node | None:
    found = []
    for part in body.named_children:
        declared = child(part, "declarator")
        inner = child(declared, "declarator") if declared is not None else None
        if inner is not None and text_of(facts.document.text, inner) == name:
            found.append(part)
    fitting = [part for part in found if len(_parameters(part)) == count]
    if len(fitting) != 1 or fitting[0].type != "function_definition" or child(fitting[0], "body") is None:
        return None
    lists = any(part.type == "field_initializer_list" for part in fitting[0].named_children)
    return None if lists else fitting[0]


def _parameters(function: Node) -> list[Node]:
    listed = child(function, "declarator", "parameters")
    return [part for part in (listed.named_children if listed is not None else ()) if "parameter" in part.type]


def _members(body: Node, facts: Facts) -> list[tuple[str, str, Node | None]]:
    """Name, type and default of each plain member and pointer; others (arrays, references) stay unknown."""
    text, found = facts.document.text, []
    for part in body.named_children:
        type_node = child(part, "type")
        if part.type != "field_declaration" or type_node is None:
            continue
        declarators = part.children_by_field_name("declarator")
        default = child(part, "default_value") if len(declarators) == 1 else None
        for declarator in declarators:
            stars = declarator.type == "pointer_declarator"
            named = child(declarator, "declarator") if stars else declarator
            if named is not None and named.type == "field_identifier":
                found.append((text_of(text, named), text_of(text, type_node) + "*" * stars, default))
    return found
