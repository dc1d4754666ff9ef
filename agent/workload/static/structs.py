"""Structs of host code that a launch passes by value: what their members hold then, and how a plan writes it."""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from agent.source.kernel import Kernel, Parameter
from agent.workload.expression import Expression, number, record
from agent.workload.expression import name as name_of
from agent.workload.layout import Address, Array, Layout, Struct
from agent.workload.static import parts
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Composite, Dim3, LaunchItem, Pointer, Record, Scalar, Unknown, Value

if TYPE_CHECKING:
    from agent.workload.static.assemble import Draft

_MOST = 1024
"""Members and elements of one struct."""

Passed = Callable[[Pointer, Address, str], Expression]


def snapshot(value: Value, facts: Facts, state: State) -> Value:
    """A value as it is passed: what host code does to a struct afterwards does not change that."""
    return _held(value.cell, facts, state) if isinstance(value, Record) else value


def _held(cell: int, facts: Facts, state: State) -> Composite:
    return Composite(facts.types.get(cell, ""), tuple(_parts(cell, facts, state)))


def _parts(owner: int, facts: Facts, state: State) -> list[tuple[str, Value]]:
    found: list[tuple[str, Value]] = []
    for name, cell in list(facts.parts.get(owner, {}).items())[:_MOST]:
        value = state.cells.get(cell, Unknown(f"nothing that is followed sets `{facts.names[cell]}`"))
        if isinstance(value, Pointer) and parts.is_array(cell, facts):
            value = Composite("", tuple(_parts(parts.of_memory(value.memory), facts, state)))
        elif isinstance(value, Unknown) and facts.parts.get(cell):
            value = _held(cell, facts, state)
        found.append((name, value))
    return found


def argument(
    value: Value,
    layout: Layout,
    parameter: Parameter,
    kernel: Kernel,
    used: Callable[[str], bool],
    passed: Passed,
    item: LaunchItem,
    draft: "Draft",
) -> Expression:
    """A struct as the launch of a plan writes it. What is not known is asked for where the kernel uses it."""

    def told(value: Value, layout: Layout, path: str) -> Expression:
        if isinstance(layout, Struct | Array):
            return _members(value, layout, path)
        what = f"`{path}` of `{kernel.name}`"
        if isinstance(value, Scalar) and not (isinstance(layout, Address) and value.expression != number(0)):
            return draft.told(value.expression)
        if isinstance(layout, Address) and isinstance(value, Pointer) and layout.stars == 1:
            memory = draft.facts.memories[value.memory]
            if memory.space != "host":
                return passed(value, layout, path)
            value = Unknown(f"`{memory.name}` is host memory")
        if not used(path):
            return number(0)
        kind = "size" if isinstance(layout, Address) else "value"
        reason = "it points at pointers" if isinstance(layout, Address) and layout.stars > 1 else _reason(value)
        return draft.ask(f"{kind} of {what}", reason, getattr(value, "line", None) or item.line)

    def _members(value: Value, layout: Struct | Array, path: str) -> Expression:
        held = dict(_named(value))
        missing = Unknown(_reason(value)) if not isinstance(value, Composite | Dim3) else None
        if isinstance(layout, Array):
            places = [
                told(held.get(str(at), missing or _unset(path)), layout.of, f"{path}[{at}]") for at in _range(layout)
            ]
            while places and _is_zero(places[-1]):
                places.pop()
            return record([("", place) for place in places])
        members = [
            (one.name, told(held.get(one.name, missing or _unset(path)), one.layout, f"{path}.{one.name}"))
            for one in layout.fields
        ]
        return record([(name, place) for name, place in members if not _is_zero(place)])

    return told(value, layout, parameter.name)


def _is_zero(told: Expression) -> bool:
    """What a member is that is not told."""
    return told == record([]) or (told.constant == 0 and math.copysign(1, told.constant) > 0)


def types_for(name: str, kernel: Kernel, values: Iterable[Value]) -> set[str]:
    """What a template parameter is by the structs that are passed for it."""
    pairs = zip(kernel.parameters, values, strict=False)
    passed = [held for one, held in pairs if one.element == name and not one.pointer_depth]
    return {held.type for held in passed if isinstance(held, Composite)} - {""}


def _range(layout: Array) -> range:
    return range(min(layout.count, _MOST))


def _named(value: Value) -> tuple[tuple[str, Value], ...]:
    if isinstance(value, Dim3):
        return (("x", value.x), ("y", value.y), ("z", value.z))
    return value.members if isinstance(value, Composite) else ()


def _unset(path: str) -> Unknown:
    return Unknown("nothing that is followed sets it")


def _reason(value: Value) -> str:
    return value.reason if isinstance(value, Unknown) else "it is not a value that is written down"


def blank(layout: Layout, path: str, hole: Expression) -> tuple[Expression, list[tuple[str, Address]]]:
    """A struct with blanks for what only the user knows, and the buffers that its pointers are given."""
    if isinstance(layout, Struct):
        told = [(one.name, blank(one.layout, f"{path}_{one.name}", hole)) for one in layout.fields]
        return record([(name, held) for name, (held, _) in told]), [one for _, (_, own) in told for one in own]
    if isinstance(layout, Address) and layout.stars == 1:
        return name_of(path), [(path, layout)]
    return (record([]) if isinstance(layout, Array) else hole), []
