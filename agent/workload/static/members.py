"""Structs of the host that are filled where they are declared: ``Params q{0.01f, 65536};``, ``{.n = 65536}``."""

import functools
import re

from attrs import frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.nodes import declared_name, descendants, text_of
from agent.source.nodes import field as child
from agent.workload import dtypes
from agent.workload.expression import Expression
from agent.workload.expression import number as number_of
from agent.workload.static import calls, configuration, integers, launching, parts, storing
from agent.workload.static import evaluate as ev
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ZERO, Content, Pointer, Record, Scalar, Unknown, Value

MAX_ELEMENTS = 256
"""Elements of an array in a struct that are followed one by one."""


@frozen
class Member:
    """A member of a struct: its name and type as written, its default, and its extent where it is an array."""

    name: str
    type: str
    default: Node | None = None
    extent: Node | None = None


def fill(
    owner: int, type_text: str, node: Node | None, facts: Facts, state: State, line: int, zeroed: bool = False
) -> bool:
    """Give the members of a new struct variable what its list says, else their defaults, else zero where there is a
    list or all is ``zeroed``. Returns whether the type is such a struct, and the list (if any) was understood."""
    if node is not None and node.type == "compound_literal_expression":
        node = child(node, "value")
    found = aggregate(type_text, facts)
    told = _listed(node, found, facts) if found is not None else None
    if found is None or told is None:
        return False
    values = {
        one.name: _value(one, told[one.name], facts, state)
        for one in found
        if one.name in told and not (told[one.name].type == "initializer_list" and _is_whole(one, facts))
    }
    if any(_is_whole(one, facts) and not isinstance(values.get(one.name, Record(0)), Record) for one in found):
        return False  # the members of a struct in the struct are listed without braces of their own
    for one in found:
        _give(owner, one, values.get(one.name), told.get(one.name), node is not None or zeroed, facts, state, line)
    return True


def _value(member: Member, node: Node, facts: Facts, state: State) -> Value:
    if configuration.default(member.type) is None:
        return ev.evaluate(node, facts, state)
    value = launching.dimension(node, facts, state)
    return calls.dim3_of(value) if isinstance(value, Scalar) else value


def _is_whole(member: Member, facts: Facts) -> bool:
    return member.extent is not None or aggregate(member.type, facts) is not None


def _give(
    owner: int, member: Member, value: Value | None, node: Node | None, listed: bool, facts: Facts, state: State,
    line: int,
) -> None:  # fmt: skip
    cell = parts.member(owner, member.name, f"{facts.names[owner]}.{member.name}", facts)
    facts.types[cell] = member.type
    if value is not None:
        storing.set_cell(cell, value, facts, state, line)
    elif member.extent is not None:
        with facts.original_text():
            _array(cell, member, facts, state, line)
        _elements(cell, member, node, listed, facts, state)
    elif node is not None or (listed and _is_whole(member, facts)):
        fill(cell, member.type, node, facts, state, line, zeroed=listed)
    elif member.default is not None:
        with facts.original_text():
            storing.set_cell(cell, ev.evaluate(member.default, facts, state), facts, state, line)
    elif (grid := configuration.default(member.type)) is not None:
        state.cells[cell] = grid
    elif listed:
        storing.set_cell(cell, ZERO, facts, state, line)


def _array(cell: int, member: Member, facts: Facts, state: State, line: int) -> None:
    """An array in a struct is a host memory of its own."""
    count = ev.evaluate(member.extent, facts, state) if member.extent is not None else Unknown("it has no extent")
    nbytes = calls.times_size(count, member.type, facts)
    facts.types[cell] = f"{member.type}[]"
    name = facts.names[cell]
    state.cells[cell] = calls.host_memory("array", nbytes, member.type, line, Content("fresh"), facts, state, name)


