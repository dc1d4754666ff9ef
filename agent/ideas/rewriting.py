"""From edits of a kernel to the code of a candidate: the user's own text, changed in as few places as possible."""

import re

from attrs import frozen
from tree_sitter import Node

from agent.ideas.layout import laid_out
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits, splice
from agent.source.headers import header_place, includes
from agent.source.kernel import Kernel
from agent.source.line_ends import line_end
from agent.source.span import Span
from agent.workload.plan import Plan

_COUNTERS = ("k", "j", "m", "p", "q")
_INCLUDE = re.compile(r"#include <([\w./]+)>\n+")


@frozen
class Rewrite:
    """Edits inside the kernel's definition (spans in the document), helper functions to stand above it, and the plan
    (None: the same launches as before). ``kernels`` are further kernels to stand between the two: other than helpers,
    they are indented as this one already. ``headers`` are those of the toolkit that are needed (``cuda_pipeline.h``):
    they may be there already."""

    edits: tuple[Edit, ...]
    helpers: tuple[str, ...] = ()
    plan: Plan | None = None
    kernels: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


def replace(node: Node, text: str) -> Edit:
    return Edit(Span(node.start_byte, node.end_byte), text.encode())


def replace_between(first: Node, last: Node, text: str) -> Edit:
    """Put ``text`` in the place of everything from one node's start to another's end."""
    return Edit(Span(first.start_byte, last.end_byte), text.encode())


def insert_before(document: Document, statement: Node, lines: str) -> Edit:
    """Put lines before a statement, indented as it is; ``lines`` are written without indentation."""
    return Edit(
        Span(statement.start_byte, statement.start_byte),
        (indented(document, statement, lines) + "\n" + indent_of(document, statement)).encode(),
    )


def insert_after(document: Document, statement: Node, lines: str) -> Edit:
    """Put lines after a statement (and the comment at the end of its line), indented as it is."""
    end = _end_of_line(document, statement.end_byte)
    return Edit(Span(end, end), ("\n" + indent_of(document, statement) + indented(document, statement, lines)).encode())


def remove(document: Document, statement: Node) -> Edit:
    """Take a statement away, with the whole of its lines where it has them for itself."""
    return remove_between(document, statement, statement)


def remove_between(document: Document, first: Node, last: Node) -> Edit:
    start = document.line_starts[document.line(first.start_byte) - 1]
    end = _end_of_line(document, last.end_byte)
    if document.text[start : first.start_byte].strip() or not _ends_line(document, end):
        return Edit(Span(first.start_byte, last.end_byte), b"")
    stop = document.text.find(b"\n", end) + 1 or len(document.text)
    following = document.text[stop : document.text.find(b"\n", stop) + 1]
    if _blank_above(document, start) and following and not following.strip():
        stop += len(following)  # of two blank lines that would meet, one goes as well
    return Edit(Span(start, stop), b"")


def _blank_above(document: Document, start: int) -> bool:
    line = document.line(start)
    return line > 1 and not document.text[document.line_starts[line - 2] : start].strip()


def indent_of(document: Document, node: Node) -> str:
    """The white space at the start of the line that a node begins on."""
    start = document.line_starts[document.line(node.start_byte) - 1]
    line = document.text[start : node.start_byte]
    return line[: len(line) - len(line.lstrip())].decode("utf-8", "replace")


def indented(document: Document, node: Node, lines: str) -> str:
    """``lines`` with every line but the first indented as ``node`` is, for use at its place."""
    indent = indent_of(document, node)
    return ("\n" + indent).join(lines.split("\n"))


def indent_unit(document: Document, kernel: Kernel) -> str:
    """One step of the kernel's indentation: that of the first indented line of its body; four blanks where none is."""
    for line in document.slice_text(kernel.body).split("\n")[1:]:
        if line.strip() and line[0] in " \t":
            return "\t" if line[0] == "\t" else line[: len(line) - len(line.lstrip())]
    return "    "


def fresh_name(wanted: str, document: Document, *taken: str) -> str:
    """``wanted``, or with a number behind it, such that no identifier of the file is called so."""
    return unused_name(wanted, {*_identifiers(document.text), *taken})


def fresh_counter(document: Document, kernel: Kernel, *taken: str) -> str:
    """A name for the counter of a short loop: ``k``, or another letter before one with a number."""
    letters = (fresh_local(letter, document, kernel, *taken) for letter in _COUNTERS)
    return next((name for name in letters if len(name) == 1), fresh_local(_COUNTERS[0], document, kernel, *taken))


def fresh_local(wanted: str, document: Document, kernel: Kernel, *taken: str) -> str:
    """A name for a local: new to the kernel, and no macro's."""
    inside = _identifiers(document.text[kernel.span.start : kernel.span.end])
    return unused_name(wanted, {*inside, *(macro.name for macro in document.macros), *taken})


def _identifiers(text: bytes) -> set[str]:
    return {name.decode() for name in re.findall(rb"[A-Za-z_]\w*", text)}


def unused_name(wanted: str, used: set[str]) -> str:
    """``wanted``, or with a number behind it, such that it is none of ``used``."""
    name, number = wanted, 2
    while name in used:
        name, number = f"{wanted}_{number}", number + 1
    return name


