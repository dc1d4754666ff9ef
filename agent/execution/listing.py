"""What a compiler made of a kernel, in the order of the code, under the source lines that it belongs to."""

import re
from collections.abc import Iterable, Iterator, Sequence

from agent.execution.compiler.result import Build
from agent.execution.sass import name_of

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_PLACE = re.compile(r"^\.loc\s+(\d+)\s+(\d+)")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")
_HEAD = re.compile(r"\.(?:entry|func)\b[^{;]*?([\w$]+)\s*(?=\(|$)")
_PARAMETERS = re.compile(r"\([^()]*\)\s*")

Instruction = tuple[int, str]
"""The 1-based line of the user's file that it belongs to (0: none is known yet), and the text."""


def ptx(build: Build, kernels: Iterable[str], path: str) -> Iterator[Instruction]:
    """The PTX of those kernels (as in ``build.entries``) and of functions that are called. Code that was inlined from
    another file counts where it was inlined into the file ``path``, else with the line before it."""
    files = {number for number, name in _FILE.findall(build.ptx) if name_of(name) == name_of(path)}
    others = set(build.entries.values()) - {build.entries.get(name, name) for name in kernels}
    line, depth, wanted, head = 0, 0, False, ""
    for row in map(str.strip, build.ptx.splitlines()):
        if not depth:
            head = "" if row.endswith(";") or row.startswith(("//", ".file")) else f"{head} {row}"
            if row.endswith("{") and (".entry" in head or ".func" in head):
                depth, line, wanted, head = 1, 0, _name(head) not in others, ""
        elif row.startswith(".loc"):
            line = next((at for file, at in _places(row) if file in files), line)
        elif row in ("{", "}"):
            depth += 1 if row == "{" else -1
        elif wanted and row and not row.startswith(("//", ".")):
            yield line, row


def _name(head: str) -> str:
    """Of a function's head: what stands before its parameters, after those that it returns."""
    words = re.findall(r"[\w$]+", _PARAMETERS.sub(" ", head.split("{")[0]).split(".maxntid")[0].split(".reqntid")[0])
    return words[-1] if words else ""


def _places(row: str) -> list[tuple[str, int]]:
    """File and line of an instruction, then those of the calls that it was inlined at."""
    return [(file, int(line)) for file, line in (*_PLACE.findall(row), *_INLINED.findall(row))]


def under_lines(code: Iterable[Instruction], source: Sequence[str]) -> Iterator[str]:
    """The instructions, each run of them below the line of ``source`` that it belongs to."""
    last = -1
    for line, text in code:
        if line != last and 0 < line <= len(source):
            yield f"// {line:>4} | {source[line - 1].rstrip()}"
        last = line
        yield text if text.endswith(":") else f"        {text}"
