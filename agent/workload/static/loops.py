"""Loops: those around launches become repeats where their turns differ, the others only tell what they fill."""

import re

from attrs import define, evolve
from tree_sitter import Node

from agent.source.nodes import field as child
from agent.source.nodes import walk
from agent.workload import dtypes
from agent.workload.expression import Expression, build, number
from agent.workload.expression import name as name_of
from agent.workload.static import contents, integers, parts, storing, streams
from agent.workload.static import evaluate as ev
from agent.workload.static.both_ways import unguarded
from agent.workload.static.execute import is_interesting, run
from agent.workload.static.state import Facts, State
from agent.workload.static.unrolling import unrolled
from agent.workload.static.values import (
    Composite,
    Content,
    Dim3,
    End,
    Item,
    LaunchItem,
    LoopItem,
    Pointer,
    Scalar,
    Unknown,
    Value,
    memories_of,
)


@define
class _Turn:
    """One turn of a loop, read with its changing numbers as symbols."""

    state: State
    items: list[Item]
    symbols: dict[int, str]
    condition: Value


def run_loop(node: Node, facts: Facts, state: State) -> End | None:
    """Read a loop. One that launches nothing is run where it is short and its turns are known; of others the launches
    are recorded, and what it changes is unknown afterwards. An End says that it left the function."""
    first, inside = child(node, "initializer"), len(facts.names)
    if first is not None:
        facts.plain_numbers += 1
        run(first, facts, state)
        facts.plain_numbers -= 1
    changed = _assigned(node, facts, state)
    if _never_runs(node, facts, state):
        return None
    launching = is_interesting(node, facts) or _exchanges(changed, node, facts, state)
    if not launching and node.type != "for_range_loop":
        ended = unrolled(node, _lasting(changed, inside, state), facts, state)
        if ended is not None:
            return ended[0]
    known = set(facts.symbols)
    if launching:
        _launching(node, changed, facts, state)
    else:
        _filling(node, changed, facts, state)
    _release(facts.symbols - known, facts.line(node), facts, state)
    return None


def _lasting(changed: list[int], inside: int, state: State) -> list[int]:
    """The numbers that a loop changes, that were there before it and are known by then."""
    return [cell for cell in changed if cell < inside and isinstance(state.cells.get(cell), Scalar)]


def _exchanges(changed: list[int], node: Node, facts: Facts, state: State) -> bool:
    """Whether a loop that launches nothing exchanges pointers to device memory, for launches behind it."""
    held = [value for cell in changed if isinstance(value := state.cells.get(cell), Pointer)]
    return "swap" in facts.node_text(node) and any(facts.memories[one.memory].space != "host" for one in held)


def _release(symbols: set[str], line: int, facts: Facts, state: State) -> None:
    """Loop variables mean nothing behind their loop: what still depends on one is unknown, the names are free."""
    gone = Unknown(f"it changes in the loop at {facts.at(line)}", line)
    for cell, value in state.cells.items():
        if names_of_value(value) & symbols:
            state.cells[cell] = gone
    for memory, content in state.contents.items():
        if content.domain is not None and contents.names(content.domain) & symbols:
            state.contents[memory] = evolve(content, domain=None)
    for index, held in enumerate(facts.memories):
        if not isinstance(held.nbytes, Unknown) and held.nbytes.names & symbols:
            facts.memories[index] = evolve(held, nbytes=gone)
    facts.symbols -= symbols


def _never_runs(node: Node, facts: Facts, state: State) -> bool:
    """Whether the condition is false before the first turn, as in a walk over arguments that are not there."""
    condition = child(node, "condition")
    if condition is None or node.type == "do_statement":
        return False
    value = ev.expression_of(ev.evaluate(child(condition, "value") or condition, facts, state.fork()))
    return value is not None and value.constant == 0


def _filling(node: Node, changed: list[int], facts: Facts, state: State) -> None:
    """Host work: read once for what it stores where, then everything it assigned is unknown."""
    fork = state.fork()
    for cell in changed:
        held = fork.cells.get(cell)
        if isinstance(held, Scalar):
            fork.cells[cell] = Scalar(name_of(facts.symbol(facts.names[cell])))
        elif not isinstance(held, Pointer):
            fork.cells[cell] = Unknown("it changes in a loop", facts.line(node))
    _walk_elements(node, facts, fork)
    body = child(node, "body")
    if body is not None:
        facts.conditional += 1
        run(body, facts, fork)
        facts.conditional -= 1
    state.contents = fork.contents
    _forget([*changed, *_differing(state.cells, fork.cells, changed)], facts.line(node), facts, state)


