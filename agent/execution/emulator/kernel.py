"""A kernel ready to run: basic blocks of steps, what each reads and writes, and which entries live on where."""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from attrs import define, field, frozen

from agent.execution.emulator import clusters
from agent.execution.emulator.exactness import inexact
from agent.execution.emulator.flow import Code, Item, Refused, lay_out
from agent.execution.emulator.memory_use import may_be_shared, narrowest
from agent.execution.emulator.ptx.instruction import Function, Immediate, Module
from agent.execution.emulator.races.sites import SiteFacts, site_facts
from agent.execution.emulator.sites import Site, source_places
from agent.execution.emulator.steps import atomic as steps_atomic
from agent.execution.emulator.steps import copy as steps_copy
from agent.execution.emulator.steps import matrix as steps_matrix
from agent.execution.emulator.steps import mbarrier as steps_mbarrier
from agent.execution.emulator.steps import memory as steps_memory
from agent.execution.emulator.steps import move as steps_move
from agent.execution.emulator.steps import surface as steps_surface
from agent.execution.emulator.steps import texture as steps_texture
from agent.execution.emulator.steps import tiles as steps_tiles
from agent.execution.emulator.steps import warp as steps_warp
from agent.execution.emulator.steps.pure import pure
from agent.execution.emulator.uses import Users, users
from agent.execution.emulator.values import LOWERERS, Entries, Initial, Lowering, Run, Step

# imported for what they register
_FAMILIES = (
    clusters, steps_atomic, steps_copy, steps_matrix, steps_mbarrier, steps_memory, steps_move, steps_surface,
    steps_texture, steps_tiles, steps_warp,
)  # fmt: skip

_STRONG = frozenset(("atom", "nanosleep", "mbarrier"))
_STRONG_WORDS = frozenset(["volatile", "relaxed", "acquire", "mmio"])
# how tiring one turn of a loop is that polls with atomics or volatile loads, that loads, that does neither; a group
# that has used up PATIENCE lets others go first
STRONG, WEAK, SILENT = 625, 1, 0
PATIENCE = 20_000
MOST_BARRIERS = 16  # that a block has by number; the one after them is its cluster's


@frozen
class End:
    """How a block ends. ``kind``: ``next``, ``branch``, ``jump``, ``table``, ``exit``, ``trap``, ``barrier``.

    ``targets`` are block numbers; for a branch the taken one, then the one fallen through to. ``entries`` are what the
    end reads: predicate, index, or the barrier's number, count and predicate. ``of_cluster``: the wait of a cluster's
    barrier.
    """

    kind: str
    targets: tuple[int, ...] = ()
    entries: tuple[int, ...] = ()
    negated: bool = False
    output: int | None = None
    reduction: str = ""
    counted: bool = False
    aligned: bool = True
    arrives: bool = False
    of_cluster: bool = False


@define(eq=False, slots=False)
class Block:
    """``reads`` are entries read before any write here, ``live`` those that matter on entry. ``mask`` is the entry of
    the member mask where the block begins with an instruction for which lanes of a warp come together. ``tiring`` says
    how likely it is that a block whose end goes backwards closes a loop that waits for others: SILENT, WEAK or
    STRONG."""

    number: int
    sites: tuple[Site, ...]
    runs: tuple[Run, ...]
    end: End
    reads: frozenset[int]
    writes: frozenset[int]
    live_bits: int = 0
    mask: int | None = None
    tiring: int = SILENT
    first: int = 0
    weight: int = 0
    added: tuple[bool, ...] = ()

    @cached_property
    def live(self) -> frozenset[int]:
        return frozenset(_numbers(self.live_bits))


@frozen(slots=False)
class Kernel:
    """``code`` keeps the layout of memory; ``entries`` how each entry starts; ``numbers`` which is which operand's."""

    name: str
    function: Function
    code: Code = field(repr=False)
    blocks: tuple[Block, ...] = field(repr=False)
    entries: tuple[Initial, ...] = field(repr=False)
    sites: tuple[Site, ...] = field(repr=False)
    numbers: Mapping[object, int] = field(factory=dict, repr=False)

    @cached_property
    def compiled(self) -> dict[bool, object]:
        """What the compiled back end keeps of it."""
        return {}

    @cached_property
    def toil(self) -> dict[bool, float]:
        """Instructions that NumPy has executed of it, each for all lanes of a batch, in launches that compiled code
        could have run; by the form of code that they needed."""
        return {}

    @cached_property
    def narrow_shared(self) -> bool:
        """Whether any access that may go to shared memory is narrower than four bytes."""
        return any(may_be_shared(site.instruction) and narrowest(site.instruction) < 4 for site in self.sites)

    @cached_property
    def inexact(self) -> tuple[str, ...]:
        """The opcodes whose results PTX does not define to the bit."""
        return inexact(site.instruction for site in self.sites)

    @cached_property
    def users(self) -> Users:
        """The instructions (by index of their site) that read each register."""
        return users(self.code.items)

    @cached_property
    def facts(self) -> SiteFacts:
        return site_facts(self)


