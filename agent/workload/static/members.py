"""Structs of the host that are filled where they are declared: ``Params q{0.01f, 65536};``, ``{.n = 65536}``."""

import functools
import re

from attrs import frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.nodes import descendants, text_of
from agent.source.nodes import field as child
from agent.workload.static import evaluate as ev
from agent.workload.static import integers, parts
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ZERO, Value


@frozen
class Member:
    """A member of a struct: its name and type as written, and its default."""

    name: str
    type: str
    default: Node | None


def fill(owner: int, type_text: str, node: Node | None, facts: Facts, state: State, line: int) -> bool:
    """Give the members of a new struct variable what its list says, else their defaults, else zero where there is a
    list. Returns whether the type is such a struct, and the list (if any) was understood."""
    if node is not None and node.type == "compound_literal_expression":
        node = child(node, "value")
    members = _members(type_text.split("::")[-1].strip(), facts)
    told = _listed(node, members, facts) if members else None
    if members is None or told is None:
        return False
    for member in members:
        value = _value(member, told, node is not None, facts, state)
        if value is not None:
            cell = parts.member(owner, member.name, f"{facts.names[owner]}.{member.name}", facts)
            facts.types[cell] = member.type
            ev.set_cell(cell, value, facts, state, line)
    return True


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


def _value(member: Member, told: dict[str, Node], listed: bool, facts: Facts, state: State) -> Value | None:
    if member.name in told:
        return ev.evaluate(told[member.name], facts, state)
    if member.default is None:
        return ZERO if listed else None
    with facts.original_text():
        return ev.evaluate(member.default, facts, state)


def _listed(node: Node | None, members: list[Member], facts: Facts) -> dict[str, Node] | None:
    """Which part of a list is for which member; None where that is not plain."""
    if node is not None and node.type != "initializer_list":
        return None
    listed = [part for part in node.named_children if part.type != "comment"] if node is not None else []
    if len(listed) > len(members) or any(part.type == "initializer_list" for part in listed):
        return None  # a struct in the struct
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


def _members(name: str, facts: Facts) -> list[Member] | None:
    """The members of an aggregate of the file, in order; None where it has a base, a constructor or an array."""
    if name not in _named(facts.document.text):
        return None
    body = body_of(name, facts)
    found: list[Member] = []
    for part in body.named_children if body is not None else ():
        if part.type == "comment":
            continue
        declarators, type_node = part.children_by_field_name("declarator"), child(part, "type")
        default = child(part, "default_value")
        if part.type == "function_definition" and _is_method(part, name, facts):
            continue
        if part.type != "field_declaration" or type_node is None or (default is not None and len(declarators) > 1):
            return None
        for declarator in declarators:
            pointed = declarator.type == "pointer_declarator"
            named = child(declarator, "declarator") if pointed else declarator
            if named is None or named.type != "field_identifier":
                return None
            text = facts.document.text
            found.append(Member(text_of(text, named), text_of(text, type_node) + "*" * pointed, default))
    return found or None


@functools.lru_cache(maxsize=4)
def _named(text: bytes) -> frozenset[str]:
    """Every name that may be a struct's."""
    found = re.findall(rb"\bstruct\s+(\w+)|\}\s*(\w+)\s*;", text)
    return frozenset(name.decode("utf-8", "replace") for pair in found for name in pair if name)


def _is_method(node: Node, name: str, facts: Facts) -> bool:
    inner = child(node, "declarator", "declarator")
    return inner is not None and text_of(facts.document.text, inner) not in (name, "~" + name)


def body_of(name: str, facts: Facts) -> Node | None:
    """The body of a struct of the program that has no base."""
    return _bodies(facts.document).get(name)


@functools.lru_cache(maxsize=4)
def _bodies(document: Document) -> dict[str, Node]:
    """The bodies of a program's structs without bases, by name: the first of each."""
    text, found = document.text, dict[str, Node]()
    for node in descendants(document.tree.root_node, "struct_specifier"):
        body, called = child(node, "body"), child(node, "name")
        alias = child(node.parent, "declarator") if node.parent and node.parent.type == "type_definition" else None
        if body is None or any(part.type == "base_class_clause" for part in node.children):
            continue
        for one in (called, alias):
            if one is not None:
                found.setdefault(text_of(text, one), body)
    return found
