"""Device properties that a program asks for, as of the card that workloads are meant for."""

from collections.abc import Mapping

from agent.workload.expression import number
from agent.workload.static.state import Facts
from agent.workload.static.values import Scalar, Unknown, Value

# For a program that asks: the H200's (CUDA C++ Programming Guide, compute capability 9.0; H200 datasheet).
PROPERTIES: Mapping[str, int] = {
    "multiProcessorCount": 132,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiProcessor": 2048,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "regsPerBlock": 65536,
    "major": 9,
    "minor": 0,
}


def property_value(name: str, line: int, facts: Facts) -> Value:
    """A property by its name in ``cudaDeviceProp``, with a note that says which card's it is."""
    if name not in PROPERTIES:
        return Unknown(f"it is the device's `{name}`", line)
    note = f"device property `{name}` is taken to be {PROPERTIES[name]}, the H200's"
    if note not in facts.notes:
        facts.notes.append(note)
    return Scalar(number(PROPERTIES[name]))
