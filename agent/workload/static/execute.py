"""Host statements, run in order for what they do to launches, allocations and the numbers in them."""

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.source.nodes import walk
from agent.workload.expression import ExpressionError
from agent.workload.static import both_ways, rows
from agent.workload.static import evaluate as ev
from agent.workload.static.conversion import convert
from agent.workload.static.declarations import declare, members_around
from agent.workload.static.row_pointers import row_pointer
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Content, End, Pointer, Scalar, Unknown, Value

_SKIPPED = frozenset(
    {
        "comment", "preproc_include", "preproc_def", "preproc_function_def", "preproc_call", ";", "using_declaration",
        "alias_declaration", "type_definition", "struct_specifier", "static_assert_declaration", "template_declaration",
        "enum_specifier",
    }
)  # fmt: skip


_INTERESTING = re.compile(r"<<<|\bcu(da)?[A-Z]\w*\s*\(")


def run_body(function: Node, facts: Facts, state: State) -> Value:
    """Run a function's body; its return value."""
    body = child(function, "body")
    if body is None:
        return Unknown("a function without body")
    members_around(function, facts, state)
    with both_ways.function(facts):
        ended = run(body, facts, state)
    if ended is None:
        return Unknown("nothing is returned")
    return _returned(function, ended.value, facts)


def _returned(function: Node, value: Value, facts: Facts) -> Value:
    """What a function gives back: its value as the type that it is declared with."""
    declarator = child(function, "declarator")
    written = (
        next((part for part in walk(declarator) if part.type == "trailing_return_type"), None) if declarator else None
    )
    type_node = written.named_children[0] if written is not None else child(function, "type")
    text = facts.type_text(type_node) if type_node is not None else ""
    if not isinstance(value, Scalar) or text in ("", "auto") or facts.dtype(text) is None:
        return value
    return convert(value, text, facts)


def run(node: Node, facts: Facts, state: State) -> End | None:
    """Run one statement. An End says that nothing after it is reached."""
    facts.spend()
    facts.reach(node)
    if node.type in _SKIPPED:
        return None
    if node.type == "compound_statement":
        with facts.scope():
            return _sequence(node, facts, state)
    handler = _STATEMENTS.get(node.type)
    if handler is not None:
        return handler(node, facts, state)
    if node.type.startswith("preproc_") or node.type in (
        "ERROR",
        "else_clause",
        "case_statement",
        "linkage_specification",
        "labeled_statement",
    ):
        return _sequence(node, facts, state)
    if node.is_named:
        ev.evaluate(node, facts, state)
    return None


def _sequence(node: Node, facts: Facts, state: State) -> End | None:
    alternative, label = child(node, "alternative"), child(node, "value") or child(node, "label")
    for part in node.named_children:
        if part in (alternative, label):
            continue
        ended = run(part, facts, state)
        if ended is not None:
            return ended
    return None


def _expression(node: Node, facts: Facts, state: State) -> End | None:
    for part in node.named_children:
        if part.type == "comment":
            continue
        declared = row_pointer(part, facts.text, facts.functions.__contains__)
        if declared is not None:
            rows.declare(declared, facts, state)
            continue
        value = ev.evaluate(part, facts, state)
        if part.type == "call_expression" and re.match(
            r"(std::)?(exit|abort|_exit|quick_exit)\b", facts.node_text(part)
        ):
            return End("exit", value)
    return None


def _return(node: Node, facts: Facts, state: State) -> End | None:
    value: Value = Unknown("nothing is returned")
    for part in node.named_children:
        value = ev.evaluate(part, facts, state)
    return End("return", value)


def _declaration(node: Node, facts: Facts, state: State) -> End | None:
    declare(node, facts, state)
    return None


def _if(node: Node, facts: Facts, state: State) -> End | None:
    condition, yes, no = child(node, "condition"), child(node, "consequence"), child(node, "alternative")
    if condition is None or yes is None:
        return None
    value = _condition(condition, facts, state)
    known = ev.truth(value, facts)
    if known is None:
        return _branches([yes, no], facts, state)
    if _guards_arguments(condition, facts) and known and _leaves(yes):
        return run(no, facts, state) if no is not None else None
    expression = ev.expression_of(value)
    if expression is not None and expression.names and any(_matters(part, facts) for part in (yes, no)):
        if expression.names & facts.followed:
            return both_ways.both(expression, (yes, no), 0 if known else 1, facts.line(node), run, facts, state)
        facts.pinned |= expression.names
    taken = yes if known else no
    return run(taken, facts, state) if taken is not None else None


def _condition(node: Node, facts: Facts, state: State) -> Value:
    inner = child(node, "value")
    first = child(node, "initializer")
    if first is not None:
        run(first, facts, state)
    if inner is not None and inner.type == "declaration":
        run(inner, facts, state)
        return Unknown("a declaration")
    return ev.evaluate(inner if inner is not None else node, facts, state)


def _guards_arguments(condition: Node, facts: Facts) -> bool:
    """``if (argc != 3)`` and the like: a program that wants arguments goes on as if it had them."""
    return "argc" in facts.node_text(condition)


def _leaves(node: Node) -> bool:
    return any(
        part.type == "return_statement" or (part.type == "call_expression" and b"exit" in (part.text or b"")[:12])
        for part in walk(node)
    )


def _matters(node: Node | None, facts: Facts) -> bool:
    """Whether a branch does anything beyond printing and leaving."""
    if node is None:
        return False
    return any(
        part.type in ("assignment_expression", "update_expression", "kernel_call_syntax", "init_declarator")
        or (part.type == "call_expression" and is_interesting(part, facts))
        for part in walk(node)
    )


Reader = Callable[[Node, Facts, State], End | None]


