"""The element types of a kernel's parameters at one launch, template arguments and typedefs of the file resolved."""

import functools
import re
from collections.abc import Mapping

from agent.source.document import Document
from agent.source.errors import UnknownKernel
from agent.source.kernel import Kernel, Parameter
from agent.workload import dtypes, textures
from agent.workload.errors import WorkloadError
from agent.workload.joined.build_flags import build_flags
from agent.workload.joined.headers import with_headers

_QUALIFIERS = re.compile(r"\b(const|volatile|struct|class|typename|enum|__restrict__|__restrict)\b|^\s*::")


def split_name(text: str) -> tuple[str, tuple[str, ...]]:
    """``ns::scan<float, 256>`` -> (``ns::scan``, (``float``, ``256``))."""
    name, bracket, rest = text.strip().partition("<")
    if not bracket:
        return name.strip(), ()
    return name.strip(), tuple(split_arguments(rest.strip().removesuffix(">")))


def split_arguments(text: str, angles: bool = True) -> list[str]:
    """Split at commas outside brackets; ``angles`` count as brackets in lists of types, but not in expressions."""
    parts, depth, start, rounds = [], 0, 0, 0
    for index, char in enumerate(text):
        rounds += (char in "([{") - (char in ")]}")
        if angles and rounds == 0 and char in "<>":
            depth += 1 if char == "<" else -1
        if char == "," and depth == 0 and rounds == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def template_bindings(kernel: Kernel, arguments: tuple[str, ...]) -> Mapping[str, str]:
    """Which text each template parameter stands for, defaults included; those not told are left out."""
    told = dict(zip((parameter.name for parameter in kernel.template), arguments, strict=False))
    defaults = {p.name: p.default for p in kernel.template if p.default is not None and p.name not in told}
    return told | defaults


def is_texture(parameter: Parameter) -> str:
    """The name of the type of a parameter that is a texture or surface object; else empty."""
    if parameter.pointer_depth:
        return ""
    words = parameter.element.replace("::", " ").split()
    return next((kind for kind in (textures.TEXTURE, textures.SURFACE) if kind in words), "")


def parameter_dtype(document: Document, kernel: Kernel, parameter: Parameter, arguments: tuple[str, ...]) -> str | None:
    """Element type of a parameter (the pointee's, for a pointer), or None when the file does not tell it."""
    text = parameter.element
    for name, value in template_bindings(kernel, arguments).items():
        text = re.sub(rf"\b{re.escape(name)}\b", value, text)
    return c_dtype(document, text)


def c_dtype(document: Document, text: str) -> str | None:
    """The element type that ``text`` names in this file: builtin, macro, typedef, alias, struct of known members; its
    local headers belong to it, and what every build of its Makefile defines."""
    told = dtypes.from_c_type(text) or _in_file(with_headers(document), text)
    if told is not None or not document.path:
        return told
    flag = build_flags(document.path).get(re.sub(r"\b(?:const|volatile)\b", "", text).strip())
    return dtypes.from_c_type(flag.body) if flag is not None and flag.certain else None


@functools.lru_cache(maxsize=1024)
def _in_file(source: bytes, text: str) -> str | None:
    plain = uncommented(source)
    name = _resolved(plain, text)
    if re.fullmatch(r"[A-Za-z_]\w*", name) is None:
        return dtypes.from_c_type(name)
    return dtypes.from_c_type(name) or _enum(plain, name) or _struct(plain, name) or _nested(source, name)


def _nested(source: bytes, name: str) -> str | None:
    """A struct that holds structs, as an element of a buffer."""
    from agent.workload import layout

    try:
        return layout.element_dtype(source, name)
    except WorkloadError:
        return None


def named(source: bytes, text: str) -> tuple[str, str | None]:
    """The name that ``text`` stands for in ``source``, aliases followed, and its element type where it is a number, one
    of CUDA's vectors or an enumeration."""
    plain = uncommented(source)
    name = _resolved(plain, text)
    found = dtypes.from_c_type(name)
    if found is None and re.fullmatch(r"[A-Za-z_]\w*(\s*::\s*\w+)*", name):
        found = _enum(plain, name.split("::")[-1].strip())
    return name, found


def _enum(plain: str, name: str) -> str | None:
    """The underlying type of an enumeration."""
    found = set(re.findall(rf"\benum\s+(?:(?:class|struct)\s+)?{name}\s*(?::\s*([\w: ]+?)\s*)?\{{", plain))
    if found:
        underlying = found.pop()
        return None if found else dtypes.from_c_type(underlying) if underlying else "i32"
    return "i32" if re.search(rf"\btypedef\s+enum\b\s*\w*\s*\{{[^{{}}]*\}}\s*{name}\s*;", plain) else None


