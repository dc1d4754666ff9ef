"""What calls do: functions of the file are followed, the CUDA runtime and the standard library are known by name, and any
other call makes what it is given unknown."""

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload import dtypes, types
from agent.workload.expression import Expression, build, number
from agent.workload.static import evaluate as ev
from agent.workload.static import launching, library
from agent.workload.static.state import MAX_CALLS, Facts, Function, State, parse_snippet
from agent.workload.static.values import Content, Dim3, Memory, Pointer, Random, Ref, Scalar, Unknown, Value

_TYPE_CAST = re.compile(r"(static_cast|reinterpret_cast|const_cast)\s*<(.*)>", re.S)


def call(node: Node, facts: Facts, state: State) -> Value:
    """The value of a call, with its effects."""
    if any(part.type == "kernel_call_syntax" for part in node.children):
        return launching.launch(node, facts, state)
    callee, arguments = child(node, "function"), child(node, "arguments")
    if callee is None:
        return Unknown("a broken call", facts.line(node))
    given = [part for part in arguments.named_children if part.type != "comment"] if arguments else []
    if callee.type == "primitive_type" or callee.type == "sized_type_specifier":
        return ev.convert(ev.evaluate(given[0], facts, state), facts.node_text(callee), facts) if given else ev.ZERO
    text = "".join(facts.node_text(callee).split()) if callee.type != "template_function" else facts.node_text(callee)
    cast = _TYPE_CAST.fullmatch(text)
    if cast:
        return ev.convert(ev.evaluate(given[0], facts, state), cast[2], facts) if given else ev.ZERO
    if callee.type == "field_expression":
        return library.method(node, callee, given, facts, state)
    bare = re.sub(r"<.*", "", text, flags=re.S).split("::")[-1]
    if bare in facts.functions and bare not in library.CUDA:
        return follow(
            facts.functions[bare], bare, [ev.evaluate(part, facts, state) for part in given], given, facts, state
        )
    if bare in facts.macros and facts.macros[bare][0] is not None:
        return _macro(bare, node, given, facts, state)
    return library.function(bare, text, node, given, facts, state)


def follow(function: Function, name: str, values: list[Value], given: list[Node], facts: Facts, state: State) -> Value:
    """Run a function of the file on these arguments."""
    from agent.workload.static.declarations import bind_parameter
    from agent.workload.static.execute import run_body

    if facts.calls >= MAX_CALLS:
        return Unknown(f"calls are followed {MAX_CALLS} levels deep, and `{name}` is deeper")
    cells = [facts.find(facts.node_text(part)) if part.type == "identifier" else None for part in given]
    with facts.call_scope():
        for index, parameter in enumerate(function.parameters):
            shared = cells[index] if index < len(cells) and function.reference[index] else None
            value = values[index] if index < len(values) else None
            bind_parameter(parameter, value, shared, facts, state)
        with facts.original_text():
            return run_body(function.node, facts, state)


def _macro(name: str, node: Node, given: list[Node], facts: Facts, state: State) -> Value:
    """A function-like macro: expanded when its body is an expression or holds a launch; else its arguments happen."""
    parameters, body = facts.macros[name]
    if facts.calls >= MAX_CALLS:
        return Unknown(f"macro `{name}` is nested too deep")
    statement = "{" in body or ";" in body
    if statement and "<<<" not in body:
        values = [ev.evaluate(part, facts, state) for part in given]
        return values[0] if values else ev.ZERO
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
    with facts.snippet(source, line):
        run(body, facts, state)
    return ev.ZERO


def new(node: Node, facts: Facts, state: State) -> Value:
    """``new T[n]``."""
    type_node, declarator = child(node, "type"), child(node, "declarator")
    element = facts.node_text(type_node) if type_node is not None else ""
    length_node = child(declarator, "length") if declarator is not None else None
    length = ev.evaluate(length_node, facts, state) if length_node is not None else ev.ONE
    return host_memory(
        "new", times_size(length, element, facts), element, facts.line(node), Content("fresh"), facts, state
    )


def host_memory(
    how: str, nbytes: Value, element: str, line: int, content: Content, facts: Facts, state: State, name: str = ""
) -> Pointer:
    size = nbytes.expression if isinstance(nbytes, Scalar) else Unknown("its size is not known", line)
    memory = Memory(name or f"host memory of line {line}", "host", size, element, line, how)
    return Pointer(facts.allocate(memory, content, state), number(0), element)


