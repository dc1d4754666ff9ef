"""Files of a made-up workspace as a table, and places in them by what stands there."""

from collections.abc import Iterable, Mapping

from agent.source.index.facts import Found
from agent.source.index.packing import pack
from agent.source.index.reading import read_facts
from agent.source.index.table import Table
from agent.source.span import Span

Files = Mapping[str, str]


def table_of(files: Files) -> Table:
    table = Table()
    for key, text in files.items():
        table.put(key, pack(read_facts(text.encode())))
    return table


def at(files: Files, key: str, mark: str) -> int:
    """The offset of ``|`` in a piece of a file's text."""
    text, piece = files[key].encode(), mark.encode()
    place = text.index(piece.replace(b"|", b""))
    return place + piece.index(b"|")


def shown(files: Files, found: Iterable[Found]) -> list[str]:
    """``file:line name`` of each, lines from 1."""
    return sorted(f"{one.key}:{line(files, one.key, one.definition.span)} {one.definition.qualified}" for one in found)


def line(files: Files, key: str, span: Span) -> int:
    return files[key].encode().count(b"\n", 0, span.start) + 1
