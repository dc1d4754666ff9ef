"""What host variables hold while host code is read: expressions over root numbers, pointers into allocations, grids."""

from collections.abc import Iterable, Iterator

from attrs import field, frozen
from tree_sitter import Node

from agent.workload.expression import Expression, number
from agent.workload.textures import Texture
from agent.workload.workload import Domain, Origin


@frozen
class Unknown:
    """No value, and why, in words that fit after "because"."""

    reason: str
    line: int | None = None


@frozen
class Scalar:
    """A number as an expression over roots and loop variables. ``dtype`` is the integer type that C has it in, which
    tells where it wraps; None where that is not known, and for what is no integer."""

    expression: Expression
    dtype: str | None = field(default=None, eq=False)


@frozen
class Pointer:
    """Address of a memory plus ``offset`` elements of ``element``, the pointee's type as written (empty: not known)."""

    memory: int
    offset: Expression
    element: str


@frozen
class Ref:
    """Address of a host variable."""

    cell: int


@frozen(eq=False)
class Lambda:
    """A function that is written where it is used, and the text that its node refers to."""

    node: Node
    text: bytes
    line: int | None


@frozen
class Called:
    """A kernel by its bare name, with the template arguments that are written beside it: what a pointer to it holds."""

    kernel: str
    template: tuple[str, ...] = ()


@frozen
class Text:
    """A text that is known, and whether it is a word of the command line."""

    text: str
    argument: bool = False


@frozen
class Record:
    """The struct that a variable is: its members are variables of their own."""

    cell: int


@frozen
class Composite:
    """A struct as it was when it was passed: its members by name, elements of arrays by number. ``type`` is as written,
    or empty."""

    type: str
    members: "tuple[tuple[str, Value], ...]"


@frozen
class Dim3:
    x: "Scalar | Unknown"
    y: "Scalar | Unknown"
    z: "Scalar | Unknown"


@frozen
class Properties:
    """A ``cudaDeviceProp``."""


@frozen
class Distribution:
    """A ``std::uniform_real_distribution`` and its kin."""

    domain: Domain


@frozen
class Random:
    """A random number inside ``domain``, as host code draws it."""

    domain: Domain


@frozen
class Channels:
    """A ``cudaChannelFormatDesc``: the type of a texel."""

    dtype: str


@frozen
class Shown:
    """A texture or surface object over a memory; ``texture`` has no names yet."""

    memory: int
    texture: Texture


@frozen
class Queue:
    """A stream; a ``blocking`` one and the default one wait for each other."""

    number: int
    blocking: bool = True


@frozen
class Mark:
    """An event."""

    number: int


Value = (
    Unknown | Scalar | Pointer | Ref | Record | Composite | Text | Lambda | Dim3 | Properties | Distribution | Random
    | Channels | Shown | Called | Queue | Mark
)  # fmt: skip


@frozen
class Laid:
    """How the texels of a CUDA array lie; the last of the extents counts layers where ``layered``."""

    dtype: str
    extents: tuple[Expression, ...]
    layered: bool


def leading(value: Value, path: str = "") -> Iterator[tuple[str, Pointer | Shown]]:
    """The pointers and objects that are handed on by a value, each with the path under which a kernel finds it: that of
    the parameter, or of a member in it."""
    if isinstance(value, Composite):
        for name, held in value.members:
            yield from leading(held, f"{path}.{name}")
    elif isinstance(value, Pointer | Shown):
        yield path, value


def memories_of(values: Iterable[Value]) -> set[int]:
    """What the pointers among values lead to, those in structs included."""
    return {held.memory for value in values for _, held in leading(value)}


@frozen
class Memory:
    """One allocation. ``space`` is ``device``, ``managed``, ``host`` or ``symbol``; ``nbytes`` its size. ``laid`` is
    told of CUDA arrays."""

    name: str
    space: str
    nbytes: Expression | Unknown
    element: str
    line: int
    how: str
    laid: Laid | None = None


@frozen
class Content:
    """What a memory holds.

    ``fresh`` (nothing was put there), ``zeros``, ``byte``, ``host`` (initialised by host code, in ``domain`` where that
    was understood), ``kernel`` (a launch may have written it) or ``external`` (a library did). ``byte`` is what every
    byte was set to, ``freed`` the line from which on the memory is given back.
    """

    kind: str
    domain: Domain | None = None
    byte: int | None = None
    freed: int | None = None


@frozen
class Root:
    """A number that the program starts from; ``value`` is None where only the user can tell it. ``event`` keeps numbers
    apart that come to be at the same place one after the other."""

    name: str
    value: int | float | None
    origin: Origin
    why: str = ""
    event: int = 0


@frozen
class End:
    """What ends a block early: ``return`` (with its value), ``exit``, ``break``, ``continue``, ``goto``."""

    how: str
    value: Value


@frozen
class LaunchItem:
    """One launch as it was met. ``contents`` is what memories held just before, ``pinned`` the numbers that
    decided the way to it; ``conditional`` if only some runs reach it, ``repeated`` if it stands in a loop whose
    turns are all alike. ``cluster`` is what an attribute of the launch asks for, None where none does; ``cooperative``
    if all blocks of the launch run at once. ``granted`` is to how many bytes of dynamic shared memory the host raised
    the kernel's limit before, None where it did not."""

    kernel: str
    template: tuple[str, ...]
    grid: Dim3 | Unknown
    block: Dim3 | Unknown
    shared: Scalar | Unknown
    arguments: tuple[Value, ...]
    line: int
    contents: dict[int, Content]
    conditional: bool
    repeated: bool = False
    pinned: frozenset[str] = frozenset()
    cluster: Dim3 | Unknown | None = None
    cooperative: bool = False
    granted: Scalar | Unknown | None = None


@frozen
class Queued:
    """What the host puts into a stream, or waits for: a ``launch``, a ``use`` of memory by a copy or a fill, a
    ``record`` of an event or a ``wait`` for it in a stream, and that the host waits for the ``device``, a ``stream`` or
    an ``event``. ``stream`` and ``mark`` are None where they are not known. ``pointers`` are the memories that a use is
    about, each with the place in it, ``writes`` those that it writes; ``waits``: the host goes on once it is done."""

    what: str
    stream: Queue | None
    line: int
    name: str = ""
    mark: Mark | None = None
    launch: LaunchItem | None = None
    pointers: tuple[tuple[int, Expression], ...] = ()
    writes: frozenset[int] = frozenset()
    waits: bool = False


@frozen
class FillItem:
    memory: int
    byte: int
    line: int


@frozen
class CopyItem:
    target: int
    source: int
    line: int


@frozen
class OtherItem:
    """A call that is none of the above and ends a run of launches: a transfer to the host, a library call."""

    line: int


@frozen
class LoopItem:
    """A loop around launches that differ from turn to turn: ``swaps`` exchange memories at the end of each turn.

    ``variable`` runs from ``start`` by ``update`` while ``condition`` holds (all None where no launch depends on it
    and ``count`` says how often). A ``guarded`` one is no loop, but one item under a condition: ``count``, 0 or 1.
    """

    body: "tuple[Item, ...]"
    swaps: tuple[tuple[int, int], ...]
    line: int
    count: Expression | None = None
    variable: str | None = None
    start: Expression | None = None
    update: Expression | None = None
    condition: Expression | None = None
    guarded: bool = False


Item = LaunchItem | FillItem | CopyItem | OtherItem | LoopItem

ANY = Called("")
"""A kernel, and which is not known."""
DEFAULT = Queue(0)
"""The stream of whatever names none."""
ONE = Scalar(number(1), "i32")
ZERO = Scalar(number(0), "i32")
