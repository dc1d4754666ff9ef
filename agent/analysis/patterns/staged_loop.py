"""Loops that bring a step of data into shared memory, wait, compute on it, and wait again."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import (
    LOOPS,
    ancestors,
    bare,
    contains,
    descendants,
    enclosing,
    expression_of,
    is_barrier,
    statements,
    text,
)

LEAPS = ("return_statement", "break_statement", "continue_statement", "goto_statement")


@frozen(eq=False)
class Copy:
    """``target = source;`` or ``target = condition ? source : otherwise;`` from global to shared memory; without a
    ``source``, a value that no memory is read for (``target = 0.0f;``)."""

    statement: Node
    target: Access
    source: Access | None
    condition: Node | None
    otherwise: Node | None


@frozen(eq=False)
class StagedLoop:
    """``for (...) { staging; __syncthreads(); work; __syncthreads(); }``: ``arrays`` are filled by ``copies`` in the
    staging alone and read in the work alone. ``advances`` are statements between or behind the work that move what the
    staging reads from on to the next step (``a += 16;``), and that nothing else sees."""

    loop: Loop
    staging: tuple[Node, ...]
    work: tuple[Node, ...]
    advances: tuple[Node, ...]
    copies: tuple[Copy, ...]
    arrays: tuple[Symbol, ...]
    barriers: tuple[Node, Node]


def staged_loop(loop: Loop, facts: Facts) -> StagedLoop | str:
    """The staged loop that a loop is, or why it is none."""
    if loop.node.type != "for_statement" or loop.step_kind != "+" or loop.leaves_early or loop.setup is not None:
        return "it does not count through a range in its header alone"
    if loop.node.parent is None or loop.node.parent.type != "compound_statement":
        return "it stands in a loop or a branch without braces"
    inside = [one for one in statements(loop.body) if one.type != "preproc_call"]
    waits = [at for at, one in enumerate(inside) if is_barrier(one)]
    if len(waits) != 2 or waits[1] != len(inside) - 1 or not 0 < waits[0] < waits[1] - 1:
        return "it is no staging, a barrier, work, and a barrier"
    staging, behind = tuple(inside[: waits[0]]), inside[waits[0] + 1 : waits[1]]
    advances = tuple(one for one in behind if _advances(one, behind, loop, facts))
    work = tuple(one for one in behind if one not in advances)
    if len([one for one in facts.barriers if contains(loop.node, one)]) != 2:
        return "it has more barriers inside"
    copies = _copies(staging, loop, facts)
    if isinstance(copies, str):
        return copies
    arrays = tuple(dict.fromkeys(one.target.root for one in copies if one.target.root is not None))
    reason = _apart(loop, staging, work, arrays, facts) if work else "nothing is done with what it stages"
    if reason is not None:
        return reason
    return StagedLoop(loop, staging, work, advances, copies, arrays, (inside[waits[0]], inside[waits[1]]))


def _advances(statement: Node, behind: list[Node], loop: Loop, facts: Facts) -> bool:
    """Whether a statement only steps a variable that no other statement of the work uses, nor one outside the loop."""
    change = expression_of(statement)
    if change is None or change.type not in ("assignment_expression", "update_expression"):
        return False
    operator, amount = text(change.child_by_field_name("operator")), change.child_by_field_name("right")
    target = bare(change.child_by_field_name("left") or change.child_by_field_name("argument"))
    symbol = None if target is None or target.type != "identifier" else facts.symbols.resolve(target)
    if symbol is None or symbol.escapes or operator not in ("+=", "-=", "++", "--"):
        return False
    if contains(loop.node, symbol.declarator):
        return False
    for name in () if amount is None else descendants(amount, "identifier"):
        used = facts.symbols.resolve(name)
        if used is not None and any(contains(loop.node, write) for write in used.writes):
            return False
    seen = [name for name in descendants(facts.body, "identifier") if facts.symbols.resolve(name) is symbol]
    late = any(name.start_byte > loop.node.end_byte for name in seen)
    inside = any(contains(one, name) for one in behind if one != statement for name in seen)
    return not late and not inside and len([one for one in symbol.writes if contains(loop.node, one)]) == 1


def _copies(staging: tuple[Node, ...], loop: Loop, facts: Facts) -> tuple[Copy, ...] | str:
    """Every assignment of the staging, each a copy. Else: declarations, blocks, loops and conditions."""
    found: list[Copy] = []
    for statement in staging:
        if any(True for _ in descendants(statement, *LEAPS)):
            return "its staging may be left early"
        for call in descendants(statement, "call_expression"):
            if text(call.child_by_field_name("function")) not in ("min", "max", "__ldg"):
                return f"its staging calls {text(call.child_by_field_name('function'))}"
        for change in descendants(statement, "assignment_expression", "update_expression"):
            copy = _copy(change, facts)
            if copy is not None and _may_be_left_out(copy, loop, facts):
                return f"some elements of {copy.target.name} keep what an earlier step left there"
            if copy is not None:
                found.append(copy)
            elif not _local_counter(change, statement, loop, facts):
                return f"its staging does more than copy elements (line {facts.document.line(change.start_byte)})"
    return (
        tuple(found)
        if any(one.source is not None for one in found)
        else "its staging copies nothing into shared memory"
    )


def _copy(change: Node, facts: Facts) -> Copy | None:
    statement = change.parent
    if change.type != "assignment_expression" or statement is None or statement.type != "expression_statement":
        return None
    if text(change.child_by_field_name("operator")) != "=" or expression_of(statement) != change:
        return None
    target = _access(change.child_by_field_name("left"), facts)
    right = bare(change.child_by_field_name("right"))
    if target is None or target.space != "shared" or right is None:
        return None
    condition = otherwise = None
    if right.type == "conditional_expression":
        condition, otherwise = right.child_by_field_name("condition"), right.child_by_field_name("alternative")
        right = bare(right.child_by_field_name("consequence"))
    source = _access(right, facts)
    if source is None and right is not None and not facts.accesses_in(right):
        return Copy(statement, target, None, None, None)
    if source is None or source.space != "global" or (otherwise is not None and facts.accesses_in(otherwise)):
        return None
    return Copy(statement, target, source, condition, otherwise)


def _may_be_left_out(copy: Copy, loop: Loop, facts: Facts) -> bool:
    """Whether a condition without an ``else``, which differs from step to step, decides about a copy."""
    return any(
        around.type == "if_statement"
        and around.child_by_field_name("alternative") is None
        and _differs(around.child_by_field_name("condition"), loop, facts)
        for around in ancestors(copy.statement)
        if contains(loop.body, around)
    )


def _differs(condition: Node | None, loop: Loop, facts: Facts) -> bool:
    """Whether a condition may have another value in another step: it uses the loop's variable, directly or through
    locals, or memory, or a variable that changes."""
    waiting, seen = [condition], set()
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        if facts.accesses_in(node):
            return True
        for name in descendants(node, "identifier"):
            symbol = facts.symbols.resolve(name)
            if symbol is None or symbol in seen:
                continue
            seen.add(symbol)
            counter = facts.loop(enclosing(symbol.declarator, "for_statement") or symbol.declarator)
            inner = counter is not None and counter.variable is symbol and counter is not loop
            if symbol is loop.variable or not (symbol.fixed or inner):
                return True
            waiting.append(symbol.init)
    return False


def _loop_around(node: Node) -> Node | None:
    return next((one for one in ancestors(node) if one.type in LOOPS), None)


def _access(node: Node | None, facts: Facts) -> Access | None:
    inner = bare(node)
    return next((one for one in facts.accesses if one.node == inner), None)


def _local_counter(change: Node, statement: Node, loop: Loop, facts: Facts) -> bool:
    """A change of a variable that the staging declares itself: an inner loop's counter."""
    target = bare(change.child_by_field_name("left") or change.child_by_field_name("argument"))
    symbol = None if target is None or target.type != "identifier" else facts.symbols.resolve(target)
    around = None if symbol is None else symbol.declarator
    return around is not None and contains(loop.body, around) and contains(statement, around)


