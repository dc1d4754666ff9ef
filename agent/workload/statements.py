"""The statements that write a workload down: text -> Workload. Directive comments and settings are both made of these.

One statement a line (a line with an open bracket goes on), each a keyword and its operands::

    size     rows = 4096, cols = 65536 min 2 multiple 4
    const    alpha = 0.5
    buffer   x: f32[rows * cols] in uniform(0, 1)
    texture  t: x(cols, rows, filter=linear, address=wrap, normalized)
    surface  s: y(cols, rows)
    symbol   coefficients: f32[16] in normal
    scratch  partial: f32[blocks] zeroed
    local    blocks = (rows + 255) / 256
    launch   softmax<<<rows, 256, 256 * 4>>>(x, y, rows, cols)
    repeat   steps { launch heat<<<blocks, 256>>>(a, b, n)  swap a b }
    fill     y 0
    copy     target source
    compare  y numeric 1e-5
    flags    -DTILE=16 --use_fast_math
    lossy
    reference refs.py:softmax
"""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import NoReturn

from attrs import define, evolve, field

from agent.workload import data, dtypes
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError, number
from agent.workload.generators import DOMAINS, default_domain
from agent.workload.plan import Copy, Fill, Launch, Plan, Repeat, Scratch, Step, Swap
from agent.workload.texture_words import read_texture
from agent.workload.textures import Texture
from agent.workload.types import split_arguments
from agent.workload.workload import (
    PROBED,
    Access,
    Buffer,
    Comparator,
    Constant,
    Domain,
    Origin,
    Reference,
    Size,
    Workload,
)

COMPARATORS = ("auto", "exact", "numeric", "multiset", "argmax", "distribution")
FLAGS = re.compile(
    r"-[DUI]\S*|--?(use_fast_math|ftz|prec-div|prec-sqrt|fmad|maxrregcount|std|extra-device-vectorization)(=\S+)?"
    r"|--?(define-macro|undefine-macro|include-path)=\S+"
)
_NAME = r"[A-Za-z_]\w*"


@define
class _Parts:
    """What was read so far."""

    origin: Origin
    sizes: list[Size] = field(factory=list)
    constants: list[Constant] = field(factory=list)
    buffers: list[Buffer] = field(factory=list)
    scratch: list[Scratch] = field(factory=list)
    locals: list[tuple[str, Expression]] = field(factory=list)
    steps: list[Step] = field(factory=list)
    comparators: list[tuple[str, Comparator]] = field(factory=list)
    flags: list[str] = field(factory=list)
    textures: list[Texture] = field(factory=list)
    lossy: bool = False
    reference: Reference | None = None


def read_statements(text: str, kernel: str, origin: Origin, first_line: int | None = None) -> Workload:
    """The workload of ``kernel`` that ``text`` states; its first line is ``first_line`` of the file.

    Raises WorkloadError, with the line, for what is no statement; the message says what was expected.
    """
    _filled(text, first_line)
    reader = _Reader(text, first_line, _Parts(origin))
    reader.statements()
    parts = reader.parts
    return Workload(
        kernel,
        tuple(parts.sizes),
        tuple(parts.constants),
        tuple(parts.buffers),
        Plan(tuple(parts.steps), tuple(parts.scratch), tuple(parts.locals)),
        tuple(parts.comparators),
        parts.lossy,
        origin,
        tuple(parts.flags),
        reference=parts.reference,
        textures=tuple(parts.textures),
    )


_HOLE = re.compile(r"(?:^|[=\[(,:;<+*/%&|{-])[ \t]*\?(?=[ \t]*(?:$|[\]),;>}+*/%&|-]))", re.M)


def _filled(text: str, first_line: int | None) -> None:
    """Raises WorkloadError for a blank of a draft that nobody filled in, with the statement that it stands in."""
    found = _HOLE.search(text)
    if found is None:
        return
    start, end = text.rfind("\n", 0, found.end()) + 1, text.find("\n", found.end())
    statement = " ".join(text[start : end if end >= 0 else None].split())
    line = None if first_line is None else first_line + text.count("\n", 0, start)
    raise WorkloadError(f"an answer is missing: put a number, or what is meant, for the `?` in `{statement}`", line)