def times_size(count: Value, element: str, facts: Facts) -> Value:
    """Bytes of ``count`` elements of a C type."""
    dtype = types.c_dtype(facts.document, element)
    if dtype is None:
        return Unknown(f"the size of `{element}` is not known")
    return ev.combine("*", count, Scalar(number(dtypes.size_of(dtype))))


def forget(value: Value, reason: str, line: int, facts: Facts, state: State) -> None:
    """Something may have changed what ``value`` points to."""
    if isinstance(value, Ref):
        state.cells[value.cell] = Unknown(reason, line)
    elif isinstance(value, Pointer):
        state.contents[value.memory] = Content("external")


def store_element(target: Node, value: Value, facts: Facts, state: State) -> None:
    """``a[i] = value``: remembered for arrays of pointers and for constant indices, and as a hint of contents."""
    holder, index = ev.subscript(target, facts, state)
    if not isinstance(holder, Pointer):
        return
    memory = holder.memory
    constant = isinstance(index, Scalar) and index.expression.constant is not None
    if constant and isinstance(value, Pointer | Scalar):
        assert isinstance(index, Scalar)
        place = (memory, str(build("+", (holder.offset, index.expression))))
        if place not in facts.elements:
            facts.elements[place] = facts.member(-memory - 1, place[1], f"{facts.memories[memory].name}[{place[1]}]")
        state.cells[facts.elements[place]] = value
    if facts.memories[memory].space != "device":
        library.note_store(memory, value, target, facts, state)


def combine_random(op: str, left: Value, right: Value) -> Value:
    """Affine maps of a random number: the bounds move with it."""
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return left if isinstance(left, Unknown) else right
    low, high = _range(left), _range(right)
    if low is None or high is None:
        return Unknown("a random number")
    if op == "%" and isinstance(left, Random) and isinstance(right, Scalar):
        return library.random_range("integers", number(0), right.expression)
    ends = _ends(op, low, high)
    if ends is None:
        return Unknown("a random number")
    kind = "integers" if _is_integer(left) and _is_integer(right) else "uniform"
    return library.random_range(kind, *ends)


def _is_integer(value: Value) -> bool:
    if isinstance(value, Random):
        return value.domain.kind == "integers"
    from agent.workload.arithmetic import INT
    from agent.workload.expression import kind

    return isinstance(value, Scalar) and kind(value.expression) == INT


def _range(value: Value) -> tuple[Expression, Expression] | None:
    if isinstance(value, Scalar):
        return value.expression, value.expression
    if isinstance(value, Random) and value.domain.low is not None and value.domain.high is not None:
        return value.domain.low, value.domain.high
    return None


def _ends(
    op: str, left: tuple[Expression, Expression], right: tuple[Expression, Expression]
) -> tuple[Expression, Expression] | None:
    """Interval arithmetic for what is written in practice: scale by a positive number, shift."""
    if op == "+":
        return build("+", (left[0], right[0])), build("+", (left[1], right[1]))
    if op == "-":
        return build("-", (left[0], right[1])), build("-", (left[1], right[0]))
    if op == "*":
        if left[0] == left[1]:
            left, right = right, left
        scale = right[0].constant
        if right[0] != right[1] or not isinstance(scale, int | float):
            return None
        ends = build("*", (left[0], right[0])), build("*", (left[1], right[0]))
        return ends if scale >= 0 else (ends[1], ends[0])
    if op == "/" and right[0] == right[1]:
        divisor = right[0].constant
        if isinstance(divisor, int | float) and divisor > 0:
            return build("/", (left[0], right[0])), build("/", (left[1], right[0]))
    return None


def dim3_of(value: Value) -> Dim3 | Unknown:
    """A launch dimension: a dim3, or a number that stands for x."""
    if isinstance(value, Dim3 | Unknown):
        return value
    if isinstance(value, Scalar):
        return Dim3(value, ev.ONE, ev.ONE)
    return Unknown("it is no grid")


Handler = Callable[[list[Value], list[Node], Node, Facts, State], Value]
Handlers = Mapping[str, Handler]
