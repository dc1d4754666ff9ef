"""Host branches that other sizes take otherwise: both sides are read, what each launches stands under its condition.

That is for the plan of a rewrite, which must hold at every size of the workload; the workload of an original is tied to
the sizes that decide its branches.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager

from attrs import evolve
from tree_sitter import Node

from agent.workload.expression import Expression, build, number
from agent.workload.static.state import Facts, State
from agent.workload.static.values import (
    Content,
    Dim3,
    End,
    Item,
    LaunchItem,
    LoopItem,
    OtherItem,
    Scalar,
    Unknown,
    Value,
)

Reader = Callable[[Node, Facts, State], End | None]

_TRUTHS = frozenset({"==", "!=", "<", "<=", ">", ">=", "&&", "||", "not"})


def tie(condition: Expression, line: int, facts: Facts) -> None:
    """What follows is known for the program's own values of the names of a condition, and for no others."""
    facts.pinned |= condition.names
    for name in condition.names & facts.followed:
        facts.tied.setdefault(name, line)


def both(
    condition: Expression, sides: tuple[Node | None, Node | None], way: int, line: int, read: Reader,
    facts: Facts, state: State,
) -> End | None:  # fmt: skip
    """Read the two sides of a branch, of which ``sides[way]`` is taken at the sizes that the program sets."""
    holds = condition if condition.op in _TRUTHS else build("!=", (condition, number(0)))
    known = (holds, _negated(holds))
    start = len(facts.items)
    read_sides = [_side(sides[side], known[side], side == way, read, facts, state) for side in (0, 1)]
    forks, ends, launching = zip(*read_sides, strict=True)
    if ends == (None, None):
        _merge(holds, forks[0], forks[1], way, line, facts, state)
        return None
    left = way if ends[way] is not None else 1 - way
    if None not in ends or (left == way and not launching[way]):
        return _become(forks[way], state, ends[way])
    if not launching[left]:
        return _become(forks[way], state, None)  # it gives up, as programs do at sizes that they do not take
    if ends[left].how == "return" and facts.items is facts.listed:
        facts.rests.append((len(facts.items), known[1 - left]))
        return _become(forks[1 - left], state, None)
    tie(condition, line, facts)
    facts.items[start:] = [_tied(item, condition.names) for item in facts.items[start:]]
    return _become(forks[way], state, ends[way])


@contextmanager
def function(facts: Facts) -> Iterator[None]:
    """While a function's body is read; behind it, what it launches after a side that left it is put under the condition
    of its getting there."""
    outer = facts.listed, facts.rests
    facts.listed, facts.rests = facts.items, []
    try:
        yield
    finally:
        for place, guard in reversed(facts.rests):
            facts.items[place:] = _under(guard, facts.items[place:])
        facts.listed, facts.rests = outer


def guards(item: Item) -> frozenset[Expression]:
    """The conditions that an item stands under."""
    if not isinstance(item, LoopItem) or not item.guarded or item.count is None:
        return frozenset()
    return guards(item.body[0]) | {item.count}


def unguarded(item: Item) -> Item:
    """The item itself, without the conditions that it stands under."""
    return unguarded(item.body[0]) if isinstance(item, LoopItem) and item.guarded else item


def exclude(first: Item, second: Item) -> bool:
    """Whether no run reaches both."""
    return any(_negated(one) in guards(second) for one in guards(first))


def relieved(item: Item, known: Set[Expression]) -> Item:
    """The item without those of its conditions that are known to hold."""
    if not isinstance(item, LoopItem) or not item.guarded:
        return item
    inner = relieved(item.body[0], known)
    return inner if item.count in known else evolve(item, body=(inner,))


def common(items: Iterable[Item]) -> frozenset[Expression]:
    """The conditions among those of several items that none of them contradicts."""
    found = frozenset[Expression]().union(*map(guards, items))
    return frozenset(one for one in found if _negated(one) not in found)


def taken(items: Iterable[Item], facts: Facts) -> tuple[Item, ...]:
    """The items that are reached at the sizes that the program sets."""
    return tuple(item for item in items if all(one.evaluate(facts.values()) for one in guards(item)))


def _negated(condition: Expression) -> Expression:
    return condition.operands[0] if condition.op == "not" else build("not", (condition,))


def _side(
    side: Node | None, guard: Expression, taken: bool, read: Reader, facts: Facts, state: State
) -> tuple[State, End | None, bool]:
    fork, outer, facts.items, queued = state.fork(), facts.items, [], len(facts.queue)
    ended = read(side, facts, fork) if side is not None else None
    items, facts.items = facts.items, outer
    facts.items.extend(_under(guard, items))
    if not taken:
        del facts.queue[queued:]
    return fork, ended, any(isinstance(item, LaunchItem | LoopItem) for item in items)


def _under(guard: Expression, items: list[Item]) -> list[Item]:
    return [
        item if isinstance(item, OtherItem) else LoopItem((item,), (), item.line, guard, guarded=True) for item in items
    ]


def _tied(item: Item, names: frozenset[str]) -> Item:
    if isinstance(item, LoopItem):
        return evolve(item, body=tuple(_tied(one, names) for one in item.body))
    return evolve(item, pinned=item.pinned | names) if isinstance(item, LaunchItem) else item


def _become(fork: State, state: State, ended: End | None) -> End | None:
    state.cells, state.contents = fork.cells, fork.contents
    return ended


def _merge(holds: Expression, yes: State, no: State, way: int, line: int, facts: Facts, state: State) -> None:
    """What both sides leave behind: numbers that differ hang on the condition; where anything else does, what follows
    is known for the side alone that the program takes."""
    before, fork = state.cells, (yes, no)[way]
    cells, contents, apart = dict(fork.cells), dict(fork.contents), False
    for cell in before:
        first, second = yes.cells.get(cell), no.cells.get(cell)
        if first != second and first is not None and second is not None:
            told = _either(holds, first, second)
            apart = apart or told is None
            cells[cell] = cells[cell] if told is None else told
    for memory in yes.contents.keys() & no.contents.keys():
        kinds = {yes.contents[memory].kind, no.contents[memory].kind}
        if yes.contents[memory] != no.contents[memory]:
            contents[memory] = Content("kernel") if "kernel" in kinds else contents[memory]
            apart = apart or "kernel" not in kinds
    if apart:
        tie(holds, line, facts)
    state.cells, state.contents = cells, contents


def _either(holds: Expression, yes: Value, no: Value) -> Value | None:
    if isinstance(yes, Unknown) or isinstance(no, Unknown):
        return yes if isinstance(yes, Unknown) else no
    if isinstance(yes, Scalar) and isinstance(no, Scalar):
        return Scalar(build("?", (holds, yes.expression, no.expression)), yes.dtype)
    if isinstance(yes, Dim3) and isinstance(no, Dim3):
        axes = [_either(holds, one, two) for one, two in ((yes.x, no.x), (yes.y, no.y), (yes.z, no.z))]
        x, y, z = (axis if isinstance(axis, Scalar | Unknown) else Unknown("a grid of two sides") for axis in axes)
        return Dim3(x, y, z)
    return None
