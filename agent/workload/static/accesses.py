"""Which names of a kernel lead into which buffer, and what each mention of one does to it: reads, writes.

Read off the syntax alone. Names are pointers (``const float* row = x + i * n;``, ``float* v = cells[i].v;`` of an array
in a struct) and references (``Cell& cell = cells[i];``), of which every mention is one of the elements.
"""

import re
from collections.abc import Iterator

from attrs import define, field, frozen
from tree_sitter import Node

from agent.source.nodes import declared_name, text_of, walk
from agent.source.nodes import field as child
from agent.workload.static import struct_use
from agent.workload.static.device_shapes import Shapes
from agent.workload.static.row_pointers import row_pointer

_WRAPPERS = ("parenthesized_expression", "cast_expression")


@define
class Body:
    """A kernel's text, and what its names lead to: ``aliases`` the buffer by pointer, ``refers`` by reference. A buffer
    is ``mixed`` up with another where one name leads to both, at different times or under different conditions."""

    text: bytes
    aliases: dict[str, str]
    const: frozenset[str]
    shapes: Shapes
    levels: dict[str, int] = field(factory=dict)  # of parameters that point to arrays: subscripts to an element
    refers: dict[str, str] = field(factory=dict)
    mixed: set[str] = field(factory=set)
    declared: set[int] = field(factory=set)  # where pointers to arrays are, which the grammar reads as expressions
    tainted: dict[str, set[tuple[str, bool]]] = field(factory=dict)
    rows: dict[str, str] = field(factory=dict)
    checked: set[str] = field(factory=set)

    def of(self, node: Node) -> str:
        return text_of(self.text, node)

    def starts(self, node: Node, operator: str) -> bool:
        """Whether a node begins with an operator."""
        return self.of(node).startswith(operator)


def find_aliases(node: Node, body: Body) -> None:
    """Locals that lead into a parameter's buffer."""
    for _ in range(3):
        for part in walk(node):
            if part.type == "init_declarator":
                _declared(part, body)
            elif (row := row_pointer(part, body.text, body.shapes.references.__contains__)) is not None:
                body.declared.add(row.name.start_byte)
                source = pointer_root(row.value, body) if row.value is not None else None
                if source is not None:
                    _lead(body.of(row.name), source, body.aliases, body)
            elif part.type == "assignment_expression":
                left, right = child(part, "left"), child(part, "right")
                name = declared_name(left) if left is not None else None
                source = pointer_root(right, body) if right is not None else None
                if name is not None and source is not None and left is name:
                    _lead(body.of(name), source, body.aliases, body)
            elif part.type == "conditional_expression":
                sides = {pointer_root(side, body) for side in part.named_children[1:]} - {None}
                body.mixed |= {side for side in sides if side is not None} if len(sides) > 1 else set()


def _lead(name: str, source: str, known: dict[str, str], body: Body) -> None:
    if known.setdefault(name, source) != source:
        body.mixed |= {known[name], source}


def _declared(part: Node, body: Body) -> None:
    left, right = child(part, "declarator"), child(part, "value")
    name = declared_name(left)
    if left is None or right is None or name is None:
        return
    if left.type == "identifier" and "auto" not in _type_of(part, body):
        return
    source = pointer_root(right, body)
    if source is None and left.type == "pointer_declarator":
        source = element_root(right, body)  # a pointer that is kept in a buffer may well lead into the same
    element = element_root(right, body) if source is None and _is_reference(left) else None
    if source is not None:
        _lead(body.of(name), source, body.aliases, body)
    elif element is not None:
        _lead(body.of(name), element, body.refers, body)


def _is_reference(declarator: Node | None) -> bool:
    while declarator is not None and declarator.type in ("array_declarator", "parenthesized_declarator"):
        declarator = child(declarator, "declarator") or next(iter(declarator.named_children), None)
    return declarator is not None and declarator.type == "reference_declarator"


def _type_of(declarator: Node, body: Body) -> str:
    parent = declarator.parent
    type_node = child(parent, "type") if parent is not None else None
    return body.of(type_node) if type_node is not None else ""


