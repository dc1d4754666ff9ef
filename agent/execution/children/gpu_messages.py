"""What a GPU runner is told, and what it answers."""

from collections.abc import Mapping

from attrs import field, frozen

from agent.workload.textures import View

Three = tuple[int, int, int]


@frozen
class AskCard:
    """Which card is there? Makes no context."""


@frozen
class Warm:
    """Make a context now, so that the job need not wait for it. Answered by :class:`Card`."""


@frozen
class Card:
    """``capability`` is 90 for sm_90. ``shared_optin`` is the most shared memory a block can have, in bytes.
    ``missing`` says why there is no card to use (empty if there is one); ``address`` is its place on the PCI bus."""

    name: str
    capability: int
    driver: int
    memory: int
    shared_optin: int
    missing: str = ""
    address: str = ""


@frozen
class MadeHere:
    """Contents that our kernels make: ``form`` is their parameter, for ``count`` scalars of ``nbytes`` bytes together
    and of float type ``dtype`` (-1: none). ``nudge`` moves each by one unit in the last place, ``wide`` makes doubles
    of floats."""

    form: bytes = field(repr=False)
    count: int
    nbytes: int
    dtype: int
    nudge: int | None
    wide: bool


@frozen
class Region:
    """One buffer: ``fill`` is the byte to fill it with, if any; ``follows`` says that its contents come in chunks.

    ``symbol`` is the module variable's name in the cubin, ``alias`` another region whose memory this one shares.
    ``watched``: say whether the run changed it.
    """

    name: str
    nbytes: int
    offset: int
    alias: str | None
    symbol: str | None
    fill: int | None
    follows: bool
    made: MadeHere | None = None
    watched: bool = False


@frozen
class Inside:
    """The address of ``region`` plus ``offset``, ``at`` bytes into a struct."""

    at: int
    region: str
    offset: int


@frozen
class Argument:
    """The address of ``region`` plus ``offset``, the texture or surface object ``view`` over it, or the bytes of a
    value, with the addresses in a struct put in."""

    region: str | None
    offset: int
    value: bytes
    view: View | None = None
    inside: tuple[Inside, ...] = ()

    def packed(self, addresses: Mapping[str, int]) -> bytes:
        """The bytes that the kernel's parameter holds, with regions at these addresses; a view has none before it is
        made."""
        if self.region is not None:
            return (addresses[self.region] + self.offset).to_bytes(8, "little")
        whole = bytearray(self.value)
        for one in self.inside:
            whole[one.at : one.at + 8] = (addresses[one.region] + one.offset).to_bytes(8, "little")
        return bytes(whole)


@frozen
class LaunchStep:
    """``entry`` is the kernel's name in the cubin, ``label`` its name for the user."""

    entry: str
    label: str
    grid: Three
    block: Three
    shared: int
    arguments: tuple[Argument, ...]


@frozen
class FillStep:
    region: str
    byte: int


@frozen
class CopyStep:
    target: str
    source: str


@frozen
class Job:
    """Prepare to run: load, allocate, poison. Chunks of the regions that say so follow; then :class:`Prepared`.
    ``exact``: each buffer is an allocation of its own size, without guards around it."""

    cubin: bytes = field(repr=False)
    regions: tuple[Region, ...]
    steps: tuple[LaunchStep | FillStep | CopyStep, ...]
    support: bytes = field(default=b"", repr=False)
    exact: bool = False


@frozen
class Chunk:
    """Bytes of a region from ``start`` on; as an answer with a ``problem`` where they could not be given as asked."""

    region: str
    start: int
    data: bytes = field(repr=False)
    problem: str = ""


@frozen
class Prepared:
    """``problem`` is empty when everything is in place."""

    problem: str = ""


@frozen
class Go:
    """Run the steps. Answered by :class:`Ran`."""


@frozen
class Ran:
    """``kind`` is empty when all went well, else the kind of fault or ``refused``; ``kernel`` is the launch that it
    came from. ``guards`` are (region, bytes from its start) of what was overwritten beside buffers, ``changed`` the
    watched regions that no longer hold what they held."""

    kind: str
    message: str
    kernel: str
    seconds: float
    guards: tuple[tuple[str, int], ...] = ()
    changed: tuple[str, ...] = ()


@frozen
class Read:
    """Ask for ``nbytes`` of a region from ``start`` on. Answered by :class:`Chunk`, whose data is empty where ``path``
    names a file of that size to write them to instead."""

    region: str
    start: int
    nbytes: int
    path: str = ""
