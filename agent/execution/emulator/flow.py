"""From a decoded kernel to one straight list of items: calls laid inline, guards turned into branches.

Laying calls inline keeps the order of program counters that reconvergence needs (lowest first) and makes frames
unnecessary. Recursion is laid out some levels deep, and who goes deeper is refused; a program that grows beyond reason
is refused as a whole.
"""

import math
from collections.abc import Mapping

from attrs import define, evolve, field

from agent.execution.emulator.pointers import callees, function_places
from agent.execution.emulator.ptx.instruction import (
    Function,
    Guard,
    Immediate,
    Instruction,
    Label,
    Module,
    Register,
    Symbol,
    Variable,
    Vector,
)

MOST_ITEMS = 400_000
MOST_DEPTH = 40
MOST_LEVELS = 24  # of a function that calls itself in one place; fewer where it does so in several
MOST_COPIES = 256
MOST_RECURSIVE = 40_000  # items, beyond which no recursion is laid out any deeper
_ENDS = ("bra", "brx", "ret", "exit", "trap", "bar", "barrier")
_PURE_GUARD = frozenset(
    """
    add sub mul mad fma div rem neg abs min max and or xor not shl shr mov cvt setp set selp slct cvta cnot lop3 prmt
    bfe bfi shf popc clz brev rcp sqrt rsqrt ex2 lg2 sin cos tanh mul24 mad24 sad copysign testp
    """.split()  # noqa: SIM905
)


class Refused(Exception):
    """This emulator cannot run that: the message names the instruction and its line."""


@define(eq=False)
class Frame:
    """One activation of a function. ``symbols`` places its variables and parameters: (space, address).
    ``caller`` is the call that made it."""

    number: int
    function: Function
    symbols: dict[str, tuple[str, int]]
    caller: "Item | None" = None
    starts: list[int] = field(factory=list)
    end: int = -1


@define(eq=False)
class Item:
    """``kind``: ``step``, ``branch`` (``guard`` and one target), ``jump``, ``table``, ``exit``, ``trap``, ``barrier``.

    ``targets`` are item numbers. ``guard`` of a step means that its result is kept only where it holds. ``added`` marks
    items that stand for no instruction of their own (the branch around a guarded one), ``deep`` a call that is not laid
    out: recursion goes no deeper.
    """

    kind: str
    instruction: Instruction
    frame: Frame
    targets: tuple[int, ...] = ()
    guard: Guard | None = None
    added: bool = False
    deep: bool = False


@define(eq=False)
class Code:
    """A kernel laid out. Sizes in bytes; dynamic shared memory begins at ``dynamic`` (rounded to its alignment)."""

    items: list[Item] = field(factory=list)
    frames: int = 0
    local_bytes: int = 0
    shared: dict[str, tuple[int, int]] = field(factory=dict)
    shared_end: int = 0
    dynamic_names: list[str] = field(factory=list)
    dynamic_alignment: int = 16


def lay_out(module: Module, kernel: Function, addresses: Mapping[str, tuple[str, int]]) -> Code:
    """Items of ``kernel`` with all it calls. ``addresses`` places module variables. Raises Refused."""
    code = Code()
    used = _used_symbols(module, kernel)
    statics = [v for v in module.variables.values() if v.space == "shared" and not v.external and v.name in used]
    symbols = {**function_places(module), **addresses}
    for variable in statics:
        # declared outside: a function beside the kernel (a lambda, say) uses it too
        _place_shared(code, variable, variable.name)
        symbols[variable.name] = ("shared", code.shared[variable.name][0])
    offset = 0
    for parameter in kernel.parameters:
        offset = _up(offset, parameter.alignment)
        symbols[parameter.name] = ("param", offset)
        offset += parameter.nbytes
    for variable in module.variables.values():
        if variable.space == "shared" and variable.external and variable.name in used:
            code.dynamic_names.append(variable.name)
            code.dynamic_alignment = max(code.dynamic_alignment, variable.alignment)
    _reserve_function_shared(module, kernel, code, used)
    _emit(module, kernel, code, symbols, ())
    return code


def dynamic_start(code: Code) -> int:
    return _up(code.shared_end, max(code.dynamic_alignment, 128))