#: Puts something beside each step when it is lowered.
Beside = Callable[[Lowering, Step], Step]


def prepare(
    module: Module, function: Function, addresses: Mapping[str, tuple[str, int]], beside: Beside | None = None
) -> Kernel:
    """Lower ``function``. Raises Refused, naming what this emulator does not know."""
    code = lay_out(module, function, addresses)
    entries = Entries()
    sites = tuple(
        Site(index, item.instruction, function.name, *place)
        for index, (item, place) in enumerate(zip(code.items, source_places(module, code.items), strict=True))
    )
    leaders = _leaders(code.items)
    number_of = {start: number for number, start in enumerate(leaders)}
    blocks = []
    for number, start in enumerate(leaders):
        stop = leaders[number + 1] if number + 1 < len(leaders) else len(code.items)
        blocks.append(_block(number, start, code.items[start:stop], sites[start:stop], entries, number_of, beside))
    _live(blocks)
    _mark_loops(blocks)
    return Kernel(function.name, function, code, tuple(blocks), tuple(entries.initial), sites, entries.numbers)


def _leaders(items: list[Item]) -> list[int]:
    leaders = {0}
    for index, item in enumerate(items):
        leaders.update(item.targets)
        if item.kind != "step" and index + 1 < len(items):
            leaders.add(index + 1)
        if item.kind == "step" and _gathers(item):
            leaders.add(index)
    return sorted(leader for leader in leaders if leader < len(items))


def _gathers(item: Item) -> bool:
    return steps_warp.mask_operand(item.instruction) is not None


def _block(
    number: int,
    first: int,
    items: list[Item],
    sites: tuple[Site, ...],
    entries: Entries,
    number_of: dict[int, int],
    beside: Beside | None,
) -> Block:
    steps: list[Step] = []
    mask = None
    end = End("next", (number + 1,))
    for item, site in zip(items, sites, strict=True):
        lowering = Lowering(entries, site, item)
        if item.kind == "step":
            if not steps and (operand := steps_warp.mask_operand(item.instruction)) is not None:
                mask = lowering.source(operand, "b32")
            step = _lower(lowering)
            steps.append(step if beside is None else beside(lowering, step))
        else:
            end = _end(lowering, number, number_of)
    reads: set[int] = set()
    writes: set[int] = set()
    for step in steps:
        reads |= set(step.reads) - writes
        writes |= set(step.writes)
    reads |= set(end.entries) - writes
    if mask is not None:
        reads.add(mask)
    return Block(
        number,
        sites,
        tuple(step.run for step in steps),
        end,
        frozenset(reads),
        frozenset(writes),
        mask=mask,
        first=first,
        weight=sum(not item.added for item in items),
        added=tuple(item.added for item in items),
    )


def _lower(lowering: Lowering) -> Step:
    base = lowering.instruction.base
    if base == "call":
        return _external_call(lowering)
    lowerer = LOWERERS.get(base)
    if lowerer is None:
        return pure(lowering)
    if lowering.item.guard is not None:
        step = lowerer(lowering)
        return _select(lowering, step)
    return lowerer(lowering)


def _select(lowering: Lowering, step: Step) -> Step:
    """A guarded step without side effects: keep the old value where the guard does not hold."""
    assert lowering.item.guard is not None
    guard = lowering.entries.register(lowering.frame, lowering.item.guard.register)
    negated = lowering.item.guard.negated

    def run(values: list["np.ndarray"], batch: "object") -> None:
        old = [values[out] for out in step.writes]
        step.run(values, batch)  # type: ignore[arg-type]
        holds = ~values[guard] if negated else values[guard]
        for out, before in zip(step.writes, old, strict=True):
            values[out] = np.where(holds, values[out], before)

    return Step(run, (*step.reads, guard, *step.writes), step.writes)


def _external_call(lowering: Lowering) -> Step:
    """``vprintf`` prints nowhere and returns 0; any other function without a body is refused."""
    target = lowering.instruction.sources[0]
    if lowering.item.deep:
        refusal = lowering.refuse("recursion deeper than it is laid out")

        def refuse(values: list["np.ndarray"], batch: "object") -> None:
            raise refusal

        return Step(refuse, (), ())
    name = getattr(target, "name", "")
    if name != "vprintf":
        raise lowering.refuse(f"the function {name} has no body here")
    return Step(lambda values, batch: None, (), ())


