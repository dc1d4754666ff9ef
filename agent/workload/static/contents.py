"""What buffers may hold: from how host code fills them and how the kernel uses their values."""

import math
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent.workload import dtypes
from agent.workload.expression import Expression, ExpressionError, build, number
from agent.workload.generators import default_domain
from agent.workload.static.usage import Indexing, Usage
from agent.workload.static.values import Content, Item, LaunchItem, Scalar
from agent.workload.workload import Access, Domain

if TYPE_CHECKING:
    from agent.workload.static.assemble import Draft


_MAX_LISTED = 256
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def plain(dtype: str) -> Domain:
    return default_domain(dtype)


def names(domain: Domain) -> frozenset[str]:
    bounds = [bound for bound in (domain.low, domain.high) if bound is not None]
    return frozenset[str]().union(*(bound.names for bound in bounds))


def substituted(domain: Domain, fixed: dict[str, Expression]) -> Domain:
    low, high = (None if bound is None else bound.substitute(fixed).simplify() for bound in (domain.low, domain.high))
    return Domain(domain.kind, low, high, domain.given)


def domain(
    memory: int, access: Access, draft: "Draft", usages: dict[str, Usage | None], extents: dict[int, Expression],
    item: LaunchItem, notes: list[str],
) -> Domain:  # fmt: skip
    """The domain of one buffer; asks where values serve as indices and nothing says which are allowed."""
    dtype, name = draft.dtypes[memory], draft.facts.memories[memory].name
    if access is Access.OUT:
        return default_domain(dtype)
    content = _met(memory, item, draft)
    told = _from_host(content, dtype, access, draft, _decides(memory, dtype, draft, usages))
    found = _from_use(memory, told, draft, usages, extents)
    if found is not None:
        return found
    if told is not None:
        return told
    if dtypes.is_raw(dtype):
        draft.ask(f"contents of `{name}`", f"its elements are structs of {dtypes.size_of(dtype)} bytes", None)
        return default_domain(dtype)
    turned = _turned(memory, draft, usages) if content.kind != "host" and content.byte is None else None
    if turned is not None and content.kind != "zeros":
        who = {"kernel": "another kernel fills it", "fresh": "nothing fills it"}.get(content.kind, "a call fills it")
        draft.ask(f"contents of `{name}`", f"they decide how long a loop of `{turned}` goes on, and {who}", None)
    elif content.kind == "kernel":
        notes.append(f"`{name}` is filled by another kernel before; {default_domain(dtype).kind} values are assumed")
    return default_domain(dtype)


def _met(memory: int, item: LaunchItem, draft: "Draft") -> Content:
    """What a memory holds before a launch. Where the program launches the same again on what the host put there, that:
    zeros before the first launch say nothing about the next."""
    held = item.contents.get(memory, Content("external"))
    if held.kind not in ("zeros", "byte"):
        return held
    later = (one.contents.get(memory) for one in again(item, draft.facts.items))
    return next((one for one in later if one is not None and one.kind == "host"), held)


def again(item: LaunchItem, items: Sequence[Item]) -> Iterator[LaunchItem]:
    """The other launches of a program that are the same launch."""
    for one in items:
        told = (one.kernel, one.template, one.arguments) if isinstance(one, LaunchItem) and one is not item else None
        if isinstance(one, LaunchItem) and told == (item.kernel, item.template, item.arguments):
            yield one


def _decides(memory: int, dtype: str, draft: "Draft", usages: dict[str, Usage | None]) -> bool:
    """Whether the values of a buffer decide what a launched kernel does, rather than being what it works on: whether a
    loop goes on, or, as flags and counts do, which branch is taken."""
    for parameter, kernel, _ in draft.uses.get(memory, []):
        how = usages.get(kernel.name)
        if how is None or parameter in (how.turning if dtypes.is_float(dtype) else how.deciding):
            return True
    return False


def _turned(memory: int, draft: "Draft", usages: dict[str, Usage | None]) -> str | None:
    """The kernel of which a loop goes on or ends by the values of a buffer; None where there is none."""
    for parameter, kernel, _ in draft.uses.get(memory, []):
        how = usages.get(kernel.name)
        if how is not None and parameter in how.turning:
            return kernel.name
    return None


def _from_host(content: Content, dtype: str, access: Access, draft: "Draft", decides: bool) -> Domain | None:
    """What host code says about a buffer's values; None where it says nothing that binds.

    One value everywhere binds where the kernel decides by it, and zeros where it adds to them; of numbers that it
    works on a program that fills them with one value says little about what may be there.
    """
    stated = _one_byte(content.byte, dtype) if content.byte is not None else content.domain
    if content.kind == "zeros" or (stated is not None and stated.kind == "zeros"):
        bound = access is Access.INOUT or decides or dtypes.is_raw(dtype)
        return Domain("zeros", given=True) if bound else None
    if stated is None or dtypes.is_raw(dtype) or not _usable(stated, draft):
        return None
    if stated.kind == "constant":
        return stated if decides else None
    if dtypes.is_float(dtype):
        if stated.kind == "integers":
            return Domain("uniform", stated.low, stated.high, True)
        return stated if stated.kind in ("uniform", "normal") else None
    return _held(stated, dtype, draft) if stated.kind in ("integers", "iota", "uniform") else None


