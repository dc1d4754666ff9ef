"""Calls known by name: what the C and C++ libraries and thrust do."""

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload.expression import Expression, number
from agent.workload.static import (
    arguments,
    calls,
    constructing,
    conversion,
    hints,
    integers,
    launch_calls,
    members,
    options,
    packs,
    parts,
    runtime,
    texture_calls,
)
from agent.workload.static import evaluate as ev
from agent.workload.static.dividing import divided
from agent.workload.static.state import Facts, State
from agent.workload.static.values import (
    ONE,
    ZERO,
    Content,
    Dim3,
    Memory,
    OtherItem,
    Pointer,
    Record,
    Ref,
    Scalar,
    Unknown,
    Value,
)
from agent.workload.workload import Domain

Handler = Callable[[list[Value], Node, Facts, State], Value]


def function(bare: str, text: str, node: Node, given: list[Node], facts: Facts, state: State) -> Value:
    """A call of something that is not defined in the file."""
    handler = runtime.CUDA.get(bare) or launch_calls.LAUNCHES.get(bare)
    if handler is not None:
        return handler([_argument(part, facts, state) for part in packs.each(given, facts)], node, facts, state)
    if bare in arguments.PARSERS:
        held = ev.evaluate(given[0], facts, state) if given else Unknown("nothing")
        return arguments.parsed(given, held, bare, node, facts)
    if bare == "swap" and len(given) == 2:
        return _swap(given, facts, state)
    if bare == "dim3":
        return make_dim3([ev.evaluate(part, facts, state) for part in given])
    values = [ev.evaluate(part, facts, state) for part in packs.each(given, facts)]
    if bare in ("raw_pointer_cast", "move", "forward", "float", "addressof", "string") and len(values) == 1:
        return values[0]
    lanes = constructing.make_vector(bare, values, facts.line(node), facts, state)
    if lanes is not None:
        return lanes
    mathematical = integers.math_call(bare, values, facts)
    if mathematical is not None:
        return mathematical
    if bare in _CASTS and len(values) == 1 and isinstance(values[0], Scalar):
        return conversion.as_type(values[0], _CASTS[bare], facts)
    if bare in options.COMPARISONS and (told := options.compared(bare, values)) is not None:
        return told
    if bare == "getopt":
        return options.getopt(values, facts.line(node), facts, state)
    if bare == "sscanf":
        return options.scanned(values, facts.line(node), facts, state)
    if bare in _WITHOUT_ARGUMENTS and arguments.passed(facts):
        return _read_elsewhere(values, bare, facts.line(node), facts, state)
    if bare in _HARMLESS or bare.startswith(_HARMLESS_PREFIXES):
        return _WITHOUT_ARGUMENTS.get(bare, Unknown(f"`{bare}` decides it", facts.line(node)))
    if bare in hints.RANDOM:
        return hints.RANDOM[bare]
    if bare in ("fill", "fill_n", "iota", "generate", "sequence", "memset", "memcpy", "copy"):
        return _standard(bare, values, node, facts, state)
    _forget_given(bare, values, node, facts, state)
    return Unknown(f"`{bare}` is not defined in this file", facts.line(node))


def unfollowed(why: str, node: Node, given: list[Node], facts: Facts, state: State) -> Value:
    """A call that is not followed: what it is given may be anything afterwards."""
    name = facts.node_text(child(node, "function") or node)
    _forget_given(name, [ev.evaluate(part, facts, state) for part in given], node, facts, state)
    return Unknown(why, facts.line(node))


def _forget_given(name: str, values: list[Value], node: Node, facts: Facts, state: State) -> None:
    for value in values:
        calls.forget(value, f"`{name}` sets it", facts.line(node), facts, state)
    if any(isinstance(value, Pointer) and facts.memories[value.memory].space != "host" for value in values):
        facts.items.append(OtherItem(facts.line(node)))


def _argument(node: Node, facts: Facts, state: State) -> Value:
    """An argument of a runtime call; a name without a value (an enumerator, a symbol) is passed as Unknown."""
    return ev.evaluate(node, facts, state)


def _read_elsewhere(values: list[Value], name: str, line: int, facts: Facts, state: State) -> Value:
    """A parser of options that the Makefile does pass: whatever it sets is not known."""
    for value in values:
        calls.forget(value, f"`{name}` reads it from the command line", line, facts, state)
    return Unknown(f"`{name}` reads the command line", line)


def _swap(given: list[Node], facts: Facts, state: State) -> Value:
    first, second = (ev.cell_of(part, facts, state) for part in given)
    if first is not None and second is not None:
        state.cells[first], state.cells[second] = state.cells[second], state.cells[first]
    return ZERO


def make_dim3(values: list[Value]) -> Value:
    if len(values) == 1 and isinstance(values[0], Dim3):
        return values[0]
    x, y, z = [*(ev.as_scalar(value) for value in values), ONE, ONE, ONE][:3]
    return Dim3(x, y, z)


_WORDS = """
printf fprintf puts putchar fflush srand free time clock exit abort assert perror usleep sleep setw setprecision
cudaGetErrorString strcmp strncmp strlen getenv gettimeofday omp_get_wtime now delete getopt getopt_long
checkCmdLineFlag getCmdLineArgumentInt
"""
_HARMLESS = frozenset(_WORDS.split())

