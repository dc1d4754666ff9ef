"""Directives that no kernel has: they stand above something else, and nobody reads them.

Light to import: the editor's server looks for them as it starts.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

from attrs import frozen

from agent.source.document import Document
from agent.source.span import Span

# What may stand between a directive and its kernel besides other comments: specifiers and preprocessor lines.
BETWEEN = re.compile(r"//[^\n]*|/\*.*?\*/|^[^\S\n]*#[^\n]*|\bextern\s*\"C\"\s*\{?|\bstatic\b|\binline\b", re.M | re.S)
_MARK = re.compile(rb"(?://+|/\*+|^[^\S\n]*\*)[^\S\n]*(cuda-lsp:\s*workload\b)", re.M)
_LINES = re.compile(rb"[^\n]*(?:\n[^\S\n]*//[^\n]*)*")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")
_ATTRIBUTE = re.compile(r"__\w+__\s*\([^()]*\)|\b(?:alignas|decltype|sizeof)\s*\([^()]*\)")
_LONGEST = 60


@frozen
class Stray:
    """``span`` is the directive's mark; ``message`` says what follows it, and what to do."""

    span: Span
    line: int
    message: str


def stray_directives(document: Document) -> tuple[Stray, ...]:
    """The directives that stand right above no kernel, in text order; none while the text is read in haste."""
    return tuple(_found(document)) if b"cuda-lsp:" in document.text and not document.hasty else ()


def _found(document: Document) -> Iterator[Stray]:
    kernels = document.kernels
    starts = [kernels.start(at) for at in range(len(kernels))]
    marks = list(_MARK.finditer(document.text))
    for number, match in enumerate(marks):
        following = marks[number + 1] if number + 1 < len(marks) else None
        end = _comment_end(document.text, match)
        at = bisect_left(starts, end)
        stop = starts[at] if at < len(starts) else len(document.text)
        if following is not None and following.start() < stop:
            stop, at = following.start(), len(starts)
        if at < len(starts) and kernels[at].damage is not None:
            continue  # where its head begins is not certain
        code = BETWEEN.sub("", document.text[end:stop].decode("utf-8", "replace")).strip()
        if code or at == len(starts):
            span = Span(match.start(1), match.end(1))
            yield Stray(span, document.line(span.start), _message(code, following is not None and not code))


def _comment_end(text: bytes, match: re.Match[bytes]) -> int:
    """Where the comment ends: a block, or all lines in a row that are comments."""
    if not match.group().startswith(b"//"):
        closed = text.find(b"*/", match.end())
        return len(text) if closed < 0 else closed + 2
    lines = _LINES.match(text, match.end())
    return lines.end() if lines is not None else match.end()


def _message(code: str, again: bool) -> str:
    first = " ".join(code.split("\n", 1)[0].split())[:_LONGEST]
    head = _ATTRIBUTE.sub(" ", code[: code.find("{")] if "{" in code else code)
    named = _NAME.search(head)
    why = f"`{first}` follows it" if first else "another one follows it" if again else "nothing follows it"
    if named is not None and "__device__" in code[: code.find(named[1])]:
        why = f"`{named[1]}` is a device function, which nothing launches"
    return f"this directive is read for no kernel: {why}; put it right above a `__global__` function"
