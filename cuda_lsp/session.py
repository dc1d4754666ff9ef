"""What a client has open: documents as immutable snapshots, its settings, and what it can do."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

from attrs import field, frozen
from lsprotocol import types
from pygls.uris import to_fs_path

from agent.source.document import Document, parse
from agent.source.line_ends import with_newlines
from agent.source.parsing import changed_range
from cuda_lsp.client import Client
from cuda_lsp.lines import LineIndex, encoded, mended
from cuda_lsp.settings import Settings

T = TypeVar("T")

log = logging.getLogger(__name__)

LANGUAGES = frozenset({"cuda-cpp", "cuda"})
ENDINGS = (".cu", ".cuh")
# a client may hold any text open; what is longer than this is no source that anybody reads
LONGEST = 32 << 20
# bytes between two edits that are a few functions' worth: reading them takes some milliseconds
FAR = 8 << 10


@frozen
class Snapshot:
    """One open document at one version. ``path`` is empty for a document that is no file (``untitled:``).

    ``base`` is an earlier state of the document, whose parse is reused. ``near`` is the one just before, known in
    haste: it is gone on from between two keys where the edits since ``base`` lie far apart.
    """

    uri: str
    path: str
    version: int
    language_id: str
    lines: LineIndex = field(repr=False)
    base: Document | None = field(default=None, repr=False, eq=False)
    near: Document | None = field(default=None, repr=False, eq=False)
    _parses: list[Document] = field(factory=list, repr=False, eq=False)
    _derived: dict[Any, Any] = field(factory=dict, repr=False, eq=False)

    @cached_property
    def text(self) -> bytes:
        """What the client has, with ``\\n`` for a lone ``\\r``: the same offsets and lines as in ``lines``."""
        return with_newlines(self.lines.text)

    @property
    def document(self) -> Document:
        """The text as it is known now: parsed when first asked for, and in haste where an earlier state is known."""
        if not self._parses:
            self._parses.append(parse(self.text, self.path, self._begun, hasty=True))
        return self._parses[-1]

    @property
    def _begun(self) -> Document | None:
        """What a hasty parse begins with. Between two far places all would be read, of which nothing was edited; what
        stands at the other one is left as it was found, until a pause."""
        base, near = self.base, self.near
        if base is None or near is None or near.state is None or near.state.kept:
            return base
        start, _, end = changed_range(base.text, self.text)
        if end - start <= FAR:
            return base
        start, _, end = changed_range(near.text, self.text)
        return near if end - start <= FAR else base

    def read(self) -> Document:
        """The text read with care, at once: for what must not rest on a hasty parse (a job, an edit of ours)."""
        if self.document.hasty:
            self.settle(parse(self.text, self.path, self.base))
        return self.document

    def settle(self, document: Document) -> None:
        """From here on the text is known by a careful parse of it."""
        self._parses.append(document)
        self._derived.clear()

    @property
    def next_base(self) -> Document | None:
        """What the next snapshot's parse begins with: the newest in which every bracket is closed, if there is one."""
        mine = self._parses[-1] if self._parses else None
        if mine is None or mine.hasty or mine.state is None:
            return self.base
        old = self.base.state if self.base is not None else None
        return mine if mine.state.balanced or old is None or not old.balanced else self.base

    def once(self, compute: Callable[[Snapshot], T]) -> T:
        """What ``compute`` makes of this snapshot, computed when first asked for."""
        if compute not in self._derived:
            self._derived[compute] = compute(self)
        derived: T = self._derived[compute]
        return derived

    def changed(self, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]) -> Snapshot:
        """The next snapshot: ``changes`` applied one after the other."""
        lines = self.lines
        for change in changes:
            text = encoded(change.text)
            if isinstance(change, types.TextDocumentContentChangePartial):
                lines = lines.edited(lines.span_of(change.range), text)
            else:
                lines = LineIndex(mended(text), lines.encoding)
        near = self._parses[-1] if self._parses else self.near
        return Snapshot(self.uri, self.path, version, self.language_id, lines, self.next_base, near)


