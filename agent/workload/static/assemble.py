"""From one traced launch to a Workload: buffers, sizes, access, domains and plan, with the questions that stay open."""

from collections.abc import Iterator, Set

from attrs import define, evolve, field

from agent.source.document import Document
from agent.source.errors import UnknownKernel
from agent.source.kernel import Kernel, Parameter
from agent.workload import dtypes, types
from agent.workload.bind import bind
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.expression import Expression, build, number
from agent.workload.expression import name as name_of
from agent.workload.layout import Address, parameter_layout
from agent.workload.plan import Copy, Fill, Grid, Launch, Plan, Repeat, Step, Swap
from agent.workload.static import arguments, arranging, contents, passing, roles, showing, sizing, structs
from agent.workload.static.dividing import divided
from agent.workload.static.draft import draft_text
from agent.workload.static.refusal import BLANK, refusal
from agent.workload.static.state import Facts, State
from agent.workload.static.usage import Usage, device_symbols, usage
from agent.workload.static.values import (
    Composite,
    CopyItem,
    Dim3,
    FillItem,
    Item,
    LaunchItem,
    LoopItem,
    Memory,
    Pointer,
    Scalar,
    Shown,
    Unknown,
    Value,
    leading,
    memories_of,
)
from agent.workload.workload import Access, Buffer, Origin, Workload


@define
class Draft:
    """A workload in the making, and what is missing. Missing numbers are the name ``__open__`` until they are told.

    ``barred`` is what no answer would help with, and the line of the launch.
    """

    document: Document
    facts: Facts
    questions: list[tuple[str, str, int | None]] = field(factory=list)
    dtypes: dict[int, str] = field(factory=dict)
    uses: dict[int, list[tuple[str, Kernel, str]]] = field(factory=dict)
    order: list[int] = field(factory=list)
    first: LaunchItem | None = None
    met: list[LaunchItem] = field(factory=list)
    open_roots: dict[str, None] = field(factory=dict)
    shown: dict[str, Shown] = field(factory=dict)
    barred: dict[str, int] = field(factory=dict)

    @property
    def launched(self) -> tuple[LaunchItem, ...]:
        return tuple(self.met)

    def sizes_of(self, memory: int) -> int:
        """Bytes of one element of a memory."""
        return dtypes.size_of(self.dtypes[memory])

    def told(self, expression: Expression) -> Expression:
        """The expression; what it lacks is asked for."""
        return _told(expression, self)

    @property
    def file_state(self) -> State | None:
        return self.facts.file_state

    def ask(self, question: str, reason: str, line: int | None) -> Expression:
        reason = reason.removeprefix(arguments.MARK)
        if (question, reason, line) not in self.questions:
            self.questions.append((question, reason, line))
        return name_of(BLANK)


def workload(
    document: Document, kernel: Kernel, facts: Facts, path: tuple[LoopItem, ...], item: LaunchItem
) -> Workload:
    """The workload of the launch ``item`` inside the repeats ``path``. Raises NoWorkload with every open question."""
    attempts = [_whole(facts, path, item)]
    if attempts[0] != (item,):
        attempts.append(_alone(path, item))
    for index, items in enumerate(attempts):
        facts.pinned = set().union(*(link.pinned for link in launches(items)))
        draft = Draft(document, facts, first=next(launches(items)))
        steps = plan_steps(items, draft)
        if (draft.questions or not _known_kernels(items, facts)) and index + 1 < len(attempts):
            continue
        try:
            return _finish(kernel, draft, steps, items, item)
        except NoWorkload:
            if index + 1 == len(attempts):
                raise
    raise AssertionError("no attempt was made")


def _known_kernels(items: tuple[Item, ...], facts: Facts) -> bool:
    return all(launch.kernel in facts.unit.kernels for launch in launches(items))


def launches(items: tuple[Item, ...]) -> Iterator[LaunchItem]:
    for item in items:
        if isinstance(item, LaunchItem):
            yield item
        elif isinstance(item, LoopItem):
            yield from launches(item.body)


