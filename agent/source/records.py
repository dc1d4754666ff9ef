"""Structs and plain classes as they are written: members in order, alignment, template parameters.

What its size may hang on and is not followed (bases, virtual functions, unions, bit fields, references) is told in
words; whoever lays it out refuses it by them.
"""

import functools
import re
from collections.abc import Iterator, Mapping

from attrs import field as attribute
from attrs import frozen
from tree_sitter import Node

from agent.source.document import parse
from agent.source.nodes import ancestors, descendants, text_of
from agent.source.nodes import field as child

_ALIGNED = re.compile(r"\b(?:alignas|__align__|__builtin_align__)\s*\(\s*([^()]*(?:\([^()]*\))?[^()]*?)\s*\)")
_IGNORED = frozenset(
    {
        "access_specifier",
        "comment",
        "friend_declaration",
        "static_assert_declaration",
        "template_declaration",
        "preproc_def",
        "preproc_function_def",
        "using_declaration",
    }
)
_TYPES = frozenset({"struct_specifier", "class_specifier", "enum_specifier", "union_specifier"})


@frozen
class Member:
    """``type`` is as written, without qualifiers; ``inner`` is the struct where it is written out in place. ``const``
    says that what a pointer leads to is not written through it. ``extents`` are those of an array, outermost first."""

    name: str
    type: str
    stars: int
    const: bool
    extents: tuple[str, ...]
    aligned: tuple[str, ...]
    inner: "Record | None" = None


@frozen
class Record:
    """``scope`` holds the names around it, ``template`` its parameters and their defaults. ``trouble`` says what about
    its layout is not followed, or is empty. ``aliases`` and ``constants`` are types and numbers that it declares."""

    name: str
    scope: tuple[str, ...]
    template: tuple[tuple[str, str | None], ...]
    aligned: tuple[str, ...]
    members: tuple[Member, ...]
    trouble: str = ""
    aliases: Mapping[str, str] = attribute(factory=dict, eq=False)
    constants: Mapping[str, str] = attribute(factory=dict, eq=False)


class _Trouble(ValueError):
    pass


@functools.lru_cache(maxsize=8)
def records(text: bytes) -> Mapping[str, tuple[Record, ...]]:
    """Every struct and class that ``text`` defines, by its bare name; a name of several definitions has all of them."""
    document = parse(text)
    found: dict[str, list[Record]] = {}
    packed = re.search(rb"#\s*pragma\s+pack\b", text) is not None
    for node in descendants(document.tree.root_node, "struct_specifier", "class_specifier"):
        body = child(node, "body")
        for name in _names(node, document.text) if body is not None else ():
            read = _record(node, name, document.text)
            if packed:
                read = Record(read.name, read.scope, (), (), (), "`#pragma pack` may pack it")
            found.setdefault(name, [])
            found[name] += [] if read in found[name] else [read]
    return {name: tuple(told) for name, told in found.items()}


def _names(node: Node, text: bytes) -> Iterator[str]:
    """Its own name, and those that a ``typedef`` around it gives."""
    own = child(node, "name")
    if own is not None:
        yield text_of(text, child(own, "name") or own) if own.type == "template_type" else text_of(text, own)
    if node.parent is not None and node.parent.type == "type_definition":
        for one in node.parent.children_by_field_name("declarator"):
            if one.type == "type_identifier":
                yield text_of(text, one)


def _record(node: Node, name: str, text: bytes) -> Record:
    body = child(node, "body")
    assert body is not None
    scope = tuple(_scope(node, text))
    aliases: dict[str, str] = {}
    constants: dict[str, str] = {}
    head = text[node.start_byte : body.start_byte].decode("utf-8", "replace")
    try:
        _check(node, head, text)
        members = tuple(_members(body, name, text, aliases, constants))
    except _Trouble as trouble:
        return Record(name, scope, (), (), (), str(trouble))
    return Record(name, scope, _template(node, text), tuple(_ALIGNED.findall(head)), members, "", aliases, constants)


def _check(node: Node, head: str, text: bytes) -> None:
    own, kinds = child(node, "name"), {part.type for part in node.children}
    if "base_class_clause" in kinds:
        raise _Trouble("it has a base class")
    if "attribute_specifier" in kinds or "__attribute__" in head:
        raise _Trouble("it has `__attribute__`")
    body = child(node, "body")
    tail = text[body.end_byte :].split(b";", 1)[0] if body is not None else b""
    if b"align" in tail or b"__attribute__" in tail:
        raise _Trouble("its alignment is stated behind it")
    if own is not None and own.type == "template_type":
        raise _Trouble("it has a specialisation")
    if node.has_error and any(part.type == "ERROR" or part.is_missing for part in _outside_functions(node)):
        raise _Trouble("it has a parse error")


def _outside_functions(node: Node) -> Iterator[Node]:
    """A struct's parts outside of function bodies, which have no say in its layout."""
    stack = [node]
    while stack:
        part = stack.pop()
        yield part
        stack += [inner for inner in part.children if inner.type != "compound_statement"]


def _scope(node: Node, text: bytes) -> list[str]:
    around = [
        text_of(text, name)
        for above in ancestors(node)
        if above.type in ("namespace_definition", "struct_specifier", "class_specifier")
        and (name := child(above, "name")) is not None
    ]
    return [part for name in reversed(around) for part in name.split("::")]


