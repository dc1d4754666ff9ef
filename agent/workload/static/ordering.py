"""Which of the things that a program puts into streams may run at once: launches, copies and fills that nothing orders.

The rules are those of the CUDA C++ Programming Guide ("Streams", "Default Stream"): a stream runs in order; the default
stream waits for all blocking streams and they for it; an event orders what was before its record with what follows a
wait for it; what the host waits for is over before anything that it does later. What is not known is taken for ordered.
"""

from collections.abc import Iterator
from itertools import combinations

from attrs import define, field, frozen

from agent.workload.expression import Expression
from agent.workload.static.assemble import launch_roles
from agent.workload.static.state import Facts
from agent.workload.static.values import DEFAULT, Mark, Queue, Queued, leading

MOST = 200
"""Things in streams: of programs with more nothing is said."""

_Uses = dict[int, tuple[bool, frozenset[Expression]]]
"""By memory: whether it is written, and where in it the pointers lead."""


@frozen
class Clash:
    """Two things that may run at once and use the same memory, which one of them writes."""

    first: str
    second: str
    memory: str
    line: int = field(eq=False)


def clashes(facts: Facts) -> tuple[Clash, ...]:
    """What nothing orders, in the order in which the program puts it into streams."""
    queued = facts.queue
    if len(queued) > MOST or all(one.stream in (None, DEFAULT) for one in queued):
        return ()
    before = _before(queued)
    uses = {place: _uses(one, facts) for place, one in enumerate(queued) if one.what in ("launch", "use")}
    return tuple(
        Clash(queued[first].name, queued[second].name, facts.memories[memory].name, queued[second].line)
        for first, second in combinations(uses, 2)
        if first not in before[second] and None not in (queued[first].stream, queued[second].stream)
        for memory in _shared(uses[first], uses[second])
    )


def _shared(first: _Uses, second: _Uses) -> Iterator[int]:
    """Memories that both use at the same place, and one writes."""
    for memory in first.keys() & second.keys():
        (writes, places), (also, others) = first[memory], second[memory]
        if (writes or also) and places & others:
            yield memory


def _uses(one: Queued, facts: Facts) -> _Uses:
    if one.launch is None:
        return {memory: (memory in one.writes, frozenset({place})) for memory, place in one.pointers}
    _, writes = launch_roles(one.launch, facts) or (set(), set())
    found: _Uses = {}
    for value in one.launch.arguments:
        for _, held in leading(value):
            place = frozenset({held.offset}) if hasattr(held, "offset") else frozenset[Expression]()
            known = found.get(held.memory, (False, frozenset[Expression]()))[1]
            found[held.memory] = (held.memory in writes, known | place)
    return found


@define
class _Clock:
    """What is over when the next thing in a stream begins, what the host waited for, and what events stand for."""

    over: dict[Queue, frozenset[int]] = field(factory=dict)
    waited: frozenset[int] = frozenset()
    recorded: dict[Mark, frozenset[int]] = field(factory=dict)
    met: frozenset[int] = frozenset()

    def reached(self, stream: Queue | None) -> frozenset[int]:
        """What is over when a thing that is put into a stream now begins; all, where the stream is not known."""
        if stream is None:
            return self.met
        own = self.over.get(stream, frozenset())
        if stream == DEFAULT:
            own = own.union(*(held for other, held in self.over.items() if other.blocking))
        elif stream.blocking:
            own = own | self.over.get(DEFAULT, frozenset())
        return own | self.waited


def _before(queued: list[Queued]) -> dict[int, frozenset[int]]:
    """What is over for certain before each thing begins."""
    clock, found = _Clock(), {}
    for place, one in enumerate(queued):
        if one.what in _ORDERS:
            _ORDERS[one.what](one, clock)
            continue
        found[place] = clock.reached(one.stream)
        clock.met |= {place}
        if one.stream is not None:
            clock.over[one.stream] = found[place] | {place}
        if one.waits:
            clock.waited |= found[place] | {place}
    return found


def _device(one: Queued, clock: _Clock) -> None:
    clock.waited = clock.met


def _stream(one: Queued, clock: _Clock) -> None:
    clock.waited |= clock.reached(one.stream)


def _record(one: Queued, clock: _Clock) -> None:
    if one.mark is not None:
        clock.recorded[one.mark] = clock.reached(one.stream)


def _event(one: Queued, clock: _Clock) -> None:
    clock.waited |= clock.met if one.mark is None else clock.recorded.get(one.mark, frozenset())


def _wait(one: Queued, clock: _Clock) -> None:
    held = clock.met if one.mark is None else clock.recorded.get(one.mark, frozenset())
    for stream in [one.stream] if one.stream is not None else list(clock.over):
        clock.over[stream] = clock.over.get(stream, frozenset()) | held


_ORDERS = {"device": _device, "stream": _stream, "record": _record, "event": _event, "wait": _wait}