def _whole(facts: Facts, path: tuple[LoopItem, ...], item: LaunchItem) -> tuple[Item, ...]:
    """The outermost repeat around the launch; or the launch and those right behind it that read what it wrote."""
    if path:
        return (path[0],)
    if item.repeated:
        return (item,)
    start = next(index for index, other in enumerate(facts.items) if other is item)
    chain: list[LaunchItem] = [item]
    for other in facts.items[start + 1 :]:
        if not isinstance(other, LaunchItem) or other.repeated or other.conditional != item.conditional:
            break
        if not _continues(chain, other, facts):
            break
        chain.append(other)
    return tuple(chain)


def _continues(chain: list[LaunchItem], item: LaunchItem, facts: Facts) -> bool:
    """Whether a launch goes on with what the chain wrote, and is no second run or variant of it."""
    roles = [launch_roles(link, facts) for link in (*chain, item)]
    if any(role is None for role in roles):
        return False
    told = [role for role in roles if role is not None]
    written = set().union(*(writes for _, writes in told[:-1]))
    inputs = set().union(*(reads for reads, _ in told[:-1])) - written
    reads, writes = told[-1]
    again = any(link.kernel == item.kernel and link.arguments == item.arguments for link in chain)
    return bool(reads & written) and not again and not (writes & written and reads & inputs)


def launch_roles(item: LaunchItem, facts: Facts) -> tuple[set[int], set[int]] | None:
    """Memories that a launch reads and writes; None when the kernel is not in this file."""
    try:
        kernel = facts.document.kernel(item.kernel)
    except UnknownKernel:
        return None
    if kernel.name not in facts.unit.kernels:
        return None
    how = usage(facts.document, kernel)
    reads, writes = set(), set()
    for parameter, value in zip(kernel.parameters, item.arguments, strict=False):
        for path, held in leading(value, parameter.name):
            is_read, is_written = how.role(path)
            reads |= {held.memory} if is_read else set()
            writes |= {held.memory} if is_written else set()
    return reads, writes


def _alone(path: tuple[LoopItem, ...], item: LaunchItem) -> tuple[Item, ...]:
    """The launch without its neighbours, still repeated where its numbers change from turn to turn."""
    inner: Item = item
    for loop in reversed(path):
        if loop.swaps:
            return (path[0],)
        inner = evolve(loop, body=(inner,))
    return (inner,)


# Steps


def _steps(items: tuple[Item, ...], draft: Draft, beside: Set[int] = frozenset()) -> Iterator[Step]:
    """The steps of items; a fill or a copy belongs to them where a launch uses what it is about: one among them, or one
    of those that are on the memories ``beside`` them."""
    passed = [value for link in launches(items) for value in link.arguments]
    used = memories_of(passed) | set(draft.order) | beside
    for item in items:
        if isinstance(item, LaunchItem):
            yield _launch(item, draft)
        elif isinstance(item, FillItem) and item.memory in used:
            yield Fill(draft.facts.memories[item.memory].name, item.byte)
        elif isinstance(item, CopyItem) and {item.target, item.source} <= used:
            yield Copy(draft.facts.memories[item.target].name, draft.facts.memories[item.source].name)
        elif isinstance(item, LoopItem):
            yield _repeat(item, draft, used if item.guarded else frozenset())


def _repeat(item: LoopItem, draft: Draft, beside: Set[int]) -> Repeat:
    body = list(_steps(item.body, draft, beside))
    for pair in item.swaps:
        known = [memory for memory in pair if memory in draft.order]
        for memory in set(pair) - set(known) if known else ():  # no launch names it in the first turn, but later on
            draft.order.append(memory)
            draft.dtypes[memory] = draft.dtypes[known[0]]
    names = draft.facts.memories
    body += [Swap(names[first].name, names[second].name) for first, second in item.swaps]
    for head in (item.count, item.start, item.condition):
        if head is not None:
            _told(head, draft)
    return Repeat(tuple(body), item.count, item.variable, item.start, item.update, item.condition)