def _differing(before: dict[int, Value], after: dict[int, Value], changed: list[int]) -> list[int]:
    """Variables that a turn changed by another way than by their name: by address, as part of a struct or an array."""
    return [cell for cell, held in before.items() if cell not in changed and after.get(cell) != held]


def _walk_elements(node: Node, facts: Facts, state: State) -> None:
    """``for (auto& v : h)``: what the turns store into the elements of h goes by another name."""
    declarator, right = child(node, "declarator"), child(node, "right")
    if node.type != "for_range_loop" or declarator is None or right is None:
        return
    type_node = child(node, "type")
    constant = "const" in facts.node_text(node).split(":")[0] or type_node is None
    held = ev.evaluate(right, facts, state)
    if "&" in facts.node_text(declarator) and not constant and isinstance(held, Pointer):
        parts.refill(held.memory, Content("host"), facts, state)


def _forget(changed: list[int], line: int, facts: Facts, state: State) -> None:
    for cell in changed:
        state.cells[cell] = facts.opened(cell, f"`{facts.names[cell]}` changes in the loop at {facts.at(line)}", line)


def _assigned(node: Node, facts: Facts, state: State) -> list[int]:
    """Variables from outside that a loop assigns, directly or by address."""
    found: list[int] = []
    for part in walk(node):
        targets: list[Node | None] = []
        if part.type == "assignment_expression":
            targets = [child(part, "left")]
        elif part.type == "update_expression" or (
            part.type == "pointer_expression" and facts.node_text(part.children[0]) == "&"
        ):
            targets = [child(part, "argument")]
        elif part.type == "call_expression":
            targets = _reference_arguments(part, facts)
        elif part.type == "binary_expression" and ">>" in facts.node_text(part) and streams.reads(part, facts):
            targets = [child(part, "right")]
        for target in targets:
            while target is not None and target.type == "subscript_expression":
                target = None  # what is stored into memory is noted with the memory
            cell = ev.cell_of(target, facts, state) if target is not None else None
            if cell is not None and cell not in found:
                found.append(cell)
    return found


def _reference_arguments(call: Node, facts: Facts) -> list[Node | None]:
    callee, arguments = child(call, "function"), child(call, "arguments")
    if callee is None or arguments is None:
        return []
    name = re.sub(r"<.*", "", facts.node_text(callee), flags=re.S).split("::")[-1]
    given: list[Node | None] = [part for part in arguments.named_children if part.type != "comment"]
    if name == "swap":
        return given
    function = facts.function(name, len(given))
    if function is None:
        return []
    return [part for part, reference in zip(given, function.reference, strict=False) if reference]


def _launching(node: Node, changed: list[int], facts: Facts, state: State) -> None:
    """Launches, allocations or transfers in a loop."""
    line = facts.line(node)
    memories, roots = len(facts.memories), dict(facts.roots)
    turn = _symbolic_turn(node, changed, facts, state)
    queued = len(facts.queue)
    item = _as_repeat(node, turn, changed, facts, state) if turn is not None else None
    early = _later_launches(turn) if item is None and turn is not None else []
    if item is None and early and not any(isinstance(one, LaunchItem) for one in _first_turn(node, facts, state)[0]):
        item = early
    if item is None:
        facts.forget_symbols(set(turn.symbols.values()) if turn is not None else set(), memories)
        turn, facts.roots = None, roots
        items, after = _first_turn(node, facts, state)
    elif isinstance(item, LoopItem):
        items, after = [item], turn.state if turn is not None else state
    else:
        items, after = item, turn.state if turn is not None else state
    facts.items.extend(items)
    del facts.queue[queued:]
    before = state.cells
    state.cells, state.contents = after.cells, after.contents
    swapped = {m for part in items if isinstance(part, LoopItem) for pair in part.swaps for m in pair}
    others = [cell for cell in _differing(before, state.cells, changed) if not isinstance(before[cell], Unknown)]
    gone = [cell for cell in (*changed, *others) if not _is_fixed(cell, changed, swapped, state)]
    _forget(gone, line, facts, state)
    # Behind the exchanges a pointer goes by its own name, as in the plan, where a name stands for what it now holds.
    for cell in changed:
        held = before.get(cell)
        if isinstance(held, Pointer) and held.memory in swapped and held.offset == number(0):
            state.cells[cell] = held


