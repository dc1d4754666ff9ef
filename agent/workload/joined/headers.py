"""A document together with the local headers that it includes, for what they declare."""

import functools

from agent.source.document import Document
from agent.workload.joined.build_flags import build_flags, include_folders
from agent.workload.joined.conditionals import BuildFlag
from agent.workload.joined.files import absolute, closure, stamp
from agent.workload.joined.joining import join


def with_headers(document: Document) -> bytes:
    """The text of a document with its local headers in their places; its own text where it has none."""
    if not document.path or b"#" not in document.text:
        return document.text
    path = absolute(document.path)
    stamps = tuple(stamp(one) for one in sorted(closure(path) - {path}))
    return _read(path, document.text, stamps, tuple(build_flags(path).values()), include_folders(path))


@functools.lru_cache(maxsize=32)
def _read(
    path: str, text: bytes, _stamps: tuple[tuple[int, int], ...], flags: tuple[BuildFlag, ...], folders: tuple[str, ...]
) -> bytes:
    return join([(path, text)], {flag.name: flag for flag in flags}, folders).text
