"""Plans: a sequence of launches with scratch buffers, repeats and pointer swaps. The original program is a plan too."""

from attrs import frozen

from agent.workload.expression import Expression

Grid = tuple[Expression, Expression, Expression]


@frozen
class Launch:
    """One kernel launch; every number is an expression over the workload's names.

    ``kernel`` is the name expression that NVRTC is asked for (``softmax``, ``ns::scan<float, 256>``). An argument
    that names a pointer of the workload (optionally plus an element offset, ``x + n``) is a pointer argument; any
    other is a scalar. ``shared`` is dynamic shared memory in bytes.
    """

    kernel: str
    grid: Grid
    block: Grid
    shared: Expression
    arguments: tuple[Expression, ...]


@frozen
class Swap:
    """Exchange which buffers two pointer names refer to (ping-pong between time steps)."""

    first: str
    second: str


@frozen
class Fill:
    """Set every byte of a buffer, as ``cudaMemset`` does."""

    buffer: str
    byte: int


@frozen
class Copy:
    """Copy a whole buffer to another of the same size, device to device."""

    target: str
    source: str


@frozen
class Repeat:
    """Run ``body`` ``count`` times; ``variable`` (if any) counts 0, 1, 2, ... and may be used in its expressions.

    Other progressions of a loop variable (``stride *= 2``) are written with ``start``, ``update`` (the next value as
    an expression over the variable) and ``condition`` in place of ``count``.
    """

    body: "tuple[Step, ...]"
    count: Expression | None = None
    variable: str | None = None
    start: Expression | None = None
    update: Expression | None = None
    condition: Expression | None = None


Step = Launch | Swap | Fill | Copy | Repeat


@frozen
class Scratch:
    """A buffer that only the plan knows. Poisoned before each run, or ``zeroed`` (the zeroing is part of the run)."""

    name: str
    dtype: str
    extent: Expression
    zeroed: bool


@frozen
class Plan:
    """What is launched, in order. ``locals`` are names with an expression each, evaluated in order (``blocks``)."""

    steps: tuple[Step, ...]
    scratch: tuple[Scratch, ...] = ()
    locals: tuple[tuple[str, Expression], ...] = ()

    def launches(self) -> tuple[Launch, ...]:
        """Every launch of the plan in order of appearance, those inside repeats once."""
        return tuple(_launches(self.steps))


def _launches(steps: tuple[Step, ...]) -> list[Launch]:
    found: list[Launch] = []
    for step in steps:
        if isinstance(step, Launch):
            found.append(step)
        elif isinstance(step, Repeat):
            found += _launches(step.body)
    return found
