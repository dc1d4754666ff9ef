"""From a rewritten document to the same one in the user's style."""

from collections.abc import Callable
from pathlib import Path

from agent.search.formatting.lines import only_in, says_the_same, written
from agent.search.formatting.tool import SECONDS, NotFormatted, edits_of, formatter_for, style_file
from agent.source.document import Document, parse
from agent.source.edits import apply_edits

Formatter = Callable[[Document, Document], Document]
"""Gives a rewritten document, and the one that it was made from, with the lines formatted that differ."""

_FAILURES = 2
"""Failures in a row after which a search goes on without the tool, which would take its time for nothing."""


def unformatted(document: Document, base: Document) -> Document:
    return document


def formatter(path: str, note: Callable[[str], None], seconds: float = SECONDS) -> Formatter:
    """The formatter for a file: lines stay as they are where no ``.clang-format`` applies to it. What goes wrong is
    told to ``note``, each thing once, and what was written then stays as it is."""
    style = style_file(path) if path else None
    if style is None:
        return unformatted
    tool = formatter_for(path)
    if tool is None:
        note(f"{style} applies, but there is no clang-format to follow it with: pip install clang-format")
        return unformatted
    said: set[str] = set()
    failures = 0

    def formatted(document: Document, base: Document) -> Document:
        nonlocal failures
        if failures >= _FAILURES:
            return document
        try:
            made = _formatted(document, base, tool, path, seconds)
            failures = 0
        except NotFormatted as problem:
            failures += 1
            if str(problem) not in said:
                said.add(str(problem))
                note(f"not formatted as {style} says: {problem}")
            return document
        return made

    return formatted


def _formatted(document: Document, base: Document, tool: Path, path: str, seconds: float) -> Document:
    lines = written(base.text, document.text)
    if not lines:
        return document
    edits = only_in(lines, document.text, edits_of(tool, path, document.text, lines, seconds))
    text = apply_edits(document.text, edits)
    if not says_the_same(document.text, text):
        raise NotFormatted("it asks for other words, or for changes of lines that the rewrite does not touch")
    return parse(text, document.path, document) if text != document.text else document