def _branches(parts: list[Node | None], facts: Facts, state: State, read: Reader = run) -> End | None:
    """Only some runs reach these: each is read on a copy, and what they disagree about is unknown afterwards."""
    outcomes = []
    for part in parts:
        fork = state.fork()
        facts.conditional += 1
        ended = read(part, facts, fork) if part is not None else None
        facts.conditional -= 1
        if ended is None:
            outcomes.append(fork)
    if outcomes:
        merge(outcomes, facts, state)
    return None


def _alternatives(node: Node, facts: Facts, state: State) -> End | None:
    """``#if`` of what only the compiler knows: one of its branches runs."""
    found: list[Node | None] = []
    part: Node | None = node
    while part is not None:
        found.append(part)
        part = child(part, "alternative")
    whole = found[-1] is not None and found[-1].type == "preproc_else"
    return _branches([*found, *(() if whole else (None,))], facts, state, _sequence)


def merge(outcomes: list[State], facts: Facts, state: State) -> None:
    for cell in set().union(*(outcome.cells for outcome in outcomes)):
        values = [outcome.cells.get(cell) for outcome in outcomes]
        same = all(value == values[0] for value in values) and values[0] is not None
        reason = f"`{facts.names[cell]}` depends on a condition that is not known"
        state.cells[cell] = values[0] if same and values[0] is not None else facts.opened(cell, reason, None)
    for memory in set().union(*(outcome.contents for outcome in outcomes)):
        held = [content for outcome in outcomes if (content := outcome.contents.get(memory)) is not None]
        changed = [content for content in held if content != state.contents.get(memory)]
        if held:
            state.contents[memory] = _either(changed) if changed else held[0]


def _either(contents: list[Content]) -> Content:
    """What a memory holds that one of several branches fills."""
    if all(content == contents[0] for content in contents):
        return contents[0]
    kinds = {"host" if content.kind == "zeros" else content.kind for content in contents}
    return Content(kinds.pop() if len(kinds) == 1 else "external")


def _switch(node: Node, facts: Facts, state: State) -> End | None:
    condition, body = child(node, "condition"), child(node, "body")
    if condition is None or body is None:
        return None
    value = ev.evaluate(child(condition, "value") or condition, facts, state)
    cases = [part for part in body.named_children if part.type == "case_statement"]
    chosen = _known_number(value, node, facts)
    if chosen is None:
        return _branches([*cases], facts, state)
    labels = [child(case, "value") for case in cases]
    told = [_known_number(ev.evaluate(one, facts, state), one, facts) if one is not None else None for one in labels]
    if any(one is not None and number is None for one, number in zip(labels, told, strict=True)):
        return _branches([*cases], facts, state)
    default = next((place for place, label in enumerate(labels) if label is None), len(cases))
    for case in cases[told.index(chosen) if chosen in told else default :]:
        ended = _sequence(case, facts, state)
        if ended is not None:
            return None if ended.how == "break" else ended
    return None


def _known_number(value: Value, node: Node, facts: Facts) -> int | float | None:
    """The number that a value is when the program is run as it is, to which the workload is tied then."""
    expression = ev.expression_of(value)
    if expression is None:
        return None
    try:
        told = expression.evaluate(facts.values())
    except ExpressionError:
        return None
    both_ways.tie(expression, facts.line(node), facts)
    return told


def _loop(node: Node, facts: Facts, state: State) -> End | None:
    from agent.workload.static.loops import run_loop

    with facts.scope():
        return run_loop(node, facts, state)


def _do(node: Node, facts: Facts, state: State) -> End | None:
    from agent.workload.static.loops import run_loop

    body, condition = child(node, "body"), child(node, "condition")
    constant = ev.expression_of(ev.evaluate(condition, facts, state.fork())) if condition is not None else None
    if body is not None and constant is not None and constant.constant == 0:
        ended = run(body, facts, state)
        return None if ended is not None and ended.how in ("break", "continue") else ended
    with facts.scope():
        return run_loop(node, facts, state)


def _try(node: Node, facts: Facts, state: State) -> End | None:
    body = child(node, "body")
    return run(body, facts, state) if body is not None else None


_STATEMENTS: Mapping[str, Callable[[Node, Facts, State], End | None]] = {
    "expression_statement": _expression,
    "return_statement": _return,
    "declaration": _declaration,
    "if_statement": _if,
    "switch_statement": _switch,
    "for_statement": _loop,
    "while_statement": _loop,
    "for_range_loop": _loop,
    "do_statement": _do,
    "try_statement": _try,
    "function_definition": lambda node, facts, state: None,
    "break_statement": lambda node, facts, state: End("break", Unknown("nothing is returned")),
    "continue_statement": lambda node, facts, state: End("continue", Unknown("nothing is returned")),
    "goto_statement": lambda node, facts, state: End("goto", Unknown("nothing is returned")),
    "preproc_ifdef": lambda node, facts, state: _alternatives(node, facts, state),
    "preproc_if": lambda node, facts, state: _alternatives(node, facts, state),
}


def is_interesting(node: Node, facts: Facts, depth: int = 0) -> bool:
    """Whether running ``node`` may launch, allocate or transfer, directly or through functions of the file."""
    text = facts.node_text(node)
    if _INTERESTING.search(text):
        return True
    if depth > 4:
        return False
    for name in set(re.findall(r"\b([A-Za-z_]\w*)\s*(?:<[^;(]*>)?\s*\(", text)):
        if name in facts.functions and facts.interesting(name, depth):
            return True
        macro = facts.macro(name)
        if macro is not None and macro.parameters is not None and _INTERESTING.search(macro.body):
            return True
    return False


def changed_pointers(before: State, after: State) -> list[int]:
    return [
        cell for cell, value in before.cells.items() if isinstance(value, Pointer) and after.cells.get(cell) != value
    ]
