"""What a kernel's code alone tells about its accesses to global memory: which buffers it may write, what a value that
was read is used for, whether it has fences."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import field, frozen

from agent.execution.emulator.addresses import TAG_BITS
from agent.execution.emulator.flow import Item
from agent.execution.emulator.memory_use import loads, may_be_global, narrowest, writes_to
from agent.execution.emulator.ptx.instruction import Address, Immediate, Operand, Register, Symbol, Vector
from agent.execution.emulator.uses import Key, registers

if TYPE_CHECKING:
    from agent.execution.emulator.kernel import Kernel

Origin = tuple[str, int]
Source = Key | Origin

ANYWHERE: Origin = ("anywhere", 0)
"""A pointer that came from memory, say: it may lead into any buffer."""

_LOCAL_ALL, _LOCAL_ANY, _SHARED = ("local, all", 0), ("local, any", 0), ("shared", 0)
_PASSES_ON = frozenset("mov and or xor not cvt shr shl bfe prmt lop3 selp".split())  # noqa: SIM905
_TESTS = ("setp", "set", "testp")
_SYNCHRONISES = frozenset(("acquire", "release", "acq_rel"))


@frozen(eq=False)
class SiteFacts:
    """``written`` are the origins of all addresses that are stored to: ``("param", offset)``, ``("buffer", tag)``; None
    where that cannot be told. ``grain`` is the width in bytes of the narrowest access, at most four. ``fences``: there
    are fences, or accesses that acquire or release; ``narrow``: there are fences or atomics of block scope. By index of
    a load: ``tested`` where its value decides branches and is good for nothing else, ``polls`` where it decides when a
    loop ends, ``steers`` where it decides any branch.
    """

    written: frozenset[Origin] | None
    grain: int
    fences: bool
    narrow: bool
    kernel: "Kernel" = field(repr=False)
    known: dict[tuple[str, int], bool] = field(factory=dict, repr=False)

    def tested(self, index: int) -> bool:
        return self._once("tested", index)

    def steers(self, index: int) -> bool:
        return self._once("steers", index)

    def polls(self, index: int) -> bool:
        return self._once("polls", index)

    def _once(self, what: str, index: int) -> bool:
        key = (what, index)
        if key not in self.known:
            find = {"tested": _tested, "steers": lambda *at: bool(_steered(*at)), "polls": _polls}[what]
            self.known[key] = loads(self.kernel.sites[index].instruction) and find(self.kernel, index)
        return self.known[key]


def site_facts(kernel: "Kernel") -> SiteFacts:
    """To be found once for a kernel: ``Kernel.facts``."""
    items = kernel.code.items
    return SiteFacts(_written(items), _grain(items), *_any(items), kernel)


def _any(items: list[Item]) -> tuple[bool, bool]:
    return any(_fences(item) for item in items), any(_narrows(item) for item in items)


def is_fence(modifiers: tuple[str, ...]) -> bool:
    """Whether a fence orders anything here: one between proxies does not."""
    return "proxy" not in modifiers


def is_near(modifiers: tuple[str, ...]) -> bool:
    """Whether a fence or an atomic counts for the threads of its own block alone."""
    return "cta" in modifiers


def _fences(item: Item) -> bool:
    base, words = item.instruction.base, item.instruction.modifiers
    return (base in ("membar", "fence") and is_fence(words)) or bool(_SYNCHRONISES & set(words))


def _narrows(item: Item) -> bool:
    """Fences, and accesses to global memory, of block scope. (Barriers have the same word, and mean nothing by it.)"""
    base, words = item.instruction.base, item.instruction.modifiers
    return is_near(words) and (base in ("membar", "fence") or may_be_global(item.instruction))


def _grain(items: list[Item]) -> int:
    return min([4, *(narrowest(item.instruction) for item in items if may_be_global(item.instruction))])


# What a value is used for -------------------------------------------------------------------------------------------


def _tested(kernel: "Kernel", index: int) -> bool:
    """Whether the value only goes into comparisons, and those only into branches."""
    seen: set[int] = set()
    todo = _uses(kernel, index)
    while todo:
        at = todo.pop()
        item = kernel.code.items[at]
        if item.kind == "branch":
            continue
        if item.kind != "step" or item.instruction.base not in (*_PASSES_ON, *_TESTS):
            return False
        if at not in seen:
            seen.add(at)
            todo += _uses(kernel, at)
    return True


def _uses(kernel: "Kernel", index: int) -> list[int]:
    item = kernel.code.items[index]
    keys = registers(item, item.instruction.destinations)
    return [user for key in keys for user in kernel.users.get(key, ())]


def _steered(kernel: "Kernel", index: int) -> set[int]:
    """The branches that hang on what the instruction gives, through whatever is computed from it."""
    seen: set[int] = set()
    todo = [index]
    while todo:
        for user in _uses(kernel, todo.pop()):
            if user not in seen:
                seen.add(user)
                todo.append(user)
    return {user for user in seen if kernel.code.items[user].kind == "branch"}


def _polls(kernel: "Kernel", index: int) -> bool:
    steered = _steered(kernel, index)
    return any(
        head <= index <= tail and any(_leaves(kernel, branch, head, tail) for branch in steered)
        for head, tail in _loops(kernel)
    )


def _loops(kernel: "Kernel") -> Iterator[tuple[int, int]]:
    """First and last item between the target of each backward branch and the branch."""
    for index, item in enumerate(kernel.code.items):
        for target in item.targets:
            if target <= index:
                yield target, index


def _leaves(kernel: "Kernel", branch: int, head: int, tail: int) -> bool:
    ways = (*kernel.code.items[branch].targets, branch + 1)
    return head <= branch <= tail and any(not head <= way <= tail for way in ways)


# Which buffers are written ------------------------------------------------------------------------------------------


def _written(items: list[Item]) -> frozenset[Origin] | None:
    flows: dict[Source, set[Source]] = {}
    ends: set[Source] = set()
    for item in items:
        for target, sources in _flows(item):
            flows.setdefault(target, set()).update(sources)
        place = writes_to(item.instruction)
        if place is not None and may_be_global(item.instruction):
            ends |= _address(item, place)
    found = _reached(flows, ends)
    return None if ANYWHERE in found else found


def _reached(flows: dict[Source, set[Source]], ends: set[Source]) -> frozenset[Origin]:
    seen, todo = set(ends), list(ends)
    while todo:
        for source in flows.get(todo.pop(), ()):
            if source not in seen:
                seen.add(source)
                todo.append(source)
    return frozenset(one for one in seen if one[0] in ("param", "buffer", "anywhere"))


def _flows(item: Item) -> Iterator[tuple[Source, set[Source]]]:
    """What may carry an address from where to where: registers of 64 bits, and memory that they are kept in."""
    instruction = item.instruction
    base, sources = instruction.base, instruction.sources
    targets = [key for key in registers(item, instruction.destinations) if key[1] == "b64"]
    if base in ("ld", "ldu"):
        if instruction.types[0] != "f64":
            origins = _loaded(item, sources[0])
            for target in targets:
                yield target, origins
        return
    if base == "st":
        kept: set[Source] = {key for key in registers(item, sources[1:]) if key[1] == "b64"}
        for place in _kept_in(item, sources[0]) if kept else ():
            yield place, kept
        return
    packed = any(isinstance(operand, Vector) for operand in sources)
    if base in ("atom", "shfl") or packed:
        found: set[Source] = {ANYWHERE}
    else:
        found = {origin for operand in sources for origin in _operand(item, operand)}
    for target in targets:
        yield target, found


def _operand(item: Item, operand: Operand | None) -> set[Source]:
    if isinstance(operand, Register):
        key = (item.frame.number, operand.file, operand.slot)
        return {key} if operand.file == "b64" else set()
    if isinstance(operand, Symbol):
        space, address = item.frame.symbols.get(operand.name, ("", 0))
        if space in ("global", "const"):
            return {("buffer", address >> TAG_BITS)}
        return {ANYWHERE} if space == "param" else set()
    return set()


def _address(item: Item, operand: Operand) -> set[Source]:
    if isinstance(operand, Vector):  # a surface: the object, then the place in it
        return {ANYWHERE} if operand.elements[0] is None else _operand(item, operand.elements[0]) or {ANYWHERE}
    base = operand.base if isinstance(operand, Address) else operand
    if base is None or isinstance(base, Immediate):
        return {ANYWHERE}
    return _operand(item, base)


def _place(item: Item, operand: Operand) -> tuple[str, int]:
    """Space and address of an access by the name of a variable; ``("", 0)`` where it goes through a register."""
    base = operand.base if isinstance(operand, Address) else operand
    shift = operand.offset if isinstance(operand, Address) else 0
    if not isinstance(base, Symbol):
        return "", 0
    space, address = item.frame.symbols.get(base.name, ("", 0))
    return space, address + base.offset + shift


def _loaded(item: Item, operand: Operand) -> set[Source]:
    words = set(item.instruction.modifiers)
    space, address = _place(item, operand)
    if space == "param":
        return {("param", address)}
    if space == "local":
        return {("local", address), _LOCAL_ANY}
    if "local" in words:
        return {_LOCAL_ALL}
    if words & {"shared", "shared::cta"}:
        return {_SHARED}
    return {ANYWHERE}


def _kept_in(item: Item, operand: Operand) -> list[Source]:
    words = set(item.instruction.modifiers)
    space, address = _place(item, operand)
    if space == "local":
        return [("local", address), _LOCAL_ALL]
    if "global" in words:
        return []
    if words & {"shared", "shared::cta"}:
        return [_SHARED]
    return [_LOCAL_ANY, _LOCAL_ALL, _SHARED]