def pointer_root(node: Node, body: Body) -> str | None:
    """The parameter that a pointer expression starts from."""
    if node.type == "identifier":
        return body.aliases.get(body.of(node))
    if node.type == "field_expression":
        known = body.aliases.get(struct_use.path_of(node, body.text))
        return known or (element_root(node, body) if _is_array(node, body) else None)
    if node.type in _WRAPPERS:
        return pointer_root(node.named_children[-1], body)
    if node.type == "binary_expression":
        sides = [pointer_root(part, body) for part in node.named_children[:2]]
        return sides[0] or sides[1]
    inner = child(node, "argument") if node.type == "pointer_expression" and body.starts(node, "&") else None
    if inner is not None:
        return element_root(inner, body)
    if node.type == "call_expression" and "_cast" in body.of(node)[:18]:
        arguments = child(node, "arguments")
        return pointer_root(arguments.named_children[0], body) if arguments and arguments.named_children else None
    if node.type == "conditional_expression":
        yes = child(node, "consequence")
        return pointer_root(yes, body) if yes is not None else None
    return None


def element_root(node: Node, body: Body) -> str | None:
    """The parameter in whose buffer an object lies: ``x[i]``, ``*p``, ``p->v``, ``cells[i].v[j]``, a reference."""
    if node.type == "identifier":
        return body.refers.get(body.of(node))
    if node.type == "parenthesized_expression" and node.named_children:
        return element_root(node.named_children[-1], body)
    inner = child(node, "argument")
    if inner is None or node.type not in ("subscript_expression", "pointer_expression", "field_expression"):
        return None
    if node.type == "pointer_expression" and not body.starts(node, "*"):
        return None
    return pointer_root(inner, body) or element_root(inner, body)


def _is_array(node: Node, body: Body) -> bool:
    member = child(node, "field")
    return member is not None and body.of(member) in body.shapes.arrays


@frozen
class _Mention:
    """What one mention of a name does to a buffer, and where: ``at`` in the order of the text, in which what is
    assigned comes before the assignment."""

    at: int
    name: str
    reads: bool
    writes: bool
    certain: bool
    node: Node


def accesses(node: Node, body: Body) -> tuple[set[str], set[str], set[str]]:
    """Buffers that are read, those that are written, and those that are read before they are written, if they are."""
    found: list[_Mention] = []
    for part in walk(node):
        if part.type not in ("identifier", "field_expression") or part.start_byte in body.declared:
            continue
        held = body.refers.get(body.of(part)) if part.type == "identifier" else None
        name = held or pointer_root(part, body) if part.type == "identifier" or not _is_array(part, body) else None
        if name is None:
            continue
        reads, writes, certain, at = _context(part, body, held is not None)
        if reads or writes:
            found.append(_Mention(at, name, reads, writes, certain, part))
    first: dict[str, _Mention] = {}
    for one in sorted(found, key=lambda one: one.at):
        first.setdefault(one.name, one)
    read = {one.name for one in found if one.reads} | body.mixed
    written = {one.name for one in found if one.writes} | body.mixed
    before = {name for name, one in first.items() if one.reads and one.certain and _goes_on(one, found)}
    return read, written, before - body.mixed


def _goes_on(first: _Mention, found: list[_Mention]) -> bool:
    """Whether the branch in which a buffer is read first writes it, too: else another branch may be the first."""
    start, end = _branch(first.node)
    return any(one.name == first.name and one.writes and start <= one.node.start_byte < end for one in found)


def _branch(node: Node) -> tuple[int, int]:
    """Where the innermost branch around a node begins and ends."""
    above = node.parent
    while above is not None and above.type != "function_definition":
        if above.type == "case_statement":
            return above.start_byte, above.end_byte
        if above.type in ("if_statement", "conditional_expression") and node != child(above, "condition"):
            return node.start_byte, node.end_byte
        node, above = above, above.parent
    return node.start_byte, node.end_byte