class _Reader:
    """A cursor over the text; each method reads one construct."""

    def __init__(self, text: str, first_line: int | None, parts: _Parts) -> None:
        self.text, self.first_line, self.parts, self.at, self.depth = text, first_line, parts, 0, 0
        self.statement_at = 0

    @property
    def line(self) -> int | None:
        if self.first_line is None:
            return None
        return self.first_line + self.text.count("\n", 0, self.statement_at)

    @property
    def here(self) -> Origin:
        return evolve(self.parts.origin, line=self.line)

    def fail(self, message: str) -> NoReturn:
        raise WorkloadError(message, self.line)

    def more(self) -> bool:
        """Moves to the next statement, if there is one."""
        match = re.compile(r"(?:\s|;)*").match(self.text, self.at)
        self.at = match.end() if match else self.at
        self.statement_at = self.at
        return self.at < len(self.text)

    def word(self) -> str:
        match = re.compile(r"[A-Za-z_]\w*").match(self.text, self.at)
        if not match:
            found = self.text[self.at : self.at + 20].split("\n")[0]
            self.fail(f"expected one of {', '.join(_STATEMENTS)}, found `{found}`")
        self.at = match.end()
        return match[0]

    def statements(self) -> None:
        while self.more():
            self.statement(self.parts.steps)

    def statement(self, steps: list[Step]) -> None:
        keyword = self.word()
        if keyword in _STEPS:
            steps.append(_STEPS[keyword](self))
        elif keyword not in _LINES:
            self.fail(f"`{keyword}` is no statement; expected one of {', '.join(_STATEMENTS)}")
        elif self.depth:
            self.fail(f"`{keyword}` cannot stand inside a repeat; only {', '.join(_STEPS)} can")
        else:
            _LINES[keyword](self, self.rest())

    def rest(self) -> str:
        """The rest of the line; a line whose brackets are open, or that ends in a backslash, goes on."""
        start, depth = self.at, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            depth += (char in "([{") - (char in ")]}")
            if char == "\n" and depth <= 0 and not self.text[start : self.at].rstrip().endswith("\\"):
                break
            self.at += 1
        return self.text[start : self.at].replace("\\\n", " ").strip()

    def expression(self, text: str, what: str) -> Expression:
        try:
            return Expression.parse(text)
        except ExpressionError as error:
            self.fail(f"{what}: {error}")

    def argument(self, text: str) -> Expression:
        try:
            return Expression.parse_argument(text)
        except ExpressionError as error:
            self.fail(f"argument: {error}")

    def name(self, what: str) -> str:
        match = re.compile(rf"[^\S\n]*({_NAME})").match(self.text, self.at)
        if not match:
            self.fail(f"{what}: expected a buffer's name")
        self.at = match.end()
        return match[1]

    def until(self, closing: str, what: str) -> str:
        """Text up to ``closing`` outside brackets, which is passed over."""
        depth, start = 0, self.at
        while depth or not self.text.startswith(closing, self.at):
            if self.at >= len(self.text):
                self.fail(f"{what}: expected `{closing}`")
            char = self.text[self.at]
            depth += (char in "([{") - (char in ")]}")
            self.at += 1
        self.at += len(closing)
        return self.text[start : self.at - len(closing)].strip()

    def launch(self) -> Launch:
        what = "launch (`kernel<<<grid, block, shared>>>(arguments)`)"
        kernel = self.until("<<<", what)
        if not re.fullmatch(rf"(::)?{_NAME}(::{_NAME})*(<.*>)?", kernel, re.S):
            self.fail(f"{what}: `{kernel}` is no kernel name")
        configuration = _commas(self.until(">>>", what))
        if not 2 <= len(configuration) <= 3:
            self.fail(f"{what}: expected grid, block and perhaps shared bytes between `<<<` and `>>>`")
        if not self.text.startswith("(", self.at):
            self.fail(f"{what}: expected `(` after `>>>`")
        self.at += 1
        arguments = _commas(self.until(")", what))
        return Launch(
            " ".join(kernel.split()),
            self.three(configuration[0], "grid"),
            self.three(configuration[1], "block"),
            self.expression(configuration[2], "shared bytes") if len(configuration) == 3 else number(0),
            tuple(self.argument(argument) for argument in arguments),
        )

    def three(self, text: str, what: str) -> tuple[Expression, Expression, Expression]:
        """``n``, ``dim3(n, m)``, ``(n, m)`` or ``{n, m}``."""
        inner = re.fullmatch(r"dim3\s*\((.*)\)|\((.*)\)|\{(.*)\}", text, re.S)
        listed = inner is not None and _closes_at_end(text)
        parts = _commas(next(part for part in inner.groups() if part is not None)) if inner and listed else [text]
        if not 1 <= len(parts) <= 3:
            self.fail(f"{what}: expected one to three numbers, as in `dim3(n, m)`")
        given = [self.expression(part, what) for part in parts]
        x, y, z = [*given, number(1), number(1)][:3]
        return x, y, z

    def swap(self) -> Swap:
        return Swap(self.name("swap (`swap a b`)"), self.name("swap (`swap a b`)"))

    def copy(self) -> Copy:
        return Copy(self.name("copy (`copy target source`)"), self.name("copy (`copy target source`)"))

    def fill(self) -> Fill:
        what = "fill (`fill buffer byte`)"
        buffer = self.name(what)
        match = re.compile(r"[^\S\n]*(0[xX][0-9a-fA-F]{1,2}|\d{1,3})\b").match(self.text, self.at)
        if not match or int(match[1], 0) > 255:
            self.fail(f"{what}: expected a byte, 0 to 255")
        self.at = match.end()
        return Fill(buffer, int(match[1], 0))

    def repeat(self) -> Repeat:
        what = "repeat: `count {...}`, `count as i {...}` or `i = start; condition; i = next {...}`"
        head = self.until("{", what)
        body: list[Step] = []
        self.depth += 1
        if self.depth > 4:
            self.fail("repeats are nested more than four deep")
        while self.more() and not self.text.startswith("}", self.at):
            self.statement(body)
        if self.at >= len(self.text):
            self.fail("repeat: expected `}`")
        self.at += 1
        self.depth -= 1
        return self.repeat_head(head, tuple(body), what)

    def repeat_head(self, head: str, body: tuple[Step, ...], what: str) -> Repeat:
        parts = [part.strip() for part in head.split(";")]
        if len(parts) == 1:
            count, _, variable = head.partition(" as ")
            if variable and not re.fullmatch(_NAME, variable.strip()):
                self.fail(f"{what}: `{variable}` is no name")
            return Repeat(body, self.expression(count, "repeat"), variable.strip() or None)
        start = re.fullmatch(rf"({_NAME})\s*=\s*(.*)", parts[0], re.S)
        update = re.fullmatch(rf"({_NAME})\s*(<<|>>|[-+*/])?=\s*(.*)", parts[-1], re.S)
        if len(parts) != 3 or not start or not update or start[1] != update[1]:
            self.fail(f"expected {what}")
        following = f"{start[1]} {update[2]} ({update[3]})" if update[2] else update[3]
        return Repeat(
            body,
            None,
            start[1],
            self.expression(start[2], "repeat"),
            self.expression(following, "repeat"),
            self.expression(parts[1], "repeat"),
        )


