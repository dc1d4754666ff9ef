"""The CUDA runtime and the C allocator, call by call: allocations, transfers, fills, properties."""

import re
from collections.abc import Callable, Mapping

from attrs import evolve
from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload.expression import Expression, ExpressionError, number
from agent.workload.static import calls, parts, queues, texture_calls
from agent.workload.static import evaluate as ev
from agent.workload.static.combining import combine
from agent.workload.static.hints import domain_of
from agent.workload.static.properties import property_value
from agent.workload.static.state import Facts, State, plain_name
from agent.workload.static.values import (
    ANY,
    ZERO,
    Called,
    Content,
    CopyItem,
    FillItem,
    Memory,
    OtherItem,
    Pointer,
    Properties,
    Queued,
    Ref,
    Scalar,
    Unknown,
    Value,
)
from agent.workload.workload import Domain

Handler = Callable[[list[Value], Node, Facts, State], Value]


def _allocate(space: str, how: str) -> Handler:
    def handle(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
        if len(values) < 2:
            return ZERO
        _new_memory(values[0], values[1], space, how, node, facts, state)
        return ZERO

    return handle


def _new_memory(target: Value, nbytes: Value, space: str, how: str, node: Node, facts: Facts, state: State) -> None:
    line = facts.line(node)
    if isinstance(target, Pointer):
        return
    if not isinstance(target, Ref):
        return
    name = facts.names[target.cell]
    element = facts.types.get(target.cell, "").split("*")[0].strip().replace("CUdeviceptr", "void")
    size = nbytes.expression if isinstance(nbytes, Scalar) else nbytes
    if not isinstance(size, Expression | Unknown):
        size = Unknown("its size is not a number", line)
    memory = Memory(plain_name(name), space, size, element, line, how)
    state.cells[target.cell] = Pointer(facts.allocate(memory, Content("fresh"), state, name), number(0), element)


def _pitch(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaMallocPitch``: rows padded to 512 bytes, as current devices do."""
    if len(values) != 4 or not isinstance(values[1], Ref):
        return ZERO
    padded = combine(
        "*", combine("/", combine("+", values[2], Scalar(number(511))), Scalar(number(512))), Scalar(number(512))
    )
    state.cells[values[1].cell] = padded
    facts.notes.append("the pitch of cudaMallocPitch is taken to be the next multiple of 512 bytes")
    _new_memory(values[0], combine("*", padded, values[3]), "device", "cudaMallocPitch", node, facts, state)
    return ZERO


def _host_allocate(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    if values:
        return calls.host_memory("malloc", values[-1], "", facts.line(node), Content("fresh"), facts, state)
    return ZERO


def _calloc(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    nbytes = combine("*", values[0], values[1]) if len(values) == 2 else Unknown("a broken calloc")
    return calls.host_memory("calloc", nbytes, "", facts.line(node), Content("zeros"), facts, state)


def _copy(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    if len(values) < 3:
        return ZERO
    target, source = values[0], values[1]
    _queue_copy(values, node, facts)
    if isinstance(target, Ref):
        state.cells[target.cell] = Unknown("it is read back from the device", facts.line(node))
    if not isinstance(target, Pointer):
        facts.items.append(OtherItem(facts.line(node)))
        return ZERO
    content = state.contents.get(source.memory) if isinstance(source, Pointer) else None
    if content is None:
        content = Content("host", domain_of(state.cells.get(source.cell) if isinstance(source, Ref) else None, facts))
    on_device = facts.memories[target.memory].space in ("device", "managed")
    whole = _is_whole(target, values[2], facts) and (
        not isinstance(source, Pointer) or _is_whole(source, values[2], facts)
    )
    from_device = isinstance(source, Pointer) and facts.memories[source.memory].space == "device"
    if on_device and from_device and isinstance(source, Pointer):
        line = facts.line(node)
        facts.items.append(CopyItem(target.memory, source.memory, line) if whole else OtherItem(line))
        state.contents[target.memory] = Content("kernel", content.domain)
        return ZERO
    facts.items.append(OtherItem(facts.line(node)))
    domain = content.domain if content.kind != "zeros" else Domain("zeros", given=True)
    if domain is not None and domain.kind == "constant" and not _is_whole(target, values[2], facts):
        domain = None  # some elements hold something else
    parts.refill(target.memory, Content("host", domain), facts, state)
    return ZERO


def _queue_copy(values: list[Value], node: Node, facts: Facts) -> None:
    """Note a copy in its stream; the host waits for it unless it is asynchronous, or from device to device."""
    name = _name(node, facts)
    later = name.endswith("Async")
    between = all(isinstance(end, Pointer) and facts.memories[end.memory].space == "device" for end in values[:2])
    plain = name == "cudaMemcpyAsync" or not later
    stream = values[4] if later and len(values) > 4 else ZERO if plain else Unknown("a copy of rows")
    queues.put_use(name, [values[0]], [values[1]], stream, not later and not between, facts.line(node), facts)


def _name(node: Node, facts: Facts) -> str:
    callee = child(node, "function")
    return facts.node_text(callee) if callee is not None else ""


def _copy_rows(target: int, source: int) -> Handler:
    """Copies row by row, or to arrays: the places of target and source among the arguments."""

    def handle(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
        if len(values) <= max(target, source):
            return ZERO
        return _copy([values[target], values[source], Unknown("rows")], node, facts, state)

    return handle


def _copy_3d(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    ends = texture_calls.copy_3d(values, node, facts, state)
    return _copy([*ends, Unknown("rows")], node, facts, state) if ends is not None else ZERO


def _is_whole(pointer: Pointer, nbytes: Value, facts: Facts) -> bool:
    """Whether ``nbytes`` from ``pointer`` on are the whole memory, as far as the program's own numbers tell."""
    size = facts.memories[pointer.memory].nbytes
    if pointer.offset != number(0) or isinstance(size, Unknown) or not isinstance(nbytes, Scalar):
        return False
    if size == nbytes.expression:
        return True
    try:
        return size.evaluate(facts.values()) == nbytes.expression.evaluate(facts.values())
    except ExpressionError:
        return False


def _set(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    if len(values) >= 3 and isinstance(values[0], Pointer):
        name = _name(node, facts)
        stream = values[3] if name.endswith("Async") and len(values) > 3 else ZERO
        queues.put_use(name, [values[0]], [], stream, False, facts.line(node), facts)
        memory, byte = values[0].memory, ev.expression_of(values[1])
        constant = byte.constant if byte is not None else None
        whole = _is_whole(values[0], values[2], facts)
        kind = ("zeros" if constant == 0 else "byte") if whole else "external"
        told = constant % 256 if kind == "byte" and isinstance(constant, int) else None
        parts.refill(memory, Content(kind, None, told), facts, state)
        if isinstance(constant, int) and whole and facts.memories[memory].space != "host":
            facts.items.append(FillItem(memory, constant % 256, facts.line(node)))
    return ZERO


def _to_symbol(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    arguments = child(node, "arguments")
    name = facts.node_text(arguments.named_children[0]) if arguments and arguments.named_children else ""
    source = values[1] if len(values) > 1 else None
    content = state.contents.get(source.memory) if isinstance(source, Pointer) else None
    scalar = state.cells.get(source.cell) if isinstance(source, Ref) else None
    domain = content.domain if content else domain_of(scalar, facts)
    if content is not None and content.kind == "zeros":
        domain = Domain("zeros", given=True)
    if len(values) > 3 and values[3] != ZERO:
        domain = None  # behind the first element
    facts.symbol_contents[re.sub(r"\W", "", name.removeprefix("&"))] = Content("host" if content else "scalar", domain)
    return ZERO


def _properties(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    if values and isinstance(values[0], Ref):
        state.cells[values[0].cell] = Properties()
    return ZERO


def _attribute(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    text = facts.node_text(node)
    known = {
        "cudaDevAttrMultiProcessorCount": "multiProcessorCount",
        "cudaDevAttrMaxThreadsPerBlock": "maxThreadsPerBlock",
        "cudaDevAttrWarpSize": "warpSize",
    }
    name = next((known[word] for word in known if word in text), "")
    if values and isinstance(values[0], Ref):
        state.cells[values[0].cell] = property_value(name or "attribute", facts.line(node), facts)
    return ZERO


def _free(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaFree``, where it is certain that it is reached."""
    facts.queue.append(Queued("device", None, facts.line(node)))  # in practice it waits for all that was queued
    held = values[0] if values else None
    if isinstance(held, Pointer) and not facts.conditional and held.memory in state.contents:
        state.contents[held.memory] = evolve(state.contents[held.memory], freed=facts.line(node))
    return ZERO


def _grant(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)``."""
    if len(values) == 3 and "MaxDynamicSharedMemorySize" in facts.node_text(node):
        kernel = values[0] if isinstance(values[0], Called) else ANY
        facts.granted[kernel] = ev.as_scalar(values[2]) if kernel is not ANY else Unknown("which kernel is not known")
    return ZERO


def _ignore(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    return ZERO


def _forget_all(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    for value in values:
        calls.forget(value, "a runtime call sets it", facts.line(node), facts, state)
    return ZERO


CUDA: Mapping[str, Handler] = {
    "cudaMalloc": _allocate("device", "cudaMalloc"),
    "cudaMallocAsync": _allocate("device", "cudaMallocAsync"),
    "cudaMallocManaged": _allocate("managed", "cudaMallocManaged"),
    "cudaMallocHost": _allocate("host", "cudaMallocHost"),
    "cudaHostAlloc": _allocate("host", "cudaHostAlloc"),
    "cudaMallocPitch": _pitch,
    **dict.fromkeys(("cuMemAlloc", "cuMemAlloc_v2"), _allocate("device", "cuMemAlloc")),
    "cuMemAllocManaged": _allocate("managed", "cuMemAllocManaged"),
    "malloc": _host_allocate,
    "aligned_alloc": _host_allocate,
    "calloc": _calloc,
    "cudaMemcpy": _copy,
    "cudaMemcpyAsync": _copy,
    **{f"cuMemcpy{way}{version}": _copy for way in ("HtoD", "DtoH", "DtoD") for version in ("", "_v2")},
    "cudaMemcpy2D": _copy_rows(0, 2),
    "cudaMemcpy2DAsync": _copy_rows(0, 2),
    "cudaMemcpyToArray": _copy_rows(0, 3),
    "cudaMemcpy2DToArray": _copy_rows(0, 3),
    "cudaMemcpy2DToArrayAsync": _copy_rows(0, 3),
    "cudaMemcpyFromArray": _copy_rows(0, 1),
    "cudaMemcpy2DFromArray": _copy_rows(0, 2),
    "cudaMemcpy3D": _copy_3d,
    "cudaMemcpy3DAsync": _copy_3d,
    "cudaMallocArray": texture_calls.malloc_array,
    "cudaMalloc3DArray": texture_calls.malloc_3d_array,
    "cudaCreateChannelDesc": texture_calls.channels,
    "make_cudaExtent": texture_calls.extent,
    "make_cudaPitchedPtr": texture_calls.pitched_pointer,
    "cudaCreateTextureObject": texture_calls.create_texture,
    "cudaCreateSurfaceObject": texture_calls.create_surface,
    "cudaDestroyTextureObject": _ignore,
    "cudaDestroySurfaceObject": _ignore,
    "cudaFreeArray": _ignore,
    "cudaMemset": _set,
    "cudaMemsetAsync": _set,
    "cuMemsetD8": _set,
    "cudaMemcpyToSymbol": _to_symbol,
    "cudaMemcpyToSymbolAsync": _to_symbol,
    "cudaMemcpyFromSymbol": _forget_all,
    "cudaGetDeviceProperties": _properties,
    "cudaDeviceGetAttribute": _attribute,
    "cudaFree": _free,
    "cudaFreeAsync": _free,
    **dict.fromkeys(("cuMemFree", "cuMemFree_v2"), _free),
    "cudaFreeHost": _ignore,
    "cudaMemPrefetchAsync": _ignore,
    "cudaMemAdvise": _ignore,
    "cudaFuncSetAttribute": _grant,
    "cudaFuncSetCacheConfig": _ignore,
    "cudaDeviceSynchronize": queues.orders("device"),
    "cuCtxSynchronize": queues.orders("device"),
    "cudaThreadSynchronize": queues.orders("device"),
    "cudaGetLastError": _ignore,
    "cudaPeekAtLastError": _ignore,
    "cudaStreamSynchronize": queues.orders("stream", stream=0),
    "cudaEventRecord": queues.orders("record", stream=1, mark=0),
    "cudaEventSynchronize": queues.orders("event", mark=0),
    "cudaSetDevice": _ignore,
    "cudaDeviceReset": queues.orders("device"),
    "cudaStreamCreate": queues.create,
    "cudaStreamCreateWithFlags": queues.create,
    "cudaStreamCreateWithPriority": queues.create,
    "cudaStreamWaitEvent": queues.orders("wait", stream=0, mark=1),
    "cudaStreamDestroy": _ignore,
    "cudaEventCreate": queues.create_event,
    "cudaEventCreateWithFlags": queues.create_event,
    "cudaEventDestroy": _ignore,
    "cudaEventElapsedTime": _forget_all,
    "cudaMemGetInfo": _forget_all,
    "cudaGetDevice": _ignore,
    "cudaGetDeviceCount": _forget_all,
    "cudaOccupancyMaxPotentialBlockSize": _forget_all,
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor": _forget_all,
}