def _context(node: Node, body: Body, accessed: bool) -> tuple[bool, bool, bool, int]:
    """(reads, writes, certain, where) of one mention of a pointer, reference or symbol."""
    place, parent = node, node.parent
    while parent is not None:
        if (parent.type == "subscript_expression" and child(parent, "argument") == place) or (
            parent.type == "pointer_expression" and body.starts(parent, "*")
        ):
            accessed = True
        elif parent.type == "pointer_expression":
            accessed = False
        elif parent.type == "field_expression":
            accessed = (accessed or "->" in body.of(parent)) and not _is_array(parent, body)
        elif parent.type in _WRAPPERS:
            pass
        elif parent.type == "binary_expression" and not accessed:
            pass  # pointer arithmetic
        elif parent.type == "argument_list" and not accessed and _is_cast(parent.parent, body):
            parent = parent.parent or parent  # the same pointer, as another type
        else:
            break
        place, parent = parent, parent.parent
    if parent is None:
        return True, True, False, node.start_byte
    reads, writes, certain = _effect(place, parent, accessed, body)
    stored = writes and not reads and parent.type == "assignment_expression"
    return reads, writes, certain, parent.end_byte if stored else node.start_byte


def _is_cast(call: Node | None, body: Body) -> bool:
    callee = child(call, "function")
    return callee is not None and re.match(r"(static|reinterpret|const)_cast\b", body.of(callee)) is not None


_NOTHING, _READ, _WRITE, _BOTH = (False, False, True), (True, False, True), (False, True, True), (True, True, True)
_ANYTHING = (True, True, False)


def _effect(place: Node, parent: Node, accessed: bool, body: Body) -> tuple[bool, bool, bool]:
    """(reads, writes, certain)."""
    if parent.type == "assignment_expression" and child(parent, "left") == place:
        plain = body.of(child(parent, "operator") or parent.children[1]) == "="
        return (_WRITE if plain else _BOTH) if accessed else _NOTHING
    if parent.type == "update_expression":
        return _BOTH if accessed else _NOTHING
    if parent.type == "argument_list":
        return _passed(place, parent, accessed, body)
    if parent.type == "call_expression":
        return _called(place, body) if accessed else _NOTHING
    if parent.type == "init_declarator" and accessed and _is_reference(child(parent, "declarator")):
        return _NOTHING  # followed under its own name
    if parent.type.endswith("_declarator") and parent.type != "init_declarator":
        return _NOTHING  # that name itself
    if parent.type in ("init_declarator", "assignment_expression", "conditional_expression") and not accessed:
        return _NOTHING
    return _READ if accessed else _NOTHING


def _called(place: Node, body: Body) -> tuple[bool, bool, bool]:
    """``cells[i].step()``: a method that may change its object, or one that does not, or is not in sight."""
    member = child(place, "field") if place.type == "field_expression" else None
    return _ANYTHING if member is not None and body.of(member) in body.shapes.changing else _READ


def _passed(place: Node, arguments: Node, accessed: bool, body: Body) -> tuple[bool, bool, bool]:
    call = arguments.parent
    callee = child(call, "function") if call is not None else None
    name = re.sub(r"<.*", "", body.of(callee), flags=re.S).split("::")[-1] if callee is not None else ""
    if accessed and name not in ("swap", "exchange"):
        given = [one for one in arguments.named_children if one.type != "comment"]
        at = given.index(place) if place in given else -1
        return _ANYTHING if at in body.shapes.references.get(name, ()) else _READ
    if re.match(r"tex\w*\d|texCubemap", name) or (name.startswith("surf") and name.endswith("read")):
        return _READ
    if name.startswith("surf") and name.endswith("write"):
        return _WRITE
    if name in ("__ldg", "__ldcg", "__ldca", "__ldcs") or name.endswith("_cast"):
        return _READ
    return True, True, name.startswith("atomic") and "Exch" not in name


def root(node: Node, body: Body) -> str | None:
    """The parameter that a pointer expression starts from, and of ``a[i]``, a row of ``a``, that."""
    base = node
    while base.type == "subscript_expression" and (inner := child(base, "argument")) is not None:
        base = inner
    in_row = base is not node and base.type == "identifier" and body.of(base) in body.levels
    return pointer_root(base if in_row else node, body)


def subscripted(node: Node, body: Body) -> Iterator[tuple[str, int]]:
    """Each mention of a parameter that points to arrays, and how many subscripts follow: a row alone is a pointer."""
    for part in walk(node) if body.levels else ():
        if part.type == "identifier" and body.of(part) in body.levels:
            count, place = 0, part
            while place.parent is not None and child(place.parent, "argument") == place:
                if place.parent.type != "subscript_expression":
                    break
                count, place = count + 1, place.parent
            yield body.of(part), count
