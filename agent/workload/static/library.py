"""Calls known by name: allocations, transfers, containers and random numbers of the CUDA runtime and the C++ library."""

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload.expression import Expression, build, number
from agent.workload.static import calls
from agent.workload.static import evaluate as ev
from agent.workload.static.state import Facts, State
from agent.workload.static.values import (
    Content,
    CopyItem,
    Dim3,
    Distribution,
    FillItem,
    Memory,
    OtherItem,
    Pointer,
    Properties,
    Random,
    Ref,
    Scalar,
    Unknown,
    Value,
)
from agent.workload.workload import Domain, Origin

Handler = Callable[[list[Value], Node, Facts, State], Value]


def function(bare: str, text: str, node: Node, given: list[Node], facts: Facts, state: State) -> Value:
    """A call of something that is not defined in the file."""
    if bare in CUDA:
        values = [_argument(part, facts, state) for part in given]
        return CUDA[bare](values, node, facts, state)
    if bare in _PARSERS:
        return _parsed(given, bare, node, facts, state)
    if bare == "swap" and len(given) == 2:
        return _swap(given, facts, state)
    if bare == "dim3":
        return make_dim3([ev.evaluate(part, facts, state) for part in given])
    values = [ev.evaluate(part, facts, state) for part in given]
    if bare in ("raw_pointer_cast", "move", "forward", "float", "addressof") and len(values) == 1:
        return values[0]
    mathematical = ev.math_call(bare, values)
    if mathematical is not None:
        return mathematical
    if bare in _CASTS and len(values) == 1 and isinstance(values[0], Scalar):
        return ev.as_type(values[0], _CASTS[bare])
    if bare in _HARMLESS or bare.startswith(_HARMLESS_PREFIXES):
        return ev.ZERO
    if bare in _RANDOM:
        return _RANDOM[bare]
    if bare in ("fill", "fill_n", "iota", "generate", "sequence", "memset", "memcpy", "copy"):
        return _standard(bare, values, node, facts, state)
    for value in values:
        calls.forget(value, f"`{bare}` sets it", facts.line(node), facts, state)
    if any(isinstance(value, Pointer) and facts.memories[value.memory].space != "host" for value in values):
        facts.items.append(OtherItem(facts.line(node)))
    return Unknown(f"`{bare}` is not defined in this file", facts.line(node))


def _argument(node: Node, facts: Facts, state: State) -> Value:
    """An argument of a runtime call; a name without a value (an enumerator, a symbol) is passed as Unknown."""
    return ev.evaluate(node, facts, state)


def _swap(given: list[Node], facts: Facts, state: State) -> Value:
    first, second = (ev.cell_of(part, facts, state) for part in given)
    if first is not None and second is not None:
        state.cells[first], state.cells[second] = state.cells[second], state.cells[first]
    return ev.ZERO


def make_dim3(values: list[Value]) -> Value:
    if len(values) == 1 and isinstance(values[0], Dim3):
        return values[0]
    x, y, z = [*(ev.as_scalar(value) for value in values), ev.ONE, ev.ONE, ev.ONE][:3]
    return Dim3(x, y, z)


# Allocation


