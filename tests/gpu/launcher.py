"""A process for a profiler to look at: cold calls as a timing makes them, without its blocker and its events.

``python -m tests.gpu.launcher FILE``: FILE holds an :class:`Order`. Each call is made on contents of its own, in
buffers made by the timing's own functions, after the level-2 cache was read full. A profiler holds each launch until
the card is idle, which the blocker would keep it from for seconds; so a call is launched and waited for. Writes the
clocks (least and most MHz of the multiprocessors, after each call) to standard error.
"""

import sys
import time
from pathlib import Path
from typing import Any

from attrs import frozen

from agent.execution import wire
from agent.execution.children import ground as grounds
from agent.execution.children.ground import Ground
from agent.execution.children.timing_messages import Measure
from agent.execution.nvml import watch

WARM_SECONDS = 0.5


@frozen
class Order:
    """The first side of each request is called so many times. No contents follow: kernels make all of them."""

    requests: tuple[Measure, ...]
    calls: int


def main(path: str) -> None:
    from cupy.cuda import driver, runtime

    order: Order = wire.decode(Path(path).read_bytes(), Order)
    ground = grounds.open_ground(driver, runtime, order.requests[0].support)
    begun = time.perf_counter()
    while time.perf_counter() - begun < WARM_SECONDS:
        ground.flush(order.requests[0].flush)
        runtime.deviceSynchronize()
    for request in order.requests:
        clocks = launched(ground, request, order.calls)
        print(request.sides[0].steps[0].label, *clocks, file=sys.stderr)  # type: ignore[union-attr]


def launched(ground: Ground, request: Measure, calls: int) -> tuple[int, int] | tuple[()]:
    """Make the calls and give the buffers back; the clocks, where they can be read."""
    looked, clocks = watch(ground.runtime.deviceGetPCIBusId(0)), []
    ground.modules[:] = [ground.driver.moduleLoadData(side.cubin) for side in request.sides]
    held = grounds.new_set(ground, request.spaces, request.sides)
    for call in range(calls):
        grounds.fill_set(ground, held, request.spaces, request.sides, (request.seed, call, 0))
        ground.flush(request.flush)
        for step in held.steps[0]:
            step()
        ground.runtime.deviceSynchronize()
        if not isinstance(looked, str):
            clocks.append(looked.reading().sm)
    _give_back(ground.runtime, held, request)
    return (min(clocks), max(clocks)) if clocks else ()


def _give_back(runtime: Any, held: grounds.Held, request: Measure) -> None:
    for space in request.spaces:
        if not space.symbols:
            runtime.free(held.shared[space.name][0])
    for own in held.own:
        for address in own.values():
            runtime.free(address)


if __name__ == "__main__":
    main(sys.argv[1])
