"""The plan of a rewritten file, read off its own launch sites and told in the original workload's names."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from agent.source.document import Document
from agent.source.errors import UnknownKernel
from agent.workload.bind import environment
from agent.workload.directive import read_directive
from agent.workload.dtypes import size_of
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError, number
from agent.workload.expression import name as name_of
from agent.workload.plan import Copy, Fill, Launch, Plan, Repeat, Scratch, Step, Swap
from agent.workload.static.assemble import Draft, launch_roles, launches, plan_steps
from agent.workload.static.both_ways import common, exclude, guards, relieved, taken, unguarded
from agent.workload.static.dividing import divided
from agent.workload.static.inference import trace_all
from agent.workload.static.ordering import clashes
from agent.workload.static.state import Facts
from agent.workload.static.usage import device_symbols
from agent.workload.static.values import (
    CopyItem,
    FillItem,
    Item,
    LaunchItem,
    LoopItem,
    OtherItem,
    Pointer,
    Unknown,
    memories_of,
)
from agent.workload.types import split_name
from agent.workload.workload import Access, Workload


def plan_of(document: Document, workload: Workload, original: Document | None = None) -> Plan:
    """What a rewritten file launches in place of the workload's plan, with scratch for the buffers that it adds.

    Where the file has no launch on the workload's buffers, the plan of its directive is taken, or else the workload's
    own if the kernel still has the same parameters. ``original`` tells which kernels are none of the plan's business.
    Raises WorkloadError where a number or a buffer cannot be told in the workload's names.
    """
    sizes = frozenset(size.name for size in workload.sizes)
    facts = trace_all(document, sizes)
    run = _unconditional(_run(facts, workload, original), sizes, workload, original)
    if not taken(run, facts):
        return _without_launch(document, workload, facts, original)
    _check_symbols(facts, workload, original)
    _check_branches(run, facts, sizes, original)
    _check_freed(run, facts, original)
    _check_streams(facts, original)
    draft = Draft(document, facts, first=next(launches(run)))
    steps = plan_steps(run, draft)
    if draft.questions:
        question, reason, line = draft.questions[0]
        raise WorkloadError(f"the rewrite's plan is not known: {question}: {reason}", line)
    names = _buffers(draft, workload)
    numbers = _numbers(facts, workload)
    fills, scratch = _prepared(draft, names, numbers, workload)
    return Plan((*fills, *(_renamed(step, names, numbers) for step in steps)), scratch)


def _without_launch(document: Document, workload: Workload, facts: Facts, original: Document | None) -> Plan:
    try:
        kernel = document.kernel(workload.kernel)
    except UnknownKernel as error:
        raise WorkloadError(f"the rewrite launches nothing on the workload's buffers, and {error}") from None
    stated = read_directive(document, kernel)
    if stated is not None:
        return stated.plan
    _check_reached(document, workload, facts, original)
    for launch in workload.plan.launches():
        held = document.kernel(split_name(launch.kernel)[0])
        if len(held.parameters) != len(launch.arguments):
            raise WorkloadError(
                f"`{held.name}` takes {len(held.parameters)} arguments now and nothing in the file launches it; "
                "add the launch, or a directive above the kernel",
                held.line,
            )
    return workload.plan


def _check_reached(document: Document, workload: Workload, facts: Facts, original: Document | None) -> None:
    """Raises WorkloadError where the original's host code reaches its launch and the rewrite's does not."""
    own = {split_name(launch.kernel)[0].split("::")[-1] for launch in workload.plan.launches()}
    sites = [site for site in document.launches if site.kernel in own]
    if not sites or original is None or own & _reached(facts) or not own & _reached(trace_all(original)):
        return
    raise WorkloadError(
        f"the launch of `{sites[0].kernel}` at line {sites[0].line} is not reached from `main` at the sizes that the "
        "file sets, while the original's is: the rewritten program launches nothing",
        sites[0].line,
    )


def _check_symbols(facts: Facts, workload: Workload, original: Document | None) -> None:
    """Raises WorkloadError where the rewrite's host code fills a device variable that the original does not have."""
    if original is None:
        return
    known = {symbol[0] for symbol in device_symbols(original)} | {buffer.name for buffer in workload.buffers}
    for name in sorted(set(facts.symbol_contents) - known):
        raise WorkloadError(
            f"the rewrite's host code fills `{name}`, which the original does not have: what it holds is not known to "
            f"the workload, and it would run as zeros. Pass it to the kernel as a pointer, or declare `{name}` in the "
            "original too and give it a `symbol` line in the directive above its kernel"
        )