def plan_steps(items: tuple[Item, ...], draft: Draft) -> tuple[Step, ...]:
    """The steps of a run of items; what they lack is asked of ``draft``."""
    return tuple(_steps(items, draft))


def _launch(item: LaunchItem, draft: Draft) -> Launch:
    draft.met.append(item)
    grid = _three(item.grid, f"grid of `{item.kernel}`", item.line, draft)
    block = _three(item.block, f"block of `{item.kernel}`", item.line, draft)
    shared = _number(item.shared, f"shared bytes of `{item.kernel}`", item.line, draft)
    try:
        kernel = draft.document.kernel(item.kernel)
    except UnknownKernel:
        kernel = None
    if kernel is None or kernel.name not in draft.facts.unit.kernels:
        draft.ask(f"definition of `{item.kernel}`", "it is not in this file", item.line)
        return Launch(item.kernel, grid, block, shared, ())
    arranging.arranged(item, kernel, draft)
    template = _template(kernel, item, draft)
    expected = len(kernel.parameters)
    if len(item.arguments) != expected:
        draft.ask(
            f"arguments of `{item.kernel}`", f"{len(item.arguments)} are passed, {expected} are declared", item.line
        )
        return Launch(item.kernel, grid, block, shared, ())
    arguments = tuple(
        _argument(value, parameter, kernel, template, item, draft)
        for value, parameter in zip(item.arguments, kernel.parameters, strict=True)
    )
    name = kernel.qualified_name + (f"<{', '.join(template)}>" if template else "")
    return Launch(name, grid, block, shared, arguments)


def _three(value: Dim3 | Unknown, what: str, line: int, draft: Draft) -> Grid:
    if isinstance(value, Unknown):
        hole = draft.ask(what, value.reason, value.line or line)
        return hole, number(1), number(1)
    x, y, z = (_number(part, what, line, draft) for part in (value.x, value.y, value.z))
    return x, y, z


def _number(value: Value, what: str, line: int, draft: Draft) -> Expression:
    if isinstance(value, Scalar):
        return _told(value.expression, draft)
    reason = value.reason if isinstance(value, Unknown) else "it is not a number that is written down"
    return draft.ask(what, reason, (value.line if isinstance(value, Unknown) else None) or line)


def _told(expression: Expression, draft: Draft) -> Expression:
    """Ask for every root without a value that an expression uses."""
    for name in sorted(expression.names & draft.facts.roots.keys()):
        root = draft.facts.roots[name]
        if root.value is None:
            draft.ask(f"value of `{name}`", root.why, root.origin.line)
            draft.open_roots.setdefault(name)
    return expression


def _template(kernel: Kernel, item: LaunchItem, draft: Draft) -> tuple[str, ...]:
    """Template arguments, those not written deduced from the element types of pointers."""
    told = dict(zip((p.name for p in kernel.template), item.template, strict=False))
    for template in kernel.template:
        if template.name in told:
            continue
        elements = {
            value.element
            for parameter, value in zip(kernel.parameters, item.arguments, strict=False)
            if parameter.pointer_depth and parameter.element == template.name and isinstance(value, Pointer)
        } - {"", "void"} or structs.types_for(template.name, kernel, item.arguments)
        if len(elements) == 1:
            told[template.name] = elements.pop()
        elif template.default is not None:
            told[template.name] = template.default
        else:
            draft.ask(
                f"template argument `{template.name}` of `{kernel.name}`", "the launch does not name it", item.line
            )
            told[template.name] = BLANK
    return tuple(told[p.name] for p in kernel.template)


