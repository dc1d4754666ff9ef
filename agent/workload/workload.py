"""Workloads: arguments, sizes, value domains, plan, comparators and tolerance, each with its provenance."""

import enum

from attrs import field, frozen

from agent.workload.expression import Expression
from agent.workload.plan import Plan
from agent.workload.textures import Texture

PROBED = "probed"
"""The kind of origin of what was seen when the kernel ran on buffers without ends: what it touches, not what there is.
In a directive the word stands before a buffer's access."""

MADE_UP = "made up"
"""The kind of origin of a launch that nobody wrote: good for counting what lines do, and for nothing else."""


class Access(enum.Enum):
    IN = "in"
    OUT = "out"
    INOUT = "inout"


@frozen
class Origin:
    """Where a value came from: ``directive``, ``settings``, ``literal``, ``macro``, ``allocation``, ``launch``,
    ``argv default``, ``run line`` (of the Makefile), ``signature``, ``assumed``, ``probed``, ``made up``; with the
    1-based line where one is known, and the name of the file where it is not the kernel's own."""

    kind: str
    line: int | None = None
    detail: str = ""
    file: str = ""


@frozen
class Domain:
    """Which values a buffer or scalar may hold.

    ``kind`` is one of the generator names of ``agent.workload.generators`` (``normal``, ``uniform``, ``integers``,
    ``index``, ``offsets``, ``permutation``, ``sorted``, ``constant``, ``zeros``, ...); ``low``/``high`` are bounds
    (``low <= v < high`` for integers, ``low <= v <= high`` for floats), and ``given`` says that the user or the
    source stated the domain, so that input families outside it are not tried. ``data`` names contents of the kind
    ``data``, which were captured: see :mod:`agent.workload.data`.
    """

    kind: str
    low: Expression | None = None
    high: Expression | None = None
    given: bool = False
    data: str = ""


@frozen
class Buffer:
    """A device allocation that a pointer argument refers to.

    ``dtype`` names one element (``f32``; ``f32x4`` for ``float4``; ``b12`` for a 12-byte struct), ``extent`` counts
    elements. ``symbol`` marks a ``__constant__``/``__device__`` variable of that name instead of an allocation.
    ``host`` is what the host code calls it (``d_x``), where it was found there.
    """

    name: str
    dtype: str
    extent: Expression
    access: Access
    domain: Domain
    origin: Origin
    symbol: bool = False
    host: str = ""

    @property
    def probed(self) -> bool:
        """Whether the extent is what the kernel was seen to touch: nothing follows from it about bounds."""
        return self.origin.kind == PROBED


@frozen
class Size:
    """A free integer of the workload: what is varied when other sizes are tried, in steps of ``multiple``."""

    name: str
    value: int
    origin: Origin
    minimum: int = 1
    multiple: int = 1


@frozen
class Constant:
    """A named number that is not varied: a scalar argument's value, a macro, a float coefficient."""

    name: str
    value: Expression
    origin: Origin


@frozen
class Comparator:
    """How one output is compared: ``exact``, ``numeric``, ``multiset``, ``argmax``, ``distribution``, or ``auto``.

    ``tolerance`` (relative to the output's scale) is the user's own, if given; None means that gate 5's budget decides.
    """

    kind: str = "auto"
    tolerance: float | None = None


@frozen
class Reference:
    """A function or module of PyTorch that computes what the plan does: ``name`` in the Python file ``path``, which is
    relative to the folder of the kernel's file."""

    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


@frozen
class Workload:
    """Everything needed to run one kernel, or a plan of several, without the user's host code.

    ``flags`` are compiler flags that the kernel needs (defines, fast-math). ``notes`` say in words what was assumed.
    ``textures`` are the texture and surface objects that launches pass: views of the buffers.
    """

    kernel: str
    sizes: tuple[Size, ...]
    constants: tuple[Constant, ...]
    buffers: tuple[Buffer, ...]
    plan: Plan
    comparators: tuple[tuple[str, Comparator], ...] = ()
    lossy: bool = False
    origin: Origin = field(factory=lambda: Origin("directive"))
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reference: Reference | None = None
    textures: tuple[Texture, ...] = ()

    def buffer(self, name: str) -> Buffer:
        return next(buffer for buffer in self.buffers if buffer.name == name)