def _check_branches(run: tuple[Item, ...], facts: Facts, sizes: frozenset[str], original: Document | None) -> None:
    """Raises WorkloadError where a size decides what is launched, in a way that is not followed at other sizes, unless
    it does so in the original."""
    decided = frozenset[str]().union(*(launch.pinned for launch in launches(run))) & facts.tied.keys()
    known = trace_all(original, sizes).tied if decided and original is not None else {}
    for name, line in facts.tied.items():
        if name in decided - known.keys():
            raise WorkloadError(
                f"what the rewrite launches hangs on `{name}` by a branch that is followed at {name}="
                f"{facts.roots[name].value} alone: launch both ways in the sides of one `if`, or make it a "
                f"`const {name} = ...` of the directive above the original kernel, and this size alone is judged",
                line,
            )


def _check_freed(run: tuple[Item, ...], facts: Facts, original: Document | None) -> None:
    """Raises WorkloadError where a launch gets memory that was given back, unless the original does the same."""
    found = _freed(run, facts)
    before = trace_all(original) if found and original is not None else None
    known = {name for _, name, _ in _freed(before.items, before)} if before is not None else set()
    for launch, name, line in found:
        if name not in known:
            raise WorkloadError(
                f"`{launch.kernel}` is launched with `{name}`, which line {line} frees before: free it behind the last "
                "launch that uses it",
                launch.line,
            )


def _freed(items: Iterable[Item], facts: Facts) -> list[tuple[LaunchItem, str, int]]:
    """Launches with a memory that was given back before, its name, and the line where it was."""
    return [
        (launch, facts.memories[memory].name, content.freed)
        for launch in launches(tuple(items))
        for memory in sorted(memories_of(launch.arguments))
        if (content := launch.contents.get(memory)) is not None and content.freed is not None
    ]


def _check_streams(facts: Facts, original: Document | None) -> None:
    """Raises WorkloadError where the rewrite puts what belongs one after the other into streams that may run at once:
    a plan is judged in order."""
    found = clashes(facts)
    known = clashes(trace_all(original)) if found and original is not None else ()
    for clash in found:
        if clash not in known:
            raise WorkloadError(
                f"`{clash.second}` may run at once with `{clash.first}` before it, in another stream, and both use "
                f"`{clash.memory}`: nothing orders the two. Put them into one stream, let the second wait for an event "
                "recorded behind the first (cudaStreamWaitEvent), or wait for the first (cudaStreamSynchronize)",
                clash.line,
            )


def _reached(facts: Facts) -> set[str]:
    return {split_name(launch.kernel)[0].split("::")[-1] for launch in launches(taken(facts.items, facts))}


# Which launches


def _run(facts: Facts, workload: Workload, original: Document | None) -> tuple[Item, ...]:
    """The first run of launches on the workload's buffers: up to a transfer, or to where it begins again."""
    foreign = _foreign(workload, original)
    chain: list[Item] = []
    for item in facts.items:
        plain = unguarded(item)
        if isinstance(plain, LoopItem) and plain.swaps and not any(True for _ in launches((plain,))):
            chain += [item] if chain else []
        elif isinstance(plain, LaunchItem | LoopItem):
            if not _touches(item, chain, facts, workload, foreign):
                continue
            if chain and (_again(item, chain) or _repeated(item) != _repeated(chain[0])):
                break
            chain.append(item)
        elif chain and isinstance(plain, FillItem | CopyItem):
            chain.append(item)
        elif chain and isinstance(plain, OtherItem):
            break
    while chain and isinstance(unguarded(chain[-1]), FillItem | CopyItem):
        chain.pop()
    return tuple(_alive(chain, facts, workload))


def _unconditional(
    run: tuple[Item, ...], sizes: frozenset[str], workload: Workload, original: Document | None
) -> tuple[Item, ...]:
    """A run without the conditions that the original launches its kernels under as well: its workload says without them
    at which sizes it is judged."""
    if original is None or not any(map(guards, run)):
        return run
    own = {split_name(launch.kernel)[0].split("::")[-1] for launch in workload.plan.launches()}
    items = trace_all(original, sizes).items
    known = common(item for item in items if any(launch.kernel in own for launch in launches((item,))))
    return tuple(relieved(item, known) for item in run)


