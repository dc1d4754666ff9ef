"""Arrays of arrays and pointers to arrays of the host: what one step of them covers is written into their type, as
``float[4]*`` for ``float (*a)[4]`` and ``float[4][]`` for ``float a[10][4]``."""

import re
from collections.abc import Sequence

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload import dtypes
from agent.workload.expression import number
from agent.workload.static import evaluate as ev
from agent.workload.static import storing
from agent.workload.static.combining import combine
from agent.workload.static.row_pointers import RowPointer
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Scalar, Unknown, Value

_EXTENT = re.compile(r"\[(\w+)\]$")
_UNKNOWN = "_"
"""An extent that is not written down plainly; nothing that needs its size is known then."""


def size_of_type(text: str, line: int, facts: Facts, state: State) -> Value | None:
    """Bytes of a C type, rows of arrays included; None where they are not known."""
    text = text.strip()
    if text.endswith("*"):
        return Scalar(number(8), "u64")
    extent = _EXTENT.search(text)
    if extent is not None:
        inner = size_of_type(text[: extent.start()], line, facts, state)
        count = ev.evaluate_text(extent[1], line, facts, state)
        return combine("*", inner, count) if inner is not None and isinstance(count, Scalar) else None
    dtype = facts.dtype(text)
    return Scalar(number(dtypes.size_of(dtype)), "u64") if dtype is not None else None


def pointee(declared: str) -> str | None:
    """What a pointer or an array of a declared type holds; None for anything else."""
    return (
        declared[:-1].strip() if declared.endswith("*") else declared[:-2].strip() if declared.endswith("[]") else None
    )


def pointed(declarator: Node | None) -> list[Node | None] | None:
    """The extents of what ``(*a)[4]`` points to, outermost first; None for another declarator."""
    extents: list[Node | None] = []
    while declarator is not None and declarator.type == "array_declarator":
        extents.insert(0, child(declarator, "size"))
        declarator = child(declarator, "declarator")
    if not extents or declarator is None or declarator.type != "parenthesized_declarator":
        return None
    inner = next(iter(declarator.named_children), None)
    return extents if inner is not None and inner.type == "pointer_declarator" else None


def in_rows(declarator: Node | None) -> list[Node | None]:
    """The extents of ``a[10][4]`` behind its first, outermost first."""
    extents: list[Node | None] = []
    while declarator is not None and declarator.type == "array_declarator":
        extents.insert(0, child(declarator, "size"))
        declarator = child(declarator, "declarator")
    return extents[1:]


def written(extents: Sequence[Node | None], facts: Facts, state: State) -> str:
    """Extents as a type has them: a name or a number each."""
    return "".join(f"[{_extent(one, facts, state)}]" for one in extents)


def _extent(node: Node | None, facts: Facts, state: State) -> str:
    if node is None:
        return _UNKNOWN
    text = facts.node_text(node)
    value = ev.evaluate(node, facts, state) if not text.isidentifier() else None
    told = value.expression.constant if isinstance(value, Scalar) else None
    return text if text.isidentifier() else str(told) if isinstance(told, int) else _UNKNOWN


def declare(row: RowPointer, facts: Facts, state: State) -> None:
    """A pointer to arrays in a function's body, which stands there as an expression."""
    line = facts.line(row.name)
    name = facts.node_text(row.name)
    text = f"{facts.type_text(row.type)}{written(row.extents, facts, state)}*"
    value = ev.evaluate(row.value, facts, state) if row.value is not None else None
    cell = facts.declare(name, Unknown(f"`{name}` has no value yet", line), text, state)
    if value is not None:
        storing.set_cell(cell, value, facts, state, line)