def _used_symbols(module: Module, kernel: Function) -> set[str]:
    """Every name that the kernel, a function it calls, or a table of functions mentions."""
    seen: set[str] = set()
    todo = [name for instruction in kernel.instructions for name in _names(instruction)]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in module.functions:
            todo += [one for instruction in module.functions[name].instructions for one in _names(instruction)]
        elif name in module.variables:
            todo += [symbol.name for symbol in module.variables[name].relocations.values()]
    return seen


def _names(instruction: Instruction) -> list[str]:
    names: list[str] = []
    stack: list[object] = [*instruction.destinations, *instruction.sources]
    while stack:
        operand = stack.pop()
        if isinstance(operand, Symbol):
            names.append(operand.name)
        elif isinstance(operand, Vector):
            stack.extend(operand.elements)
        elif (base := getattr(operand, "base", None)) is not None:
            stack.append(base)
    return names


def _reserve_function_shared(module: Module, kernel: Function, code: Code, used: set[str]) -> None:
    for function in (kernel, *(module.functions[name] for name in sorted(used) if name in module.functions)):
        for variable in function.variables:
            if variable.space == "shared":
                if variable.external:
                    code.dynamic_names.append(variable.name)
                    code.dynamic_alignment = max(code.dynamic_alignment, variable.alignment)
                else:
                    _place_shared(code, variable, f"{function.name}:{variable.name}")


def _place_shared(code: Code, variable: Variable, key: str) -> None:
    if key in code.shared:
        return
    # a gap of whole bank rows: an index past the end is seen, and no bank changes
    start = _up(code.shared_end, variable.alignment) + (256 if code.shared else 0)
    code.shared[key] = (start, variable.nbytes)
    code.shared_end = start + variable.nbytes


def _emit(
    module: Module,
    function: Function,
    code: Code,
    symbols: dict[str, tuple[str, int]],
    calls: tuple[str, ...],
    caller: Item | None = None,
) -> Frame:
    frame = Frame(code.frames, function, symbols, caller)
    code.frames += 1
    for variable in function.variables:
        if variable.space in ("local", "param"):
            start = _up(code.local_bytes, max(variable.alignment, 1))
            code.local_bytes = start + variable.nbytes
            symbols[variable.name] = ("local", start)
        elif variable.space == "shared" and not variable.external:
            symbols[variable.name] = ("shared", code.shared[f"{function.name}:{variable.name}"][0])
        elif variable.space != "shared":
            raise Refused(f"a {variable.space} variable inside function {function.name}")
    for name in code.dynamic_names:
        symbols[name] = ("shared", dynamic_start(code))
    first = len(code.items)
    for instruction in function.instructions:
        frame.starts.append(len(code.items))
        _emit_one(module, code, frame, instruction, calls)
    frame.starts.append(len(code.items))
    if not calls:
        end = _instruction("exit", function)
        code.items.append(Item("exit", end, frame, added=True))
    frame.end = len(code.items)
    for item in code.items[first:]:
        if item.frame is frame and item.targets and item.targets[0] < 0:
            item.targets = tuple(frame.starts[-1 - target] for target in item.targets)
    return frame


def _instruction(base: str, function: Function) -> Instruction:
    last = function.instructions[-1] if function.instructions else None
    return Instruction(base, (), (), (), (), None, last.file if last else 0, last.line if last else 0, base)


def _emit_one(module: Module, code: Code, frame: Frame, instruction: Instruction, calls: tuple[str, ...]) -> None:
    if len(code.items) > MOST_ITEMS:
        raise Refused(f"{frame.function.name}: more than {MOST_ITEMS} instructions with all calls laid inline")
    items, base, guard = code.items, instruction.base, instruction.guard
    if base == "bra":
        (label,) = instruction.sources
        assert isinstance(label, Label)
        items.append(Item("branch" if guard else "jump", instruction, frame, (-1 - label.target,), guard))
        return
    if guard is not None and base in _PURE_GUARD:
        items.append(Item("step", instruction, frame, guard=guard))
        return
    skip = None
    if guard is not None:
        skip = Item("branch", instruction, frame, (), evolve(guard, negated=not guard.negated), True)
        items.append(skip)
    if base == "brx":
        table = instruction.sources[1]
        assert isinstance(table, Vector)
        targets = tuple(-1 - label.target for label in table.elements if isinstance(label, Label))
        items.append(Item("table", instruction, frame, targets))
    elif base == "ret" and calls:
        items.append(Item("jump", instruction, frame, (-1 - len(frame.function.instructions),)))
    elif base in ("ret", "exit"):
        items.append(Item("exit", instruction, frame))
    elif base == "trap":
        items.append(Item("trap", instruction, frame))
    elif base in ("bar", "barrier") and not _goes_on(instruction.modifiers):
        items.append(Item("barrier", instruction, frame))
    elif base == "call":
        _emit_call(module, code, frame, instruction, calls)
    else:
        items.append(Item("step", instruction, frame))
    if skip is not None:
        skip.targets = (len(items),)


