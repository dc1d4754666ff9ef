"""A local array that each thread fills with the same values, and reads at places of its own."""

from collections.abc import Iterator, Sequence
from math import prod

from attrs import frozen
from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.program import program_facts
from agent.analysis.symbols import Symbol, Symbols, symbols
from agent.analysis.syntax import (
    LOOPS,
    ancestors,
    callee,
    contains,
    descendants,
    statement_of,
    statements,
    text,
)
from agent.analysis.values import Scope, value
from agent.ideas.rowkeep.room import static_shared
from agent.ideas.tables.fillers import function_named, is_filler
from agent.ideas.tables.uses import is_element, subscripts
from agent.ideas.view import View
from agent.workload.dtypes import from_c_type, size_of

FEWEST, MOST_BYTES, MOST_SHARED = 8, 8 * 1024, 48 * 1024
"""Elements below which registers may hold the table; bytes that a block gives for it."""

NEVER = ("return_statement", "goto_statement", "labeled_statement", "gnu_asm_expression", "lambda_expression")
UNREAD = ("preproc_if", "preproc_ifdef", "preproc_def", "preproc_function_def", "preproc_include")


@frozen(eq=False)
class Table:
    """``array`` is declared by ``declared``, one of the statements of ``run``, and filled by the others, all of them at
    the top of the body of ``function``: the kernel's own, or a device function's that the kernel calls at ``calls``."""

    function: Node
    array: Symbol
    declared: Node
    run: tuple[Node, ...]
    calls: tuple[Node, ...]
    elements: int
    bytes: int
    read: Node


def table(view: View) -> Table | str:
    """The largest such table of the kernel and of what it calls, or why there is none."""
    reasons: list[str] = []
    found: list[Table] = []
    for function, own, calls in _functions(view):
        for one in _tables(view, function, own, calls):
            if isinstance(one, str):
                reasons.append(one)
            else:
                found.append(one)
    if found:
        return max(found, key=lambda one: one.bytes)
    return reasons[0] if reasons else "no thread fills an array of its own that it then reads where its data say"


def _functions(view: View) -> Iterator[tuple[Node, Symbols, tuple[Node, ...]]]:
    """The kernel, and the device functions that it calls and that stand above it, with their symbols and calls."""
    facts = view.facts
    yield facts.node, facts.symbols, ()
    shared = program_facts(view.document)
    for name in dict.fromkeys(callee(call) for call in facts.calls):
        function = function_named(name, view.document)
        if function is None or function.end_byte > view.kernel.span.start:
            continue
        own = symbols(function, shared.constants, shared.takers, shared.arrays, shared.fixed, shared.formulas)
        yield function, own, tuple(call for call in facts.calls if callee(call) == name)


def _tables(view: View, function: Node, own: Symbols, calls: tuple[Node, ...]) -> Iterator[Table | str]:
    body = function.child_by_field_name("body")
    top = statements(body)
    for at, statement in enumerate(top):
        if statement.type != "declaration" or len(statement.children_by_field_name("declarator")) != 1:
            continue
        symbol = next((one for one in own.all() if contains(statement, one.declarator)), None)
        if symbol is None or symbol.space != "local" or not symbol.dims or symbol.init is not None or symbol.pointer:
            continue
        first = at
        while isinstance(found := _table(view, function, own, calls, top[first:], symbol, statement), str):
            if first == 0 or top[first - 1].type != "declaration":
                break
            first -= 1  # variables of the filling may stand above the array
        yield found


