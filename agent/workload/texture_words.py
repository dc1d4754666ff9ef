"""How a texture or surface is written in a directive: ``name: buffer(width, height, filter=linear, normalized)``."""

import re

from attrs import evolve

from agent.workload import dtypes
from agent.workload.expression import Expression, ExpressionError
from agent.workload.textures import ADDRESSES, ARRAY, FILTERS, LINEAR, PITCHED, Texture
from agent.workload.types import split_arguments

_FORM = re.compile(r"([A-Za-z_]\w*)\s*:\s*([A-Za-z_]\w*)\s*\((.*)\)", re.S)
_OPTION = re.compile(r"(filter|address|read|type|pitch)\s*=(?!=)\s*(.+)", re.S)
_WORDS = ("normalized", "layered", LINEAR)
_OPTIONS = (
    f"filter={'|'.join(FILTERS)}, address={'|'.join(ADDRESSES)} (or one for each axis, as in wrap:clamp), normalized, "
    "read=float, layered, linear (memory for tex1Dfetch), pitch=BYTES, type=TYPE"
)


def read_texture(text: str, surface: bool, line: int | None = None) -> Texture:
    """The texture, or surface, that ``text`` states. Raises ExpressionError with what was expected."""
    what = "surface" if surface else "texture"
    match = _FORM.fullmatch(text)
    if match is None:
        raise ExpressionError(f"{what}: expected `name: buffer(width, height, ...)`, found `{text}`")
    what = f"{what} `{match[1]}`"
    extents: list[Expression] = []
    told: dict[str, str] = {}
    for part in split_arguments(match[3], angles=False):
        option = _OPTION.fullmatch(part.strip())
        name, value = (option[1], option[2].strip()) if option else (part.strip(), "")
        if option or name in _WORDS:
            if name in told:
                raise ExpressionError(f"{what}: `{name}` is said twice")
            told[name] = value
        elif told:
            raise ExpressionError(f"{what}: `{name}` is no option; options are {_OPTIONS}")
        else:
            extents.append(Expression.parse(name))
    if not 1 <= len(extents) <= 3:
        raise ExpressionError(f"{what}: expected one to three extents in texels, found {len(extents)}")
    only_textures = sorted(told.keys() & {"filter", "address", "normalized", "read", LINEAR, "pitch"})
    if surface and only_textures:
        raise ExpressionError(f"{what}: `{only_textures[0]}` has no meaning for a surface")
    return _with_options(Texture(match[1], match[2], tuple(extents), surface, line=line), told, what)


def _with_options(texture: Texture, told: dict[str, str], what: str) -> Texture:
    address = tuple(part.strip() for part in told.get("address", "clamp").split(":"))
    kind = told.get("type", "")
    for given, known, name in (
        (told.get("filter", FILTERS[0]), FILTERS, "filter"),
        (told.get("read", "float"), ("float",), "read"),
    ):
        if given not in known:
            raise ExpressionError(f"{what}: `{name}={given}`; expected {name}={'|'.join(known)}")
    if not set(address) <= set(ADDRESSES):
        raise ExpressionError(f"{what}: `address={told['address']}`; expected one of {', '.join(ADDRESSES)}")
    if kind and not dtypes.is_dtype(kind):
        raise ExpressionError(f"{what}: `{kind}` is no element type")
    if LINEAR in told and "pitch" in told:
        raise ExpressionError(f"{what}: `linear` and `pitch` exclude each other")
    return evolve(
        texture,
        dtype=kind,
        memory=LINEAR if LINEAR in told else PITCHED if "pitch" in told else ARRAY,
        pitch=Expression.parse(told["pitch"]) if "pitch" in told else None,
        layered="layered" in told,
        filter=told.get("filter", FILTERS[0]),
        address=address,
        normalized="normalized" in told,
        as_float="read" in told,
    )


def texture_text(texture: Texture) -> str:
    """The statement that :func:`read_texture` reads back."""
    parts = [str(extent) for extent in texture.extents]
    parts += ["layered"] if texture.layered else []
    parts += [LINEAR] if texture.memory == LINEAR else []
    parts += [f"pitch={texture.pitch}"] if texture.pitch is not None else []
    parts += [f"type={texture.dtype}"] if texture.dtype else []
    if texture.filter != FILTERS[0]:
        parts.append(f"filter={texture.filter}")
    if texture.address != ("clamp",):
        parts.append(f"address={':'.join(texture.address)}")
    parts += ["normalized"] if texture.normalized else []
    parts += ["read=float"] if texture.as_float else []
    word = "surface " if texture.surface else "texture "
    return f"{word} {texture.name}: {texture.buffer}({', '.join(parts)})"