def _foreign(workload: Workload, original: Document | None) -> frozenset[str]:
    if original is None:
        return frozenset()
    own = {split_name(launch.kernel)[0].split("::")[-1] for launch in workload.plan.launches()}
    return frozenset(kernel.name for kernel in original.kernels) - own


def _touches(item: Item, chain: list[Item], facts: Facts, workload: Workload, foreign: frozenset[str]) -> bool:
    """Whether an item launches on a buffer of the workload, or on one that the run already uses."""
    used = set().union(*(_memories(link) for link in chain))
    for launch in launches((item,)):
        if launch.kernel in foreign:
            continue
        for memory in _memories(launch):
            if memory in used or _buffer_of(facts.memories[memory].name, workload) is not None:
                return True
        if _named_by_parameter(launch, facts, workload):
            return True
    return False


def _memories(item: Item) -> set[int]:
    return set[int]().union(*(memories_of(launch.arguments) for launch in launches((item,))))


def _again(item: Item, chain: list[Item]) -> bool:
    first = next(launches((chain[0],)))
    return not exclude(chain[0], item) and any(
        (launch.kernel, launch.arguments, launch.grid) == (first.kernel, first.arguments, first.grid)
        for launch in launches((item,))
    )


def _repeated(item: Item) -> bool:
    return any(launch.repeated for launch in launches((item,)))


def _alive(chain: list[Item], facts: Facts, workload: Workload) -> Iterator[Item]:
    """The run without launches whose results nothing of the workload sees."""
    wanted = {
        memory
        for memory in set().union(*(_memories(item) for item in chain))
        if _buffer_of(facts.memories[memory].name, workload) is not None
    } | {
        memory
        for item in chain
        for launch in launches((item,))
        for memory in _named_by_parameter(launch, facts, workload)
    }
    kept: list[Item] = []
    for item in reversed(chain):
        roles = [launch_roles(launch, facts) for launch in launches((item,))]
        writes = set().union(*(role[1] for role in roles if role is not None))
        plain = unguarded(item)
        target = plain.memory if isinstance(plain, FillItem) else plain.target if isinstance(plain, CopyItem) else None
        moved = {one for pair in plain.swaps for one in pair} if isinstance(plain, LoopItem) else set()
        if writes & wanted or target in wanted or None in roles or (not roles and moved & wanted):
            wanted |= moved
            wanted |= set().union(*(role[0] for role in roles if role is not None)) | _memories(item)
            kept.append(item)
    return reversed(kept)


# In the workload's names


def _buffer_of(name: str, workload: Workload) -> str | None:
    return next((b.name for b in workload.buffers if name in (b.host, b.name) and not b.symbol), None)


def _named_by_parameter(launch: LaunchItem, facts: Facts, workload: Workload) -> dict[int, str]:
    """Memories that a kernel of the original's plan gets through the parameter that had a workload's buffer there."""
    found: dict[int, str] = {}
    try:
        kernel = facts.document.kernel(launch.kernel)
    except UnknownKernel:
        return found
    buffers = {buffer.name for buffer in workload.buffers}
    known = [link for link in workload.plan.launches() if split_name(link.kernel)[0].split("::")[-1] == launch.kernel]
    for index, (parameter, value) in enumerate(zip(kernel.parameters, launch.arguments, strict=False)):
        if not isinstance(value, Pointer):
            continue
        before = [link.arguments[index] for link in known[:1] if len(link.arguments) == len(launch.arguments)]
        names = [str(argument) for argument in before if str(argument) in buffers] or [parameter.name]
        if known and names[0] in buffers and _may_be(value.memory, names[0], facts, workload):
            found[value.memory] = names[0]
    return found


def _may_be(memory: int, name: str, facts: Facts, workload: Workload) -> bool:
    """Whether a memory has as many bytes as a buffer, as far as both are known."""
    nbytes, buffer = facts.memories[memory].nbytes, workload.buffer(name)
    if isinstance(nbytes, Unknown):
        return True
    try:
        wanted = buffer.extent.evaluate(environment(workload, workload.plan)) * size_of(buffer.dtype)
        return nbytes.evaluate(facts.values()) == wanted
    except (ExpressionError, WorkloadError):
        return True


