"""How the members of a file's structs lie in memory: what one member of an array of structs costs, and which bytes a
thread leaves out."""

import re
from collections.abc import Iterator, Mapping

from attrs import frozen
from tree_sitter import Node

from agent.analysis.syntax import text
from agent.workload.dtypes import base, from_c_type, size_of


@frozen
class Member:
    """``bytes`` from ``offset`` on; ``whole``: one access moves all of them (no array, no struct)."""

    name: str
    offset: int
    bytes: int
    whole: bool = True


@frozen
class Layout:
    """``align`` is what an element's address is known to be a multiple of."""

    size: int
    align: int
    members: tuple[Member, ...]

    def member(self, name: str) -> Member | None:
        return next((one for one in self.members if one.name == name), None)


POINTER = "size_t"
"""Lies as a pointer does."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OTHER = re.compile(r"align|:|virtual|union|struct {8}|\} {8}")
"""A hole is where something was blanked: an alignment that is stated."""
Written = tuple[tuple[str, str, str], ...]
"""(type, name, extent or nothing) of the members as written; of another name for a type, that type and no name."""


def written_struct(node: Node) -> tuple[str, Written] | None:
    """(name, members) of ``struct S { ... };`` or ``typedef struct { ... } S;`` where each member is a plain number, a
    vector, a pointer, another struct or an array of those, and of ``typedef float2 S;``; None of what has bases,
    methods, bit fields or a stated alignment."""
    kind = node if node.type == "struct_specifier" else node.child_by_field_name("type")
    if node.type == "type_definition" and kind is not None and kind.type in ("primitive_type", "type_identifier"):
        declarator = node.child_by_field_name("declarator")
        plain = declarator is not None and declarator.type in ("type_identifier", "primitive_type")
        return (text(declarator), another_name(text(kind))) if plain else None
    if kind is None or kind.type != "struct_specifier" or _OTHER.search(_COMMENT.sub("", text(kind))):
        return None
    body = kind.child_by_field_name("body")
    name = text(kind.child_by_field_name("name"))
    if node.type == "type_definition":
        name = text(node.child_by_field_name("declarator")) or name
    if body is None or not name:
        return None
    found: list[tuple[str, str, str]] = []
    for member in body.named_children:
        if member.type == "comment":
            continue
        if member.type != "field_declaration":
            return None
        for declarator in member.children_by_field_name("declarator"):
            extent = ""
            if declarator.type == "array_declarator":
                extent = text(declarator.child_by_field_name("size"))
                declarator = declarator.child_by_field_name("declarator") or declarator
            kind_of = text(member.child_by_field_name("type"))
            while declarator.type == "pointer_declarator":
                kind_of = POINTER
                declarator = declarator.child_by_field_name("declarator") or declarator
            if declarator.type != "field_identifier":
                return None
            found.append((kind_of, text(declarator), extent))
    return (name, tuple(found)) if found else None


def another_name(kind: str) -> Written:
    """What is written of a name that stands for a type."""
    return ((kind, "", ""),)


def layouts(structs: Mapping[str, Written], constants: Mapping[str, int]) -> Mapping[str, Layout]:
    """Those whose members are all known."""
    found: dict[str, Layout] = {}
    while True:
        new = {
            name: made
            for name, members in structs.items()
            if name not in found and (made := _layout(members, found, constants)) is not None
        }
        if not new:
            return found
        found |= new


def layout(kind: str, structs: Mapping[str, Layout]) -> Layout | None:
    """Of a type as written: a number, a vector or a struct of the file. Vectors of three are aligned as one of them."""
    name = re.sub(r"\b(const|volatile|struct)\b", "", kind).strip()
    if name in structs:
        return structs[name]
    dtype = from_c_type(kind)
    if dtype is None:
        return None
    scalar, lanes = base(dtype)
    each, size = size_of(scalar), size_of(dtype)
    align = each if lanes == 3 else min(size, 16)
    parts = tuple(Member(axis, at * each, each) for at, axis in enumerate("xyzw"[:lanes])) if 1 < lanes <= 4 else ()
    return Layout(size, align, parts)


def _layout(members: Written, known: Mapping[str, Layout], constants: Mapping[str, int]) -> Layout | None:
    if len(members) == 1 and not members[0][1]:
        return layout(members[0][0], known)
    offset, align, made = 0, 1, list[Member]()
    for kind, name, extent in members:
        one = layout(kind, known)
        count = 1 if not extent else constants.get(extent) or (int(extent) if extent.isdigit() else None)
        if one is None or not count:
            return None
        offset = -(-offset // one.align) * one.align
        made.append(Member(name, offset, one.size * count, not extent and one.align == one.size))
        offset, align = offset + one.size * count, max(align, one.align)
    return Layout(-(-offset // align) * align, align, tuple(made))


def of_item(node: Node) -> Iterator[tuple[str, Written]]:
    """The structs that one item of a file defines."""
    if node.type in ("struct_specifier", "type_definition", "declaration") and (found := written_struct(node)):
        yield found