def _elements(cell: int, member: Member, node: Node | None, listed: bool, facts: Facts, state: State) -> None:
    from agent.workload.static.declarations import list_elements

    held = state.cells[cell]
    count = facts.memories[held.memory].nbytes if isinstance(held, Pointer) else None
    size = facts.dtype(member.type)
    if not isinstance(held, Pointer) or not isinstance(count, Expression) or size is None:
        return
    number = count.substitute({name: number_of(value) for name, value in facts.values().items()}).constant
    if listed and isinstance(number, int) and number <= MAX_ELEMENTS * dtypes.size_of(size):
        for index in range(number // dtypes.size_of(size)):
            state.cells[parts.member(parts.of_memory(held.memory), str(index), f"{member.name}[{index}]", facts)] = ZERO
    list_elements(held, member.name, member.type, node, facts, state)


def array_member(cell: int, owner: int, name: str, facts: Facts, state: State, line: int) -> None:
    """Where a variable that is named for the first time is an array in a struct, make it one; a grid begins as one
    block."""
    for one in aggregate(facts.types.get(owner, ""), facts, whole=False) or ():
        if one.name == name and one.extent is not None:
            facts.types[cell] = one.type
            with facts.original_text():
                _array(cell, one, facts, state, line)
        elif one.name == name and (grid := configuration.default(one.type)) is not None:
            facts.types[cell], state.cells[cell] = one.type, grid
        elif one.name == name and one.type in configuration.LAYOUTS:
            facts.types[cell] = one.type


def plain_members(body: Node, facts: Facts) -> list[Member]:
    """The members of a struct that are no arrays and no references."""
    text, found = facts.document.text, list[Member]()
    for part in body.named_children:
        type_node = child(part, "type")
        declarators = part.children_by_field_name("declarator") if part.type == "field_declaration" else []
        default = child(part, "default_value") if len(declarators) == 1 else None
        for declarator in declarators:
            pointed = declarator.type == "pointer_declarator"
            named = child(declarator, "declarator") if pointed else declarator
            if named is not None and named.type == "field_identifier" and type_node is not None:
                found.append(Member(text_of(text, named), text_of(text, type_node) + "*" * pointed, default))
    return found


def named(owner: str, facts: Facts) -> list[Member]:
    """The members of a class of the program, those of its bases left out."""
    text, found = facts.document.text, list[Member]()
    for node in descendants(facts.document.tree.root_node, "struct_specifier", "class_specifier"):
        body, name = child(node, "body"), child(node, "name")
        if body is None or name is None or text_of(text, name).split("<")[0].strip() != owner:
            continue
        for part in body.named_children:
            type_node = child(part, "type")
            for declarator in part.children_by_field_name("declarator") if part.type == "field_declaration" else ():
                name = declared_name(declarator)
                if name is None or type_node is None or "function" in declarator.type:
                    continue
                stars = text_of(text, declarator).split(text_of(text, name))[0].count("*")
                found.append(
                    Member(text_of(text, name), text_of(text, type_node) + "*" * stars, None, child(declarator, "size"))
                )
    return found


def integer_type(type_text: str, name: str, facts: Facts) -> str | None:
    """The integer type of the member ``name`` of a struct of the file; None for any other type."""
    bare = type_text.replace("*", "").split("::")[-1].strip()
    body = body_of(bare, facts) if bare in _named(facts.document.text) else None
    text = facts.document.text
    for part in body.named_children if body is not None else ():
        named = {
            text_of(text, one) for one in part.children_by_field_name("declarator") if one.type == "field_identifier"
        }
        type_node = child(part, "type")
        if name in named and type_node is not None:
            return integers.integer(facts.dtype(text_of(text, type_node)))
    return None


def _listed(node: Node | None, members: list[Member], facts: Facts) -> dict[str, Node] | None:
    """Which part of a list is for which member; None where that is not plain."""
    if node is not None and node.type != "initializer_list":
        return None
    listed = [part for part in node.named_children if part.type != "comment"] if node is not None else []
    if len(listed) > len(members):
        return None
    found = {}
    for place, part in enumerate(listed):
        name, value = members[place].name, part
        if part.type == "initializer_pair":
            designator, given = child(part, "designator"), child(part, "value")
            if designator is None or given is None:
                return None
            name, value = facts.node_text(designator).lstrip("."), given
        found[name] = value
    return found


def aggregate(type_text: str, facts: Facts, whole: bool = True) -> list[Member] | None:
    """The members of an aggregate of the program, or of one of CUDA's vectors, in order; None where it has a base, a
    constructor, or what is not followed; where not the ``whole`` is asked for, the members that are."""
    name = type_text.replace("const ", "").strip().split("<")[0].split("::")[-1].strip()
    text = facts.document.text
    if name not in _named(text):
        return _lanes(name) or [Member(*one) for one in configuration.LAYOUTS.get(name, ())] or None
    body = body_of(name, facts)
    found: list[Member] = []
    for part in body.named_children if body is not None else ():
        if part.type in ("comment", "access_specifier", "alias_declaration"):
            continue
        declarators, type_node = part.children_by_field_name("declarator"), child(part, "type")
        default = child(part, "default_value")
        if part.type == "function_definition" and _is_method(part, name, facts):
            continue
        if part.type != "field_declaration" or type_node is None or (default is not None and len(declarators) > 1):
            if whole:
                return None
            continue
        if any(text_of(text, one) == "static" for one in part.children if one.type == "storage_class_specifier"):
            continue
        for declarator in declarators:
            if declarator.type == "function_declarator":
                continue
            pointed = declarator.type == "pointer_declarator"
            listed = declarator.type == "array_declarator"
            named = child(declarator, "declarator") if pointed or listed else declarator
            if named is None or named.type != "field_identifier":
                if whole:
                    return None
                continue
            extent = child(declarator, "size") if listed else None
            found.append(Member(text_of(text, named), text_of(text, type_node) + "*" * pointed, default, extent))
    return found or None


def _lanes(name: str) -> list[Member] | None:
    dtype = dtypes.from_c_type(name)
    scalar, lanes = dtypes.base(dtype) if dtype is not None else ("", 1)
    return [Member(lane, dtypes.c_name(scalar)) for lane in "xyzw"[:lanes]] if 1 < lanes <= 4 else None


@functools.lru_cache(maxsize=4)
def _named(text: bytes) -> frozenset[str]:
    """Every name that may be a struct's."""
    found = re.findall(rb"\b(?:struct|class)\s+(?:\w+\s*\([^()]*\)\s*)?(\w+)|\}\s*(\w+)\s*;", text)
    return frozenset(name.decode("utf-8", "replace") for pair in found for name in pair if name)


def _is_method(node: Node, name: str, facts: Facts) -> bool:
    inner = child(node, "declarator", "declarator")
    return inner is not None and text_of(facts.document.text, inner) not in (name, "~" + name)


def keeps(type_text: str, method: str, facts: Facts) -> bool:
    """Whether a method of a struct of the program says that it leaves the struct as it is."""
    text, body = facts.document.text, body_of(type_text.replace("*", "").split("<")[0].split("::")[-1].strip(), facts)
    for part in body.named_children if body is not None else ():
        declarator = child(part, "declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = child(declarator, "declarator")
        inner = child(declarator, "declarator")
        if declarator is not None and inner is not None and text_of(text, inner) == method:
            return any(one.type == "type_qualifier" and text_of(text, one) == "const" for one in declarator.children)
    return False


def body_of(name: str, facts: Facts) -> Node | None:
    """The body of a struct of the program that has no base."""
    return _bodies(facts.document).get(name)


@functools.lru_cache(maxsize=4)
def _bodies(document: Document) -> dict[str, Node]:
    """The bodies of a program's structs without bases, by name: the first of each."""
    text, found = document.text, dict[str, Node]()
    for node in descendants(document.tree.root_node, "struct_specifier", "class_specifier"):
        body, called = child(node, "body"), child(node, "name")
        alias = child(node.parent, "declarator") if node.parent and node.parent.type == "type_definition" else None
        if body is None or any(part.type == "base_class_clause" for part in node.children):
            continue
        for one in (called, alias):
            if one is not None:
                found.setdefault(text_of(text, one), body)
    return found
