"""How a kernel uses the members of structs that it takes by value: which pointers in them, and whether in sight.

What is read off the syntax alone is told by paths, as the kernel writes them: ``p.bias.w``.
"""

import re
from collections.abc import Iterator, Mapping

from attrs import frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.source.nodes import field as child
from agent.source.nodes import text_of, walk
from agent.source.records import Record, records
from agent.workload.joined.headers import with_headers
from agent.workload.types import split_name

_DEEPEST = 6


@frozen
class Paths:
    """``pointers`` maps the path of each member that is a plain pointer to whether nothing is written through it.
    ``structs`` are the paths of structs, of arrays and of pointers to pointers: a use of one is a use of all in it."""

    pointers: Mapping[str, bool]
    structs: frozenset[str]

    @property
    def roots(self) -> frozenset[str]:
        return frozenset(path.split(".")[0] for path in self.structs)


def paths(document: Document, kernel: Kernel) -> Paths:
    """The members of the structs that a kernel takes by value, whose types the file tells by name."""
    pointers: dict[str, bool] = {}
    structs: set[str] = set()
    named = {one.name for one in kernel.template}
    for parameter in kernel.parameters:
        bare = split_name(parameter.element)[0].split("::")[-1]
        if parameter.pointer_depth or bare in named:
            continue
        for path, held in _members(bare, parameter.name, with_headers(document), 0):
            if held is None:
                structs.add(path)
            else:
                pointers[path] = held
    return Paths(pointers, frozenset(structs))


def _members(name: str, path: str, source: bytes, depth: int) -> Iterator[tuple[str, bool | None]]:
    known = records(source).get(name, ())
    if len(known) != 1:
        return
    yield path, None
    yield from _of(known[0], path, source, depth)


def _of(record: Record, path: str, source: bytes, depth: int) -> Iterator[tuple[str, bool | None]]:
    for member in record.members:
        here = f"{path}.{member.name}"
        if member.stars == 1 and not member.extents:
            yield here, member.const
        elif member.stars or member.extents:
            yield here, None
        elif depth < _DEEPEST and member.inner is not None:
            yield here, None
            yield from _of(member.inner, here, source, depth + 1)
        elif depth < _DEEPEST:
            yield from _members(split_name(member.type)[0].split("::")[-1], here, source, depth + 1)


def path_of(node: Node, text: bytes) -> str:
    """``p.bias.w`` as a path; empty for anything else."""
    if node.type != "field_expression":
        return ""
    told = re.sub(r"\s+", "", text_of(text, node))
    return told if re.fullmatch(r"\w+(\.\w+)+", told) else ""


def seen(body: Node, known: Paths, text: bytes) -> frozenset[str]:
    """The longest path of every mention of a struct's parts in a kernel's body: ``p.n``, or ``p`` where it is handed on
    as a whole."""
    found: set[str] = set()
    for node in walk(body):
        if node.type == "identifier" and text_of(text, node) in known.roots:
            here, path = node, text_of(text, node)
            while (
                here.parent is not None
                and child(here.parent, "argument") == here
                and (longer := path_of(here.parent, text))
                and (path in known.structs)
                and not _calls(here.parent)
            ):
                here, path = here.parent, longer
            found.add(path)
    return frozenset(found)


def _calls(node: Node) -> bool:
    """Whether a member is called: a method may use all of its struct."""
    return node.parent is not None and node.parent.type == "call_expression" and child(node.parent, "function") == node


def touched(path: str, mentioned: frozenset[str]) -> bool:
    """Whether a mention is of a path, of what holds it, or of something in it."""
    return any(
        path == one or path.startswith((f"{one}.", f"{one}[")) or one.startswith(f"{path}.") for one in mentioned
    )