def _later_launches(turn: _Turn) -> list[Item]:
    """The launches of a turn that do not depend on which turn it is, of a loop whose first turns launch nothing."""
    symbols = set(turn.symbols.values())
    found = [item for item in turn.items if isinstance(item, LaunchItem) and not names_of(item) & symbols]
    return [evolve(item, repeated=True) for item in found]


def _is_fixed(cell: int, changed: list[int], swapped: set[int], state: State) -> bool:
    """A pointer that each turn sets anew, as an allocation does, keeps the value of the last turn read."""
    held = state.cells.get(cell)
    return isinstance(held, Pointer) and held.memory not in swapped and not held.offset.names


def _symbolic_turn(node: Node, changed: list[int], facts: Facts, state: State) -> _Turn | None:
    fork = state.fork()
    symbols: dict[int, str] = {}
    for cell in changed:
        held = fork.cells.get(cell)
        if isinstance(held, Scalar):
            symbols[cell] = facts.symbol(facts.names[cell])
            fork.cells[cell] = Scalar(name_of(symbols[cell]))
    condition_node, body, update = child(node, "condition"), child(node, "body"), child(node, "update")
    condition: Value = Unknown("no condition")
    if condition_node is not None:
        condition = ev.evaluate(child(condition_node, "value") or condition_node, facts, fork)
    outer, facts.items = facts.items, []
    facts.plain_numbers += 1
    if body is not None:
        run(body, facts, fork)
    if update is not None:
        ev.evaluate(update, facts, fork)
    facts.plain_numbers -= 1
    items, facts.items = facts.items, outer
    return _Turn(fork, items, symbols, condition)


def _first_turn(node: Node, facts: Facts, state: State) -> tuple[list[Item], State]:
    """The turn that really comes first, with the numbers that the program has then."""
    fork = state.fork()
    for cell in _assigned(node, facts, state):
        held = fork.cells.get(cell)
        if isinstance(held, Scalar):
            storing.set_cell(cell, held, facts, fork, facts.line(node))
    outer, facts.items = facts.items, []
    body = child(node, "body")
    if body is not None:
        run(body, facts, fork)
    items, facts.items = facts.items, outer
    if any(isinstance(item, LaunchItem) for item in items):
        facts.first_turns.update(item.line for item in items if isinstance(item, LaunchItem))
    return items, fork


def _as_repeat(
    node: Node, turn: _Turn, changed: list[int], facts: Facts, state: State
) -> "LoopItem | list[Item] | None":
    """A repeat where turns differ in a way that can be written down; the turn's own items where they do not differ;
    None where only the first turn is certain."""
    used = set().union(*(names_of(item) for item in turn.items)) & set(turn.symbols.values())
    conditional = (
        any(isinstance(item, LaunchItem) and item.conditional for item in turn.items) and not facts.conditional
    )
    if conditional and (used or turn.symbols):
        return None
    swaps = _swaps(node, turn, facts, state)
    if swaps is None:
        return None
    if _sized_by(turn, facts):
        return None
    if not used and not swaps:
        return [_repeated(item) for item in turn.items]
    variables = [cell for cell, symbol in turn.symbols.items() if symbol in names_of_value(turn.condition)]
    if len(variables) != 1 or not used <= {turn.symbols[variables[0]]} or node.type == "do_statement":
        return None
    return _repeat(node, turn, variables[0], swaps, bool(used), facts, state)


def _repeated(item: Item) -> Item:
    if isinstance(item, LoopItem) and item.guarded:
        return evolve(item, body=tuple(map(_repeated, item.body)))
    return evolve(item, repeated=True) if isinstance(item, LaunchItem) else item


def _sized_by(turn: _Turn, facts: Facts) -> bool:
    """Whether a buffer that is launched on has a size that changes from turn to turn."""
    symbols = set(turn.symbols.values())
    for item in map(unguarded, turn.items):
        for memory in memories_of(item.arguments) if isinstance(item, LaunchItem) else ():
            nbytes = facts.memories[memory].nbytes
            if not isinstance(nbytes, Unknown) and nbytes.names & symbols:
                return True
    return False


