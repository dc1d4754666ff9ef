"""What a GPU runner is told and answers when it times programs."""

from attrs import field, frozen

from agent.execution.children.gpu_messages import CopyStep, FillStep, LaunchStep
from agent.workload.forms import Form

STREAMS = 64
"""Sets of one call take the seeds ``call * STREAMS + set``; a call has fewer sets than this."""

GROUPS = 16
"""Sums of each output, beside its hash."""


@frozen
class Calibrate:
    """Measure the card itself with the kernels of ``support``. Answered by :class:`Calibrated`."""

    support: bytes = field(repr=False)


@frozen
class Calibrated:
    """Peaks in bytes a second (a copy counts both ways), the level-2 cache, and how many bytes must be read until
    nothing of before is in it any more."""

    problem: str
    read: float = 0.0
    write: float = 0.0
    copy: float = 0.0
    l2: int = 0
    flush: int = 0
    address: str = ""


@frozen
class Space:
    """A buffer. ``role``: ``in``, ``out``, ``inout``, ``scratch``, ``zeroed``. What a call reads first is made by
    ``form``, or, where it has none, is copied from bytes that follow once as chunks. ``symbols`` name it in each side's
    module where it is a module variable."""

    name: str
    nbytes: int
    role: str
    form: Form | None = None
    symbols: tuple[str, ...] = ()

    @property
    def follows(self) -> bool:
        return self.role in ("in", "inout") and self.form is None


@frozen
class Side:
    """A program, its steps, and the scratch memory that only it knows."""

    cubin: bytes = field(repr=False)
    steps: tuple[LaunchStep | FillStep | CopyStep, ...]
    spaces: tuple[Space, ...] = ()


@frozen
class Output:
    """``dtype``: the number of a float type in the kernels, else -1; ``width`` bytes an element; ``unordered``: the
    order of elements means nothing."""

    name: str
    count: int
    width: int
    dtype: int = -1
    unordered: bool = False


@frozen
class Look:
    """Ask, after a run, for the byte ranges ``pieces`` of the region that ``output`` names, and for the digest of all
    of it with ``key``. Answered by :class:`Looked`."""

    output: Output
    pieces: tuple[tuple[int, int], ...]
    key: int


@frozen
class Looked:
    """The pieces one after another, and the digest."""

    data: bytes = field(repr=False)
    digest: bytes = field(repr=False)


@frozen
class Measure:
    """Time the sides against one another. Chunks of the spaces that say so follow; answered by :class:`Measured`.

    ``blocks`` (least, most) of four calls each over a flushed cache, ended after ``seconds`` once there are enough;
    ``warm`` further ones with the inputs just read. ``memory`` bounds the bytes of all sets together. The outputs of
    side ``digested`` are digested, with ``seed`` for everything.
    """

    support: bytes = field(repr=False)
    sides: tuple[Side, ...]
    spaces: tuple[Space, ...]
    outputs: tuple[Output, ...]
    seed: int
    digested: int
    flush: int
    blocks: tuple[int, int]
    warm: int
    seconds: float
    memory: int


@frozen
class Measured:
    """``kind`` is empty when all went well, else what :class:`Ran` says; ``side`` is whose launch (-1: no one's).

    ``cold`` and ``warm`` hold one tuple of four times a block, in seconds for one call: the first side's two, the
    second's two. ``first``: the very first call of each side. ``sets`` ran in one pair of events each time;
    ``overhead`` is what a pair around an empty kernel shows, taken off already. ``calls`` are those whose ``digests``
    (``8 + 16 * GROUPS`` bytes an entry: calls x sets x outputs) are here. ``clocks`` are (least, most) MHz of the
    multiprocessors and of the memory, ``reasons`` the throttle bits; ``unwatched`` says why there are none. ``odd``
    counts calls on which event and host clock disagree. ``starved``: there were more launches than the queue holds.
    """

    kind: str
    message: str
    kernel: str = ""
    side: int = -1
    sets: int = 1
    cold: tuple[tuple[float, float, float, float], ...] = ()
    warm: tuple[tuple[float, float, float, float], ...] = ()
    first: tuple[float, ...] = ()
    overhead: float = 0.0
    calls: tuple[int, ...] = ()
    digests: bytes = field(default=b"", repr=False)
    clocks: tuple[int, ...] = ()
    reasons: int = 0
    unwatched: str = ""
    odd: int = 0
    starved: bool = False
    fixed: tuple[str, ...] = ()
    seconds: float = 0.0


@frozen
class Recompute:
    """Run one side alone on the seeds of ``calls`` x ``sets`` and digest. ``stateful``: its module has variables, so it
    is loaded anew before each run. Chunks follow as for :class:`Measure`; answered by :class:`Measured` with nothing
    but digests."""

    support: bytes = field(repr=False)
    side: Side
    spaces: tuple[Space, ...]
    outputs: tuple[Output, ...]
    seed: int
    calls: tuple[int, ...]
    sets: int
    stateful: bool = True
