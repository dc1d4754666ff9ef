"""A struct that a launch passes by value: ``{.scale = 0.5, .data = x}`` and its layout -> bytes and addresses."""

import difflib
from collections.abc import Callable, Iterator, Sequence

from agent.workload.binding import Placed, PointerArgument, RecordArgument, TextureArgument, ValueArgument
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression
from agent.workload.layout import Address, Array, Layout, Number, Struct, alignment, size

Value = PointerArgument | TextureArgument | int | float
_MOST_NAMED = 12


def record_argument(
    argument: Expression,
    layout: Layout,
    what: str,
    value_of: Callable[[Expression], Value],
    convert: Callable[[int | float, str], ValueArgument],
) -> RecordArgument:
    """The struct that ``argument`` writes, laid out. Members that it does not tell are zero, as in C; so is what lies
    between members. Raises WorkloadError, with the member, for what does not fit the layout."""
    placed: list[Placed] = []
    for path, offset, leaf, told in _leaves(argument, layout, what, 0):
        value = value_of(told)
        if isinstance(leaf, Number):
            if not isinstance(value, int | float):
                raise WorkloadError(f"{path} is a number, and `{told}` is none")
            placed.append(Placed(offset, convert(value, leaf.dtype)))
        elif isinstance(value, PointerArgument):
            if leaf.stars > 1:
                raise WorkloadError(
                    f"{path} is a pointer to pointers, which a plan cannot pass: put the arrays into one and pass that"
                )
            placed.append(Placed(offset, value))
        elif value != 0:
            raise WorkloadError(f"{path} is a pointer: give it a buffer, or 0 where it leads nowhere, not `{told}`")
    return RecordArgument(size(layout), alignment(layout), tuple(sorted(placed, key=lambda one: one.offset)))


def members_of(layout: Layout) -> str:
    """How an argument of this layout is written, with blanks: ``{.n = ?, .data = ?}``."""
    names = [f".{one.name} = ?" for one in layout.fields] if isinstance(layout, Struct) else ["?"]
    more = ["..."] if len(names) > _MOST_NAMED else []
    return "{" + ", ".join([*names[:_MOST_NAMED], *more]) + "}"


def _leaves(
    told: Expression, layout: Layout, path: str, offset: int
) -> Iterator[tuple[str, int, Number | Address, Expression]]:
    """(path, offset, type, value) of every number and pointer that is told."""
    if told.op != "record":
        if not isinstance(layout, Number | Address):
            raise WorkloadError(f"{path} is {_kind(layout)}, and `{told}` is one value: write `{members_of(layout)}`")
        yield path, offset, layout, told
    elif isinstance(layout, Struct):
        for number, (name, held) in enumerate(told.members()):
            at = _place(name, number, layout, path)
            one = layout.fields[at]
            yield from _leaves(held, one.layout, f"{path}.{one.name}", offset + one.offset)
    elif isinstance(layout, Array):
        if told.value is not None or len(told.operands) > layout.count:
            raise WorkloadError(f"{path} has {layout.count} elements: write them in order, not `{told}`")
        for number, held in enumerate(told.operands):
            yield from _leaves(held, layout.of, f"{path}[{number}]", offset + number * size(layout.of))
    elif told.operands:
        raise WorkloadError(f"{path} is one value, and `{told}` are members of a struct")


def _place(name: str, number: int, layout: Struct, path: str) -> int:
    names: Sequence[str] = [one.name for one in layout.fields]
    if not name:
        if number >= len(names):
            raise WorkloadError(f"{path} has {len(names)} members, and more are told")
        return number
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean `.{near[0]}`?" if near else f"; it has {', '.join(names) or 'none'}"
        raise WorkloadError(f"{path} (`{layout.name}`) has no member `{name}`{hint}")
    return names.index(name)


def _kind(layout: Layout) -> str:
    return f"a struct (`{layout.name}`)" if isinstance(layout, Struct) else "an array"