def with_unit(helper: str, unit: str) -> str:
    """A helper written with four blanks a step, in the kernel's own indentation."""
    if unit == "    ":
        return helper
    return "\n".join(
        unit * ((len(line) - len(line.lstrip(" "))) // 4) + line.lstrip(" ") for line in helper.split("\n")
    )


def code_of(document: Document, kernel: Kernel, rewrite: Rewrite) -> str:
    """What stands for the kernel's definition after a rewrite: headers and helpers first, then the kernel, with plain
    line ends."""
    start = kernel.span.start
    edits = [Edit(Span(edit.span.start - start, edit.span.end - start), edit.text) for edit in rewrite.edits]
    definition = apply_edits(document.text[start : kernel.span.end], edits).decode("utf-8", "surrogateescape")
    unit = indent_unit(document, kernel)
    headers = "\n".join(f"#include <{name}>" for name in rewrite.headers)
    whole = "\n\n".join(
        [
            *([headers] if headers else []),
            *(with_unit(helper.strip("\n"), unit) for helper in rewrite.helpers),
            *rewrite.kernels,
            definition.replace("\r\n", "\n"),
        ]
    )
    return laid_out(whole, document, document.slice_text(kernel.span).replace("\r\n", "\n"), unit)


def splice_code(document: Document, kernel: Kernel, code: str) -> Document:
    """The document with ``code`` for the kernel's definition. What stands in ``code`` before the kernel of that name
    goes above the comment that belongs to the kernel, so that a helper does not come between the two; the ``#include``
    lines that ``code`` begins with go to the file's own, but for those that are there."""
    names, plain = _without_headers(code.replace("\r\n", "\n"))
    wanted = [name for name in names if not includes(document, name, kernel.span.start)]
    places = [(name, header_place(document, name, kernel.span.start)) for name in wanted]
    end = line_end(document.text)
    added = [
        Edit(Span(place.span.end, place.span.end), f"#include <{name}>".encode() + end)
        for name, place in places
        if place is not None
    ]
    if not added:
        lines = "".join(f"#include <{name}>\n" for name in wanted)
        return _spliced(document, kernel, f"{lines}\n{plain}" if wanted else plain)
    written = _spliced(document, kernel, plain)
    return parse(apply_edits(written.text, added), document.path, written)


def _without_headers(code: str) -> tuple[list[str], str]:
    """The headers that ``code`` begins with, and the rest."""
    names: list[str] = []
    while found := _INCLUDE.match(code):
        names.append(found[1])
        code = code[found.end() :]
    return names, code


def _spliced(document: Document, kernel: Kernel, plain: str) -> Document:
    comment = comment_start(document, kernel)
    inside = next(
        (other for other in parse(plain.encode("utf-8", "surrogateescape")).kernels if other.name == kernel.name), None
    )
    if comment is None or inside is None or inside.span.start == 0:
        return splice(document, kernel, plain)
    raw = plain.encode("utf-8", "surrogateescape")
    end = line_end(document.text)
    helpers, definition = (part.replace(b"\n", end) for part in (raw[: inside.span.start], raw[inside.span.start :]))
    edits = [Edit(Span(comment, comment), helpers), Edit(kernel.span, definition)]
    return parse(apply_edits(document.text, edits), document.path, document)


def code_in(written: Document, base: Document, kernel: Kernel) -> str | None:
    """The code that :func:`splice_code` would make ``written`` of ``base`` from, with plain line ends. None where more
    than the kernel and what is above it differs."""
    there = next((one for one in written.kernels if one.qualified_name == kernel.qualified_name), None)
    start, rest = _above(base, kernel), base.text[kernel.span.end :]
    if there is None or not (written.text.startswith(base.text[:start]) and written.text.endswith(rest)):
        return None
    helpers = written.text[start : _above(written, there)]
    definition = written.text[there.span.start : len(written.text) - len(rest)]
    return (helpers + definition).decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def _above(document: Document, kernel: Kernel) -> int:
    comment = comment_start(document, kernel)
    return kernel.span.start if comment is None else comment


def comment_start(document: Document, kernel: Kernel) -> int | None:
    """Where the comment right above a kernel begins, if there is one and it starts its line at the kernel's own
    indentation."""
    found: int | None = None
    lines = document.text[: kernel.span.start].split(b"\n")
    if lines[-1].strip():
        return None
    at = kernel.span.start - len(lines[-1])
    in_block = False
    for line in reversed(lines[:-1]):
        stripped = line.strip()
        if not in_block and stripped.endswith(b"*/") and b"/*" not in stripped:
            in_block = True
        elif in_block:
            in_block = b"/*" not in stripped
        elif not (stripped.startswith(b"//") or (stripped.startswith(b"/*") and stripped.endswith(b"*/"))):
            break
        at -= len(line) + 1
        found = at
    return None if in_block else found


def _ends_line(document: Document, offset: int) -> bool:
    return document.text[offset : offset + 2].startswith((b"\n", b"\r\n")) or offset == len(document.text)


def _end_of_line(document: Document, offset: int) -> int:
    end = document.text.find(b"\n", offset)
    end = len(document.text) if end < 0 else end
    rest = document.text[offset:end].strip()
    # A comment after the statement belongs to it; anything else on the line does not.
    if rest and not rest.startswith(b"//"):
        return offset
    return end - 1 if document.text[end - 1 : end] == b"\r" else end


def source_text(document: Document, node: Node) -> str:
    """What the user wrote at a node, with plain line ends."""
    return document.text[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape").replace("\r\n", "\n")
