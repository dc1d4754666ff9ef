"""Where the members of a struct lie that a kernel takes by value: sizes, alignments and offsets in bytes.

The rules are those of the Itanium C++ ABI, which nvcc and NVRTC follow on Linux: a member lies at the next multiple of
its alignment, a struct ends at a multiple of the largest. CUDA's vectors of two and four lanes are aligned to their
size, 16 bytes at most (CUDA C++ Programming Guide, "Built-in Vector Types"). A struct without members has one byte.
"""

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from agent.source.document import Document
from agent.source.kernel import Kernel, Parameter
from agent.source.records import Member, Record, records
from agent.workload import dtypes, types
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError
from agent.workload.joined.headers import with_headers

ADDRESS_BYTES = 8
MOST_BYTES = 32_764
"""Of all parameters of a kernel (CUDA C++ Programming Guide, since CUDA 12.1)."""
_MOST_DEPTH = 16
_LANES = "xyzw"


@frozen
class Number:
    dtype: str


@frozen
class Address:
    """A pointer to ``element``, as written; ``const`` where nothing is written through it."""

    element: str
    stars: int
    const: bool


@frozen
class Array:
    of: "Layout"
    count: int


@frozen
class Field:
    name: str
    offset: int
    layout: "Layout"


@frozen
class Struct:
    name: str
    nbytes: int
    alignment: int
    fields: tuple[Field, ...]


Layout = Number | Address | Array | Struct


class LayoutError(WorkloadError):
    """What is passed by value has no layout that is followed; the message names the type and the reason."""


def size(layout: Layout) -> int:
    if isinstance(layout, Struct):
        return layout.nbytes
    if isinstance(layout, Array):
        return layout.count * size(layout.of)
    return ADDRESS_BYTES if isinstance(layout, Address) else dtypes.size_of(layout.dtype)


def alignment(layout: Layout) -> int:
    if isinstance(layout, Struct):
        return layout.alignment
    if isinstance(layout, Array):
        return alignment(layout.of)
    return size(layout)


def leaves(layout: Layout, path: str = "", offset: int = 0) -> Iterator[tuple[str, int, Number | Address]]:
    """(path as C writes it, offset, type) of every number and pointer: ``.v[2].x``."""
    if isinstance(layout, Struct):
        for one in layout.fields:
            yield from leaves(one.layout, f"{path}.{one.name}", offset + one.offset)
    elif isinstance(layout, Array):
        for index in range(layout.count):
            yield from leaves(layout.of, f"{path}[{index}]", offset + index * size(layout.of))
    else:
        yield path, offset, layout


def parameter_layout(document: Document, kernel: Kernel, parameter: Parameter, arguments: tuple[str, ...]) -> Layout:
    """The layout of a parameter that is passed by value, template arguments put in. Raises LayoutError."""
    return layout_of(document, _substituted(parameter.element, types.template_bindings(kernel, arguments)))


def layout_of(document: Document, text: str) -> Layout:
    """The layout of the type that ``text`` names in this file and its local headers. Raises LayoutError."""
    found = _Reader(with_headers(document)).named(text, (), 0)
    if size(found) > MOST_BYTES:
        raise LayoutError(f"`{text}` has {size(found)} bytes; a kernel takes at most {MOST_BYTES}")
    return found


def element_dtype(source: bytes, text: str) -> str | None:
    """The element type of a buffer of such structs: ``f32x4`` where all they hold is of one type, else raw bytes; None
    where they hold pointers. Raises LayoutError."""
    found = _Reader(source).named(text, (), 0)
    held = [leaf for _, _, leaf in leaves(found)]
    if not held or not all(isinstance(leaf, Number) for leaf in held):
        return None
    scalars = {leaf.dtype for leaf in held if isinstance(leaf, Number)}
    first = min(scalars)
    one = len(scalars) == 1 and size(found) == len(held) * dtypes.size_of(first)
    return (first if len(held) == 1 else f"{first}x{len(held)}") if one else f"b{size(found)}"


def _substituted(text: str, bindings: Mapping[str, str]) -> str:
    for name, value in bindings.items():
        text = re.sub(rf"\b{re.escape(name)}\b", value, text)
    return text