def _buffers(draft: Draft, workload: Workload) -> dict[str, str]:
    """From memory names of the rewritten file to buffer names; what is left over becomes scratch under its own name."""
    names: dict[str, str] = {}
    for memory in draft.order:
        held = draft.facts.memories[memory].name
        found = _buffer_of(held, workload)
        if found is not None:
            names[held] = found
    for memory in draft.order:
        held = draft.facts.memories[memory].name
        for launch in draft.launched:
            told = _named_by_parameter(launch, draft.facts, workload).get(memory)
            if held not in names and told is not None and told not in names.values():
                names[held] = told
    taken = {buffer.name for buffer in workload.buffers} | {size.name for size in workload.sizes}
    for memory in draft.order:
        held = draft.facts.memories[memory].name
        if held not in names:
            names[held] = held if held not in taken else f"scratch_{held}"
    for exchanged in draft.facts.memories:  # those that are only exchanged
        found = _buffer_of(exchanged.name, workload)
        if found is not None and found not in names.values():
            names.setdefault(exchanged.name, found)
    return names


def _numbers(facts: Facts, workload: Workload) -> dict[str, Expression]:
    """Roots of the rewritten file as the workload's sizes and constants; others as the numbers that they are."""
    known = {size.name: size.value for size in workload.sizes}
    constants = {constant.name for constant in workload.constants}
    found: dict[str, Expression] = {}
    for name, root in facts.roots.items():
        if name in known or name in constants:
            continue
        same = [size for size, value in known.items() if value == root.value and size not in facts.roots]
        if workload.origin.kind != "launch" and len(same) == 1:
            found[name] = name_of(same[0])
        elif root.value is not None:
            found[name] = number(root.value)
    return found


def _prepared(
    draft: Draft, names: Mapping[str, str], numbers: Mapping[str, Expression], workload: Workload
) -> tuple[tuple[Fill, ...], tuple[Scratch, ...]]:
    """Fills of outputs that the host clears before the run, and the buffers that only the rewrite knows."""
    fills: list[Fill] = []
    scratch: list[Scratch] = []
    outputs = {buffer.name for buffer in workload.buffers if buffer.access is Access.OUT}
    known = {buffer.name for buffer in workload.buffers}
    assert draft.first is not None
    for memory in draft.order:
        held = draft.facts.memories[memory]
        name = names[held.name]
        content = draft.first.contents.get(memory)
        zeroed = content is not None and content.kind == "zeros"
        if name in known:
            fills += [Fill(name, 0)] if name in outputs and zeroed else []
            continue
        if isinstance(held.nbytes, Unknown):
            raise WorkloadError(f"size of scratch `{held.name}`: {held.nbytes.reason}", held.nbytes.line or held.line)
        if content is not None and content.kind not in ("fresh", "zeros"):
            raise WorkloadError(
                f"`{held.name}` is filled by the host and is no buffer of the original; scratch starts empty or zeroed",
                held.line,
            )
        extent = divided(held.nbytes, draft.sizes_of(memory)).substitute(numbers).simplify()
        scratch.append(Scratch(name, draft.dtypes[memory], extent, zeroed))
    return tuple(fills), tuple(scratch)


def _renamed(step: Step, names: Mapping[str, str], numbers: Mapping[str, Expression]) -> Step:
    told = {old: name_of(new) for old, new in names.items()} | dict(numbers)

    def rewrite(expression: Expression) -> Expression:
        return expression.substitute(told).simplify()

    if isinstance(step, Launch):
        gx, gy, gz = map(rewrite, step.grid)
        bx, by, bz = map(rewrite, step.block)
        return Launch(
            step.kernel, (gx, gy, gz), (bx, by, bz), rewrite(step.shared), tuple(map(rewrite, step.arguments))
        )
    if isinstance(step, Swap):
        return Swap(names.get(step.first, step.first), names.get(step.second, step.second))
    if isinstance(step, Fill):
        return evolve(step, buffer=names[step.buffer])
    if isinstance(step, Copy):
        return Copy(names[step.target], names[step.source])
    heads = [None if p is None else rewrite(p) for p in (step.count, step.start, step.update, step.condition)]
    body = tuple(_renamed(part, names, numbers) for part in step.body)
    return Repeat(body, heads[0], step.variable, heads[1], heads[2], heads[3])
