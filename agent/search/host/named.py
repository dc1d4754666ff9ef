"""Shapes of launches under the user's names: told where the variable is declared, not in its place at the launch."""

import re
from collections.abc import Iterator

from attrs import frozen
from tree_sitter import Node

from agent.search.host.sites import names_in_scope
from agent.search.host.written import in_macro
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.launch import LaunchSite
from agent.source.nodes import descendants, node_text
from agent.source.span import Span
from agent.workload.types import split_arguments

_NAME = re.compile(r"[A-Za-z_]\w*")
_FREE = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
"""A name that is no member's."""
_DECLARED = re.compile(
    r"(?P<type>(?:const(?:expr)?\s+)?(?:dim3|auto|size_t|u?int\d+_t|unsigned(?:\s+int)?|int))\s+(?P<name>\w+)\s*"
    r"(?P<open>[=({])(?P<value>.*?)(?P<close>[)}]?)\s*;",
    re.DOTALL,
)
CONSTANT = re.compile(
    r"(?:static\s+)?const(?:expr)?\s+(?:unsigned\s+int|unsigned|int|size_t)\s+(?P<name>\w+)\s*=\s*(?P<value>\d+)\s*;"
)
"""A whole number that the file names."""
_SHAPE = re.compile(r"\s*dim3\s*[({](.*)[)}]\s*", re.DOTALL)
_OWN = frozenset({"dim3", "size_t", "int", "unsigned", "sizeof", "min", "max", "std"})


@frozen
class _Place:
    """A variable's name with what a launch says now in its place."""

    name: str
    new: str
    span: Span
    function: Span


def with_names(before: Document, after: Document) -> Document:
    """``after`` with every grid and block that ``before`` named and it does not under that name again, where nothing
    else used the variable and the new value can be told where it is declared."""
    while edits := _edits(before, after):
        after = parse(apply_edits(after.text, edits), after.path)
    return after


def _edits(before: Document, after: Document) -> list[Edit]:
    places = list(_places(before, after))
    constants = _constants(after)
    for place in places:
        if constants.get(place.name) == place.new:
            return [Edit(place.span, place.name.encode())]
        alike = [one for one in places if (one.name, one.function) == (place.name, place.function)]
        declared = _declaration(after, place, len(alike))
        if declared is None or len({one.new for one in alike}) != 1:
            continue
        new = _exchanged(node_text(after, declared), place)
        if new and (text := _retold(node_text(after, declared), new)) is not None:
            own = Edit(Span(declared.start_byte, declared.end_byte), text.encode())
            return [own, *(Edit(one.span, one.name.encode()) for one in alike)]
    return []


def named_shapes(before: Document, after: Document) -> list[tuple[str, str]]:
    """The name of each grid and block that ``before`` has and ``after`` has not, with what stands there now."""
    return [(place.name, place.new) for place in _places(before, after)]


def _constants(document: Document) -> dict[str, str]:
    """The whole numbers that are named at the top level of the file."""
    found = (CONSTANT.fullmatch(node_text(document, node).strip()) for node in document.tree.root_node.named_children)
    return {one["name"]: one["value"] for one in found if one is not None}


def _places(before: Document, after: Document) -> Iterator[_Place]:
    old, new = list(before.launches), list(after.launches)
    if [site.kernel for site in old] != [site.kernel for site in new]:
        return
    for was, now in zip(old, new, strict=True):
        for name, text, span in _shapes(was, now):
            if now.function_span is not None and _NAME.fullmatch(name) and name != text:
                yield _Place(name, text, span, now.function_span)


