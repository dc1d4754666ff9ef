"""Integers with a name that a file fixes: object-like macros, ``constexpr`` and ``const`` at file level,
enumerators."""

from collections.abc import Mapping
from functools import lru_cache

from tree_sitter import Node

from agent.analysis.syntax import descendants, text
from agent.workload.expression import Expression, ExpressionError

Written = tuple[tuple[str, str], ...]


def definitions(root: Node) -> tuple[Written, Written]:
    """(name, value as written) of the object-like macros at or below a node, and of its constant variables."""
    return tuple(_macros(root)), tuple(_variables(root))


@lru_cache(maxsize=16)
def folded(pairs: Written) -> Mapping[str, int]:
    """Name -> value of every integer constant whose value can be folded. A name that is defined twice with different
    values (as ``#if`` branches do) is left out."""
    written: dict[str, set[str]] = {}
    for name, value in pairs:
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


def steady_scalars(root: Node) -> frozenset[str]:
    """The scalars at file level that no kernel can change."""
    found: set[str] = set()
    for node in descendants(root, "declaration"):
        qualifiers = {text(child) for child in node.children if child.type == "type_qualifier"}
        if qualifiers & {"__constant__", "const", "constexpr"}:
            for one in node.children_by_field_name("declarator"):
                name = one.child_by_field_name("declarator") if one.type == "init_declarator" else one
                if name is not None and name.type == "identifier":
                    found.add(text(name))
    return frozenset(found | {text(one.child_by_field_name("name")) for one in descendants(root, "enumerator")})


def _fold(texts: set[str], known: Mapping[str, int]) -> int | None:
    if len(texts) != 1:
        return None
    expression = _parsed(next(iter(texts)))
    if expression is None or not expression.names <= known.keys():
        return None
    try:
        value = expression.evaluate(known)
    except ExpressionError:
        return None
    return value if isinstance(value, int) else None


@lru_cache(maxsize=4096)
def _parsed(written: str) -> Expression | None:
    try:
        return Expression.parse(written)
    except ExpressionError:
        return None


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