def _template(node: Node, text: bytes) -> tuple[tuple[str, str | None], ...]:
    above = node.parent
    if above is None or above.type != "template_declaration":
        return ()
    found: list[tuple[str, str | None]] = []
    listed = child(above, "parameters")
    for part in listed.named_children if listed is not None else ():
        name = child(part, "name") or child(part, "declarator")
        default = child(part, "default_type") or child(part, "default_value")
        inner = next((one for one in part.named_children if one.type in ("type_identifier", "identifier")), None)
        name = name or (part.named_children[-1] if part.type == "parameter_declaration" else inner)
        if name is not None:
            found.append((text_of(text, name), text_of(text, default) if default is not None else None))
    return tuple(found)


def _members(
    body: Node, name: str, text: bytes, aliases: dict[str, str], constants: dict[str, str]
) -> Iterator[Member]:
    end = body.start_byte
    for part in body.named_children:
        if part.type in _IGNORED:
            end = part.end_byte
            continue
        if part.type in ("alias_declaration", "type_definition"):
            aliases |= _aliases(part, text)
        elif part.type in ("function_definition", "declaration"):
            _check_function(part, name, text)
        elif part.type == "field_declaration":
            yield from _fields(part, end, name, text, constants)
        elif part.type.startswith("preproc"):
            raise _Trouble("its members depend on `#if`")
        elif part.type not in _TYPES:
            raise _Trouble(f"`{_short(part, text)}` in it is not followed")
        end = part.end_byte


def _aliases(node: Node, text: bytes) -> Iterator[tuple[str, str]]:
    if node.type == "alias_declaration":
        name, held = child(node, "name"), child(node, "type")
        if name is not None and held is not None:
            yield text_of(text, name), text_of(text, held)
        return
    held = child(node, "type")
    for one in node.children_by_field_name("declarator"):
        if one.type == "type_identifier" and held is not None and held.type not in _TYPES:
            yield text_of(text, one), text_of(text, held)


def _check_function(node: Node, name: str, text: bytes) -> None:
    body = child(node, "body")
    head = text[node.start_byte : body.start_byte if body is not None else node.end_byte].decode("utf-8", "replace")
    if re.search(r"\bvirtual\b", head):
        raise _Trouble("it has virtual functions")
    if "~" in head.split("(")[0]:
        raise _Trouble("it has a destructor")
    if re.search(rf"\b{re.escape(name)}\s*\(\s*(const\s+)?{re.escape(name)}\s*(const\s*)?&", head):
        raise _Trouble("it has a copy constructor")


def _fields(node: Node, end: int, name: str, text: bytes, constants: dict[str, str]) -> Iterator[Member]:
    """The members of one declaration; ``end`` is that of what stands before it."""
    head = text_of(text, node)
    words = {text_of(text, part) for part in node.children if not part.is_named or "specifier" in part.type}
    words |= {text_of(text, part) for part in node.children if part.type == "type_qualifier"}
    declarators, type_node = node.children_by_field_name("declarator"), child(node, "type")
    if "static" in words:
        default = child(node, "default_value")
        if len(declarators) == 1 and declarators[0].type == "field_identifier" and default is not None:
            constants[text_of(text, declarators[0])] = text_of(text, default)
        return
    if any(_is_method(one) for one in declarators):
        return _check_function(node, name, text)
    if any(part.type == "bitfield_clause" for part in node.children):
        raise _Trouble("it has bit fields")
    if "__attribute__" in head:
        raise _Trouble("it has `__attribute__`")
    if type_node is None or type_node.type == "union_specifier":
        raise _Trouble("it has a union" if type_node is not None else f"`{_short(node, text)}` in it is not followed")
    inner = None
    if type_node.type in ("struct_specifier", "class_specifier") and child(type_node, "body") is not None:
        own = child(type_node, "name")
        if not declarators:
            if own is None:
                raise _Trouble("it has a struct without a name in it")
            return
        inner = _record(type_node, text_of(text, own) if own is not None else "(struct)", text)
    first = declarators[0].start_byte if declarators else type_node.start_byte
    aligned = tuple(_ALIGNED.findall(text[end:first].decode("utf-8", "replace")))
    if aligned and inner is not None:
        raise _Trouble("a struct in it states its alignment")
    for declarator in declarators:
        called, stars, extents = _declared(declarator, text)
        yield Member(called, text_of(text, type_node), stars, "const" in words, extents, aligned, inner)


def _is_method(declarator: Node) -> bool:
    node: Node | None = declarator
    while node is not None and node.type in ("pointer_declarator", "reference_declarator"):
        node = child(node, "declarator") or (node.named_children[-1] if node.named_children else None)
    inner = child(node, "declarator") if node is not None and node.type == "function_declarator" else None
    return inner is not None and inner.type != "parenthesized_declarator"


def _declared(declarator: Node, text: bytes) -> tuple[str, int, tuple[str, ...]]:
    """Name, stars and extents of a member. Raises _Trouble for what is no number, pointer, struct or array of these."""
    node, stars, extents = declarator, 0, list[str]()
    while node.type != "field_identifier":
        if node.type == "pointer_declarator" and not extents:
            stars += 1
        elif node.type == "array_declarator":
            size = child(node, "size")
            if size is None:
                raise _Trouble(f"`{_short(declarator, text)}` in it has no extent")
            extents.append(text_of(text, size))
        else:
            words = {"reference_declarator": "a reference", "function_declarator": "a pointer to a function"}
            raise _Trouble(f"`{_short(declarator, text)}` in it is {words.get(node.type, 'not followed')}")
        inner = child(node, "declarator")
        if inner is None:
            raise _Trouble(f"`{_short(declarator, text)}` in it is not followed")
        node = inner
    return text_of(text, node), stars, tuple(reversed(extents))


def _short(node: Node, text: bytes) -> str:
    words = " ".join(text_of(text, node).split())
    return words if len(words) <= 40 else words[:37] + "..."
