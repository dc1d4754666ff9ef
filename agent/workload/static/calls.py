"""What calls do: functions of the file are followed, the CUDA runtime and the standard library are known by name, and
any other call makes what it is given unknown."""

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from agent.source.lexing import Macro
from agent.source.nodes import field as child
from agent.source.nodes import is_pack, text_of
from agent.workload import dtypes
from agent.workload.expression import number
from agent.workload.static import (
    arguments,
    constructing,
    conversion,
    hints,
    launching,
    library,
    packs,
    parts,
    runtime,
    texture_calls,
)
from agent.workload.static import evaluate as ev
from agent.workload.static.combining import combine
from agent.workload.static.state import MAX_CALLS, Facts, Function, State, parse_snippet
from agent.workload.static.values import (
    ONE,
    ZERO,
    Content,
    Dim3,
    Distribution,
    Lambda,
    Memory,
    Pointer,
    Random,
    Record,
    Ref,
    Scalar,
    Unknown,
    Value,
)
from agent.workload.types import split_name

_TYPE_CAST = re.compile(r"(static_cast|reinterpret_cast|const_cast)\s*<(.*)>", re.S)


def call(node: Node, facts: Facts, state: State) -> Value:
    """The value of a call, with its effects."""
    if any(part.type == "kernel_call_syntax" for part in node.children):
        return launching.launch(node, facts, state)
    callee, listed = child(node, "function"), child(node, "arguments")
    if callee is None:
        return Unknown("a broken call", facts.line(node))
    given = [part for part in listed.named_children if part.type != "comment"] if listed else []
    if callee.type == "primitive_type" or callee.type == "sized_type_specifier":
        return _cast(facts.node_text(callee), given, facts, state)
    text = "".join(facts.node_text(callee).split()) if callee.type != "template_function" else facts.node_text(callee)
    cast = _TYPE_CAST.fullmatch(text)
    if cast:
        return _cast(facts.bound(cast[2]), given, facts, state)
    if callee.type == "field_expression":
        return library.method(node, callee, given, facts, state)
    cell = facts.find(text)
    held = state.cells.get(cell) if cell is not None else None
    if callee.type == "lambda_expression":
        held = Lambda(callee, facts.text, facts.line_override)
    if isinstance(held, Lambda):
        return _follow_lambda(held, given, facts, state)
    if isinstance(held, Distribution):
        return Random(held.domain)
    bare = re.sub(r"<.*", "", text, flags=re.S).split("::")[-1]
    if facts.bindings.get(bare, bare) != bare and facts.dtype(bare) is not None:
        return _cast(facts.bindings[bare], given, facts, state)
    if bare in facts.functions and bare not in runtime.CUDA:
        function = facts.function(bare, packs.count(given, facts))
        if function is not None:
            return follow(function, text, given, facts, state)
        return library.unfollowed(f"which `{bare}` is called is not certain", node, given, facts, state)
    macro = facts.macro(bare)
    if macro is not None and macro.parameters is not None:
        return _macro(macro, node, given, facts, state)
    made = constructing.made(facts.bound(text), listed, facts, state, facts.line(node))
    return made if made is not None else library.function(bare, text, node, given, facts, state)


def _cast(type_text: str, given: list[Node], facts: Facts, state: State) -> Value:
    return conversion.convert(ev.evaluate(given[0], facts, state), type_text, facts) if given else ZERO


def follow(function: Function, callee: str, given: list[Node], facts: Facts, state: State) -> Value:
    """Run a function of the file on these arguments."""
    from agent.workload.static.declarations import bind_parameter
    from agent.workload.static.execute import run_body

    passed = [(ev.evaluate(part, facts, state), _variable(part, facts)) for part in packs.each(given, facts)]
    values, cells = [value for value, _ in passed], [cell for _, cell in passed]
    if facts.calls >= MAX_CALLS:
        return Unknown(f"calls are followed {MAX_CALLS} levels deep, and `{callee}` is deeper")
    outer, place = facts.bindings, facts.place
    facts.bindings = _bindings(function, callee, values, facts)
    try:
        with facts.call_scope():
            for index, parameter in enumerate(function.parameters):
                if is_pack(parameter):
                    shares = cells[index:] if function.reference[index] else [None] * len(cells[index:])
                    packs.bind(parameter, values[index:], shares, facts, state)
                    break
                shared = cells[index] if index < len(cells) and function.reference[index] else None
                value = values[index] if index < len(values) else None
                bind_parameter(parameter, value, shared, facts, state)
            with facts.original_text():
                return run_body(function.node, facts, state)
    finally:
        facts.bindings, facts.place = outer, place