def declared_parts(document: Document, site: LaunchSite, text: str) -> list[str]:
    """What a shape's axes are in the user's own words: at the launch itself, or where the variable is declared that
    stands there and means the same at the launch. Empty where that is not known."""
    shape = _SHAPE.fullmatch(text.strip())
    if shape is not None:
        return split_arguments(shape[1], angles=False)
    if not _NAME.fullmatch(text.strip()) or site.function_span is None:
        return []
    place = _Place(text.strip(), "", site.grid_span, site.function_span)
    found = next((one for one in _before(document, place) if _declares(document, one, place.name)), None)
    if found is None:
        return []
    declared = _DECLARED.fullmatch(node_text(document, found).strip())
    assert declared is not None
    value = _SHAPE.fullmatch(declared["value"])
    later = document.text[found.end_byte : place.function.end].decode("utf-8", "replace")
    if any(_changes(name, later) for name in {place.name, *_FREE.findall(declared["value"])} - _OWN):
        return []
    inner = value[1] if value is not None else declared["value"]
    return split_arguments(inner, angles=False) if "int" not in declared["type"] else [inner]


def _shapes(was: LaunchSite, now: LaunchSite) -> tuple[tuple[str, str, Span], ...]:
    return (
        (was.grid.strip(), now.grid.strip(), now.grid_span),
        (was.block.strip(), now.block.strip(), now.block_span),
    )


def _declaration(document: Document, place: _Place, alike: int) -> Node | None:
    """The variable's declaration, where nothing but ``alike`` launches names it and the new value means the same
    there."""
    uses = len(re.findall(rf"\b{place.name}\b", document.slice_text(place.function)))
    own = len(re.findall(rf"\b{place.name}\b", place.new))
    if uses != 1 + alike * own or in_macro(document, {place.name}):
        return None
    found = next((node for node in _before(document, place) if _declares(document, node, place.name)), None)
    if found is None:
        return None
    used = set(_FREE.findall(place.new)) - {*_OWN, place.name}
    later = document.text[found.end_byte : place.function.end].decode("utf-8", "replace")
    known = used <= names_in_scope(document, found)
    return found if known and not any(_changes(name, later) for name in used) else None


def _before(document: Document, place: _Place) -> Iterator[Node]:
    """The declarations in the function that stand before a place."""
    return (
        node
        for node in descendants(document.tree.root_node, "declaration")
        if place.function.start <= node.start_byte < place.span.start
    )


def _declares(document: Document, node: Node, name: str) -> bool:
    declared = _DECLARED.fullmatch(node_text(document, node).strip())
    alone = len(node.children_by_field_name("declarator")) == 1
    return alone and declared is not None and declared["name"] == name


def _exchanged(declaration: str, place: _Place) -> str:
    """The new value; for one that only exchanges the axes of the variable itself, in the declaration's own words."""
    name = place.name
    if not re.search(rf"\b{name}\b", place.new):
        return place.new
    declared = _DECLARED.fullmatch(declaration.strip())
    assert declared is not None
    shape = _SHAPE.fullmatch(declared["value"])
    parts = split_arguments(shape[1] if shape is not None else declared["value"], angles=False)
    if place.new != f"dim3({name}.y, {name}.x, {name}.z)" or "dim3" not in declared["type"] or len(parts) < 2:
        return ""
    return f"dim3({', '.join([parts[1], parts[0], *parts[2:]])})"


def _changes(name: str, text: str) -> bool:
    assigned = rf"\b{name}\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|(?:\+\+|--|&)\s*{name}\b|\b{name}\s*(?:\+\+|--)|>>\s*{name}\b"
    return re.search(assigned, text) is not None


def _retold(declaration: str, new: str) -> str | None:
    """A declaration with another value; None where its type does not take it."""
    declared = _DECLARED.fullmatch(declaration.strip())
    assert declared is not None
    shape = re.fullmatch(r"dim3\((.*)\)", new, re.DOTALL)
    is_shape = "dim3" in declared["type"]
    if "constexpr" in declared["type"] and not new.isdecimal():
        return None
    if shape is not None and not is_shape and not ("auto" in declared["type"] and declared["open"] == "="):
        return None
    head = declaration.strip()[: declared.start("open")]
    if declared["open"] == "=":
        bare_shape = is_shape and shape is None and "dim3" in declared["value"]
        return f"{head}= dim3({new});" if bare_shape else f"{head}= {new};"
    inner = shape[1] if shape is not None else new
    return f"{head}{declared['open']}{inner}{')' if declared['open'] == '(' else '}'};"
