"""What one file says, as values: what it defines, which names stand where, and what it includes."""

from attrs import field, frozen

from agent.source.span import Span

KERNEL, DEVICE, SYMBOL, MACRO, HOST = "kernel", "device", "symbol", "macro", "host"
"""Kinds of definitions: a ``__global__`` function; a ``__device__`` one; a ``__constant__``, ``__device__`` or
``__managed__`` variable; a macro with a launch in it; any other function."""

LAUNCH, CALL, USE = "launch", "call", "use"
"""How a name stands there: in front of ``<<<``; in front of an argument list; otherwise."""

OUTSIDE = -1


@frozen
class Definition:
    """``span`` is the name, ``extent`` all of it. ``head`` is what stands before the body, on one line. Not ``whole``:
    declared only. ``launches``: it launches what it is given (a wrapper)."""

    name: str
    qualified: str
    kind: str
    span: Span
    extent: Span
    head: str
    whole: bool = True
    launches: bool = False


@frozen
class Mention:
    """A name that nothing around it declares. ``qualifier`` is what stands in front of it (``a::b``), ``within`` the
    call that it is an argument of (``cudaFuncSetAttribute``), ``inside`` the definition that it stands in, by its place
    in ``Facts.definitions``. A launch through a pointer that was set to a kernel mentions the kernel."""

    name: str
    qualifier: str
    how: str
    span: Span
    within: str
    inside: int


@frozen
class Facts:
    definitions: tuple[Definition, ...] = field(repr=False, default=())
    mentions: tuple[Mention, ...] = field(repr=False, default=())
    includes: tuple[str, ...] = ()
    """Names of headers as written, without quotes and brackets."""


@frozen
class Found:
    """A definition of a file, which is named by its key in a table."""

    key: str
    definition: Definition