def _end(lowering: Lowering, number: int, number_of: dict[int, int]) -> End:
    item = lowering.item
    targets = tuple(number_of[target] for target in item.targets)
    if item.kind == "branch":
        assert item.guard is not None
        predicate = lowering.entries.register(lowering.frame, item.guard.register)
        return End("branch", (*targets, number + 1), (predicate,), item.guard.negated)
    if item.kind == "table":
        return End("table", targets, (lowering.source(item.instruction.sources[0], "b32"),))
    if item.kind == "barrier":
        return _barrier(lowering, number)
    return End(item.kind, targets)


def _barrier(lowering: Lowering, number: int) -> End:
    instruction = lowering.instruction
    if "cluster" in instruction.modifiers:
        number_of_its_own = lowering.entries.literal(MOST_BARRIERS, "b32")
        return End("barrier", (number + 1,), (number_of_its_own,), aligned=False, of_cluster=True)
    words = [word for word in instruction.modifiers if word not in ("cta", "aligned")]
    kind = words[0] if words else "sync"
    reduction = words[1] if kind == "red" and len(words) > 1 else ""
    if kind not in ("sync", "arrive", "red") or len(words) > (2 if kind == "red" else 1):
        raise lowering.refuse()
    sources = list(instruction.sources)
    predicate = sources.pop() if kind == "red" else None
    reads = [lowering.source(source, "b32") for source in sources]
    counted = len(sources) > 1
    if predicate is not None:
        reads.append(lowering.source(predicate, "pred"))
    output = lowering.destination(instruction.destinations[0]) if kind == "red" else None
    if kind == "arrive" and not counted:
        raise lowering.refuse("no thread count")
    return End(
        "barrier",
        (number + 1,),
        tuple(reads),
        bool(instruction.negated),
        output,
        reduction,
        counted,
        aligned=instruction.base == "bar" or "aligned" in instruction.modifiers,
        arrives=kind == "arrive",
    )


def _live(blocks: list[Block]) -> None:
    """Entries that matter on entry to each block, by the usual backward iteration; sets are bits of one number."""
    reads, writes = ([_bits(entries) for entries in sets] for sets in _sets(blocks))
    before: list[list[int]] = [[] for _ in blocks]
    after = [_successors(block, len(blocks)) for block in blocks]
    for block, targets in zip(blocks, after, strict=True):
        for target in targets:
            before[target].append(block.number)
    live, todo = list(reads), list(range(len(blocks)))
    waiting = [True] * len(blocks)
    while todo:
        number = todo.pop()
        waiting[number] = False
        out = 0
        for target in after[number]:
            out |= live[target]
        now = reads[number] | (out & ~writes[number])
        if now != live[number]:
            live[number] = now
            for earlier in before[number]:
                if not waiting[earlier]:
                    waiting[earlier] = True
                    todo.append(earlier)
    for block, bits in zip(blocks, live, strict=True):
        block.live_bits = bits


def _sets(blocks: list[Block]) -> tuple[list[frozenset[int]], list[frozenset[int]]]:
    """What each block reads and writes, the output of its end among the latter."""
    ends = [frozenset() if block.end.output is None else frozenset((block.end.output,)) for block in blocks]
    return [block.reads for block in blocks], [block.writes | end for block, end in zip(blocks, ends, strict=True)]


def _bits(entries: frozenset[int]) -> int:
    bits = 0
    for entry in entries:
        bits |= 1 << entry
    return bits


def _numbers(bits: int) -> list[int]:
    raw = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), np.uint8)
    numbers: list[int] = np.flatnonzero(np.unpackbits(raw, bitorder="little")).tolist()
    return numbers


def _successors(block: Block, count: int) -> tuple[int, ...]:
    if block.end.kind in ("exit", "trap"):
        return ()
    return tuple(target for target in block.end.targets if target < count)


def _mark_loops(blocks: list[Block]) -> None:
    """What lies between a backward branch and its target, in layout order, stands for the loop."""
    strength = [max((_strength(site) for site in block.sites), default=SILENT) for block in blocks]
    for block in blocks:
        heads = [target for target in _successors(block, len(blocks)) if target <= block.number]
        if heads:
            block.tiring = max(strength[min(heads) : block.number + 1])


def _strength(site: Site) -> int:
    instruction = site.instruction
    if instruction.base in _STRONG or (instruction.base == "ld" and _STRONG_WORDS & set(instruction.modifiers)):
        return STRONG
    if instruction.base == "ld" and not {"param", "const", "nc", "local"} & set(instruction.modifiers):
        return WEAK
    return SILENT


__all__ = ["Block", "End", "Immediate", "Kernel", "Refused", "prepare"]