def _commas(text: str) -> list[str]:
    return split_arguments(text, angles=False)


def _closes_at_end(text: str) -> bool:
    """Whether the first bracket closes at the last character: ``(a, b)`` does, ``(a) * (b)`` does not."""
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and char in ")]}":
            return index == len(text) - 1
    return False


def _assignments(reader: _Reader, text: str, what: str) -> list[tuple[str, str]]:
    found = []
    for part in _commas(text):
        match = re.fullmatch(rf"({_NAME})\s*=(?!=)\s*(.+)", part, re.S)
        if not match:
            reader.fail(f"{what}: expected `name = value`, found `{part}`")
        found.append((match[1], match[2].strip()))
    if not found:
        reader.fail(f"{what}: expected `name = value`")
    return found


def _size(reader: _Reader, text: str) -> None:
    for name, value in _assignments(reader, text, "size (`size n = 1024 min 2 multiple 4`)"):
        match = re.fullmatch(r"(.*?)((?:\s+(?:min|multiple)\s+\d+)*)", value, re.S)
        assert match is not None
        options = dict(re.findall(r"(min|multiple)\s+(\d+)", match[2]))
        try:
            whole = reader.expression(match[1], f"size `{name}`").evaluate({})
        except ExpressionError as error:
            reader.fail(f"size `{name}`: expected a number ({error})")
        minimum, multiple = int(options.get("min", 1)), int(options.get("multiple", 1))
        if not isinstance(whole, int) or whole < minimum or multiple < 1:
            reader.fail(f"size `{name}`: expected a whole number of at least {minimum}, found `{match[1].strip()}`")
        reader.parts.sizes.append(Size(name, whole, reader.here, minimum, multiple))