def _variable(node: Node, facts: Facts) -> int | None:
    return facts.find(facts.node_text(node)) if node.type == "identifier" else None


def _follow_lambda(function: Lambda, given: list[Node], facts: Facts, state: State) -> Value:
    """Run a lambda where it is called. What it captures is what the names mean here, which is so for one that is called
    in the function that holds it."""
    from agent.workload.static.declarations import bind_parameter
    from agent.workload.static.execute import run_body

    values = [ev.evaluate(part, facts, state) for part in given]
    if facts.calls >= MAX_CALLS:
        return Unknown(f"calls are followed {MAX_CALLS} levels deep, and a lambda is deeper")
    listed = child(function.node, "declarator", "parameters")
    parameters = [part for part in (listed.named_children if listed else ()) if "parameter_declaration" in part.type]
    cells = [ev.cell_of(part, facts, state) for part in given]
    facts.calls += 1
    try:
        with facts.scope(), facts.reading(function.text, function.line):
            for index, parameter in enumerate(parameters):
                reference = "&" in facts.node_text(parameter).split("=")[0]
                shared = cells[index] if reference and index < len(cells) else None
                bind_parameter(
                    parameter,
                    values[index] if index < len(values) else None,
                    shared,
                    facts,
                    state,
                    (function.text, function.line),
                )
            return run_body(function.node, facts, state)
    finally:
        facts.calls -= 1


def _bindings(function: Function, callee: str, values: list[Value], facts: Facts) -> dict[str, str]:
    """Template parameters of a followed function: written at the call, or deduced from pointers."""
    _, written = split_name(callee)
    told = dict(zip(function.template, (facts.bound(text) for text in written), strict=False))
    for parameter, value in zip(function.parameters, values, strict=False):
        type_node, declarator = child(parameter, "type"), child(parameter, "declarator")
        name = text_of(facts.document.text, type_node) if type_node is not None else ""
        pointer = declarator is not None and "*" in text_of(facts.document.text, declarator)
        if name in function.template and name not in told and pointer and isinstance(value, Pointer) and value.element:
            told[name] = value.element
        if name in function.template and not pointer and isinstance(value, Record) and facts.types.get(value.cell):
            told.setdefault(name, facts.types[value.cell])
        inner = re.fullmatch(r"(?:\w+::)*\w*vector\s*<\s*(\w+)\s*>", name)
        if inner is not None and inner[1] in function.template and isinstance(value, Pointer) and value.element:
            told.setdefault(inner[1], value.element)
    return {name: text for name, text in function.defaults if name not in told} | told


def _macro(macro: Macro, node: Node, given: list[Node], facts: Facts, state: State) -> Value:
    """A function-like macro: expanded when its body is an expression or holds a launch; else its arguments happen."""
    parameters, body = macro.parameters, macro.body
    if facts.calls >= MAX_CALLS:
        return Unknown(f"macro `{macro.name}` is nested too deep")
    statement = "{" in body or ";" in body
    if statement and "<<<" not in body:
        values = [ev.evaluate(part, facts, state) for part in given]
        return values[0] if values else ZERO
    expanded = _expanded(parameters or "", body, [facts.node_text(part) for part in given])
    facts.calls += 1
    try:
        if not statement and "<<<" not in body:
            return ev.evaluate_text(expanded, facts.line(node), facts, state)
        return _run_text(expanded, facts.line(node), facts, state)
    finally:
        facts.calls -= 1


def _expanded(parameters: str, body: str, given: list[str]) -> str:
    names = [part.strip() for part in parameters.strip("()").split(",") if part.strip()]
    told = dict(zip(names, given, strict=False))
    if names and names[-1] == "...":
        told["__VA_ARGS__"] = ", ".join(given[len(names) - 1 :])
    body = re.sub(r"\\\r?\n", " ", body)
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda match: told.get(match[0], match[0]), body)


def _run_text(text: str, line: int, facts: Facts, state: State) -> Value:
    from agent.workload.static.execute import run

    source, body = parse_snippet(text + ";")
    if body.has_error:
        return Unknown("a macro that is not followed", line)
    with facts.reading(source, line):
        run(body, facts, state)
    return ZERO


def new(node: Node, facts: Facts, state: State) -> Value:
    """``new T[n]``."""
    type_node, declarator = child(node, "type"), child(node, "declarator")
    element = facts.type_text(type_node) if type_node is not None else ""
    length_node = child(declarator, "length") if declarator is not None else None
    length = ev.evaluate(length_node, facts, state) if length_node is not None else ONE
    content = Content("zeros" if child(node, "arguments") is not None else "fresh")
    return host_memory("new", times_size(length, element, facts), element, facts.line(node), content, facts, state)


