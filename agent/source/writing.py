"""Writes pieces of files so that a compiler reports each on its own line."""

import re

from agent.source.document import Document
from agent.source.span import Span


class Writer:
    """Puts pieces one after another, each beginning a line, with ``#line`` where its number would be wrong."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._path: str | None = None
        self._line = 0

    def put(self, document: Document, span: Span, code: bytes | None = None) -> None:
        """Write ``code`` (what stands in ``span`` if None) at the place of ``span``."""
        line = document.line(span.start)
        if (document.path, line) != (self._path, self._line):
            self._pieces.append(f'#line {line} "{_quoted(document.path or "text")}"\n')
        raw = document.text[span.start : span.end] if code is None else code
        text = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", " ")
        self._pieces.append(text if text.endswith("\n") else text + "\n")
        self._path = document.path
        self._line = line + self._pieces[-1].count("\n")

    def text(self) -> str:
        return "".join(self._pieces)


def named(path: str) -> str:
    """A path as compilers can say it: an assembler reads no quote in a file's name, however it is written, and takes
    what begins with a dash for an option."""
    plain = re.sub(r'["\x00-\x1f]', "_", path)
    return f"./{plain}" if plain.startswith("-") else plain


def _quoted(path: str) -> str:
    return named(path).replace("\\", "\\\\")