def _apart(
    loop: Loop, staging: tuple[Node, ...], work: tuple[Node, ...], arrays: tuple[Symbol, ...], facts: Facts
) -> str | None:
    """The staging of the next step may run before the work on this one: neither sees what the other changes."""
    for access in facts.accesses:
        own = access.root in arrays
        staged = any(contains(one, access.node) for one in staging)
        worked = any(contains(one, access.node) for one in work)
        if own and (not (staged or worked) or (staged and not access.writes) or (worked and access.writes)):
            return f"{access.name} is used in another way as well"
        if worked and access.writes and access.space in ("global", "shared", "unknown"):
            return f"its work writes to {access.name or 'memory'}"
        if access.atomic and contains(loop.node, access.node):
            return "it uses atomic operations"
    for statement in work:
        if any(True for _ in descendants(statement, "return_statement")):
            return "its work may end the thread"
        if any(
            _loop_around(leap) == loop.node for leap in descendants(statement, "continue_statement", "goto_statement")
        ):
            return "its work may end the step early"
    for name in (node for one in staging for node in descendants(one, "identifier")):
        symbol = facts.symbols.resolve(name)
        if symbol is None or symbol is loop.variable or symbol in arrays:
            continue
        if any(contains(one, write) for write in symbol.writes for one in work) or symbol.escapes:
            return f"{symbol.name}, which the staging uses, changes in the work"
        declared_in_work = any(contains(one, symbol.declarator) for one in work)
        between = contains(loop.node, symbol.declarator) and not any(
            contains(one, symbol.declarator) for one in staging
        )
        if declared_in_work or between:
            return f"{symbol.name} is declared where the staging of another step cannot see it"
    for one in work:
        for name in descendants(one, "identifier"):
            symbol = facts.symbols.resolve(name)
            if symbol is not None and any(contains(other, symbol.declarator) for other in staging):
                return f"{symbol.name} is declared in the staging and used in the work"
    strays = [
        name
        for name in descendants(facts.body, "identifier")
        if facts.symbols.resolve(name) in arrays
        and not any(contains(access.node, name) for access in facts.accesses)
        and not any(array.declarator == name for array in arrays)
    ]
    return f"{text(strays[0])} is handed on as a whole" if strays else None
