"""PTX text to the decoded form that everything else in the emulator reads.

Covers what NVRTC and nvcc 12 and 13 write for sm_75 and newer, with inline assembly in it. The grammar
is that of NVIDIA's "PTX ISA" manual, chapters 4 to 7 and 11.
"""

import re

from agent.execution.emulator.ptx.body import Body, parse_body
from agent.execution.emulator.ptx.instruction import Function, Module, Variable
from agent.execution.emulator.ptx.scope import Scope, Slots
from agent.execution.emulator.ptx.text import NAME, PtxError, blank_comments, line_of, split_list
from agent.execution.emulator.ptx.variable import SPACES, declared

__all__ = ["PtxError", "decode"]

_LINKAGE = re.compile(r"\s*\.(?:visible|weak|extern|common|internal)\b")
_DIRECTIVE = re.compile(r"\s*(?:\.(\w+)|(@@)[^\n]*)")
_REST_OF_LINE = re.compile(r"[^\n]*")
_TO_SEMICOLON = re.compile(r"([^;]*);")
_BLOCK = re.compile(r"[^{};]*\{[^{}]*\}")
_FILE = re.compile(r'\s*(\d{1,9})\s+"([^"\n]*)"[^\n]*')
_PARAMETERS = re.compile(r"\s*\(([^()]*(?:\(\.?\w+\)[^()]*)*)\)")
_NAME = re.compile(rf"\s*({NAME})")
_HEADER_END = re.compile(r"([^{;]*)([{;])")
_CLUSTER = re.compile(r"\.reqnctapercluster\s+(\d{1,9})(?:\s*,\s*(\d{1,9}))?(?:\s*,\s*(\d{1,9}))?")
_THREADS = re.compile(r"\.(maxntid|reqntid)\s+(\d{1,9})(?:\s*,\s*(\d{1,9}))?(?:\s*,\s*(\d{1,9}))?")


class _Reader:
    """The module read so far, and where in the text we are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.version = ""
        self.target = ""
        self.scope = Scope(None, Slots())
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}
        self.externals: dict[str, Function] = {}
        self.files: dict[int, str] = {}

    def take(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        match = pattern.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position : self.position + 60].split()
            raise PtxError(f"expected {wanted}, found '{' '.join(rest)}'" if rest else f"the text ends before {wanted}")
        self.position = match.end()
        return match


def decode(ptx: str) -> Module:
    """The module that ``ptx`` describes. Raises PtxError, with the line, for whatever is not understood."""
    text = blank_comments(ptx.rstrip("\0"))
    reader = _Reader(text)
    end = len(text.rstrip())
    try:
        while reader.position < end:
            _statement(reader)
        if not reader.version or not reader.target:
            raise PtxError("this is no PTX: .version and .target are missing")
    except PtxError as error:
        if error.line:
            raise
        at = reader.position + len(text[reader.position :]) - len(text[reader.position :].lstrip())
        raise PtxError(error.message, line_of(text, at)) from None
    return Module(
        version=reader.version,
        target=reader.target,
        variables=reader.variables,
        functions=reader.functions,
        files=reader.files,
        externals=reader.externals,
    )


def _statement(reader: _Reader) -> None:
    external = False
    while match := _LINKAGE.match(reader.text, reader.position):
        external = external or match.group().strip() == ".extern"
        reader.position = match.end()
    word = reader.take(_DIRECTIVE, "a directive")[1]
    if word in ("entry", "func"):
        _function(reader, word == "entry")
    elif word in SPACES:
        for variable in declared(word, reader.take(_TO_SEMICOLON, "a semicolon")[1], external):
            reader.variables[variable.name] = variable
            reader.scope.declare_symbol(variable.name, variable.name)
    elif word == "version":
        reader.version = reader.take(_REST_OF_LINE, "a version").group().strip()
    elif word == "target":
        reader.target = reader.take(_REST_OF_LINE, "a target").group().split(",")[0].strip()
    elif word == "file":
        number, path = reader.take(_FILE, "a number and a path").groups()
        reader.files[int(number)] = path.replace("\\\\", "\\")
    elif word == "section":
        reader.take(_BLOCK, "a section in braces")
    elif word in ("address_size", "loc"):
        reader.take(_REST_OF_LINE, "a number")
    elif word in ("pragma", "alias"):
        reader.take(_TO_SEMICOLON, "a semicolon")
    elif word is not None:
        raise PtxError(f"the directive .{word} is not known")


def _function(reader: _Reader, entry: bool) -> None:
    start = reader.position
    returns: tuple[Variable, ...] = ()
    if not entry and (match := _PARAMETERS.match(reader.text, reader.position)):
        returns, reader.position = _parameters(match[1]), match.end()
    name = reader.take(_NAME, "the name of a function")[1]
    parameters: tuple[Variable, ...] = ()
    if match := _PARAMETERS.match(reader.text, reader.position):
        parameters, reader.position = _parameters(match[1]), match.end()
    header, end = reader.take(_HEADER_END, f"the body of {name}").groups()
    reader.scope.declare_symbol(name, name)
    threads = {which: (int(x), int(y or 1), int(z or 1)) for which, x, y, z in _THREADS.findall(header)}
    cluster = _CLUSTER.search(header)
    if ".blocksareclusters" in header:
        raise PtxError(f"the grid of {name} counts clusters (.blocksareclusters), which is not known")
    body = Body(reader.text, Slots())
    if end == "{":
        scope = Scope(reader.scope, body.slots)
        for variable in (*returns, *parameters):
            scope.declare_symbol(variable.name, variable.name)
            body.taken.add(variable.name)
        reader.position = parse_body(body, scope, reader.position)
    function = Function(
        name=name,
        entry=entry,
        parameters=parameters,
        returns=returns,
        variables=tuple(body.variables),
        registers=body.slots.counts,
        instructions=tuple(body.instructions),
        max_threads=threads.get("reqntid") or threads.get("maxntid"),
        required_threads=threads.get("reqntid"),
        cluster=_three(cluster) if cluster else (1, 1, 1),
    )
    if end == ";":
        reader.externals[name] = function
    elif name in reader.functions:
        reader.position = start
        raise PtxError(f"the function '{name}' is declared twice")
    else:
        reader.functions[name] = function
        reader.externals.pop(name, None)


def _three(sizes: re.Match[str]) -> tuple[int, int, int]:
    return int(sizes[1]), int(sizes[2] or 1), int(sizes[3] or 1)


def _parameters(text: str) -> tuple[Variable, ...]:
    found: list[Variable] = []
    for part in split_list(text):
        if not part.startswith(".param"):
            raise PtxError(f"the parameter '{part[:60]}' is not understood: only .param is")
        found += declared("param", part.removeprefix(".param"))
    return tuple(found)