def _argument(
    value: Value, parameter: Parameter, kernel: Kernel, template: tuple[str, ...], item: LaunchItem, draft: Draft
) -> Expression:
    if types.is_texture(parameter):
        return _shown(value, parameter, kernel, item, draft)
    dtype = types.parameter_dtype(draft.document, kernel, parameter, template)
    what = f"`{parameter.name}` of `{kernel.name}`"
    if why := passing.barred(draft.document, kernel, parameter, dtype, template):
        draft.barred[why] = item.line
        return draft.ask(f"value of {what}", why, item.line)
    if parameter.pointer_depth == 0 and (dtype is None or isinstance(value, Composite) or not dtypes.is_scalar(dtype)):
        return _struct(value, parameter, kernel, template, item, draft)
    if parameter.pointer_depth == 0:
        return _number(value, f"value of {what}", item.line, draft)
    if not isinstance(value, Pointer):
        null = isinstance(value, Scalar) and value.expression == number(0)
        reason = "a null pointer is passed" if null else getattr(value, "reason", "it is no pointer that is followed")
        return draft.ask(f"size of {what}", reason, item.line)
    if dtype is None:
        return draft.ask(f"element type of {what}", f"`{parameter.element}` is not known in this file", item.line)
    return _pointer(value, dtype, parameter.name, kernel, item, draft)


def _shown(value: Value, parameter: Parameter, kernel: Kernel, item: LaunchItem, draft: Draft) -> Expression:
    passed, memory = showing.shown(value, parameter, kernel, item.line, draft)
    if isinstance(value, Shown) and memory >= 0:
        held = draft.facts.memories[memory]
        dtype = (types.c_dtype(draft.document, held.element) if held.element else None) or value.texture.dtype
        _use(memory, dtype, parameter.name, kernel, draft)
    return passed


def _struct(
    value: Value, parameter: Parameter, kernel: Kernel, template: tuple[str, ...], item: LaunchItem, draft: Draft
) -> Expression:
    layout = parameter_layout(draft.document, kernel, parameter, template)
    how = usage(draft.document, kernel)

    def passed(held: Pointer, address: Address, path: str) -> Expression:
        dtype = types.c_dtype(draft.document, address.element) or (
            types.c_dtype(draft.document, held.element) if address.element == "void" else None
        )
        if dtype is None:
            what = f"element type of `{path}` of `{kernel.name}`"
            return draft.ask(what, f"`{address.element}` is not known in this file", item.line)
        return _pointer(held, dtype, path, kernel, item, draft)

    return structs.argument(value, layout, parameter, kernel, how.uses, passed, item, draft)


def _use(memory: int, dtype: str, path: str, kernel: Kernel, draft: Draft) -> None:
    if memory not in draft.order:
        draft.order.append(memory)
        draft.dtypes[memory] = dtype
    draft.uses.setdefault(memory, []).append((path, kernel, dtype))


def _pointer(value: Pointer, dtype: str, path: str, kernel: Kernel, item: LaunchItem, draft: Draft) -> Expression:
    memory = draft.facts.memories[value.memory]
    if memory.space == "host":
        return draft.ask(f"size of `{path}` of `{kernel.name}`", f"`{memory.name}` is host memory", item.line)
    _use(value.memory, dtype, path, kernel, draft)
    offset = _told(value.offset, draft)
    if offset == number(0):
        return name_of(memory.name)
    stepped = types.c_dtype(draft.document, value.element) or dtype
    if passing.counts_arrays(draft.document, value.element):
        return draft.ask(f"start of `{path}` of `{kernel.name}`", f"it counts in arrays (`{value.element}`)", item.line)
    unit = dtypes.size_of(draft.dtypes[value.memory])
    scaled = offset
    if dtypes.size_of(stepped) != unit:
        scaled = divided(build("*", (offset, number(dtypes.size_of(stepped)))), unit)
    return build("+", (name_of(memory.name), scaled))


# Buffers, sizes