def _held(stated: Domain, dtype: str, draft: "Draft") -> Domain:
    """What integers of ``dtype`` hold of values that host code puts into them: any, where those reach beyond it."""
    scalar, _ = dtypes.base(dtype)
    least, most = dtypes.integer_range(scalar)
    values = draft.facts.values()
    low = stated.low.evaluate(values) if stated.low is not None else least
    high = stated.high.evaluate(values) if stated.high is not None else most
    if low >= least and high <= most + 1:
        return stated
    return Domain("integers", number(least), number(most + 1), True)


def _one_byte(byte: int, dtype: str) -> Domain | None:
    """Elements whose bytes are all the same, as cudaMemset leaves them; None where they are no number."""
    scalar, _ = dtypes.base(dtype)
    if dtypes.is_raw(dtype):
        return None
    size = dtypes.size_of(scalar)
    if dtypes.is_float(scalar):
        if scalar not in _FLOATS:
            return None
        (value,) = struct.unpack(_FLOATS[scalar], bytes([byte]) * size)
        held = number(value) if math.isfinite(value) else None
    else:
        held = number(int.from_bytes(bytes([byte]) * size, "little", signed=scalar.startswith("i")))
    return Domain("constant", held, held, True) if held is not None else None


def _usable(stated: Domain, draft: "Draft") -> bool:
    """Bounds in numbers and roots only, and in order."""
    if not names(stated) <= draft.facts.roots.keys():
        return False
    try:
        values = draft.facts.values()
        ends = [bound.evaluate(values) for bound in (stated.low, stated.high) if bound is not None]
    except ExpressionError:
        return False
    return len(ends) < 2 or ends[0] <= ends[1]


def _from_use(
    memory: int, told: Domain | None, draft: "Draft", usages: dict[str, Usage | None], extents: dict[int, Expression]
) -> Domain | None:
    """Row pointers and indices, sized to the buffers that they lead into."""
    name = draft.facts.memories[memory].name
    for kernel, how in usages.items():
        parameter = _parameter(memory, kernel, draft)
        if how is None or parameter is None:
            continue
        mine = [entry for entry in how.indexing if entry.holder == parameter]
        if not mine and parameter in how.bounds and told is None:
            draft.ask(f"range of values in `{name}`", f"they bound a loop of `{kernel}`", None)
        if not mine:
            continue
        rows = any(entry.rows for entry in mine)
        if told is not None and not rows:
            return told
        limit = _limit(mine, kernel, draft, extents)
        if limit is None or (rows and any(not entry.exact for entry in mine if entry.rows)):
            draft.ask(f"range of values in `{name}`", f"`{kernel}` uses them as indices of `{mine[0].target}`", None)
            continue
        return Domain("offsets" if rows else "index", number(0), limit, True)
    return None


def _parameter(memory: int, kernel: str, draft: "Draft") -> str | None:
    return next((name for name, owner, _ in draft.uses.get(memory, []) if owner.name == kernel), None)


def _limit(entries: list[Indexing], kernel: str, draft: "Draft", extents: dict[int, Expression]) -> Expression | None:
    """The smallest extent among the buffers indexed; None where an index is more than the value itself."""
    if not all(entry.exact for entry in entries):
        return None
    found: list[Expression] = []
    for entry in entries:
        memory = next((m for m in draft.order if _parameter(m, kernel, draft) == entry.target), None)
        if memory is None:
            return None
        if extents[memory] not in found:
            found.append(extents[memory])
    limit = found[0]
    for other in found[1:]:
        limit = build("call", (limit, other), "min")
    return limit


def symbol_extent(extents: list[str], line: int, draft: "Draft") -> Expression | None:
    """Elements of a device symbol, as a number: the kernel is compiled with it."""
    from agent.workload.static import evaluate as ev
    from agent.workload.static.state import State

    total = number(1)
    for text in extents:
        value = ev.expression_of(ev.evaluate_text(text, line, draft.facts, draft.file_state or State()))
        if value is None:
            return None
        total = build("*", (total, value))
    try:
        return number(total.evaluate(draft.facts.values()))
    except ExpressionError:
        return None


def symbol_domain(
    name: str, dtype: str, extent: Expression, access: Access, initial: str, draft: "Draft",
    usages: dict[str, Usage | None],
) -> Domain:  # fmt: skip
    """The contents of a device variable before the first launch, ``initial`` as it is declared."""
    content = draft.facts.symbol_contents.get(name)
    if content is None and not initial:
        return Domain("zeros", given=True)
    if content is None:
        content = _declared(initial, extent, draft)
    elif content.kind == "scalar" and extent != number(1):
        content = Content("host")  # one number, put into one of several elements
    known = [how for how in usages.values() if how is not None]
    decides = any(name in (how.turning if dtypes.is_float(dtype) else how.deciding) for how in known)
    told = _from_host(content, dtype, access, draft, decides)
    return told if told is not None else default_domain(dtype)


def _declared(initial: str, extent: Expression, draft: "Draft") -> Content:
    """``0``, ``{0}``, ``{1, 1}``: what an initialiser tells about all elements."""
    from agent.workload.static import evaluate as ev
    from agent.workload.static import hints
    from agent.workload.static.state import State

    parts = [part for part in initial.strip().removeprefix("{").removesuffix("}").split(",") if part.strip()]
    if len(parts) > _MAX_LISTED:
        return Content("host")
    state = draft.file_state or State()
    values = [ev.evaluate_text(part, 0, draft.facts, state) for part in parts]
    return Content("host", hints.listed(values, Scalar(extent), draft.facts))