def _goes_on(words: tuple[str, ...]) -> bool:
    """Barriers at which no block of code ends: a warp's, and the arrival of a cluster, whose wait is the barrier."""
    return "warp" in words or {"cluster", "arrive"} <= set(words)


def _emit_call(module: Module, code: Code, frame: Frame, instruction: Instruction, calls: tuple[str, ...]) -> None:
    target = instruction.sources[0]
    if isinstance(target, Register):
        _emit_call_by_pointer(module, code, frame, instruction, calls)
        return
    if not isinstance(target, Symbol):
        raise Refused(f"a call through a pointer at line {instruction.line}: '{instruction.text}'")
    callee = module.functions.get(target.name)
    if callee is None:
        kind = "trap" if target.name == "__assertfail" else "step"
        code.items.append(Item(kind, instruction, frame))
        return
    _emit_inline(module, code, frame, instruction, callee, calls)


def _too_deep(code: Code, callee: Function, calls: tuple[str, ...]) -> bool:
    if callee.name not in calls:
        return len(calls) >= MOST_DEPTH
    own = sum(
        instruction.base == "call" and getattr(instruction.sources[0], "name", "") == callee.name
        for instruction in callee.instructions
    )
    levels = MOST_LEVELS if own < 2 else int(math.log(MOST_COPIES, own))
    return calls.count(callee.name) >= levels or len(calls) >= MOST_DEPTH or len(code.items) > MOST_RECURSIVE


def _emit_call_by_pointer(
    module: Module, code: Code, frame: Frame, instruction: Instruction, calls: tuple[str, ...]
) -> None:
    """Every function that the pointer may lead to, one after the other, each behind a test of the pointer."""
    flag, places, ends = Register("%leads", "pred", -1), function_places(module), []
    for callee in callees(module, frame.function, instruction):
        address = Immediate(places[callee.name][1], "int")
        test = evolve(
            instruction, base="setp", modifiers=("eq",), types=("u64",),
            destinations=(flag,), sources=(instruction.sources[0], address), guard=None,
        )  # fmt: skip
        code.items.append(Item("step", test, frame))
        skip = Item("branch", test, frame, (), Guard(flag, True), added=True)
        code.items.append(skip)
        _emit_inline(module, code, frame, instruction, callee, calls)
        ends.append(Item("jump", instruction, frame, added=True))
        code.items.append(ends[-1])
        skip.targets = (len(code.items),)
    code.items.append(Item("trap", instruction, frame))
    for end in ends:
        end.targets = (len(code.items),)


def _emit_inline(
    module: Module, code: Code, frame: Frame, instruction: Instruction, callee: Function, calls: tuple[str, ...]
) -> None:
    arguments = instruction.sources[1]
    assert isinstance(arguments, Vector)
    if _too_deep(code, callee, calls):
        code.items.append(Item("step", instruction, frame, deep=True))
        return
    own = _own(frame.function)
    symbols = {name: place for name, place in frame.symbols.items() if name not in own}
    for formal, actual in zip(callee.parameters, arguments.elements, strict=True):
        symbols[formal.name] = _argument(code, frame, formal, actual, instruction)
    for formal, result in zip(callee.returns, instruction.destinations, strict=True):
        symbols[formal.name] = _argument(code, frame, formal, result, instruction)
    _emit(module, callee, code, symbols, (*calls, callee.name), Item("step", instruction, frame))


def _own(function: Function) -> set[str]:
    return {variable.name for variable in (*function.variables, *function.parameters, *function.returns)}


def _argument(code: Code, frame: Frame, formal: Variable, actual: object, instruction: Instruction) -> tuple[str, int]:
    if isinstance(actual, Symbol) and frame.symbols.get(actual.name, ("", 0))[0] == "local":
        return "local", frame.symbols[actual.name][1] + actual.offset
    if isinstance(actual, Register | Immediate):
        raise Refused(f"a call that passes registers at line {instruction.line}: '{instruction.text}'")
    raise Refused(f"the argument {actual} for {formal.name} at line {instruction.line}")


def _up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