def _table(
    view: View,
    function: Node,
    own: Symbols,
    calls: tuple[Node, ...],
    rest: Sequence[Node],
    array: Symbol,
    declared: Node,
) -> Table | str:
    uses = [one for one in descendants(function, "identifier") if own.resolve(one) is array and one != array.declarator]
    written = [one for one in uses if _written(one, array)]
    if not written:
        return f"{array.name} is never filled"
    last = max(at for at, one in enumerate(rest) if any(contains(one, use) for use in written))
    run, read = tuple(rest[: last + 1]), [use for use in uses if use.start_byte >= rest[last].end_byte]
    if any(not is_element(use, array) for use in read):
        return f"{array.name} is used by more than subscripts"
    reason = _own(view, function, own, run, array, calls)
    if reason is not None:
        return reason
    dynamic = next((use for use in read if _anywhere(use, array, own)), None)
    if dynamic is None:
        return f"every index of {array.name} is known to the compiler, which keeps it in registers"
    dtype, extents = from_c_type(array.type), [value(dim, Scope(own, {})).constant for dim in array.dims]
    known = [extent for extent in extents if extent is not None]
    if dtype is None or len(known) < len(extents):
        return f"the size of {array.name} is not known"
    elements = prod(known)
    size = elements * size_of(dtype)
    if elements < FEWEST:
        return f"{array.name} is so small that the compiler can do without memory"
    if size > MOST_BYTES or size + static_shared(view.facts) > MOST_SHARED:
        return f"{array.name} takes {size} bytes, more than a block should give for it"
    return Table(function, array, declared, run, calls, elements, size, subscripts(dynamic)[-1])


def _own(
    view: View, function: Node, own: Symbols, run: Sequence[Node], array: Symbol, calls: tuple[Node, ...]
) -> str | None:
    """What in the filling hangs on the thread, or on what a block does not have at its beginning."""
    named = [one for one in descendants(function, "identifier") if text(one) == array.name]
    if not calls and any(own.resolve(one) is not array for one in named):
        return f"{array.name} means something else before it is declared"
    inside = [node for one in run for node in descendants(one, *NEVER, *UNREAD)]
    if inside:
        return f"`{text(inside[0]).splitlines()[0]}` stands in the filling of {array.name}"
    start, end = run[0].start_byte, run[-1].end_byte
    for call in (call for one in run for call in descendants(one, "call_expression")):
        if callee(call) not in PURE and not is_filler(callee(call), view.document):
            return f"{array.name} is filled by `{callee(call)}`, whose effects are not known"
    called = {text(call.child_by_field_name("function")) for one in run for call in descendants(one, "call_expression")}
    for one in run:
        for name in descendants(one, "identifier", "field_expression"):
            symbol = own.resolve(name) if name.type == "identifier" else None
            if name.type == "field_expression" or text(name) in called:
                if name.type == "field_expression":
                    return f"{array.name} is filled from `{text(name)}`"
                continue
            if symbol is None and (own.outside(text(name)) or text(name) in view.facts.symbols.table):
                return f"{array.name} is filled from `{text(name)}`, which need not be the same for every thread"
            if symbol is None or start <= symbol.declarator.start_byte < end:
                continue
            if calls or symbol.space != "parameter" or symbol.is_memory or not symbol.fixed:
                return f"{array.name} is filled from {symbol.name}, which need not be the same for every thread"
    made = [one for one in own.all() if start <= one.declarator.start_byte < end and one is not array]
    for name in descendants(function, "identifier"):
        if name.start_byte >= end and own.resolve(name) in made:
            return f"{text(name)} is used after {array.name} was filled with its help"
    return None


def _written(use: Node, array: Symbol) -> bool:
    """Whether the element there is stored to, or the array is handed to a call."""
    element = subscripts(use)[-1] if subscripts(use) else use
    parent = element.parent
    if parent is None:
        return True
    if parent.type in ("assignment_expression", "update_expression"):
        target = parent.child_by_field_name("left") or parent.child_by_field_name("argument")
        return target == element
    return parent.type == "argument_list" and not is_element(use, array)


def _anywhere(use: Node, array: Symbol, own: Symbols) -> bool:
    """Whether an index is more than numbers and the variables of loops, which the compiler unrolls."""
    for one in subscripts(use):
        for name in descendants(one, "identifier"):
            symbol = own.resolve(name)
            base = name.start_byte == use.start_byte
            if base or symbol is None:
                continue
            loop = statement_of(symbol.declarator)
            counts = any(above.type in LOOPS for above in (loop, *ancestors(symbol.declarator)))
            if not (counts and symbol.writes):
                return True
    return False
