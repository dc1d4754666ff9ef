"""Integers with a name that a file fixes: object-like macros, ``constexpr`` and ``const`` at file level,
enumerators."""

from collections.abc import Mapping

from tree_sitter import Node

from agent.analysis.syntax import descendants, text
from agent.workload.expression import Expression, ExpressionError


def constants(root: Node) -> Mapping[str, int]:
    """Name -> value of every integer constant of a translation unit whose value can be folded. A name that is defined
    twice with different values (as ``#if`` branches do) is left out."""
    written: dict[str, set[str]] = {}
    for name, value in (*_macros(root), *_variables(root)):
        written.setdefault(name, set()).add(value)
    found: dict[str, int] = {}
    # A constant may use one that stands above it, or (macros) below it: go on until nothing new is found.
    while True:
        new = {n: v for n, texts in written.items() if n not in found and (v := _fold(texts, found)) is not None}
        if not new:
            return found
        found |= new


def constant_arrays(root: Node) -> frozenset[str]:
    """The arrays at file level that no kernel can change: ``__constant__``, ``const`` or ``constexpr``."""
    found: set[str] = set()
    for node in descendants(root, "declaration"):
        qualifiers = {text(child) for child in node.children if child.type == "type_qualifier"}
        if qualifiers & {"__constant__", "const", "constexpr"}:
            arrays = [
                array
                for one in node.children_by_field_name("declarator")
                for array in descendants(one, "array_declarator")
            ]
            found |= {text(name) for array in arrays if (name := array.child_by_field_name("declarator")) is not None}
    return frozenset(found)


def _fold(texts: set[str], known: Mapping[str, int]) -> int | None:
    if len(texts) != 1:
        return None
    try:
        value = Expression.parse(next(iter(texts))).evaluate(known)
    except ExpressionError:
        return None
    return value if isinstance(value, int) else None


def _macros(root: Node) -> list[tuple[str, str]]:
    return [
        (text(node.child_by_field_name("name")), text(node.child_by_field_name("value")).split("//")[0].strip())
        for node in descendants(root, "preproc_def")
    ]


def _variables(root: Node) -> list[tuple[str, str]]:
    found = []
    for node in descendants(root, "declaration"):
        if node.parent is None or node.parent.type == "compound_statement":
            continue
        qualifiers = {text(child) for child in node.children if child.type == "type_qualifier"}
        if not qualifiers & {"const", "constexpr"}:
            continue
        for declarator in node.children_by_field_name("declarator"):
            name, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
            if (
                declarator.type == "init_declarator"
                and name is not None
                and name.type == "identifier"
                and value is not None
            ):
                found.append((text(name), text(value)))
    for node in descendants(root, "enumerator"):
        if (value := node.child_by_field_name("value")) is not None:
            found.append((text(node.child_by_field_name("name")), text(value)))
    return found
