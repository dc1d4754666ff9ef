"""PTX decoded once: the one form that every back end, check and counter reads.

A register is a slot in one of four files by width; types live in the instruction, as PTX's own untyped view has it.
"""

from collections.abc import Mapping

from attrs import field, frozen


@frozen
class Register:
    """``file`` is ``pred``, ``b16``, ``b32``, ``b64`` or ``b128`` (8-bit ones live in ``b16``, as ptxas keeps them).

    A slot is unique among the registers of its file in one function, also where blocks declare a name twice.
    """

    name: str
    file: str
    slot: int


@frozen
class Immediate:
    """A literal as its bit pattern: integers in two's complement of 64 bits, floats as the bits of ``f32``/``f64``.

    ``kind``: ``int``, ``f32`` (``0f...``), ``f64`` (``0d...`` or a plain decimal).
    """

    bits: int
    kind: str


@frozen
class Special:
    """A special register: ``tid.x``, ``ntid.y``, ``ctaid.z``, ``nctaid.x``, ``laneid``, ``warpid``, ``clock``, ..."""

    name: str


@frozen
class Symbol:
    """The address of a variable (or a parameter), plus a byte offset."""

    name: str
    offset: int = 0


@frozen
class Address:
    """A memory operand ``[base + offset]``; ``base`` None is an absolute address."""

    base: Register | Symbol | None
    offset: int = 0


@frozen
class Vector:
    """``{a, b, c, d}``; an element may be None for the sink ``_``. A sink that stands alone is ``Vector((None,))``.

    Also the arguments of a call, the targets of ``brx.idx`` and the parts of an address that has several
    (``[texture, {x, y}]`` is ``Vector((texture, Vector((x, y))))``).
    """

    elements: "tuple[Operand | None, ...]"


@frozen
class Label:
    """A branch target, resolved to an index into the function's instructions (their number: the end, a return)."""

    name: str
    target: int


Operand = Register | Immediate | Special | Symbol | Address | Vector | Label


@frozen
class Guard:
    """``@p`` or ``@!p``."""

    register: Register
    negated: bool


@frozen
class Instruction:
    """``ld.global.nc.v4.f32`` is base ``ld``, modifiers ``("global", "nc", "v4")``, types ``("f32",)``.

    ``types`` holds the type suffixes in order (``cvt.rn.f32.s32`` has two). ``destinations`` come first in PTX; a
    store, branch or barrier has none. ``file``/``line`` are those of the last ``.loc`` (0 where there was none).
    ``text`` is the instruction as written, for messages.

    ``setp``, ``shfl`` and the like with ``p|q`` have two destinations. ``negated`` lists the indices of sources that
    were written with ``!``. ``bra`` has one source, a Label; ``brx`` an index and a Vector of Labels. ``call`` has the
    variables that take the results as destinations, and as sources the function (a Symbol, or a Register that holds
    its address), a Vector of arguments and, for an indirect call, the name of the prototype. ``inlined`` gives the call
    sites (file, line) that this code was inlined through, innermost first.
    """

    base: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    destinations: tuple[Operand, ...]
    sources: tuple[Operand, ...]
    guard: Guard | None
    file: int
    line: int
    text: str = field(eq=False)
    negated: tuple[int, ...] = ()
    inlined: tuple[tuple[int, int], ...] = field(default=(), eq=False)

    @property
    def opcode(self) -> str:
        return ".".join((self.base, *self.modifiers, *self.types))


@frozen
class Variable:
    """``space``: ``global``, ``const``, ``shared``, ``local``, ``param``. ``initial`` is None where PTX gives no
    initialiser; ``external`` marks ``.extern .shared`` (dynamic shared memory, size 0). ``relocations``: byte offset ->
    symbol."""

    name: str
    space: str
    nbytes: int
    alignment: int
    initial: bytes | None = None
    external: bool = False
    relocations: Mapping[int, Symbol] = field(factory=dict)


@frozen
class Function:
    """A kernel (``entry``) or device function. ``registers`` counts slots per file. ``parameters`` in order.

    ``variables`` are those declared inside the body (``local``, ``shared``, and ``param`` for the arguments of calls);
    where blocks declare a name twice the later one is called ``name#2``. They hide module variables of the same name.
    ``max_threads`` is ``.maxntid`` or ``.reqntid``; ``required_threads`` only the latter. ``cluster`` is the shape of
    the clusters of blocks that the code itself asks for.
    """

    name: str
    entry: bool
    parameters: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    registers: Mapping[str, int]
    instructions: tuple[Instruction, ...]
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] = (1, 1, 1)


@frozen
class Module:
    """``files`` maps ``.file`` numbers to paths. ``functions`` have bodies, ``externals`` do not (``vprintf``)."""

    version: str
    target: str
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
    files: Mapping[int, str]
    externals: Mapping[str, Function] = field(factory=dict)