def _repeat(
    node: Node, turn: _Turn, cell: int, swaps: list[tuple[int, int]], used: bool, facts: Facts, state: State
) -> LoopItem | None:
    symbol = turn.symbols[cell]
    start, update = ev.expression_of(state.cells[cell]), ev.expression_of(turn.state.cells.get(cell, Unknown("")))
    condition = ev.expression_of(turn.condition)
    if start is None or update is None or condition is None:
        return None
    others = set(turn.symbols.values()) - {symbol}
    if (start.names | update.names | condition.names) & others or update == name_of(symbol):
        return None
    body, line = tuple(turn.items), facts.line(node)
    count, dtype = _count(symbol, start, update, condition), integers.integer(storing.held_type(cell, facts))
    narrow = dtype is not None and dtype != "bool" and dtypes.size_of(dtype) < 4
    if narrow and dtype is not None:
        told = integers.known(count, facts) if count is not None else None
        if told is not None and told > dtypes.integer_range(dtype)[1]:
            return None  # C turns such a counter back to its least value: the loop never ends
        update = build("cast", (update,), dtype)
    if count is not None:
        return LoopItem(body, tuple(swaps), line, count, symbol if used else None)
    return LoopItem(body, tuple(swaps), line, None, symbol, start, update, condition)


def _count(symbol: str, start: Expression, update: Expression, condition: Expression) -> Expression | None:
    """How often a loop from 0 in steps of one runs, where it is one."""
    variable, one = name_of(symbol), number(1)
    steps = (build("+", (variable, one)), build("+", (one, variable)))
    if start != number(0) or update not in steps or condition.op not in ("<", "<=", "!="):
        return None
    left, right = condition.operands
    if left != variable or symbol in right.names:
        return None
    return build("+", (right, one)) if condition.op == "<=" else right


def _swaps(node: Node, turn: _Turn, facts: Facts, state: State) -> list[tuple[int, int]] | None:
    """How a turn permutes the memories that outer pointers lead to, as exchanges in order; None if it does more."""
    moved = {
        cell: (held, turn.state.cells.get(cell))
        for cell, held in state.cells.items()
        if isinstance(held, Pointer) and turn.state.cells.get(cell) != held and facts.names[cell] in _names(node, facts)
    }
    before = [pair[0] for pair in moved.values()]
    after = [pair[1] for pair in moved.values()]
    if not moved:
        return []
    if {(p.memory, p.offset) for p in before} != {(p.memory, p.offset) for p in after if isinstance(p, Pointer)}:
        return (
            None if any(isinstance(p, Pointer) and _launched(p.memory, turn.items) for p in [*before, *after]) else []
        )
    if any(p.offset != number(0) for p in before) or len({p.memory for p in before}) != len(before):
        return None
    if _other_names(node, turn, set(moved), facts, state):
        return None
    successor = {old.memory: new.memory for old, new in moved.values() if isinstance(new, Pointer)}
    found: list[tuple[int, int]] = []
    while successor:
        first = next(iter(successor))
        current = first
        while successor[current] != first:
            following = successor.pop(current)
            found.append((current, following))
            current = following
        successor.pop(current)
    return found


def _names(node: Node, facts: Facts) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*(?:\.\w+)?", facts.node_text(node)))


def _launched(memory: int, items: list[Item]) -> bool:
    return any(isinstance(item, LaunchItem) and memory in memories_of(item.arguments) for item in map(unguarded, items))


def _other_names(node: Node, turn: _Turn, moved: set[int], facts: Facts, state: State) -> bool:
    """Whether the loop also uses a pointer that stays on a memory which the others move over."""
    memories = {held.memory for cell in moved if isinstance(held := state.cells[cell], Pointer)}
    names = _names(node, facts)
    others = (
        facts.names[cell]
        for cell, held in state.cells.items()
        if cell not in moved and isinstance(held, Pointer) and held.memory in memories
        and facts.find(facts.names[cell]) == cell
    )  # fmt: skip
    return any(name in names for name in others)


def names_of_value(value: Value) -> frozenset[str]:
    """Names of roots and loop variables that a value depends on."""
    if isinstance(value, Scalar):
        return value.expression.names
    if isinstance(value, Pointer):
        return value.offset.names
    if isinstance(value, Dim3):
        return names_of_value(value.x) | names_of_value(value.y) | names_of_value(value.z)
    if isinstance(value, Composite):
        return frozenset[str]().union(*(names_of_value(held) for _, held in value.members))
    return frozenset()


def names_of(item: Item) -> frozenset[str]:
    """The same for all numbers of a launch, or of everything in a loop (its own variable left out)."""
    if isinstance(item, LaunchItem):
        values: list[Value] = [item.grid, item.block, item.shared, *item.arguments]
        return frozenset().union(*map(names_of_value, values))
    if isinstance(item, LoopItem):
        inner = frozenset[str]().union(*map(names_of, item.body))
        parts = [part for part in (item.count, item.start, item.update, item.condition) if part is not None]
        inner = inner.union(*(part.names for part in parts))
        return inner - {item.variable} if item.variable else inner
    return frozenset()
