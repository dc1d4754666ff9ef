"""Static inference: what the host code of a file says about how its kernels are run.

The host code is read from ``main`` on as a program over symbols: numbers stay expressions over the numbers it starts
from, allocations keep their size, transfers tell what goes in. A launch met on the way becomes a workload.
"""

from agent.workload.static.inference import infer
from agent.workload.static.unit import compiled_twin

__all__ = ["compiled_twin", "infer"]
