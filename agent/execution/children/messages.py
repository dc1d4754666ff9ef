"""What parent and child say to each other."""

from attrs import field, frozen


@frozen
class AskCompiler:
    """Who are you?"""


@frozen
class CompilerIs:
    """``version`` is NVRTC's (major, minor), ``archs`` the compute capabilities it compiles for (90 for sm_90).
    ``missing`` says why there is no NVRTC (empty if there is one). ``held_by``: what keeps its process from network and
    files; ``unheld``: what would, and why it does not."""

    version: tuple[int, int]
    archs: tuple[int, ...]
    missing: str = ""
    held_by: tuple[str, ...] = ()
    unheld: tuple[str, ...] = ()


@frozen
class Compile:
    """``names`` are name expressions; ``headers`` are (name, text) pairs held in memory."""

    source: str
    name: str
    options: tuple[str, ...]
    names: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    seconds: float


@frozen
class Compiled:
    """``error`` is NVRTC's own status (empty on success); ``lowered`` goes with ``names``, one for one.

    There is ``ptx`` also when only ptxas failed, so that its line numbers can be read.
    """

    error: str
    log: str
    ptx: bytes = field(repr=False)
    cubin: bytes = field(repr=False)
    lowered: tuple[str, ...]
