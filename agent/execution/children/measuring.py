"""Timing in a GPU runner: two programs alternate, each call on contents of its own that nobody saw before.

Every call: inputs made on the card from the call's secret seed, outputs and scratch poisoned, the level-2 cache read
full (or, for the warm figures, the inputs read), then all launches queued behind a blocker between two events.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from attrs import define, field

from agent.execution.children import ground as grounds
from agent.execution.children import timing_messages as say
from agent.execution.children.cuda_errors import fault_kind, in_words, out_of_memory
from agent.execution.children.ground import QUEUE, Ground, Held, Launch, seed_of
from agent.execution.nvml import Watch, watch
from agent.execution.wire import Channel

LONG_ENOUGH = 250e-6
"""Seconds between two events: their resolution of half a microsecond is then a fifth of a per cent."""

MOST_SETS = 32
_SETTLE = (0.25, 1.5)
"""Seconds of warm-up: at least, and at most where times do not settle."""

_SETTLED = 0.015
_PATIENCE = 3.0
FEWEST = 3
"""Blocks of kernels so long that even few take several times the seconds that there are."""

_HOST_SLACK = 20e-6


@define(eq=False)
class Course:
    """One measurement under way."""

    ground: Ground
    request: say.Measure
    sets: list[Held]
    watch: Watch | str
    overhead: float = 0.0
    call: int = 0
    side: int = -1
    calls: list[int] = field(factory=list)
    digests: list[bytes] = field(factory=list)
    clocks: list[tuple[int, int]] = field(factory=list)
    reasons: int = 0
    odd: int = 0
    starved: bool = False


def measure(driver: Any, runtime: Any, request: say.Measure, channel: Channel) -> say.Measured:
    """Whatever CUDA says is in the answer."""
    begun = time.perf_counter()
    course: Course | None = None
    problem = ""
    try:
        ground = grounds.open_ground(driver, runtime, request.support)
        problem = grounds.take_masters(ground, request.spaces, channel)
        if problem:
            return say.Measured("refused", problem)
        course = _course(ground, request)
        return _measured(course, begun)
    except Exception as error:
        return _failed(error, course.side if course else -1, request)


def _course(ground: Ground, request: say.Measure) -> Course:
    ground.modules += [ground.driver.moduleLoadData(side.cubin) for side in request.sides]
    address = ground.runtime.deviceGetPCIBusId(0)
    return Course(ground, request, [grounds.new_set(ground, request.spaces, request.sides)], watch(address))


def _measured(course: Course, begun: float) -> say.Measured:
    request, ground = course.request, course.ground
    numbers = range(len(request.sides))
    first = tuple(_timed(course, number, quiet=True)[0] for number in numbers)
    course.overhead = ground.idle()
    typical = [min(_timed(course, number)[0] for _ in range(2)) for number in numbers]
    more = sets_for(min(typical), max(len(item) for item in course.sets[0].steps), request)
    course.sets += [grounds.new_set(ground, request.spaces, request.sides) for _ in range(more - 1)]
    _settle(course)
    cold = _blocks(course, *request.blocks, request.seconds, warm=False)
    warm = _blocks(course, request.warm, request.warm, request.seconds, warm=True)
    return say.Measured(
        "",
        "",
        sets=len(course.sets),
        cold=tuple(cold),
        warm=tuple(warm),
        first=first,
        overhead=course.overhead,
        calls=tuple(course.calls),
        digests=b"".join(course.digests),
        clocks=_span(course.clocks),
        reasons=course.reasons,
        unwatched=course.watch if isinstance(course.watch, str) else "",
        odd=course.odd,
        starved=course.starved,
        fixed=tuple(space.name for space in request.spaces if space.follows),
        seconds=time.perf_counter() - begun,
    )


def sets_for(seconds: float, steps: int, request: say.Measure) -> int:
    """How many sets of buffers one pair of events goes over, so that short kernels are timed by the dozen without one
    call meeting another's data. A module variable that is written exists once only."""
    if any(space.symbols and space.role != "in" for space in request.spaces):
        return 1
    nbytes = sum(space.nbytes for space in request.spaces)
    nbytes += sum(space.nbytes for side in request.sides for space in side.spaces)
    wanted = -(-LONG_ENOUGH // max(seconds, 1e-7))
    return int(max(1, min(wanted, MOST_SETS, QUEUE // max(1, steps), request.memory // max(1, nbytes))))


def _timed(course: Course, number: int, warm: bool = False, quiet: bool = False) -> tuple[float, int]:
    """Seconds of one call of one side, and which call it was. ``quiet``: the blocker stays away, as the first launch of
    a kernel may have to wait for the card."""
    request, ground = course.request, course.ground
    call, course.side = course.call, number
    course.call += 1
    for index, held in enumerate(course.sets):
        grounds.fill_set(ground, held, request.spaces, request.sides, (request.seed, call, index))
    if warm:
        for held in course.sets:
            grounds.read_inputs(ground, held, request.spaces)
    else:
        ground.flush(request.flush)
    if quiet:
        ground.runtime.deviceSynchronize()
        ground.turn += 1
        ground.release()
        ground.turn -= 1
    steps = [step for held in course.sets for step in held.steps[number]]
    between, host, starved = ground.between(steps)
    course.starved |= starved
    course.odd += between > host * 1.01 + _HOST_SLACK and not (starved or quiet)
    return max(between - course.overhead, 1e-9) / len(course.sets), call


def _settle(course: Course) -> None:
    """Alternate until the clocks have risen: by time, and until the last times agree with those before."""
    least, most = _SETTLE
    begun, seen = time.perf_counter(), []
    while (passed := time.perf_counter() - begun) < most:
        seen.append(sum(_timed(course, number)[0] for number in range(len(course.request.sides))))
        before, last = seen[-10:-5], seen[-5:]
        if passed >= least and (passed >= most / 2 or len(before) == 5):
            if len(before) < 5:
                return
            old, new = statistics.median(before), statistics.median(last)
            if abs(new - old) <= _SETTLED * old:
                return


def _blocks(
    course: Course, least: int, most: int, seconds: float, warm: bool
) -> list[tuple[float, float, float, float]]:
    """Blocks of four calls: first, second, second, first; every other block the other way round, so that no drift of
    the clocks favours a side."""
    begun = time.perf_counter()
    found: list[tuple[float, float, float, float]] = []
    while len(found) < most:
        passed = time.perf_counter() - begun
        if passed > seconds and len(found) >= (least if passed < _PATIENCE * seconds else min(least, FEWEST)):
            break
        order = (0, 1, 1, 0) if len(found) % 2 == 0 else (1, 0, 0, 1)
        times: tuple[list[float], list[float]] = ([], [])
        for number in order:
            taken, call = _timed(course, number, warm)
            times[number].append(taken)
            if number == course.request.digested:
                _digest(course, call)
        found.append((times[0][0], times[0][1], times[1][0], times[1][1]))
        _look(course)
    return found


def _digest(course: Course, call: int) -> None:
    course.calls.append(call)
    for index, held in enumerate(course.sets):
        key = seed_of(course.request.seed, call, index)
        for output in course.request.outputs:
            course.ground.digest(output, held.shared[output.name][course.request.digested], key)
    course.digests += course.ground.digests()


def _look(course: Course) -> None:
    if isinstance(course.watch, str):
        return
    try:
        reading = course.watch.reading()
    except OSError as error:
        course.watch = f"clocks were not watched: NVML cannot be used ({error})"
        return
    course.clocks.append((reading.sm, reading.memory))
    course.reasons |= reading.reasons


def _span(clocks: list[tuple[int, int]]) -> tuple[int, ...]:
    if not clocks:
        return ()
    sm, memory = zip(*clocks, strict=True)
    return min(sm), max(sm), min(memory), max(memory)


def recompute(driver: Any, runtime: Any, request: say.Recompute, channel: Channel) -> say.Measured:
    """One side alone, on the seeds of timed calls: what it answers to them when nobody times it."""
    begun = time.perf_counter()
    try:
        ground = grounds.open_ground(driver, runtime, request.support)
        problem = grounds.take_masters(ground, request.spaces, channel)
        if problem:
            return say.Measured("refused", problem)
        ground.modules[:] = [driver.moduleLoadData(request.side.cubin)]
        held = grounds.new_set(ground, request.spaces, (request.side,))
        for call in request.calls:
            for index in range(request.sets):
                if request.stateful:
                    _reload(ground, held, request)
                grounds.fill_set(ground, held, request.spaces, (request.side,), (request.seed, call, index))
                for step in held.steps[0]:
                    step()
                key = seed_of(request.seed, call, index)
                for output in request.outputs:
                    ground.digest(output, held.shared[output.name][0], key)
        digests = ground.digests()
        runtime.deviceSynchronize()
        seconds = time.perf_counter() - begun
        return say.Measured("", "", calls=request.calls, digests=b"".join(digests), seconds=seconds)
    except Exception as error:
        return _failed(error, 0, request)


def _reload(ground: Ground, held: Held, request: say.Recompute) -> None:
    """The module as it was before anything ran: what a call may have kept in its variables is gone."""
    ground.runtime.deviceSynchronize()
    ground.driver.moduleUnload(ground.modules[0])
    ground.modules[0] = ground.driver.moduleLoadData(request.side.cubin)
    for space in request.spaces:
        if space.symbols:
            held.shared[space.name] = (ground.driver.moduleGetGlobal(ground.modules[0], space.symbols[0]),)
    grounds.pack(ground, held, request.spaces, (request.side,))


def _failed(error: Exception, side: int, request: say.Measure | say.Recompute) -> say.Measured:
    if out_of_memory(error):
        total = sum(space.nbytes for space in request.spaces) / 1e9
        words = f"the card has not enough memory to time {total:.2f} GB of buffers"
        return say.Measured("refused", words, side=-1)
    return say.Measured(fault_kind(error), f"{type(error).__name__}: {in_words(error)}", side=side)


def calibrate(driver: Any, runtime: Any, request: say.Calibrate) -> say.Calibrated:
    """The card's own peaks, and what it takes to empty its cache."""
    try:
        ground = grounds.open_ground(driver, runtime, request.support)
        free, _ = runtime.memGetInfo()
        l2 = runtime.deviceGetAttribute(runtime.cudaDevAttrL2CacheSize, 0)
        nbytes = min(1 << 30, free // 4) // 4096 * 4096
        peaks = _peaks(ground, nbytes)
        return say.Calibrated("", *peaks, l2=l2, flush=_flush_bytes(ground, l2), address=runtime.deviceGetPCIBusId(0))
    except Exception as error:
        return say.Calibrated(f"{type(error).__name__}: {in_words(error)}")


def _peaks(ground: Ground, nbytes: int) -> tuple[float, float, float]:
    """Bytes a second: read, write, copy (both ways). The best of several, after the clocks have risen."""
    one, other = ground.runtime.malloc(nbytes), ground.runtime.malloc(nbytes)
    count, word = grounds.word(nbytes // 16), grounds.word
    value = (0x5A5A5A5A).to_bytes(4, "little")
    launches: dict[str, tuple[int, Callable[[int], Launch]]] = {
        "stain": (nbytes, lambda blocks: ground.launch("stain", blocks, word(one), count, value)),
        "sweep": (nbytes, lambda blocks: ground.launch("sweep", blocks, word(one), count, word(ground.scratch))),
        "copy": (2 * nbytes, lambda blocks: ground.launch("copy", blocks, word(other), word(one), count)),
    }
    best = dict.fromkeys(launches, float("inf"))
    for launch in (make(ground.blocks) for _, make in launches.values()):
        launch()  # the first launch of a kernel must not wait behind the blocker
    ground.runtime.deviceSynchronize()
    begun = time.perf_counter()
    while time.perf_counter() - begun < 0.4:
        for name, (_, make) in launches.items():
            for blocks in (ground.blocks, 4 * ground.blocks):
                best[name] = min(best[name], ground.between((make(blocks),))[0])
    for address in (one, other):
        ground.runtime.free(address)
    speeds = {name: moved / best[name] for name, (moved, _) in launches.items()}
    return speeds["sweep"], speeds["stain"], speeds["copy"]


_PARTS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""How much is read, as multiples of the cache's size."""


def _flush_bytes(ground: Ground, l2: int) -> int:
    """The least of :data:`_PARTS` after which a probe of one block takes as long to read as after the most; twice that
    part's next to be safe. Three times the cache where nothing can be told apart."""
    if l2 <= 0:
        return 256 << 20
    most = int(_PARTS[-1] * l2) // 4096 * 4096
    probe_bytes = max(4096, min(l2 // 16, 1 << 20) // 4096 * 4096)
    address, probe = ground.runtime.malloc(most), ground.runtime.malloc(probe_bytes)
    ground.runtime.memset(address, 0, most)
    word = grounds.word
    look = ground.launch("sweep", 1, word(probe), word(probe_bytes // 16), word(ground.scratch))
    times: list[float] = []
    for part in _PARTS:
        nbytes = int(part * l2) // 4096 * 4096
        sweep = ground.launch("sweep", ground.blocks, word(address), word(nbytes // 16), word(ground.scratch))
        seen = []
        for _ in range(9):
            look()
            sweep()
            seen.append(ground.between((look,))[0])
        times.append(statistics.median(seen))
    for held in (address, probe):
        ground.runtime.free(held)
    return flush_from(dict(zip(_PARTS, times, strict=True)), l2)


def flush_from(times: dict[float, float], l2: int) -> int:
    """Bytes to read, from how long a probe takes after reading each part of the cache's size."""
    longest = max(times.values())
    enough = min(part for part, taken in times.items() if taken >= 0.97 * longest)
    return int(max(2.0, 1.5 * enough) * l2) // 4096 * 4096
