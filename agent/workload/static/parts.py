"""Parts of variables and memories: members of structs, elements of arrays at known indices. Each is a variable of its
own, which comes to be when it is first named."""

from collections.abc import Iterator

from agent.workload.expression import ExpressionError, build
from agent.workload.static import integers
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Content, Pointer, Record, Scalar, Unknown, Value


def of_memory(memory: int) -> int:
    """The owner of a memory's elements, beside variables, whose numbers are not negative."""
    return -memory - 1


def element(holder: Pointer, index: Value, facts: Facts, make: bool = False) -> int | None:
    """The variable that stands for ``holder[index]``, where the index is a known number; an unknown one is made only if
    asked for. What is read at an index of the program's own numbers ties the workload to these."""
    if not isinstance(index, Scalar) or facts.memories[holder.memory].space == "device":
        return None
    place = build("+", (holder.offset, index.expression)).simplify()
    owner = of_memory(holder.memory)
    if place.constant is None and owner in facts.parts and not make:
        try:
            told = place.evaluate(facts.values())
        except ExpressionError:
            return None
        facts.pinned |= place.names
        return facts.parts[owner].get(str(told))
    if place.constant is None:
        return None
    if make:
        made = member(owner, str(place), f"{facts.memories[holder.memory].name}[{place}]", facts)
        facts.integers.setdefault(made, integers.integer(facts.dtype(holder.element)))
        return made
    return facts.parts.get(owner, {}).get(str(place))


def member(owner: int, name: str, full_name: str, facts: Facts) -> int:
    """The variable that stands for a part of ``owner``."""
    known = facts.parts.setdefault(owner, {})
    if name not in known:
        known[name] = facts.part(full_name)
    return known[name]


def is_array(cell: int, facts: Facts) -> bool:
    """Whether a variable is an array rather than a pointer to one."""
    return facts.types.get(cell, "").endswith("[]")


def all_of(owner: int, facts: Facts) -> Iterator[int]:
    """Every part of a variable or memory, and the parts of these."""
    for cell in facts.parts.get(owner, {}).values():
        yield cell
        yield from all_of(cell, facts)


def forget(owner: int, reason: str, line: int | None, facts: Facts, state: State) -> None:
    """Nothing is known any more about the parts of a variable or memory."""
    for cell in all_of(owner, facts):
        if cell in state.cells:
            state.cells[cell] = Unknown(reason, line)


def refill(memory: int, content: Content, facts: Facts, state: State) -> None:
    """A memory holds something else from here on."""
    state.contents[memory] = content
    forget(of_memory(memory), f"`{facts.memories[memory].name}` is filled anew", None, facts, state)


def record(cell: int, value: Value, facts: Facts) -> Value:
    """The value of a variable that may be a struct: the struct itself where its members are known."""
    return Record(cell) if isinstance(value, Unknown) and cell in facts.parts else value


def copy(source: int, target: int, facts: Facts, state: State) -> None:
    """``target = source`` for structs: every member, and the members of these."""
    if source == target:
        return
    facts.parts.setdefault(target, {})
    forget(target, f"`{facts.names.get(target, 'it')}` is set anew", None, facts, state)
    for name, cell in list(facts.parts.get(source, {}).items()):
        there = member(target, name, f"{facts.names.get(target, '')}.{name}", facts)
        facts.types[there] = facts.types.get(cell, "")
        held = state.cells.get(cell)
        if isinstance(held, Pointer) and is_array(cell, facts):
            memory = facts.allocate(facts.memories[held.memory], state.contents[held.memory], state)
            copy(of_memory(held.memory), of_memory(memory), facts, state)
            state.cells[there] = Pointer(memory, held.offset, held.element)
        elif held is not None:
            state.cells[there] = held
        else:
            state.cells.pop(there, None)
        copy(cell, there, facts, state)
