"""What ideas write, laid out as the file is: where its ``#pragma`` lines begin, how long its lines are."""

import re
import textwrap

from agent.source.document import Document

_UNROLL = re.compile(r"[ \t]*#\s*pragma\s+unroll\b")
_PROSE = re.compile(r"([ \t]*)// (?=[^\s/])")
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
    for at, line in enumerate(lines := _reflowed(lines, kept, limit)):
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


def _reflowed(lines: list[str], kept: set[str], limit: int) -> list[str]:
    """The lines with every comment of several lines filled anew, as it came with the names that it mentions."""
    found: list[str] = []
    block: list[str] = []
    for line in [*lines, ""]:
        indent = _PROSE.match(line)
        if indent is not None and line not in kept and (not block or block[0].startswith(f"{indent[1]}// ")):
            block.append(line)
            continue
        found += _filled(block, limit) if len(block) > 1 else block
        block = [line] if indent is not None and line not in kept else []
        found += [] if block else [line]
    return found[:-1]


def _filled(block: list[str], limit: int) -> list[str]:
    mark = block[0][: block[0].index("//") + 3]
    text = " ".join(line.strip()[3:] for line in block)
    return textwrap.wrap(
        text, limit, initial_indent=mark, subsequent_indent=mark, break_long_words=False, break_on_hyphens=False
    )


def _broken(line: str, limit: int, unit: str) -> list[str]:
    """A line, or several where it is too long and begins a list of parameters, or is a head with its statement:
    ``for (...) statement;``."""
    if len(line) > limit and line.startswith(("__global__", "__device__", "static", "template", "extern")):
        return _listed(line, limit)
    head = _HEAD.match(line)
    if head is None or len(line) <= limit or not line.endswith(";"):
        return [line]
    depth, at = 1, head.end()
    while at < len(line) and depth:
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        at += 1
    indent = line[: len(line) - len(line.lstrip())]
    return [line[:at], f"{indent}{unit}{line[at:].lstrip()}"] if line[at:].strip() not in ("", ";") else [line]


def _listed(line: str, limit: int) -> list[str]:
    """Parameters over several lines, aligned with the bracket that they stand in."""
    opening = re.search(r"(?<!__launch_bounds__)\((?=[^()]*,)", line)
    margin = " " * opening.end() if opening is not None else ""
    found = [line]
    while opening is not None and len(found[-1]) > limit:
        cut = found[-1].rfind(", ", len(margin), limit)
        if cut < 0:
            break
        found[-1:] = [found[-1][: cut + 1], margin + found[-1][cut + 2 :]]
    return found