Listener = Callable[[Snapshot | None, Snapshot | None], None]


class Session:
    """The state of one client's connection. Read and written on the event loop only."""

    def __init__(self) -> None:
        self.client = Client()
        self.settings = Settings()
        self.told_at_start: Any = None
        """The ``initializationOptions``: settings in the same shape as those that are asked for later."""
        self.rules: dict[str, Settings] = {}
        """By document: the settings with what its project says about the rules, where it says something."""
        self.folders: dict[str, str] = {}
        self._open: dict[str, Snapshot] = {}
        self._listeners: list[Listener] = []

    def snapshot(self, uri: str) -> Snapshot | None:
        """The newest state of an open CUDA document, else None."""
        return self._open.get(uri)

    def snapshots(self) -> tuple[Snapshot, ...]:
        return tuple(self._open.values())

    def ruling(self, uri: str) -> Settings:
        """The settings that hold for the rules in one document."""
        return self.rules.get(uri, self.settings)

    def subscribe(self, listener: Listener) -> None:
        """``listener(old, new)`` is called after every open (old is None), change and close (new is None)."""
        self._listeners.append(listener)

    def open(self, item: types.TextDocumentItem) -> Snapshot | None:
        """Opened again without a close, a document begins anew. None for what is no CUDA source."""
        path = to_fs_path(item.uri) or "" if item.uri.startswith("file:") else ""
        if not is_cuda(item.language_id, item.uri) or len(item.text) > LONGEST:
            self.close(item.uri)
            return None
        lines = LineIndex(mended(encoded(item.text)), self.client.encoding)
        return self._put(item.uri, Snapshot(item.uri, path, item.version, item.language_id, lines))

    def change(
        self, uri: str, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]
    ) -> Snapshot | None:
        """None where the document is not open."""
        old = self._open.get(uri)
        return self._put(uri, old.changed(version, changes)) if old is not None else None

    def close(self, uri: str) -> None:
        old = self._open.pop(uri, None)
        if old is not None:
            self._tell(old, None)

    def folder_of(self, snapshot: Snapshot) -> str | None:
        """The innermost workspace folder that a document lies in."""
        within = [uri for uri in self.folders if snapshot.uri.startswith(uri.rstrip("/") + "/")]
        return max(within, key=len, default=None)

    def _put(self, uri: str, new: Snapshot) -> Snapshot:
        old = self._open.get(uri)
        self._open[uri] = new
        self._tell(old, new)
        return new

    def _tell(self, old: Snapshot | None, new: Snapshot | None) -> None:
        for listener in self._listeners:
            try:
                listener(old, new)
            except Exception:  # one feature that fails must not keep the others from hearing
                log.exception("a listener of the session failed")


def ordinals(snapshot: Snapshot) -> dict[int, int]:
    """By the offset of each kernel, the how-manieth of its name it is: the branches of an ``#if`` may share one."""
    seen: dict[str, int] = {}
    found: dict[int, int] = {}
    kernels = snapshot.document.kernels
    for index, kernel in enumerate(kernels.as_read):
        before = found[kernels.start(index)] = seen.get(kernel.qualified_name, 0)
        seen[kernel.qualified_name] = before + 1
    return found


def surroundings(snapshot: Snapshot) -> bytes:
    """A digest of all text outside the kernels: helpers, constants and host code that kernels depend on."""
    return around_kernels(snapshot.document)


def around_kernels(document: Document) -> bytes:
    """The same of a text that may be from before."""
    digest, at = hashlib.blake2b(), 0
    kernels = document.kernels
    for index in range(len(kernels)):
        digest.update(document.text[at : kernels.start(index)])
        at = kernels.end(index)
    digest.update(document.text[at:])
    return digest.digest()


def is_cuda(language_id: str, uri: str) -> bool:
    """Told by the language, or by the name where an editor takes the file for C++."""
    return language_id in LANGUAGES or uri.lower().endswith(ENDINGS)
