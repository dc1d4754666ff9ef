"""What is said where no workload was found: the questions that only the user can answer, and a draft to fill in."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.source.document import Document
from agent.source.kernel import Kernel, Parameter
from agent.workload import types
from agent.workload.errors import NoWorkload
from agent.workload.expression import name as name_of
from agent.workload.expression import number
from agent.workload.layout import LayoutError, Struct, parameter_layout
from agent.workload.plan import Launch, Plan
from agent.workload.static import contents, passing, structs
from agent.workload.static.draft import draft_text
from agent.workload.static.usage import usage
from agent.workload.textures import SURFACE, Texture
from agent.workload.workload import Access, Buffer, Constant, Origin, Workload

if TYPE_CHECKING:
    from agent.workload.static.assemble import Draft

BLANK = "__open__"


def refusal(kernel: Kernel, draft: "Draft", found: Workload) -> NoWorkload:
    """Every open question of a draft; what bars the launch where something does."""
    if draft.barred:
        return _unlaunchable(kernel, draft.barred)
    plain = _plainly(draft, found)
    shown = [
        f"{question}: {reason}" + (f" ({draft.facts.at(line)})" if line else "")
        for question, reason, line in draft.questions
    ]
    message = f"no workload for `{kernel.name}`; not known: {'; '.join(shown[:4])}"
    if len(shown) > 4:
        message += f"; and {len(shown) - 4} more"
    return NoWorkload(
        plain(message),
        tuple(plain(f"{question}?") for question, _, _ in draft.questions),
        draft.questions[0][2] or kernel.line,
        plain(draft_text(found, tuple(draft.open_roots), _fractions(draft))),
    )


def _fractions(draft: "Draft") -> frozenset[str]:
    """Open numbers that are no whole ones."""
    return frozenset(name for name in draft.open_roots if name in draft.facts.floating)


def _plainly(draft: "Draft", found: Workload) -> Callable[[str], str]:
    """Words without the endings of open numbers whose variable's name nothing else in the workload has."""
    taken = {size.name for size in found.sizes} | {constant.name for constant in found.constants}
    bases = [name.rpartition("_")[0] for name in draft.open_roots if name in draft.facts.generated]
    told = {
        name: base
        for name in draft.open_roots
        if name in draft.facts.generated and bases.count(base := name.rpartition("_")[0]) == 1
        and base not in taken and base not in draft.open_roots
    }  # fmt: skip
    return lambda text: re.sub(r"\b\w+\b", lambda match: told.get(match[0], match[0]), text)


def _unlaunchable(kernel: Kernel, barred: dict[str, int]) -> NoWorkload:
    """Neither questions nor a draft: what would be filled in could not be passed."""
    return NoWorkload(f"no workload for `{kernel.name}`: {'; '.join(barred)}", (), next(iter(barred.values())))


def unlaunchable(document: Document, kernel: Kernel) -> NoWorkload | None:
    """What bars every launch of a kernel that nothing launches; None where one can be written down."""
    named = {template.name for template in kernel.template}
    fixed = [one for one in kernel.parameters if one.element not in named or one.pointer_depth > 1]
    told = (passing.barred(document, kernel, one, types.parameter_dtype(document, kernel, one, ())) for one in fixed)
    barred = {why: kernel.line for why in told if why}
    return _unlaunchable(kernel, barred) if barred else None


def _struct(document: Document, kernel: Kernel, parameter: Parameter) -> Struct | None:
    """The layout of a parameter that is a struct by value, where it is known."""
    if parameter.pointer_depth or types.is_texture(parameter):
        return None
    try:
        layout = parameter_layout(document, kernel, parameter, ())
    except LayoutError:
        return None
    return layout if isinstance(layout, Struct) else None


def blank_draft(document: Document, kernel: Kernel) -> str:
    """A directive for a kernel that nothing launches: everything that only the user knows is a blank."""
    hole = name_of(BLANK)
    buffers, arguments, textures = [], [], []
    how = usage(document, kernel)
    for parameter in kernel.parameters:
        if (layout := _struct(document, kernel, parameter)) is not None:
            told, pointers = structs.blank(layout, parameter.name, hole)
            arguments.append(told)
            for name, held in pointers:
                dtype = types.c_dtype(document, held.element) or "f32"
                access = Access.IN if held.const else Access.INOUT
                buffers.append(
                    Buffer(name, dtype, hole, access, contents.plain(dtype), Origin("signature", kernel.line))
                )
            continue
        arguments.append(name_of(parameter.name))
        if kind := types.is_texture(parameter):
            below = f"{parameter.name}_texels"
            textures.append(Texture(parameter.name, below, (hole, hole), kind == SURFACE))
            access = Access.INOUT if kind == SURFACE else Access.IN
            buffers.append(Buffer(below, "f32", hole, access, contents.plain("f32"), Origin("signature", kernel.line)))
        if parameter.pointer_depth:
            dtype = types.parameter_dtype(document, kernel, parameter, ()) or "f32"
            access = (
                Access.IN
                if parameter.name not in how.written
                else Access.INOUT
                if parameter.name in how.read
                else Access.OUT
            )
            buffers.append(
                Buffer(parameter.name, dtype, hole, access, contents.plain(dtype), Origin("signature", kernel.line))
            )
    numbers = [p for p, told in zip(kernel.parameters, arguments, strict=True) if told.op == "name"]
    scalars = [p for p in numbers if not p.pointer_depth and not types.is_texture(p)]
    constants = tuple(Constant(p.name, hole, Origin("signature", kernel.line)) for p in scalars)
    one = number(1)
    launch = Launch(kernel.qualified_name, (hole, one, one), (hole, one, one), number(0), tuple(arguments))
    drafted = Workload(kernel.qualified_name, (), constants, tuple(buffers), Plan((launch,)), textures=tuple(textures))
    return draft_text(drafted)
