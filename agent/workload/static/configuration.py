"""``cudaLaunchConfig_t`` and its attributes, the driver's too: what they hold when something is launched."""

from collections.abc import Mapping

from agent.workload.expression import ExpressionError, number
from agent.workload.static import calls, parts
from agent.workload.static import evaluate as ev
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ONE, ZERO, Dim3, Pointer, Ref, Scalar, Text, Unknown, Value

_MOST_ATTRIBUTES = 16
_CLUSTER = ("cudaLaunchAttributeClusterDimension", "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION")
_COOPERATIVE = ("cudaLaunchAttributeCooperative", "CU_LAUNCH_ATTRIBUTE_COOPERATIVE")
_DRIVER = (("gridDimX", "gridDimY", "gridDimZ"), ("blockDimX", "blockDimY", "blockDimZ"))
LAYOUTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cudaLaunchConfig_t": (
        ("gridDim", "dim3"), ("blockDim", "dim3"), ("dynamicSmemBytes", "size_t"), ("stream", "cudaStream_t"),
        ("attrs", "cudaLaunchAttribute*"), ("numAttrs", "unsigned"),
    ),
    "cudaLaunchAttribute": (("id", "cudaLaunchAttributeID"), ("val", "cudaLaunchAttributeValue")),
    "cudaLaunchAttributeValue": (("clusterDim", "dim3"),),
    "CUlaunchConfig": (
        *((name, "unsigned") for axes in _DRIVER for name in axes), ("sharedMemBytes", "unsigned"),
        ("hStream", "CUstream"), ("attrs", "CUlaunchAttribute*"), ("numAttrs", "unsigned"),
    ),
    "CUlaunchAttribute": (("id", "CUlaunchAttributeID"), ("value", "CUlaunchAttributeValue")),
    "CUlaunchAttributeValue": (("clusterDim", "dim3"),),
}  # fmt: skip
"""Members of the structs that CUDA's headers define for launches, in order, as far as they say how one is made."""


def shape(cell: int, facts: Facts, state: State) -> tuple[Dim3 | Unknown, Dim3 | Unknown]:
    """Grid and block of a launch configuration, the runtime's or the driver's."""
    if any(name in facts.parts.get(cell, {}) for name in _DRIVER[0]):
        grid, block = ([ev.as_scalar(_member(cell, axis, facts, state)) for axis in axes] for axes in _DRIVER)
        return Dim3(*grid), Dim3(*block)
    return calls.dim3_of(_member(cell, "gridDim", facts, state)), calls.dim3_of(_member(cell, "blockDim", facts, state))


def shared(cell: int, facts: Facts, state: State) -> Scalar | Unknown:
    """Dynamic shared memory in bytes; what nothing sets is zero, as configurations are zeroed first."""
    name = "sharedMemBytes" if "sharedMemBytes" in facts.parts.get(cell, {}) else "dynamicSmemBytes"
    return ev.as_scalar(_or_zero(_member(cell, name, facts, state)))


def attributes(cell: int, facts: Facts, state: State) -> tuple[Dim3 | Unknown | None, bool]:
    """The clusters that an attribute of the configuration asks for, None where none does; and whether one asks for a
    cooperative launch."""
    told = _count(_or_zero(_member(cell, "numAttrs", facts, state)), facts)
    if told is None:
        return Unknown("how many attributes the launch has is not known"), False
    held = _member(cell, "attrs", facts, state)
    cluster: Dim3 | Unknown | None = None
    cooperative = False
    for place in range(told):
        attribute = _attribute(held, place, facts)
        kind = _member(attribute, "id", facts, state) if attribute is not None else None
        if attribute is None or not isinstance(kind, Text):
            return Unknown("the attributes of the launch are not followed"), cooperative
        if kind.text in _CLUSTER:
            cluster = _shape_of_cluster(attribute, facts, state)
        cooperative = cooperative or kind.text in _COOPERATIVE
    return cluster, cooperative


def _count(value: Value, facts: Facts) -> int | None:
    """How many attributes there are when the program is run as it is, to which the workload is tied then."""
    try:
        told = value.expression.evaluate(facts.values()) if isinstance(value, Scalar) else None
    except ExpressionError:
        return None
    if not isinstance(value, Scalar) or not isinstance(told, int) or not 0 <= told <= _MOST_ATTRIBUTES:
        return None
    facts.pinned |= value.expression.names
    return told


def _attribute(held: Value, place: int, facts: Facts) -> int | None:
    if isinstance(held, Ref):
        return held.cell if place == 0 else None
    return parts.element(held, Scalar(number(place)), facts) if isinstance(held, Pointer) else None


def _shape_of_cluster(attribute: int, facts: Facts, state: State) -> Dim3 | Unknown:
    for name in ("val", "value"):
        value = facts.parts.get(attribute, {}).get(name)
        if value is not None:
            return calls.dim3_of(_member(value, "clusterDim", facts, state))
    return Unknown("the shape of its clusters is not followed")


def _member(cell: int, name: str, facts: Facts, state: State) -> Value:
    inner = facts.parts.get(cell, {}).get(name)
    missing = Unknown(f"nothing that is followed sets `{facts.names[cell]}.{name}`")
    return state.cells.get(inner, missing) if inner is not None else missing


def _or_zero(value: Value) -> Value:
    return ZERO if isinstance(value, Unknown) and value.reason.startswith("nothing that is followed") else value


def default(type_text: str) -> Dim3 | None:
    """What a ``dim3`` is that nothing sets; None for any other type."""
    return Dim3(ONE, ONE, ONE) if type_text.split("::")[-1].strip() == "dim3" else None
