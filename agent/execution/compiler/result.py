"""What a compilation asked for and what came back, as values. Errors are values too, on the user's own lines."""

from collections.abc import Mapping

from attrs import field, frozen


@frozen
class Liberties:
    """What was taken to compile a program whose flags nobody names: host ``constexpr`` functions in device code (as
    with ``--expt-relaxed-constexpr``), its file read ``alone`` and not as one that includes it sees it, and items that
    were left out, by their keys (see :func:`agent.source.pruning.key_of`)."""

    relaxed_constexpr: bool = False
    alone: bool = False
    left_out: tuple[str, ...] = ()


@frozen
class Options:
    """``arch`` is ``sm_90``-like. ``flags`` are the user's own (defines, fast-math, register caps, include folders).
    ``liberties`` are those that the original took: a rewrite of it may take the same, and no others."""

    arch: str = "sm_90"
    flags: tuple[str, ...] = ()
    fmad: bool = True
    optimised: bool = True
    liberties: Liberties = Liberties()


@frozen
class Diagnostic:
    """``severity`` is ``error``, ``warning`` or ``note``; ``line`` is 1-based in ``file`` (0 where unknown)."""

    severity: str
    file: str
    line: int
    message: str


@frozen
class Resources:
    """What ptxas reports for one kernel: registers a thread, the rest in bytes (spills and stack a thread)."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    static_shared: int
    barriers: int
    constant: int = 0


@frozen
class Build:
    """A compiled program. ``entries`` maps each name expression to its name in the PTX, ``resources`` likewise.

    ``ptx`` carries ``.loc`` lines that map to the user's file. ``symbols`` maps the ``__constant__``/``__device__``
    variables of the source to their names in the PTX. ``key`` is a hash of everything that went in.
    """

    ptx: str
    cubin: bytes = field(repr=False)
    entries: Mapping[str, str]
    resources: Mapping[str, Resources]
    symbols: Mapping[str, str]
    arch: str
    compiler: str
    diagnostics: tuple[Diagnostic, ...]
    key: str
    liberties: Liberties = Liberties()


@frozen
class CompileFailure:
    """Why there is no build. ``kind``: ``source`` (the code is wrong), ``unavailable`` (no NVRTC), ``crashed``,
    ``timeout``, ``cancelled``, ``refused`` (for example an include outside the allowed folders). ``message`` says what
    is wrong and what to do."""

    kind: str
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()
