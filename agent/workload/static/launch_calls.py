"""Launches by calls: ``cudaLaunchKernel``, ``cudaLaunchKernelEx``, ``cudaLaunchCooperativeKernel``, and the driver's.

The kernel is what the first argument names or holds. Where arguments are passed as an array of their addresses, they
are what these lead to.
"""

from collections.abc import Callable, Mapping

from tree_sitter import Node

from agent.source.errors import UnknownKernel
from agent.workload.expression import number
from agent.workload.static import calls, configuration, launching, parts
from agent.workload.static import evaluate as ev
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ZERO, Called, Dim3, OtherItem, Pointer, Ref, Scalar, Text, Unknown, Value

_NOT_FOLLOWED = Unknown("its stream is not followed")

Handler = Callable[[list[Value], Node, Facts, State], Value]


def _launch(cooperative: bool) -> Handler:
    """``cudaLaunchKernel(kernel, grid, block, arguments, shared, stream)``."""

    def handle(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
        kernel, grid, block, packed, shared, stream = [*values, *[ZERO] * 6][:6]
        sizes = calls.dim3_of(grid), calls.dim3_of(block), ev.as_scalar(shared)
        given = _unpacked(kernel, packed, node, facts, state)
        return _recorded(kernel, sizes, given, node, facts, state, cooperative=cooperative, stream=stream)

    return handle


def _launch_with(packed: bool) -> Handler:
    """``cudaLaunchKernelEx(&configuration, kernel, arguments...)``; with ``packed`` those behind one pointer."""

    def handle(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
        if len(values) < 2:
            return ZERO
        told, kernel, *given = values
        if packed:
            given = _unpacked(kernel, given[0] if given else ZERO, node, facts, state)
        if not isinstance(told, Ref):
            why = Unknown("its configuration is not followed", facts.line(node))
            return _recorded(kernel, (why, why, why), given, node, facts, state)
        sizes = (*configuration.shape(told.cell, facts, state), configuration.shared(told.cell, facts, state))
        cluster, cooperative = configuration.attributes(told.cell, facts, state)
        return _recorded(kernel, sizes, given, node, facts, state, cluster, cooperative)

    return handle


def _launch_by_driver(cooperative: bool) -> Handler:
    """``cuLaunchKernel(kernel, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra)``."""

    def handle(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
        if len(values) < 10:
            return ZERO
        grid, block = (Dim3(*(ev.as_scalar(value) for value in values[at : at + 3])) for at in (1, 4))
        given = _unpacked(values[0], values[9], node, facts, state)
        sizes = grid, block, ev.as_scalar(values[7])
        stream = values[8]
        return _recorded(values[0], sizes, given, node, facts, state, cooperative=cooperative, stream=stream)

    return handle


def _recorded(
    kernel: Value,
    sizes: tuple[Dim3 | Unknown, Dim3 | Unknown, Scalar | Unknown],
    given: list[Value],
    node: Node,
    facts: Facts,
    state: State,
    cluster: Dim3 | Unknown | None = None,
    cooperative: bool = False,
    stream: Value = _NOT_FOLLOWED,
) -> Value:
    if isinstance(kernel, Called):
        launching.record(kernel, *sizes, given, node, facts, state, cluster, cooperative, stream)
        return ZERO
    for value in given:
        calls.forget(value, "a kernel that is not followed may set it", facts.line(node), facts, state)
    facts.items.append(OtherItem(facts.line(node)))
    return ZERO


def _unpacked(kernel: Value, packed: Value, node: Node, facts: Facts, state: State) -> list[Value]:
    """The arguments behind an array of their addresses, as many as the kernel takes."""
    try:
        count = len(facts.document.kernel(kernel.kernel).parameters) if isinstance(kernel, Called) else 0
    except UnknownKernel:
        count = 0
    line = facts.line(node)
    addresses = (_address(packed, place, facts, state) for place in range(count))
    return [ev.dereference(address, facts, state, line) for address in addresses]


def _address(packed: Value, place: int, facts: Facts, state: State) -> Value:
    cell = packed.cell if isinstance(packed, Ref) and place == 0 else None
    if isinstance(packed, Pointer):
        cell = parts.element(packed, Scalar(number(place)), facts)
    missing = Unknown("the array of arguments is not followed")
    return state.cells.get(cell, missing) if cell is not None else missing


def _module_function(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cuModuleGetFunction(&function, module, "name")``."""
    if len(values) >= 3 and isinstance(values[0], Ref):
        name = values[2].text if isinstance(values[2], Text) else ""
        known = Called(name) if name in facts.kernels else Unknown("which kernel it is is not known", facts.line(node))
        state.cells[values[0].cell] = known
    return ZERO


LAUNCHES: Mapping[str, Handler] = {
    "cudaLaunchKernel": _launch(cooperative=False),
    "cudaLaunchCooperativeKernel": _launch(cooperative=True),
    "cudaLaunchKernelEx": _launch_with(packed=False),
    "cudaLaunchKernelExC": _launch_with(packed=True),
    "cuLaunchKernel": _launch_by_driver(cooperative=False),
    "cuLaunchCooperativeKernel": _launch_by_driver(cooperative=True),
    "cuLaunchKernelEx": _launch_with(packed=True),
    "cuModuleGetFunction": _module_function,
}
