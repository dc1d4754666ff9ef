"""What ideas write, laid out as the file is: where its ``#pragma`` lines begin, how long its lines are."""

import re

from agent.source.document import Document

_UNROLL = re.compile(r"[ \t]*#\s*pragma\s+unroll\b")
_HEAD = re.compile(r"[ \t]*(?:for|if|while) \(")
_LIMITS = 100, 120
"""Columns that a line may always take, and those that it may take at most."""


def laid_out(code: str, document: Document, own: str, unit: str) -> str:
    """``code`` with its lines laid out, but for those that stand in ``own`` already; ``unit`` is one indentation."""
    kept = set(own.split("\n"))
    lines = code.split("\n")
    flat = _has_flat_pragmas(document)
    limit = line_limit(document)
    found: list[str] = []
    for at, line in enumerate(lines):
        if line in kept:
            found.append(line)
        elif _UNROLL.match(line):
            found.append(line.lstrip() if flat else _indent(lines, at) + line.lstrip())
        else:
            found += _broken(line, limit, unit)
    return "\n".join(found)


def line_limit(document: Document) -> int:
    """Columns that a line of this file may take: as its longest one, within bounds."""
    least, most = _LIMITS
    return max(least, min(most, max(map(len, document.text.decode("utf-8", "replace").splitlines()), default=0)))


def _has_flat_pragmas(document: Document) -> bool:
    """Whether the file has more of them at the start of the line than with the code. Without any they go with it."""
    lines = [line for line in document.text.decode("utf-8", "replace").split("\n") if _UNROLL.match(line)]
    return 2 * sum(line.startswith("#") for line in lines) > len(lines)


def _indent(lines: list[str], at: int) -> str:
    """The indentation of the next line that is no ``#pragma``."""
    following = next((line for line in lines[at + 1 :] if line.strip() and not line.lstrip().startswith("#")), "")
    return following[: len(following) - len(following.lstrip())]


def _broken(line: str, limit: int, unit: str) -> list[str]:
    """A line, or two where it is too long and is a head with its statement: ``for (...) statement;``."""
    head = _HEAD.match(line)
    if head is None or len(line) <= limit or not line.endswith(";"):
        return [line]
    depth, at = 1, head.end()
    while at < len(line) and depth:
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        at += 1
    indent = line[: len(line) - len(line.lstrip())]
    return [line[:at], f"{indent}{unit}{line[at:].lstrip()}"] if line[at:].strip() not in ("", ";") else [line]
