"""Streams and events as host code makes and uses them: what is put into which, and what is waited for."""

from collections.abc import Callable

from tree_sitter import Node

from agent.workload.static.state import Facts, State
from agent.workload.static.values import (
    DEFAULT,
    ZERO,
    LaunchItem,
    Mark,
    Pointer,
    Queue,
    Queued,
    Ref,
    Unknown,
    Value,
)

Handler = Callable[[list[Value], Node, Facts, State], Value]


def put_launch(item: LaunchItem, stream: Value, facts: Facts) -> None:
    """Note a launch in its stream, where it is certain that it is reached."""
    if not facts.conditional:
        facts.queue.append(Queued("launch", _queue(stream), item.line, item.kernel, launch=item))


def put_use(
    name: str, targets: list[Value], sources: list[Value], stream: Value, waits: bool, line: int, facts: Facts
) -> None:
    """Note a copy or a fill in its stream: device memory that it writes, and that it reads."""
    pointers = [one for one in (*targets, *sources) if isinstance(one, Pointer) and _on_device(one, facts)]
    if pointers and not facts.conditional:
        written = frozenset(one.memory for one in targets if isinstance(one, Pointer))
        places = tuple((one.memory, one.offset) for one in pointers)
        facts.queue.append(Queued("use", _queue(stream), line, name, pointers=places, writes=written, waits=waits))


def _on_device(held: Pointer, facts: Facts) -> bool:
    return facts.memories[held.memory].space in ("device", "managed")


def _queue(value: Value) -> Queue | None:
    return DEFAULT if value == ZERO else value if isinstance(value, Queue) else None


def _mark(value: Value) -> Mark | None:
    return value if isinstance(value, Mark) else None


def create(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaStreamCreate`` and ``cudaStreamCreateWithFlags``."""
    flags = facts.node_text(node)
    return _made(values, Queue(_number(facts), "NonBlocking" not in flags), state) if values else ZERO


def create_event(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    return _made(values, Mark(_number(facts)), state) if values else ZERO


def _number(facts: Facts) -> int:
    facts.events += 1
    return facts.events


def _made(values: list[Value], made: Queue | Mark, state: State) -> Value:
    if isinstance(values[0], Ref):
        state.cells[values[0].cell] = made
    return ZERO


def orders(what: str, stream: int | None = None, mark: int | None = None) -> Handler:
    """A call that orders things; the places of its stream and its event among the arguments."""

    def handle(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
        unknown = Unknown("it is not passed")
        queue = (values[stream] if stream < len(values) else ZERO) if stream is not None else unknown
        held = values[mark] if mark is not None and mark < len(values) else unknown
        facts.queue.append(Queued(what, _queue(queue), facts.line(node), mark=_mark(held)))
        return ZERO

    return handle
