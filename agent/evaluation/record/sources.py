"""A program's device code as one text that compiles alone: what a record keeps of a file."""

import hashlib
import re
from pathlib import Path

from attrs import frozen

from agent.evaluation.record.form import Source
from agent.execution.compiler import includes
from agent.execution.compiler.flags import translate
from agent.source.document import Document
from agent.source.errors import SourceError
from agent.source.slicing import device_slice
from agent.workload.program import Program

_LINE = re.compile(r'#line (\d+) "(.*)"')


@frozen
class Told:
    """``notes`` say what of the file could not be kept."""

    source: Source
    notes: tuple[str, ...]


def told(program: Program, flags: tuple[str, ...]) -> Told:
    """What a record keeps of ``program``'s file; all of it where its kernels cannot be cut out (the text is broken)."""
    document = program.document
    name = Path(document.path).name or "kernel.cu"
    file_hash = hashlib.sha256(document.text).hexdigest()
    kernels = tuple(dict.fromkeys(launch.kernel for launch in program.plan.launches()))
    folders = includes.search(document.path, translate(flags).includes, ()).explicit
    try:
        part = device_slice(document, kernels, [str(folder) for folder in folders])
    except SourceError as error:
        text = document.text.decode("utf-8", "replace")
        notes = (f"{name} is kept whole, host code and all: {error}",)
        return Told(Source(name, text, text_hash(text), file_hash, whole=True), notes)
    text = _laid_out(part.text, document)
    return Told(
        Source(name, text, text_hash(text), file_hash), tuple(f"not in the text: {one}" for one in part.dropped)
    )


def text_hash(text: str) -> str:
    """SHA-256 of a text as UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _laid_out(text: str, document: Document) -> str:
    """The slice without its ``#line`` directives, which name folders, and with its pieces on the lines that they have
    in the file as far as there is room."""
    ends = len(document.line_starts)
    lines: list[str] = []
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            lines.append(line)
        elif match[2] == (document.path or "text") and len(match[1]) < 9 and len(lines) < int(match[1]) <= ends:
            lines += [""] * (int(match[1]) - 1 - len(lines))
    return "\n".join(lines)
