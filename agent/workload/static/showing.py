"""What a launch passes for a texture or surface: its view, as the workload states it, and the buffer below."""

from typing import TYPE_CHECKING

from attrs import evolve

from agent.source.kernel import Kernel, Parameter
from agent.workload import types
from agent.workload.expression import Expression
from agent.workload.expression import name as name_of
from agent.workload.static.values import Shown, Unknown, Value
from agent.workload.textures import SURFACE, Texture

if TYPE_CHECKING:
    from agent.workload.static.assemble import Draft


def shown(value: Value, parameter: Parameter, kernel: Kernel, line: int, draft: "Draft") -> tuple[Expression, int]:
    """The name of the view that is passed and the memory that it shows; a question, and -1, where that is not known."""
    what = f"`{parameter.name}` of `{kernel.name}`"
    kind = "surface" if types.is_texture(parameter) == SURFACE else "texture"
    if not isinstance(value, Shown) or value.texture.surface != (kind == "surface"):
        reason = value.reason if isinstance(value, Unknown) else f"it is no {kind} object that is followed"
        question = f"`{kind} {parameter.name}: buffer(width, height)` for {what}"
        return draft.ask(question, reason, getattr(value, "line", None) or line), -1
    known = next((name for name, one in draft.shown.items() if one == value), None)
    if known is None:
        known = _unused(parameter.name, draft)
        draft.shown[known] = value
    return name_of(known), value.memory


def _unused(name: str, draft: "Draft") -> str:
    taken = {*draft.shown, *draft.facts.roots, *(memory.name for memory in draft.facts.memories)}
    unique = name if name not in taken else f"{name}_{'view'}"
    turn = 1
    while unique in taken:
        turn += 1
        unique = f"{name}_view_{turn}"
    return unique


def textures(draft: "Draft") -> tuple[Texture, ...]:
    """The views that launches pass, for the workload."""
    found = []
    for name, value in draft.shown.items():
        held = draft.facts.memories[value.memory].name
        own = value.texture.dtype if value.texture.dtype != draft.dtypes[value.memory] else ""
        extents = tuple(draft.told(extent) for extent in value.texture.extents)
        pitch = None if value.texture.pitch is None else draft.told(value.texture.pitch)
        found.append(evolve(value.texture, name=name, buffer=held, dtype=own, extents=extents, pitch=pitch))
    return tuple(found)