def _allocate(space: str, how: str) -> Handler:
    def handle(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
        if len(values) < 2:
            return ev.ZERO
        _new_memory(values[0], values[1], space, how, node, facts, state)
        return ev.ZERO

    return handle


def _new_memory(target: Value, nbytes: Value, space: str, how: str, node: Node, facts: Facts, state: State) -> None:
    line = facts.line(node)
    if isinstance(target, Pointer):
        return
    if not isinstance(target, Ref):
        return
    name = facts.names[target.cell]
    element = facts.types.get(target.cell, "").split("*")[0].strip()
    size = nbytes.expression if isinstance(nbytes, Scalar) else nbytes
    if not isinstance(size, Expression | Unknown):
        size = Unknown("its size is not a number", line)
    memory = Memory(re.sub(r"\W+", "_", name.split(".")[-1]).strip("_"), space, size, element, line, how)
    state.cells[target.cell] = Pointer(facts.allocate(memory, Content("fresh"), state), number(0), element)


def _pitch(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaMallocPitch``: rows padded to 512 bytes, as current devices do."""
    if len(values) != 4 or not isinstance(values[1], Ref):
        return ev.ZERO
    padded = ev.combine(
        "*", ev.combine("/", ev.combine("+", values[2], Scalar(number(511))), Scalar(number(512))), Scalar(number(512))
    )
    state.cells[values[1].cell] = padded
    facts.notes.append("the pitch of cudaMallocPitch is taken to be the next multiple of 512 bytes")
    _new_memory(values[0], ev.combine("*", padded, values[3]), "device", "cudaMallocPitch", node, facts, state)
    return ev.ZERO


def _host_allocate(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    if values:
        return calls.host_memory("malloc", values[-1], "", facts.line(node), Content("fresh"), facts, state)
    return ev.ZERO


def _calloc(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    nbytes = ev.combine("*", values[0], values[1]) if len(values) == 2 else Unknown("a broken calloc")
    return calls.host_memory("calloc", nbytes, "", facts.line(node), Content("zeros"), facts, state)


# Transfers


def _copy(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    if len(values) < 3:
        return ev.ZERO
    target, source = values[0], values[1]
    if isinstance(target, Ref):
        state.cells[target.cell] = Unknown("it is read back from the device", facts.line(node))
    if not isinstance(target, Pointer):
        facts.items.append(OtherItem(facts.line(node)))
        return ev.ZERO
    content = state.contents.get(source.memory) if isinstance(source, Pointer) else None
    if content is None:
        content = Content("host", _domain_of(state.cells.get(source.cell) if isinstance(source, Ref) else None))
    on_device = facts.memories[target.memory].space in ("device", "managed")
    from_device = isinstance(source, Pointer) and facts.memories[source.memory].space == "device"
    if on_device and from_device and isinstance(source, Pointer):
        facts.items.append(CopyItem(target.memory, source.memory, facts.line(node)))
        state.contents[target.memory] = Content("kernel", content.domain)
        return ev.ZERO
    facts.items.append(OtherItem(facts.line(node)))
    state.contents[target.memory] = Content(
        "host", content.domain if content.kind != "zeros" else Domain("zeros", given=True)
    )
    return ev.ZERO


def _set(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    if len(values) >= 3 and isinstance(values[0], Pointer):
        byte = ev.expression_of(values[1])
        constant = byte.constant if byte is not None else None
        state.contents[values[0].memory] = Content("zeros" if constant == 0 else "byte")
        if isinstance(constant, int) and facts.memories[values[0].memory].space != "host":
            facts.items.append(FillItem(values[0].memory, constant % 256, facts.line(node)))
    return ev.ZERO


def _to_symbol(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    arguments = child(node, "arguments")
    name = facts.node_text(arguments.named_children[0]) if arguments and arguments.named_children else ""
    source = values[1] if len(values) > 1 else None
    content = state.contents.get(source.memory) if isinstance(source, Pointer) else None
    domain = (
        content.domain if content else _domain_of(state.cells.get(source.cell) if isinstance(source, Ref) else None)
    )
    facts.symbol_contents[re.sub(r"\W", "", name.removeprefix("&"))] = Content("host", domain)
    return ev.ZERO


def _properties(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    if values and isinstance(values[0], Ref):
        state.cells[values[0].cell] = Properties()
    return ev.ZERO


def _attribute(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    text = facts.node_text(node)
    known = {
        "cudaDevAttrMultiProcessorCount": "multiProcessorCount",
        "cudaDevAttrMaxThreadsPerBlock": "maxThreadsPerBlock",
        "cudaDevAttrWarpSize": "warpSize",
    }
    name = next((known[word] for word in known if word in text), "")
    if values and isinstance(values[0], Ref):
        state.cells[values[0].cell] = ev._property(name or "attribute", facts.line(node), facts)
    return ev.ZERO


def _ignore(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    return ev.ZERO


def _forget_all(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    for value in values:
        calls.forget(value, "a runtime call sets it", facts.line(node), facts, state)
    return ev.ZERO


CUDA: Mapping[str, Handler] = {
    "cudaMalloc": _allocate("device", "cudaMalloc"),
    "cudaMallocAsync": _allocate("device", "cudaMallocAsync"),
    "cudaMallocManaged": _allocate("managed", "cudaMallocManaged"),
    "cudaMallocHost": _allocate("host", "cudaMallocHost"),
    "cudaHostAlloc": _allocate("host", "cudaHostAlloc"),
    "cudaMallocPitch": _pitch,
    "malloc": _host_allocate,
    "aligned_alloc": _host_allocate,
    "calloc": _calloc,
    "cudaMemcpy": _copy,
    "cudaMemcpyAsync": _copy,
    "cudaMemset": _set,
    "cudaMemsetAsync": _set,
    "cudaMemcpyToSymbol": _to_symbol,
    "cudaMemcpyToSymbolAsync": _to_symbol,
    "cudaMemcpyFromSymbol": _forget_all,
    "cudaGetDeviceProperties": _properties,
    "cudaDeviceGetAttribute": _attribute,
    "cudaFree": _ignore,
    "cudaFreeAsync": _ignore,
    "cudaFreeHost": _ignore,
    "cudaMemPrefetchAsync": _ignore,
    "cudaMemAdvise": _ignore,
    "cudaFuncSetAttribute": _ignore,
    "cudaFuncSetCacheConfig": _ignore,
    "cudaDeviceSynchronize": _ignore,
    "cudaThreadSynchronize": _ignore,
    "cudaGetLastError": _ignore,
    "cudaPeekAtLastError": _ignore,
    "cudaStreamSynchronize": _ignore,
    "cudaEventRecord": _ignore,
    "cudaEventSynchronize": _ignore,
    "cudaSetDevice": _ignore,
    "cudaDeviceReset": _ignore,
    "cudaStreamCreate": _ignore,
    "cudaStreamDestroy": _ignore,
    "cudaEventCreate": _ignore,
    "cudaEventDestroy": _ignore,
    "cudaEventElapsedTime": _forget_all,
    "cudaMemGetInfo": _forget_all,
    "cudaGetDevice": _ignore,
    "cudaGetDeviceCount": _forget_all,
    "cudaOccupancyMaxPotentialBlockSize": _forget_all,
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor": _forget_all,
}

_HARMLESS = frozenset(
    [
        "printf",
        "fprintf",
        "puts",
        "putchar",
        "fflush",
        "srand",
        "free",
        "time",
        "clock",
        "exit",
        "abort",
        "assert",
        "perror",
        "usleep",
        "sleep",
        "setw",
        "setprecision",
        "cudaGetErrorString",
        "strcmp",
        "strncmp",
        "strlen",
        "getenv",
        "gettimeofday",
        "omp_get_wtime",
        "now",
        "delete",
    ]
)
_HARMLESS_PREFIXES = ("nvtx", "cudaProfiler", "cudaIpc", "cudaStreamAttach")
_CASTS: Mapping[str, str] = {
    "__float2half": "f16", "__float2half_rn": "f16", "__float2bfloat16": "bf16", "float2half": "f16", "half": "f16",
    "__half": "f16", "__nv_bfloat16": "bf16", "size_t": "u64", "uint32_t": "u32", "int64_t": "i64", "int32_t": "i32",
    "uint64_t": "u64", "unsigned": "u32", "__half2float": "f32", "double": "f64", "int": "i32", "uint": "u32",
}  # fmt: skip
_PARSERS = frozenset(
    {"atoi", "atol", "atoll", "strtol", "strtoul", "strtoull", "stoi", "stol", "stoul", "atof", "strtod", "stof"}
)


def _parsed(given: list[Node], bare: str, node: Node, facts: Facts, state: State) -> Value:
    """A number from the command line, which only the user knows."""
    text = facts.node_text(given[0]) if given else ""
    if bare in ("atof", "strtod", "stof"):
        return Unknown(f"it comes from the command line (`{text}`)", facts.line(node))
    return Unknown(f"argv:it comes from the command line (`{text}`)", facts.line(node))


# Containers


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
        nbytes = number(0)
    else:
        size = calls.times_size(values[0], element, facts)
        nbytes = size.expression if isinstance(size, Scalar) else Unknown("its size is not known", line)
        filled = values[1] if len(values) > 1 else ev.ZERO
        content = Content("zeros") if filled == ev.ZERO else Content("host", _domain_of(filled))
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
            return ev.ZERO
        if name in ("push_back", "emplace_back", "insert", "reserve", "clear"):
            state.contents[owner.memory] = Content("external")
            if name != "reserve" and owner_node is not None:
                calls_cell = ev.cell_of(owner_node, facts, state)
                if calls_cell is not None:
                    state.cells[calls_cell] = Unknown("a vector that grows", line)
            return ev.ZERO
    for value in values:
        calls.forget(value, f"`{name}` sets it", line, facts, state)
    return Unknown(f"`{name}` of an object is not followed", line)


def _count(owner: Pointer, line: int, facts: Facts) -> Value:
    memory = facts.memories[owner.memory]
    if isinstance(memory.nbytes, Unknown):
        return memory.nbytes
    size = calls.times_size(ev.ONE, memory.element, facts)
    if not isinstance(size, Scalar):
        return size
    return Scalar(divided(memory.nbytes, int(size.expression.integer({}))))


def divided(nbytes: Expression, size: int) -> Expression:
    """``nbytes / size`` with the factor taken out where it stands as one."""
    found = _without_factor(nbytes, size)
    return found if found is not None else build("/", (nbytes, number(size)))


def _without_factor(expression: Expression, size: int) -> Expression | None:
    constant = expression.constant
    if isinstance(constant, int):
        return number(constant // size) if constant % size == 0 else None
    if size == 1:
        return expression
    if expression.op == "*":
        left, right = expression.operands
        for first, second in ((right, left), (left, right)):
            rest = _without_factor(first, size)
            if rest is not None:
                return build("*", (second, rest) if first is right else (rest, second))
        return None
    if expression.op in ("+", "-"):
        parts = [_without_factor(part, size) for part in expression.operands]
        return build(expression.op, [part for part in parts if part is not None]) if None not in parts else None
    if expression.op == "cast" and expression.value in ("u64", "i64", "u32", "i32"):
        return _without_factor(expression.operands[0], size)
    return None


# Contents of host arrays


def random_range(kind: str, low: Expression, high: Expression) -> Random:
    return Random(Domain(kind, low, high, True))


_RANDOM: Mapping[str, Value] = {
    "rand": random_range("integers", number(0), number(2**31 - 1)),
    "random": random_range("integers", number(0), number(2**31 - 1)),
    "drand48": random_range("uniform", number(0), number(1)),
}


def distribution(type_text: str, values: list[Value]) -> Value | None:
    """``std::uniform_real_distribution<float> d(a, b)`` and its kin; None for any other type."""
    match = re.search(r"\b(uniform_real|uniform_int|normal)_distribution\b", type_text)
    if not match:
        return None
    if match[1] == "normal":
        return Distribution(Domain("normal", given=True))
    bounds = [value.expression for value in values if isinstance(value, Scalar)]
    if len(bounds) != 2:
        return (
            Distribution(Domain("uniform", number(0), number(1), True))
            if not values
            else Unknown("its range is not known")
        )
    if match[1] == "uniform_int":
        return Distribution(Domain("integers", bounds[0], build("+", (bounds[1], number(1))), True))
    return Distribution(Domain("uniform", bounds[0], bounds[1], True))


def _domain_of(value: Value | None) -> Domain | None:
    """What one stored value tells about a whole array."""
    if isinstance(value, Random):
        return value.domain
    if isinstance(value, Scalar):
        constant = value.expression.constant
        if constant == 0:
            return Domain("zeros", given=True)
        if constant is not None:
            return Domain("constant", value.expression, value.expression, True)
        if value.expression.op == "%":
            return Domain("integers", number(0), value.expression.operands[1], True)
    return None


def note_store(memory: int, value: Value, node: Node, facts: Facts, state: State) -> None:
    """Host code stored ``value`` somewhere in a host array."""
    domain = _domain_of(value)
    before = state.contents.get(memory)
    if before is not None and before.kind == "host" and before.domain != domain:
        domain = None  # two different things are stored: no statement about all
    state.contents[memory] = Content("host", domain)


def _standard(bare: str, values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    target = values[0] if values else None
    if not isinstance(target, Pointer):
        return ev.ZERO
    domain: Domain | None = None
    if bare in ("fill", "fill_n", "memset") and len(values) >= 3:
        domain = _domain_of(values[1] if bare == "memset" else values[2])
        if bare == "memset" and values[1] != ev.ZERO:
            domain = None
    elif bare in ("iota", "sequence"):
        domain = Domain("iota", given=True)
    elif bare in ("memcpy",) and len(values) > 1 and isinstance(values[1], Pointer):
        domain = state.contents[values[1].memory].domain
    elif bare == "copy" and len(values) == 3:
        calls.forget(values[2], "`copy` sets it", facts.line(node), facts, state)
        return ev.ZERO
    state.contents[target.memory] = Content("host", domain)
    return ev.ZERO


def argument_root(name: str, value: Unknown, facts: Facts) -> Value:
    """A number of the command line becomes a root without value, to be asked for."""
    return facts.root(name, None, Origin("argv", value.line), value.reason.removeprefix("argv:"))