# A run without arguments: no option is found.
_WITHOUT_ARGUMENTS: Mapping[str, Value] = {
    "getopt_long": Scalar(number(-1)),
    "checkCmdLineFlag": Scalar(number(0)),
    "getCmdLineArgumentInt": Scalar(number(0)),
}
_HARMLESS_PREFIXES = ("nvtx", "cudaProfiler", "cudaIpc", "cudaStreamAttach")
_CASTS: Mapping[str, str] = {
    "__float2half": "f16", "__float2half_rn": "f16", "__float2bfloat16": "bf16", "float2half": "f16", "half": "f16",
    "__half": "f16", "__nv_bfloat16": "bf16", "size_t": "u64", "uint32_t": "u32", "int64_t": "i64", "int32_t": "i32",
    "uint64_t": "u64", "unsigned": "u32", "__half2float": "f32", "double": "f64", "int": "i32", "uint": "u32",
}  # fmt: skip
_VECTOR = re.compile(
    r"(?:\w+::)*(vector|device_vector|host_vector|universal_vector|array)\s*<\s*(.+?)\s*(?:,\s*(\w+)\s*)?>$", re.S
)


def container(type_text: str, name: str, values: list[Value], line: int, facts: Facts, state: State) -> Value | None:
    """``std::vector<T> v(n, value)`` and thrust's vectors; None if the type is no such container."""
    match = _VECTOR.search(type_text.strip())
    if match is None:
        return None
    kind, element = match[1], match[2]
    if kind == "array" and match[3]:
        values = [ev.lookup(match[3], line, facts, state) if not match[3].isdigit() else Scalar(number(int(match[3])))]
    space = "device" if kind in ("device_vector", "universal_vector") else "host"
    content = Content("fresh")
    if values and isinstance(values[0], Pointer):
        source = values[0].memory
        nbytes: Expression | Unknown = facts.memories[source].nbytes
        content = Content("host", state.contents[source].domain)
    elif not values:
        nbytes = Unknown("it is a vector that grows", line)
    else:
        size = calls.times_size(values[0], element, facts)
        nbytes = size.expression if isinstance(size, Scalar) else Unknown("its size is not known", line)
        filled = values[1] if len(values) > 1 else ZERO
        content = Content("zeros") if filled == ZERO else Content("host", hints.domain_of(filled, facts))
    memory = Memory(name, space, nbytes, element, line, f"{kind}<{element}>")
    return Pointer(facts.allocate(memory, content, state), number(0), element)


def is_container(type_text: str) -> bool:
    return _VECTOR.search(type_text.strip()) is not None


def method(node: Node, callee: Node, given: list[Node], facts: Facts, state: State) -> Value:
    """A method call: those of vectors and distributions are known."""
    owner_node, name_node = child(callee, "argument"), child(callee, "field")
    name = facts.node_text(name_node) if name_node is not None else ""
    owner = ev.evaluate(owner_node, facts, state) if owner_node is not None else Unknown("a broken call")
    values = [ev.evaluate(part, facts, state) for part in given]
    line = facts.line(node)
    if isinstance(owner, Pointer):
        if name in ("data", "begin", "get", "cbegin"):
            return owner
        if name in ("size", "end"):
            return _count(owner, line, facts)
        if name in ("resize", "assign") and values and owner_node is not None:
            cell = ev.cell_of(owner_node, facts, state)
            held = facts.memories[owner.memory]
            made = container(f"{held.how}", held.name, values, held.line, facts, state)
            if cell is not None and made is not None:
                state.cells[cell] = made
            return ZERO
        if name in ("push_back", "emplace_back", "insert", "reserve", "clear"):
            parts.refill(owner.memory, Content("external"), facts, state)
            if name != "reserve" and owner_node is not None:
                calls_cell = ev.cell_of(owner_node, facts, state)
                if calls_cell is not None:
                    state.cells[calls_cell] = Unknown("a vector that grows", line)
            return ZERO
    if isinstance(owner, Record | Ref) and not members.keeps(facts.types.get(owner.cell, ""), name, facts):
        parts.forget(owner.cell, f"`{name}` may set it", line, facts, state)
    for value in values:
        calls.forget(value, f"`{name}` sets it", line, facts, state)
    return Unknown(f"`{name}` of an object is not followed", line)


def _count(owner: Pointer, line: int, facts: Facts) -> Value:
    memory = facts.memories[owner.memory]
    if isinstance(memory.nbytes, Unknown):
        return memory.nbytes
    size = calls.times_size(ONE, memory.element, facts)
    if not isinstance(size, Scalar):
        return size
    return Scalar(divided(memory.nbytes, int(size.expression.integer({}))), "u64")


def _standard(bare: str, values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    target = values[0] if values else None
    if bare == "memset" and isinstance(target, Ref):
        texture_calls.clear(target.cell, facts, state)
    if not isinstance(target, Pointer):
        return ZERO
    domain: Domain | None = None
    if bare in ("fill", "fill_n", "memset") and len(values) >= 3:
        domain = hints.domain_of(values[1] if bare == "memset" else values[2], facts)
        if bare == "memset" and values[1] != ZERO:
            domain = None
    elif bare in ("iota", "sequence"):
        domain = Domain("iota", given=True)
    elif bare in ("memcpy",) and len(values) > 1 and isinstance(values[1], Pointer):
        domain = state.contents[values[1].memory].domain
    elif bare == "copy" and len(values) == 3:
        calls.forget(values[2], "`copy` sets it", facts.line(node), facts, state)
        return ZERO
    if domain is not None and domain.kind == "constant" and target.offset != number(0):
        domain = None
    parts.refill(target.memory, Content("host", domain), facts, state)
    return ZERO