def _resolved(plain: str, text: str) -> str:
    """``text`` without qualifiers, with aliases followed as far as they go."""
    for _ in range(8):
        text = re.sub(
            r"\b(const|volatile|struct|class|typename|enum|__restrict__|__restrict)\b|^\s*::", " ", text
        ).strip()
        alias = _alias(plain, text) if re.fullmatch(r"[A-Za-z_]\w*", text) else None
        if alias is None or dtypes.from_c_type(text):
            break
        text = alias
    return text


_ALIASES = (
    (re.compile(r"\btypedef\s+([\w:<> ]+?)\s+([A-Za-z_]\w*)\s*;"), 2),
    (re.compile(r"\busing\s+([A-Za-z_]\w*)\s*=\s*([\w:<> ]+?)\s*;"), 1),
    (re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)[ \t]+([\w:<> ]+?)[ \t]*$", re.M), 1),
)
"""Each with the group that is the name."""


@functools.lru_cache(maxsize=4)
def uncommented(source: bytes) -> str:
    """The text without comments."""
    text = source.decode("utf-8", "replace")
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: " " + "\n" * match[0].count("\n"), text, flags=re.S)


@functools.lru_cache(maxsize=4)
def _aliases(text: str) -> dict[str, set[str]]:
    """All that a text says of the kind, by name."""
    found: dict[str, set[str]] = {}
    for pattern, place in _ALIASES:
        for match in pattern.finditer(text):
            found.setdefault(match[place], set()).add(match[3 - place].strip())
    return found


def _alias(text: str, name: str) -> str | None:
    """What a typedef, alias or object-like macro says ``name`` is; None if there is none, or several that differ."""
    found = set(_aliases(text).get(name, ()))
    found.discard(name)
    return found.pop() if len(found) == 1 and not any(value.startswith("struct ") for value in found) else None


def _struct(plain: str, name: str) -> str | None:
    """A struct of scalar and vector members: ``f32x3`` when they all have one scalar type, else ``b`` and its size."""
    align = r"(?:\s*(?:__align__|alignas)\s*\(\s*(\d+)\s*\))?"
    body = re.search(rf"\bstruct\b{align}\s+{name}\s*\{{([^{{}}()]*)\}}\s*;", plain) or re.search(
        rf"\btypedef\s+struct\b{align}\s*\w*\s*\{{([^{{}}()]*)\}}\s*{name}\s*;", plain
    )
    fields = _members(plain, body[2]) if body else None
    return _layout(fields, int(body[1] or 1)) if body and fields else None


def _members(plain: str, text: str) -> list[tuple[str, int]] | None:
    """(element type, count) of each member; None when one is a pointer, a bit-field, a struct or of unknown type."""
    found: list[tuple[str, int]] = []
    for declaration in filter(None, (part.strip() for part in text.split(";"))):
        array = r"\w+(?:\s*\[\s*\d+\s*\])*"
        match = re.fullmatch(rf"([\w:\s]+?)\s+({array}(?:\s*,\s*{array})*)", declaration)
        dtype = dtypes.from_c_type(_resolved(plain, match[1])) if match else None
        if not match or not dtype:
            return None
        for declarator in match[2].split(","):
            count = 1
            for extent in re.findall(r"\[\s*(\d+)\s*\]", declarator):
                count *= int(extent)
            found.append((dtype, count))
    return found


def alignment_of(dtype: str) -> int:
    """CUDA aligns vectors of two and four lanes to their size, up to 16 bytes; all else to one lane."""
    scalar, lanes = dtypes.base(dtype)
    width = dtypes.size_of(scalar)
    return min(width * lanes, 16) if lanes in (2, 4) else width


def _layout(fields: list[tuple[str, int]], forced: int) -> str:
    offset = 0
    for dtype, count in fields:
        align = alignment_of(dtype)
        offset = -(-offset // align) * align + dtypes.size_of(dtype) * count
    alignment = max(forced, *(alignment_of(dtype) for dtype, _ in fields))
    size = -(-offset // alignment) * alignment
    scalars = {dtypes.base(dtype)[0] for dtype, _ in fields}
    lanes = sum(dtypes.base(dtype)[1] * count for dtype, count in fields)
    if len(scalars) == 1 and size == lanes * dtypes.size_of(min(scalars)):
        return min(scalars) if lanes == 1 else f"{min(scalars)}x{lanes}"
    return f"b{size}"


def kernel_of(document: Document, launched: str) -> tuple[Kernel, tuple[str, ...]]:
    """The kernel that a launch's name expression names, and its template arguments. Raises WorkloadError if none."""
    name, arguments = split_name(launched)
    try:
        return document.kernel(name), arguments
    except UnknownKernel as error:
        raise WorkloadError(str(error)) from None