def _constant(reader: _Reader, text: str) -> None:
    for name, value in _assignments(reader, text, "const (`const alpha = 0.5`)"):
        reader.parts.constants.append(Constant(name, reader.expression(value, f"const `{name}`"), reader.here))


def _local(reader: _Reader, text: str) -> None:
    for name, value in _assignments(reader, text, "local (`local blocks = (n + 255) / 256`)"):
        reader.parts.locals.append((name, reader.expression(value, f"local `{name}`")))


def _declared(reader: _Reader, text: str, what: str) -> tuple[str, str, Expression, str]:
    """Name, element type, extent and the rest of ``x: f32[n] ...``."""
    match = re.match(rf"({_NAME})\s*:\s*(\w+)\s*\[", text)
    if not match:
        reader.fail(f"{what}, found `{text}`")
    if not dtypes.is_dtype(match[2]):
        known = ", ".join(dtypes.SCALARS)
        reader.fail(f"`{match[2]}` is no element type; expected one of {known}, f32x4, or b12 for raw bytes")
    depth, end = 1, match.end()
    while end < len(text) and depth:
        depth += (text[end] == "[") - (text[end] == "]")
        end += 1
    if depth:
        reader.fail(f"{what}: expected `]`")
    extent = reader.expression(text[match.end() : end - 1], f"extent of `{match[1]}`")
    return match[1], match[2], extent, text[end:].strip()


def _buffer(reader: _Reader, text: str, symbol: bool = False) -> None:
    what = "expected `name: type[extent] in|out|inout domain`"
    name, dtype, extent, rest = _declared(reader, text, what)
    probed = re.match(rf"{PROBED}\b\s*", rest)
    access, _, told = rest[probed.end() if probed else 0 :].partition(" ")
    if access not in ("in", "out", "inout"):
        reader.fail(f"{what}: after the extent of `{name}` comes in, out or inout, found `{access}`")
    domain = _domain(reader, told.strip(), name) if told.strip() else default_domain(dtype)
    origin = evolve(reader.here, kind=PROBED) if probed else reader.here
    reader.parts.buffers.append(Buffer(name, dtype, extent, Access(access), domain, origin, symbol))


def _domain(reader: _Reader, text: str, name: str) -> Domain:
    match = re.fullmatch(r"(assumed\s+)?([a-z-]+)\s*(?:\((.*)\))?", text, re.S)
    if not match or match[2] not in (*DOMAINS, "unknown"):
        reader.fail(f"domain of `{name}`: expected one of {', '.join(sorted(DOMAINS))}, found `{text}`")
    kind, given = match[2], match[1] is None
    if kind == "data":
        return _data(reader, (match[3] or "").strip(), name)
    bounds = [reader.expression(part, f"domain of `{name}`") for part in _commas(match[3] or "")]
    if kind in ("index", "offsets") and len(bounds) == 1:
        bounds = [number(0), *bounds]
    if kind == "constant" and len(bounds) == 1:
        bounds = [*bounds, *bounds]
    if len(bounds) not in (0, 2) or (kind in ("index", "offsets", "constant") and not bounds):
        wanted = (
            "one number" if kind in ("index", "offsets", "constant") else "none or two numbers, as in `uniform(0, 1)`"
        )
        reader.fail(f"domain of `{name}`: `{kind}` takes {wanted}")
    low, high = (None if _infinite(bound) else bound for bound in bounds) if bounds else (None, None)
    return Domain(kind, low, high, given)


