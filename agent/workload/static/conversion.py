"""Conversions between C types, and ``sizeof``."""

import re

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload import dtypes
from agent.workload.arithmetic import DOUBLE, FLOAT, INT
from agent.workload.expression import build, kind, number
from agent.workload.static import integers
from agent.workload.static.hints import converted
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Pointer, Random, Scalar, Unknown, Value


def convert(value: Value, type_text: str, facts: Facts) -> Value:
    """A value as a C type: numbers converted, pointers re-read as pointers to another type."""
    if isinstance(value, Pointer) and "*" in type_text:
        return repointed(value, type_text.split("*")[0].strip(), facts)
    if isinstance(value, Random):
        dtype = facts.dtype(type_text.replace("&", ""))
        return value if dtype is None else converted(value, dtype)
    if isinstance(value, Scalar):
        return as_type(value, facts.dtype(type_text.replace("&", "")), facts)
    return value


def repointed(value: Pointer, element: str, facts: Facts) -> Value:
    if element == "void" or value.element == element or not value.element:
        return Pointer(value.memory, value.offset, value.element if element == "void" else element)
    before, after = (facts.dtype(text) for text in (value.element, element))
    if value.offset == number(0) or before == after:
        return Pointer(value.memory, value.offset, element)
    if before is None or after is None:
        return Unknown(f"a pointer into the middle of `{value.element}` elements is read as `{element}`")
    old, new = dtypes.size_of(before), dtypes.size_of(after)
    if old % new:
        return Unknown(f"a pointer into the middle of `{value.element}` elements is read as `{element}`")
    return Pointer(value.memory, build("*", (value.offset, number(old // new))), element)


def as_type(value: Scalar, dtype: str | None, facts: Facts) -> Scalar:
    """Conversion where it changes the value: to another kind of number, or to an integer type that does not hold it."""
    if dtype not in dtypes.SCALARS:
        return Scalar(value.expression)
    held = kind(value.expression)
    if dtypes.is_float(dtype):
        wanted = DOUBLE if dtype == "f64" else FLOAT
        needs = held != wanted or dtype in ("f16", "bf16")
        return Scalar(build("cast", (value.expression,), dtype) if needs else value.expression)
    if held == INT:
        return integers.narrowed(value, dtype, facts)
    return Scalar(build("cast", (value.expression,), dtype), dtype)


def size_of(node: Node, facts: Facts, state: State) -> Value:
    from agent.workload.static import rows

    type_node = child(node, "type")
    text = facts.type_text(type_node) if type_node is not None else facts.node_text(node)[6:].strip(" ()")
    if type_node is None or facts.find(text) is not None:
        found = _of_value(text, facts.line(node), facts, state)
        if found is not None:
            return found
    held = rows.size_of_type(text, facts.line(node), facts, state)
    return held if held is not None else Unknown(f"the size of `{text}` is not known", facts.line(node))


def _of_value(text: str, line: int, facts: Facts, state: State) -> Value | None:
    """``sizeof`` of a variable, array or dereferenced pointer."""
    from agent.workload.static import rows

    starred = re.fullmatch(r"\*\s*(\w+)|(\w+)\s*\[\s*0\s*\]", text)
    name = (starred[1] or starred[2]) if starred else text
    cell = facts.find(name)
    if cell is None:
        return None
    held, declared = state.cells.get(cell), facts.types.get(cell, "")
    if starred:
        inner = rows.pointee(declared)
        return rows.size_of_type(inner, line, facts, state) if inner is not None else None
    if isinstance(held, Pointer) and declared.endswith("[]"):
        nbytes = facts.memories[held.memory].nbytes
        return nbytes if isinstance(nbytes, Unknown) else Scalar(nbytes, "u64")
    return rows.size_of_type(declared, line, facts, state)
