"""What one file says, as values: what it defines, which names stand where, and what it includes."""

import re

from attrs import field, frozen

from agent.source.span import Span

KERNEL, DEVICE, SYMBOL, MACRO, HOST = "kernel", "device", "symbol", "macro", "host"
"""Kinds of definitions: a ``__global__`` function; a ``__device__`` one; a ``__constant__``, ``__device__`` or
``__managed__`` variable; a macro with a launch in it; any other function."""

LAUNCH, CALL, USE = "launch", "call", "use"
"""How a name stands there: in front of ``<<<``; in front of an argument list; otherwise."""

OUTSIDE = -1

_OF_KERNELS = re.compile(r"cu(?:da)?(?:Launch\w*|Func\w+|Occupancy\w+|GraphAddKernelNode\w*|GetFuncBySymbol)\Z")
_OF_SYMBOLS = re.compile(r"cu(?:da)?(?:Memcpy\w*Symbol\w*|GetSymbol\w+)\Z")
_MEANT = {LAUNCH: (KERNEL,), CALL: (DEVICE,), USE: (KERNEL, SYMBOL, DEVICE)}


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

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of the definitions that it may mean."""
        if _OF_SYMBOLS.match(self.within):
            return (SYMBOL,)
        return (KERNEL,) if _OF_KERNELS.match(self.within) else _MEANT[self.how]

    @property
    def sure(self) -> bool:
        """Whether it means one of those whatever else is known: it is launched, or given to what takes no other."""
        return self.how == LAUNCH or bool(_OF_KERNELS.match(self.within) or _OF_SYMBOLS.match(self.within))


@frozen
class Facts:
    definitions: tuple[Definition, ...] = field(repr=False, default=())
    mentions: tuple[Mention, ...] = field(repr=False, default=())
    includes: tuple[str, ...] = ()
    """Names of headers as written, without quotes and brackets."""
    usings: tuple[str, ...] = ()
    """``a::b::`` of a using-directive, ``a::f`` of a using-declaration, wherever in the file they stand."""


@frozen
class Found:
    """A definition of a file, which is named by its key in a table."""

    key: str
    definition: Definition