def _data(reader: _Reader, told: str, name: str) -> Domain:
    if not data.DIGEST.fullmatch(told):
        reader.fail(
            f"domain of `{name}`: `data` takes the 32 hexadecimal digits that `cuda-lsp capture` names contents by, "
            f"found `{told}`"
        )
    return Domain("data", None, None, True, told)


def _infinite(bound: Expression) -> bool:
    return isinstance(bound.constant, float) and abs(bound.constant) == float("inf")


def _scratch(reader: _Reader, text: str) -> None:
    name, dtype, extent, rest = _declared(reader, text, "expected `name: type[extent]` and perhaps `zeroed`")
    if rest not in ("", "zeroed"):
        reader.fail(f"scratch `{name}`: expected nothing or `zeroed` after the extent, found `{rest}`")
    reader.parts.scratch.append(Scratch(name, dtype, extent, rest == "zeroed"))


def _compare(reader: _Reader, text: str) -> None:
    match = re.fullmatch(rf"({_NAME})\s+(\w+)(?:\s+(\S+))?", text)
    if not match or match[2] not in COMPARATORS:
        reader.fail(f"compare: expected `buffer comparator tolerance`, the comparator one of {', '.join(COMPARATORS)}")
    try:
        tolerance = None if match[3] is None else float(match[3])
    except ValueError:
        reader.fail(f"compare: `{match[3]}` is no tolerance")
    if tolerance is not None and not 0 <= tolerance < 1:
        reader.fail(f"compare: the tolerance is relative to the output's scale: 0 <= tolerance < 1, found {match[3]}")
    if match[1] not in {buffer.name for buffer in reader.parts.buffers}:
        reader.fail(f"compare: `{match[1]}` is no buffer stated above")
    reader.parts.comparators.append((match[1], Comparator(match[2], tolerance)))


def _flags(reader: _Reader, text: str) -> None:
    try:
        flags = shlex.split(text)
    except ValueError as error:
        reader.fail(f"flags: {error}")
    for flag in flags:
        if not FLAGS.fullmatch(flag):
            reader.fail(f"flags: `{flag}` is not allowed; defines, include folders and floating-point options are")
    reader.parts.flags += flags


def _lossy(reader: _Reader, text: str) -> None:
    if text:
        reader.fail(f"lossy: expected nothing after it, found `{text}`")
    reader.parts.lossy = True


def _reference(reader: _Reader, text: str) -> None:
    match = re.fullmatch(rf"(\S.*\.py):({_NAME})", text)
    if not match:
        reader.fail(f"reference: expected a Python file and a function of it, as in `refs.py:softmax`, found `{text}`")
    if reader.parts.reference is not None:
        reader.fail("reference: there is one already")
    reader.parts.reference = Reference(match[1], match[2])


def _texture(reader: _Reader, text: str, surface: bool = False) -> None:
    try:
        reader.parts.textures.append(read_texture(text, surface, reader.line))
    except ExpressionError as error:
        reader.fail(str(error))


_STEPS: Mapping[str, Callable[[_Reader], Step]] = {
    "launch": _Reader.launch,
    "repeat": _Reader.repeat,
    "swap": _Reader.swap,
    "fill": _Reader.fill,
    "copy": _Reader.copy,
}
_LINES: Mapping[str, Callable[[_Reader, str], None]] = {
    "size": _size,
    "const": _constant,
    "buffer": _buffer,
    "symbol": lambda reader, text: _buffer(reader, text, symbol=True),
    "texture": _texture,
    "surface": lambda reader, text: _texture(reader, text, surface=True),
    "scratch": _scratch,
    "local": _local,
    "compare": _compare,
    "flags": _flags,
    "lossy": _lossy,
    "reference": _reference,
}
_STATEMENTS = (*_LINES, *_STEPS)