@frozen
class _Reader:
    source: bytes

    def named(self, text: str, scope: tuple[str, ...], depth: int) -> Layout:
        if depth > _MOST_DEPTH:
            raise LayoutError(f"`{text}` holds structs in structs, more than {_MOST_DEPTH} deep")
        name, dtype = types.named(self.source, text)
        bare, arguments = types.split_name(name)
        if dtype is not None and bare.split("::")[-1] not in records(self.source):
            return _builtin(name, dtype)
        if name == "dim3":
            return Struct(name, 12, 4, tuple(Field(lane, 4 * at, Number("u32")) for at, lane in enumerate("xyz")))
        record = self.record(bare, scope)
        bindings = dict(zip((own for own, _ in record.template), arguments, strict=False))
        for own, default in record.template:
            if own not in bindings and default is not None:
                bindings[own] = _substituted(default, bindings)
        if len(bindings) < len(record.template) or len(arguments) > len(record.template):
            raise LayoutError(f"`{name}` is not told with all of its template arguments")
        return self.struct(record, name, bindings, depth)

    def record(self, name: str, scope: tuple[str, ...]) -> Record:
        parts = tuple(part.strip() for part in name.removeprefix("::").split("::"))
        known = records(self.source).get(parts[-1], ())
        around = len(parts) - 1
        known = tuple(one for one in known if not around or one.scope[-around:] == parts[:-1])
        near = [one for one in known if one.scope == scope[: len(one.scope)]]
        longest = max((len(one.scope) for one in near), default=0)
        chosen = [one for one in near if len(one.scope) == longest] or list(known)
        if not chosen:
            raise LayoutError(f"the type `{name}` is not defined in this file or its headers")
        if len(chosen) > 1:
            raise LayoutError(f"there are {len(chosen)} definitions of `{name}`")
        return chosen[0]

    def struct(self, record: Record, name: str, bindings: Mapping[str, str], depth: int) -> Struct:
        if record.trouble:
            raise LayoutError(f"the layout of `{name}` is not followed: {record.trouble}")
        offset, widest, fields = 0, 1, []
        for member in record.members:
            held = self.member(member, record, bindings, depth)
            step = max([alignment(held), *(self.number(text, record, bindings) for text in member.aligned)])
            offset = -(-offset // step) * step
            fields.append(Field(member.name, offset, held))
            offset, widest = offset + size(held), max(widest, step)
        widest = max([widest, *(self.number(text, record, bindings) for text in record.aligned)])
        return Struct(name, max(-(-offset // widest) * widest, widest), widest, tuple(fields))

    def member(self, member: Member, record: Record, bindings: Mapping[str, str], depth: int) -> Layout:
        written = _substituted(_substituted(member.type, record.aliases), bindings)
        held: Layout
        if member.stars:
            held = Address(written, member.stars, member.const)
        elif member.inner is not None:
            held = self.struct(member.inner, member.inner.name, bindings, depth + 1)
        else:
            held = self.named(written, (*record.scope, record.name), depth + 1)
        for text in reversed(member.extents):
            held = Array(held, self.number(text, record, bindings))
            if size(held) > MOST_BYTES:
                raise LayoutError(f"`{member.name}` of `{record.name}` has more than {MOST_BYTES} bytes")
        return held

    def number(self, text: str, record: Record, bindings: Mapping[str, str]) -> int:
        """An extent or alignment. Raises LayoutError where it is no number above zero that the file fixes."""
        text = _substituted(_substituted(text, record.constants), bindings)
        value = self.value(text, 0)
        if value is None or not 0 < value <= MOST_BYTES:
            raise LayoutError(
                f"the layout of `{record.name}` is not followed: `{text}` in it is no number that the file tells"
            )
        return value

    def value(self, text: str, depth: int) -> int | None:
        try:
            expression = Expression.parse(text)
            told = {name: self.constant(name, depth) for name in expression.names}
            value = expression.evaluate({name: held for name, held in told.items() if held is not None})
        except ExpressionError:
            return None
        return value if isinstance(value, int) else None

    def constant(self, name: str, depth: int) -> int | None:
        """What one macro or constant of the file says, wherever it is defined the same."""
        pattern = (
            rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+([^\n]+?)[ \t]*$|"
            rf"\b(?:const|constexpr)\b[\w \t:]*?\b{name}[ \t]*=[ \t]*([^;,\n]+);"
        )
        found = {(one or other).strip() for one, other in re.findall(pattern, types.uncommented(self.source), re.M)}
        return self.value(found.pop(), depth + 1) if len(found) == 1 and depth < 8 else None


def _builtin(name: str, dtype: str) -> Layout:
    """A number, or one of CUDA's vectors with its lanes as members."""
    scalar, lanes = dtypes.base(dtype)
    if lanes == 1:
        return Number(dtype)
    width = dtypes.size_of(scalar)
    fields = tuple(Field(_LANES[at], at * width, Number(scalar)) for at in range(lanes))
    return Struct(name, width * lanes, types.alignment_of(dtype), fields)