def host_memory(
    how: str, nbytes: Value, element: str, line: int, content: Content, facts: Facts, state: State, name: str = ""
) -> Pointer:
    size = nbytes.expression if isinstance(nbytes, Scalar) else Unknown("its size is not known", line)
    memory = Memory(name or f"host memory of line {line}", "host", size, element, line, how)
    return Pointer(facts.allocate(memory, content, state), number(0), element)


def times_size(count: Value, element: str, facts: Facts) -> Value:
    """Bytes of ``count`` elements of a C type."""
    dtype = facts.dtype(element)
    if dtype is None:
        return Unknown(f"the size of `{element}` is not known")
    return combine("*", count, Scalar(number(dtypes.size_of(dtype))))


def forget(value: Value, reason: str, line: int, facts: Facts, state: State) -> None:
    """Something may have changed what ``value`` points to."""
    if isinstance(value, Ref):
        state.cells[value.cell] = facts.opened(value.cell, reason, line)
        parts.forget(value.cell, reason, line, facts, state)
    elif isinstance(value, Pointer):
        parts.refill(value.memory, Content("external"), facts, state)


def store_element(target: Node, value: Value, facts: Facts, state: State) -> None:
    """``a[i] = value``: remembered for arrays of pointers and for constant indices, and as a hint of contents."""
    holder, index = ev.subscript(target, facts, state)
    facts.moved = facts.moved or arguments.is_argv(holder)
    if not isinstance(holder, Pointer):
        texture_calls.store_in_array(target, index, value, facts, state)
        _store_in_rows(target, value, facts, state)
        return
    memory = holder.memory
    place = parts.element(holder, index, facts, make=True)
    if place is None:
        reason = f"`{facts.node_text(target)}` is set, and which element that is is not known"
        parts.forget(parts.of_memory(memory), reason, facts.line(target), facts, state)
    elif isinstance(value, Record):
        parts.copy(value.cell, place, facts, state)
    else:
        dtype = facts.integers.get(place)
        state.cells[place] = conversion.as_type(value, dtype, facts) if dtype and isinstance(value, Scalar) else value
    if facts.memories[memory].space != "device":
        hints.note_store(memory, value, target, facts, state)


def _store_in_rows(target: Node, value: Value, facts: Facts, state: State) -> None:
    """``a[i][j] = value``: a hint of what all of the rows hold."""
    base = target
    while base.type == "subscript_expression" and (inner := child(base, "argument")) is not None:
        base = inner
    held = ev.evaluate(base, facts, state)
    if isinstance(held, Pointer) and facts.memories[held.memory].space != "device":
        reason = f"`{facts.node_text(target)}` is set, and which element that is is not known"
        parts.forget(parts.of_memory(held.memory), reason, facts.line(target), facts, state)
        hints.note_store(held.memory, value, target, facts, state)


def store_through(target: Node, value: Value, facts: Facts, state: State, known: bool = False) -> None:
    """``*p = value``, ``a[i].x = value``: a hint of what the memory holds, or that nothing is known. ``known`` says
    that the part which is set is a variable of its own, so that the others keep what they are."""
    member = False
    while target.type in ("field_expression", "parenthesized_expression"):
        member = member or target.type == "field_expression"
        inner = child(target, "argument") or next(iter(target.named_children), None)
        if inner is None:
            return
        target = inner
    if target.type in ("pointer_expression", "subscript_expression"):
        inner = child(target, "argument")
        held = ev.evaluate(inner, facts, state) if inner is not None else None
    else:
        held = ev.evaluate(target, facts, state)
    if isinstance(held, Pointer) and facts.memories[held.memory].space != "device":
        stored = Unknown("a member is set") if member else value
        reason = f"`{facts.node_text(target)}` is set, and which element that is is not known"
        if not known:
            parts.forget(parts.of_memory(held.memory), reason, facts.line(target), facts, state)
        hints.note_store(held.memory, stored, target, facts, state)


def dim3_of(value: Value) -> Dim3 | Unknown:
    """A launch dimension: a dim3, or a number that stands for x."""
    if isinstance(value, Dim3 | Unknown):
        return value
    if isinstance(value, Scalar):
        return Dim3(value, ONE, ONE)
    return Unknown("it is no grid")


Handler = Callable[[list[Value], list[Node], Node, Facts, State], Value]
Handlers = Mapping[str, Handler]