def _finish(
    kernel: Kernel, draft: Draft, steps: tuple[Step, ...], items: tuple[Item, ...], item: LaunchItem
) -> Workload:
    usages = {link.kernel: _usage(link.kernel, draft) for link in launches(items)}
    extents = {memory: _extent(memory, draft) for memory in draft.order}
    orbit = roles.orbits(items)
    notes: list[str] = list(draft.facts.notes)
    buffers = []
    for memory in draft.order:
        access = roles.access(memory, draft, usages, orbit, notes)
        domain = contents.domain(memory, access, draft, usages, extents, draft.first or item, notes)
        held = draft.facts.memories[memory]
        origin = Origin("allocation", held.line, held.how)
        buffers.append(Buffer(held.name, draft.dtypes[memory], extents[memory], access, domain, origin, host=held.name))
    buffers += _symbols(draft, items, usages)
    if item.line in draft.facts.first_turns:
        where = draft.facts.at(item.line)
        notes.append(f"of the loop around the launch at {where} the first turn alone: how turns differ is not followed")
    views = showing.textures(draft)
    sizes, constants, fixed = sizing.numbers(draft.facts, steps, buffers)
    steps = tuple(sizing.substituted(step, fixed) for step in steps)
    buffers = [
        evolve(b, extent=sizing.simple(b.extent, fixed), domain=contents.substituted(b.domain, fixed)) for b in buffers
    ]
    found = Workload(
        kernel.qualified_name, sizes, constants, tuple(buffers), Plan(steps),
        origin=Origin("launch", item.line), notes=tuple(dict.fromkeys(notes)),
        textures=tuple(sizing.shown(view, fixed) for view in views),
    )  # fmt: skip
    if draft.questions:
        raise refusal(kernel, draft, found)
    try:
        bind(found, found.plan, None, draft.document)
    except WorkloadError as error:
        raise NoWorkload(
            f"the launch at {draft.facts.at(item.line)} cannot run: {error.message}", (), item.line, draft_text(found)
        ) from None
    return sizing.shortened(found, _short_names(draft.facts))


def _short_names(facts: Facts) -> dict[str, str]:
    """What names stand for that were made to keep equal ones apart; what the user told keeps its name."""
    made = {name: name.rpartition("_")[0] for name in facts.generated} | facts.paths
    return {name: short for name, short in made.items() if name not in facts.answers}


def _usage(name: str, draft: Draft) -> Usage | None:
    try:
        kernel = draft.document.kernel(name)
    except UnknownKernel:
        return None
    symbols = frozenset(symbol[0] for symbol in device_symbols(draft.document))
    return usage(draft.document, kernel, symbols)


def _extent(memory: int, draft: Draft) -> Expression:
    held: Memory = draft.facts.memories[memory]
    if isinstance(held.nbytes, Unknown):
        return draft.ask(f"size of `{held.name}`", held.nbytes.reason, held.nbytes.line or held.line)
    return _told(divided(held.nbytes, dtypes.size_of(draft.dtypes[memory])), draft)


def _symbols(draft: Draft, items: tuple[Item, ...], usages: dict[str, Usage | None]) -> list[Buffer]:
    """``__constant__`` and ``__device__`` variables that the launched kernels are compiled with."""
    from agent.workload.static.state import device_names

    used: frozenset[str] = frozenset()
    for link in launches(items):
        if usages.get(link.kernel) is not None:
            used |= device_names(draft.document, draft.document.kernel(link.kernel).uses)
    found = []
    for name, type_text, extents, immutable, initial, line in device_symbols(draft.document):
        set_by_host = name in draft.facts.symbol_contents
        if name not in used or (initial and immutable and not set_by_host):
            continue
        dtype = types.c_dtype(draft.document, type_text)
        extent = contents.symbol_extent(extents, line, draft)
        if dtype is None or extent is None:
            draft.ask(f"size of `{name}`", f"its type or extent is not known (`{type_text}`)", line)
            continue
        access = Access.IN if immutable else Access.INOUT
        domain = contents.symbol_domain(name, dtype, extent, access, initial, draft, usages)
        found.append(Buffer(name, dtype, extent, access, domain, Origin("symbol", line), symbol=True, host=name))
    return found
