"""What probing says: what was found, what stopped it, and in which words."""

from attrs import frozen

from agent.workload.workload import Access, Workload


class Stopped(Exception):
    """Nothing can be found out about this kernel. ``kind`` tells a compiler that is missing from a reason in the
    code."""

    def __init__(self, reason: str, line: int = 0, kind: str = "kernel") -> None:
        super().__init__(reason)
        self.reason, self.line, self.kind = reason, line, kind


@frozen
class Stop:
    """Why one thing stays open. ``what`` is a pointer's name, ``grid``, ``launch`` or ``shared``; ``line`` is 0 where
    no line is to blame. ``again``: at other sizes it may not come up."""

    what: str
    reason: str
    line: int = 0
    again: bool = False

    @property
    def text(self) -> str:
        return f"`{self.what}`: {self.reason}" + (f" (line {self.line})" if self.line else "")


@frozen
class Found:
    """One pointer: elements as an expression (None: open), where the pointer stands in its buffer, and its role."""

    name: str
    dtype: str
    extent: str | None
    access: Access
    offset: str = "0"


@frozen
class Probed:
    """``workload`` is None where something stays open (``stops`` says what); ``draft`` is the directive, with blanks
    for that, and with what was found and assumed in comments above it. ``notes`` are what was assumed."""

    workload: Workload | None
    draft: str
    stops: tuple[Stop, ...]
    notes: tuple[str, ...]
    found: tuple[Found, ...] = ()
    launch: str = ""
    runs: int = 0
    seconds: float = 0.0

    @property
    def summary(self) -> str:
        """``x f32[n] in, y f32[n] out; k<<<ceil_div(n, 128), 128>>>(x, y, n)``, a question mark for what is open."""
        buffers = ", ".join(
            f"{one.name} {one.dtype}[{(one.extent or '?').replace(' ', '')}] {one.access.value}" for one in self.found
        )
        return f"{buffers}; {self.launch}"

    @property
    def reason(self) -> str:
        """In one line, why there is no workload; empty where there is one."""
        return "; ".join(stop.text for stop in self.stops)
